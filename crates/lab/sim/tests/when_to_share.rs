//! What SJF-BSBF becomes at the ends: SJF-FFS where jobs do not feel each other, and SJF where they
//! feel each other so much that no pair pays.

use deepshare_engine::{CapacityMode, Placer};
use deepshare_interference::{
    Assignment, ContentionModel, Mechanism, RetentionMatrix, SHIPPED_CONFIGURATIONS,
};
use deepshare_metrics::RunRecord;
use deepshare_model::{ProfileClassId, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Interference, SimSettings, Watch, simulate};
use deepshare_trace::{
    Cluster, ClusterOptions, ReadOptions, Trace, read_cluster_from, read_trace_from,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Cursor;
use std::sync::Arc;

const SEEDS: u64 = 12;
/// Shortest and longest job, s.
const SECS: (u64, u64) = (20, 2_000);

/// Sixty jobs for six GPUs, in bursts.
fn jobs(seed: u64, most_gpus: u32) -> Trace {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut rows = "job_id,tenant,gpus,submit_s,duration_s\n".to_owned();
    let mut submit = 0;
    for job in 0..60 {
        submit += [0, 0, 30, 600][rng.random_range(0..4)];
        let (gpus, secs) = (rng.random_range(1..=most_gpus), rng.random_range(SECS.0..=SECS.1));
        rows += &format!("{job},t,{gpus},{submit},{secs}\n");
    }
    read_trace_from("t.csv", Cursor::new(rows), &ReadOptions::default())
        .expect("the test's own input is sound")
}

fn cluster(gpu_memory_mib: u32) -> Cluster {
    let nodes = format!("[[node]]\ncount = 3\ngpus = 2\ngpu_memory_mib = {gpu_memory_mib}\n");
    read_cluster_from("c.toml", Cursor::new(nodes), ClusterOptions::default())
        .expect("the test's own input is sound")
}

/// Jobs that take so many thousandths of their time while they share.
fn slowed(trace: &Trace, cluster: &Cluster, slowdown_milli: u64, seed: u64) -> Interference {
    let pool = SHIPPED_CONFIGURATIONS[0].configurations().expect("it comes with the program");
    let assignment = Assignment::from_pool(&pool, trace, cluster, 0, seed)
        .expect("the test's own input is sound");
    let classes = assignment.catalogue.len();
    let ppm = u32::try_from(1_000_000_000 / slowdown_milli).expect("slowdowns are 1 and more");
    let truth = RetentionMatrix::from_rows(&vec![vec![ppm; classes]; classes])
        .expect("slowdowns are 1 and more");
    Interference::new(&assignment, &truth, &truth)
}

fn run(policy: PolicyConfig, trace: &Trace, cluster: &Cluster, told: &Interference) -> RunRecord {
    let mut settings = SimSettings::new(policy);
    settings.engine.capacity = CapacityMode::Pool;
    settings.engine.placer = Placer::NodeOrder;
    settings.interference = Some(Arc::new(told.clone()));
    settings.audit = true;
    let run = simulate(trace, cluster, &settings, &Watch::default());
    let run = run.expect("no rule is broken");
    assert!(run.jobs.iter().all(|job| job.preemptions == 0), "nobody is preempted");
    run
}

fn named(name: &str) -> PolicyConfig {
    PolicyConfig::by_name(name).expect("the policy's own name")
}

fn starts(record: &RunRecord) -> Vec<Option<Time>> {
    record.jobs.iter().map(|job| job.first_start).collect()
}

/// 1 + T_max / (2 · T_min) of the trace, thousandths, and a little more.
fn never_pays(trace: &Trace) -> u64 {
    let secs = trace.jobs.iter().map(|job| job.duration.0);
    let (least, most) = (secs.clone().min().unwrap_or(1), secs.max().unwrap_or(1));
    1_001 + (1_000 * most).div_ceil(2 * least)
}

/// Memory for any two of the models as they are.
const SLACK: u32 = 65_536;

#[test]
fn where_nobody_is_slowed_it_starts_whom_first_fit_starts() {
    let cluster = cluster(SLACK);
    for seed in 0..SEEDS {
        let trace = jobs(seed, 1);
        let told = slowed(&trace, &cluster, 1_000, seed);
        let wise = run(named("sjf-bsbf"), &trace, &cluster, &told);
        let first_fit = run(named("sjf-ffs"), &trace, &cluster, &told);
        assert!(first_fit.pairs.formed > 0, "seed {seed}");
        assert_eq!(starts(&wise), starts(&first_fit), "seed {seed}");
    }
}

#[test]
fn where_no_pair_can_pay_it_is_shortest_job_first() {
    let cluster = cluster(SLACK);
    for seed in 0..SEEDS {
        let trace = jobs(seed, 1);
        let told = slowed(&trace, &cluster, never_pays(&trace), seed);
        let wise = run(named("sjf-bsbf"), &trace, &cluster, &told);
        assert_eq!(wise.pairs.formed, 0, "seed {seed}");
        for skip in [false, true] {
            let alone = run(PolicyConfig::Sjf { skip }, &trace, &cluster, &told);
            assert_eq!(starts(&wise), starts(&alone), "seed {seed}, skip {skip}");
        }
    }
}

#[test]
fn with_gangs_it_is_shortest_job_first_that_passes_over_who_does_not_fit() {
    let cluster = cluster(SLACK);
    let mut passed_over = false;
    for seed in 0..SEEDS {
        let trace = jobs(seed, 6);
        let told = slowed(&trace, &cluster, never_pays(&trace), seed);
        let wise = starts(&run(named("sjf-bsbf"), &trace, &cluster, &told));
        let alone = |skip| starts(&run(PolicyConfig::Sjf { skip }, &trace, &cluster, &told));
        assert_eq!(wise, alone(true), "seed {seed}");
        passed_over |= wise != alone(false);
    }
    assert!(passed_over, "in some trace a job waits for a gang");
}

#[test]
fn below_the_bound_pairs_pay_and_the_fewer_the_more_they_are_slowed() {
    let cluster = cluster(SLACK);
    let trace = jobs(1, 1);
    let formed = |slowdown| {
        let told = slowed(&trace, &cluster, slowdown, 1);
        run(named("sjf-bsbf"), &trace, &cluster, &told).pairs.formed
    };
    assert!(formed(1_400) > formed(3_000), "{} and {}", formed(1_400), formed(3_000));
    assert!(formed(3_000) > 0);
}

#[test]
fn memory_that_does_not_hold_two_is_not_exceeded() {
    // The models take 2,512 to 11,400 MiB; the auditor adds up what is on each device.
    let cluster = cluster(12_000);
    let (mut formed, mut split) = (0, false);
    for seed in 0..SEEDS {
        let trace = jobs(seed, 2);
        let told = slowed(&trace, &cluster, 1_100, seed);
        for name in ["sjf-bsbf", "sjf-ffs"] {
            let record = run(named(name), &trace, &cluster, &told);
            formed += record.pairs.formed;
            split |= record.jobs.iter().any(|job| {
                let whole = |job: usize| {
                    let class: ProfileClassId = told.class_of[job];
                    told.classes[class.index()].memory_mib
                };
                let own = whole(job.job.index());
                job.beside.iter().any(|other| own + whole(other.index()) > 12_000)
            });
        }
    }
    assert!(formed > 0);
    assert!(split, "somebody does iterations in steps to fit beside another");
}

#[test]
fn the_contention_model_lies_between_the_ends() {
    let cluster = cluster(SLACK);
    let trace = jobs(3, 1);
    let pool = SHIPPED_CONFIGURATIONS[0].configurations().expect("it comes with the program");
    let assignment = Assignment::from_pool(&pool, &trace, &cluster, 0, 3)
        .expect("the test's own input is sound");
    let model = ContentionModel::default();
    let (truth, _) = RetentionMatrix::truth(&assignment.catalogue, None, &model, Mechanism::Mps);
    let told = Interference::new(&assignment, &truth, &truth);
    let [wise, first_fit] =
        ["sjf-bsbf", "sjf-ffs"].map(|name| run(named(name), &trace, &cluster, &told));
    assert!(wise.pairs.formed > 0 && wise.pairs.formed < first_fit.pairs.formed);
}
