//! The simulator against a naive program that counts seconds: on random small worlds every job
//! starts and ends in the same second, after the same waiting and as many preemptions.

use deepshare_engine::{CapacityMode, Placer};
use deepshare_metrics::JobRecord;
use deepshare_model::{Span, TenantId, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Estimator, SimSettings, Watch, compat, simulate};
use deepshare_testkit::{plain_job, trace_of};
use deepshare_ticker::{OracleJob, OraclePolicy, OracleResult, OracleSettings, Semantics};
use deepshare_trace::{Cluster, TraceJob};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const WORLDS: u64 = 250;
const GPUS_PER_NODE: u32 = 8;
const POLICIES: [(&str, OraclePolicy); 5] = [
    ("fifo", OraclePolicy::Fifo),
    ("sjf", OraclePolicy::Sjf),
    ("qssf", OraclePolicy::Qssf),
    ("srtf", OraclePolicy::Srtf),
    ("tiresias", OraclePolicy::Tiresias),
];

struct World {
    vcs: Vec<u32>,
    jobs: Vec<OracleJob>,
    demotion_gpu_s: u64,
}

fn draw(seed: u64) -> World {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let vcs: Vec<u32> = (0..rng.random_range(1..=3)).map(|_| rng.random_range(1..=3)).collect();
    // From a crowd at one instant to a trickle; from seconds, full of ties, to half an hour.
    let gap = [0, 1, 10, 60][rng.random_range(0..4)];
    let longest = [3, 60, 300, 1_800][rng.random_range(0..4)];
    let mut submit_s = rng.random_range(0..100);
    let jobs = (0..rng.random_range(2..=40))
        .map(|id| {
            submit_s += rng.random_range(0..=gap);
            let vc = rng.random_range(0..vcs.len());
            let gpus = [1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 20][rng.random_range(0..14)];
            OracleJob {
                id,
                vc,
                gpus: gpus.min(vcs[vc] * GPUS_PER_NODE),
                submit_s,
                duration_s: rng.random_range(1..=longest),
                estimate_s: rng.random_range(1..=longest as i64),
            }
        })
        .collect();
    World { vcs, jobs, demotion_gpu_s: [50, 500, 18_000][rng.random_range(0..3)] }
}

fn oracle(world: &World, policy: OraclePolicy, semantics: Semantics) -> Vec<OracleResult> {
    let demotion_gpu_s = world.demotion_gpu_s;
    let settings = OracleSettings { demotion_gpu_s, ..OracleSettings::new(policy, semantics) };
    deepshare_ticker::simulate(&settings, &world.vcs, &world.jobs, 0)
}

fn simulated(world: &World, policy: &str, semantics: Semantics) -> Vec<OracleResult> {
    let names = (0..world.vcs.len()).map(|vc| format!("vc{vc}"));
    let tenants: Vec<(String, u32)> = names.zip(world.vcs.iter().copied()).collect();
    let cluster = Cluster::partitions(&tenants, GPUS_PER_NODE);
    let jobs = world.jobs.iter().enumerate().map(|(index, job)| TraceJob {
        tenant: TenantId::from_index(job.vc),
        ..plain_job(index, job.gpus, Time::from_secs(job.submit_s), Span::from_secs(job.duration_s))
    });
    let trace = trace_of(jobs.collect(), cluster.tenant_names());
    let mut settings = SimSettings::new(PolicyConfig::by_name(policy).expect("a listed name"));
    settings.engine.capacity = CapacityMode::Partition;
    settings.audit = true;
    if policy == "qssf" {
        let estimate = |job: &OracleJob| Span::from_secs(job.estimate_s.unsigned_abs());
        let values: Vec<Span> = world.jobs.iter().map(estimate).collect();
        settings.estimates = Estimator::Given { name: "given".to_owned(), values: values.into() };
    }
    match semantics {
        Semantics::Artifact => compat::lucid(&mut settings),
        Semantics::Plain => {
            // The ticker knows one placement and one way to count restarts.
            settings.engine.placer = Placer::ConsolidateArtifact;
            settings.restart.overhead_accumulates = true;
            match &mut settings.policy {
                PolicyConfig::Srtf { spare_unneeded, .. } => *spare_unneeded = false,
                PolicyConfig::Tiresias { spare_unneeded, interval, .. } => {
                    *spare_unneeded = false;
                    // A threshold can be crossed between two seconds.
                    *interval = Span::SECOND;
                }
                _ => {}
            }
        }
    }
    if let PolicyConfig::Tiresias { thresholds, .. } = &mut settings.policy {
        *thresholds = vec![Span::from_secs(world.demotion_gpu_s).on(1)];
    }
    let run = simulate(&trace, &cluster, &settings, &Watch::default());
    run.expect("small worlds drain").jobs.iter().map(in_seconds).collect()
}

fn in_seconds(job: &JobRecord) -> OracleResult {
    let whole = |micros: u64| {
        assert!(micros.is_multiple_of(1_000_000), "{micros} us is not a whole second");
        micros / 1_000_000
    };
    OracleResult {
        start_s: whole(job.first_start.expect("it ended").0),
        end_s: whole(job.end.expect("all end").0),
        queue_s: whole(job.waited.0),
        preemptions: job.preemptions,
    }
}

fn agree(semantics: Semantics) {
    for (name, policy) in POLICIES {
        let mut preemptions = 0;
        for seed in 0..WORLDS {
            let world = draw(seed);
            let (want, got) =
                (oracle(&world, policy, semantics), simulated(&world, name, semantics));
            preemptions += want.iter().map(|result| result.preemptions).sum::<u32>();
            if let Some(at) = (0..want.len()).find(|&at| want[at] != got[at]) {
                let jobs: Vec<String> = world.jobs.iter().map(|job| format!("{job:?}")).collect();
                panic!(
                    "{name} {semantics:?}, world {seed}: job {at} is {:?} by the ticker and {:?} \
                     by the simulator; nodes {:?}, demotion {} GPU-s, jobs\n{}",
                    want[at],
                    got[at],
                    world.vcs,
                    world.demotion_gpu_s,
                    jobs.join("\n")
                );
            }
        }
        let preempts = matches!(policy, OraclePolicy::Srtf | OraclePolicy::Tiresias);
        assert_eq!(preemptions > 100, preempts, "{name} preempted {preemptions} times");
    }
}

#[test]
fn every_job_of_small_worlds_is_as_the_artifact_has_it() {
    agree(Semantics::Artifact);
}

#[test]
fn every_job_of_small_worlds_is_as_a_count_of_seconds_has_it() {
    agree(Semantics::Plain);
}
