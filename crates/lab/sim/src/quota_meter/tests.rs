//! The meter against small runs worked out by hand, and against ticking through random ones.

use crate::{SimSettings, Watch, simulate};
use deepshare_engine::CapacityMode;
use deepshare_metrics::{Assured, JobRecord, QuotaFigures, QuotaRecord, RunRecord};
use deepshare_model::{Class, JobId, Quota, Span, TenantId, Time};
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use deepshare_trace::{Cluster, ImportReport, TenantEntry, Trace, TraceJob};

/// Tenant, GPUs, submission in milliseconds, duration in milliseconds.
type Row = (u32, u32, u64, u64, Class);

const G: Class = Class::Guaranteed;
const B: Class = Class::BestEffort;

fn trace(rows: &[Row]) -> Trace {
    let job = |(index, &(tenant, gpus, submit, duration, class)): (usize, &Row)| TraceJob {
        id: index.to_string(),
        tenant: TenantId(tenant),
        class: Some(class),
        row: index as u64 + 1,
        ..TraceJob::plain(gpus, Time(submit * 1_000), Span(duration * 1_000))
    };
    Trace {
        jobs: rows.iter().enumerate().map(job).collect(),
        tenants: vec!["a".to_owned(), "b".to_owned()],
        users: vec!["eve".to_owned()],
        gpu_types: Vec::new(),
        report: ImportReport {
            file: String::new(),
            format: None,
            rows: rows.len() as u64,
            kept: rows.len() as u64,
            dropped: Vec::new(),
            imputed: Vec::new(),
            origin: None,
            zero_durations: 0,
            notes: Vec::new(),
        },
    }
}

/// One pool of nodes of 8 GPUs, with a quota for each of two tenants.
fn cluster(nodes: u32, quotas: [u32; 2]) -> Cluster {
    let mut cluster = Cluster::partitions(&[("a".to_owned(), nodes)], 8);
    let entry =
        |(name, gpus): (&str, u32)| TenantEntry::new(name.to_owned(), Quota::uniform(gpus, 1));
    cluster.tenants = ["a", "b"].into_iter().zip(quotas).map(entry).collect();
    cluster.nodes.iter_mut().for_each(|node| node.tenant = None);
    cluster
}

fn run(rows: &[Row], cluster: &Cluster, policy: DeepShareSettings) -> RunRecord {
    let mut settings = SimSettings::new(PolicyConfig::DeepShare(policy));
    settings.engine.capacity = CapacityMode::Elastic;
    settings.audit = true;
    simulate(&trace(rows), cluster, &settings, &Watch::default()).unwrap()
}

fn without_reclaim() -> DeepShareSettings {
    DeepShareSettings { reclaim: false, ..DeepShareSettings::default() }
}

fn value(record: &QuotaRecord, name: &str) -> Option<f64> {
    let figures = QuotaFigures::of(record).figures();
    let (_, value) = figures.iter().find(|(figure, _)| figure.name == name).unwrap();
    value.as_f64()
}

/// A borrower of all 8 GPUs for 1,000 s, and after 100 s a guaranteed job of 8 for 100 s.
const BORROWED: [Row; 2] = [(1, 8, 0, 1_000_000, B), (0, 8, 100_000, 100_000, G)];

#[test]
fn a_borrower_that_is_not_made_to_give_back_is_avoidable_waiting() {
    let record = run(&BORROWED, &cluster(1, [8, 4]), without_reclaim()).quota;
    let avoidable = record.avoidable.unwrap();
    // It waits from 100 s to 1,000 s, less 30 s of grace and a cycle.
    assert_eq!(avoidable.time, Span(900_000_000 - 30_050_000));
    assert_eq!(avoidable.gpu_time, avoidable.time.on(8));
    assert_eq!(avoidable.jobs, 1);
    assert_eq!(avoidable.first, Some((JobId(1), Time(130_050_000))));
    let sums = record.tenants[0].whole;
    assert_eq!((sums.time, sums.mean_now()), (Span::from_secs(1_000), Some(0.1)));
    // Below 0.95 from the slot after 100 s to the ninth after 1,000 s.
    assert_eq!(sums.below[0], Span(900_000_000 - 50_000 + 450_000));
    assert_eq!(record.recoveries, [sums.below[0]]);
    assert_eq!(record.tenants[1].whole, Assured::default(), "best-effort jobs are owed nothing");
    assert_eq!(record.tenants[0].arrivals, Assured::default(), "nothing is submitted after 100 s");
    assert_eq!((record.tenants[0].quota, record.tenants[1].quota), (8, 4));
}

#[test]
fn a_borrower_that_gives_back_is_no_violation_and_is_counted_as_a_victim() {
    let record = run(&BORROWED, &cluster(1, [8, 4]), DeepShareSettings::default()).quota;
    assert_eq!(value(&record, "avoidable_s"), Some(0.0));
    assert_eq!(value(&record, "qad_compliance"), Some(1.0));
    assert_eq!(value(&record, "recoveries"), Some(0.0));
    assert_eq!(value(&record, "preempting_decisions"), Some(1.0));
    assert_eq!(value(&record, "victims_per_preemption_max"), Some(1.0));
    assert_eq!(value(&record, "victims_gpu_s"), Some(800.0));
    assert_eq!(value(&record, "reclaim_latency_max_s"), Some(0.0));
    // One victim that was never preempted, with 900 s to go.
    let phi = value(&record, "phi_mean").unwrap();
    assert!((phi - 1.0 / 900.0).abs() < 1e-8, "{phi}");
}

#[test]
fn two_borrowers_evicted_for_one_job_are_one_decision() {
    let rows = [(1, 4, 0, 1_000_000, B), (1, 4, 0, 1_000_000, B), (0, 8, 100_000, 100_000, G)];
    let record = run(&rows, &cluster(1, [8, 4]), DeepShareSettings::default()).quota;
    assert_eq!(value(&record, "preempting_decisions"), Some(1.0));
    assert_eq!(value(&record, "victims_per_preemption_mean"), Some(2.0));
    assert_eq!(value(&record, "victims_gpu_s"), Some(800.0));
}

#[test]
fn waiting_for_quota_or_for_guaranteed_jobs_is_not_avoidable() {
    // Tenant a's second job is beyond its quota; tenant b's has none but guaranteed jobs in its way.
    let rows = [(0, 8, 0, 1_000_000, G), (0, 8, 1_000, 100_000, G), (1, 8, 2_000, 100_000, G)];
    let record = run(&rows, &cluster(1, [8, 8]), without_reclaim()).quota;
    assert_eq!(value(&record, "avoidable_s"), Some(0.0));
    // Tenant a has all that it was promised until b, which fared worse, is served first.
    assert_eq!(record.tenants[0].whole.mean_now(), Some(1_100.0 / 1_200.0));
    assert!(record.tenants[1].whole.mean_now().unwrap() < 0.2);
}

#[test]
fn a_gang_waits_avoidably_only_if_whole_nodes_could_be_freed() {
    // 12 GPUs take a whole node and a half; the borrowers hold one of two nodes, or half of each.
    let gang = (0, 12, 1_000, 100_000, G);
    let rows = [(1, 8, 0, 1_000_000, B), gang];
    let freed = run(&rows, &cluster(2, [16, 4]), without_reclaim()).quota;
    assert!(value(&freed, "avoidable_s").unwrap() > 900.0);
    // A guaranteed job of 5 GPUs leaves a whole node, but only 3 of the other.
    let rows = [(1, 5, 0, 1_000_000, G), (1, 8, 0, 1_000_000, B), gang];
    let blocked = run(&rows, &cluster(2, [12, 8]), without_reclaim()).quota;
    assert_eq!(value(&blocked, "avoidable_s"), Some(0.0));
}

#[test]
fn spilled_starts_and_promotions_are_counted() {
    let spill = DeepShareSettings { spill: true, ..DeepShareSettings::default() };
    // The second job is promoted with the round that the third one asks for.
    let rows = [(0, 4, 0, 50_000, G), (0, 4, 1_000, 500_000, G), (1, 8, 60_000, 1_000, B)];
    let record = run(&rows, &cluster(1, [4, 4]), spill).quota;
    assert_eq!(value(&record, "spilled_starts"), Some(1.0));
    assert_eq!(value(&record, "promotions"), Some(1.0));
    assert_eq!(value(&record, "qad_compliance"), Some(1.0));
}

#[test]
fn without_quotas_nothing_is_measured() {
    let mut cluster = cluster(1, [8, 4]);
    cluster.tenants.clear();
    let mut settings = SimSettings::new(PolicyConfig::by_name("fifo").unwrap());
    settings.engine.capacity = CapacityMode::Pool;
    let record = simulate(&trace(&BORROWED), &cluster, &settings, &Watch::default()).unwrap();
    assert_eq!(record.quota.tenants, []);
    assert_eq!(record.quota.avoidable, None);
}

/// Small deterministic numbers.
fn dice(state: &mut u64, sides: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % sides
}

/// What a tenant was assured, by looking at its jobs' records every 10 ms.
fn ticked(jobs: &[JobRecord], tenant: TenantId, quota: u32, end: Time) -> (u64, f64, u64) {
    const STEP: u64 = 10_000;
    let theirs: Vec<&JobRecord> =
        jobs.iter().filter(|job| job.tenant == tenant && job.class == G).collect();
    let (mut now, mut smoothed) = (1.0, 1.0);
    let (mut time, mut sum, mut below) = (0, 0.0, 0);
    for at in (0..end.0).step_by(STEP as usize) {
        if at % 50_000 == 0 {
            smoothed = 0.3 * now + 0.7 * smoothed;
        }
        let at = Time(at);
        let is = |from: Time, to: Time| (from..to).contains(&at);
        let gpus = |wanted: &dyn Fn(&JobRecord) -> bool| -> u32 {
            theirs.iter().filter(|job| wanted(job)).map(|job| job.gpus).sum()
        };
        let demand = gpus(&|job| is(job.submit, job.end.unwrap()));
        let held = gpus(&|job| is(job.first_start.unwrap(), job.end.unwrap()));
        let owed = demand.min(quota);
        now = if owed == 0 { 1.0 } else { (f64::from(held) / f64::from(owed)).min(1.0) };
        if owed > 0 {
            time += STEP;
            sum += smoothed * STEP as f64;
            below += if smoothed < 0.95 { STEP } else { 0 };
        }
    }
    (time, sum / time as f64, below)
}

#[test]
fn a_random_run_is_measured_as_ticking_through_its_records_measures_it() {
    for seed in 1..=6 {
        let mut state = seed;
        let mut submit = 0;
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..60 {
            submit += 10 * dice(&mut state, 300);
            let (tenant, gpus) = (dice(&mut state, 2) as u32, 1 + dice(&mut state, 7) as u32);
            let class = if dice(&mut state, 3) == 0 { B } else { G };
            rows.push((tenant, gpus, submit, 10 * (1 + dice(&mut state, 2_000)), class));
        }
        let policy = if seed % 2 == 0 { without_reclaim() } else { DeepShareSettings::default() };
        let reclaims = policy.reclaim;
        let record = run(&rows, &cluster(2, [9, 7]), policy);
        let end = record.usage.to;
        for (tenant, quota) in [(TenantId(0), 9), (TenantId(1), 7)] {
            let (time, mean, below) = ticked(&record.jobs, tenant, quota, end);
            let sums = record.quota.tenants[tenant.index()].whole;
            assert_eq!((sums.time.0, sums.below[0].0), (time, below), "seed {seed}, {tenant}");
            let off = (sums.mean_smoothed().unwrap() - mean).abs();
            assert!(off < 1e-6, "seed {seed}, {tenant}: {off} off");
        }
        let avoidable = record.quota.avoidable.unwrap().time;
        assert!(!reclaims || avoidable.is_zero(), "seed {seed}: {avoidable}");
    }
}
