//! A hand-made set of records for tests: four jobs of three tenants, one still running at the
//! end and one that no pool can hold.

use crate::{ArrivalWindow, JobRecord, PairRecord, RunRecord, Usage, UsageMeter};
use deepshare_model::{
    Class, JobId, Outcome, PoolId, ProfileClassId, Span, TenantId, Time, UserId,
};

/// A job of one GPU that is submitted at 0 and never starts.
pub fn record(job: u32) -> JobRecord {
    JobRecord {
        job: JobId(job),
        tenant: TenantId(0),
        user: UserId(0),
        pool: PoolId(0),
        class: Class::Guaranteed,
        gpus: 1,
        profile: None,
        slowdown_limit_milli: 0,
        submit: Time::ZERO,
        duration: Span::from_secs(100),
        first_start: None,
        end: None,
        waited: Span::ZERO,
        preemptions: 0,
        restarts_by_failure: 0,
        shared: Span::ZERO,
        slowed: Span::ZERO,
        beside: Vec::new(),
        work_lost: Span::ZERO,
        restart_overhead: Span::ZERO,
        outcome: Outcome::Succeeded,
        refused: false,
    }
}

/// Job 0: 8 GPUs, 0 to 100 s, no wait. Job 1: 2 GPUs, submitted at 10 s, waits 20 s, preempted
/// once, waits 5.5 s more, redoes 10 s, 20 s of overhead, ends at 135.5 s with an error of its own.
/// Job 2 starts at 120 s and never ends. Job 3 never fits.
pub fn records() -> Vec<JobRecord> {
    vec![
        JobRecord {
            gpus: 8,
            first_start: Some(Time::ZERO),
            end: Some(Time::from_secs(100)),
            ..record(0)
        },
        JobRecord {
            tenant: TenantId(1),
            user: UserId(1),
            class: Class::BestEffort,
            gpus: 2,
            submit: Time::from_secs(10),
            duration: Span::from_secs(50),
            first_start: Some(Time::from_secs(30)),
            end: Some(Time(135_500_000)),
            waited: Span(25_500_000),
            preemptions: 1,
            work_lost: Span::from_secs(10),
            restart_overhead: Span::from_secs(20),
            outcome: Outcome::Failed,
            ..record(1)
        },
        JobRecord {
            tenant: TenantId(2),
            submit: Time::from_secs(20),
            first_start: Some(Time::from_secs(120)),
            waited: Span::from_secs(100),
            ..record(2)
        },
        JobRecord { gpus: 64, submit: Time::from_secs(30), refused: true, ..record(3) },
    ]
}

/// The records as a run on one pool of 10 GPUs.
pub fn run() -> RunRecord {
    let mut meter = UsageMeter::new(1);
    meter.submitted();
    meter.set_pool(PoolId(0), 10, 8, 0);
    meter.advance(Time::from_secs(30));
    meter.submitted();
    meter.set_pool(PoolId(0), 10, 8, 1);
    meter.advance(Time(135_500_000));
    meter.ended();
    RunRecord {
        policy: "srtf".to_owned(),
        estimates: "oracle".to_owned(),
        jobs: records(),
        usage: meter.usage(),
        quota: crate::QuotaRecord::default(),
        pool_gpus: vec![10],
        residents_per_gpu: 1,
        pairs: PairRecord::default(),
        counters: crate::Counters { events: 9, rounds: 7, commands: 5 },
    }
}

/// The records, with jobs 0 and 1 beside each other for 40 s: job 0 loses 8 s of that and ends at
/// 108 s, job 1 loses 20 s. Their profiles are of classes 2 and 0, and job 1 may take 1.25 times
/// as long as alone.
pub fn shared_records() -> Vec<JobRecord> {
    let mut jobs = records();
    for (job, slowed) in jobs.iter_mut().zip([8, 20]) {
        (job.shared, job.slowed) = (Span::from_secs(40), Span::from_secs(slowed));
    }
    jobs[0].end = Some(Time::from_secs(108));
    for (own, other, class) in [(0, 1, 2), (1, 0, 0)] {
        jobs[own].beside = vec![JobId(other)];
        jobs[own].profile = Some(ProfileClassId(class));
    }
    jobs[1].slowdown_limit_milli = 1_250;
    jobs
}

/// Those records as a run with round figures of use: 100 s on 10 GPUs of which 8 are given away,
/// the first 40 s being the arrival window.
pub fn shared_run() -> RunRecord {
    let gpu_secs = |secs: u32| Span::SECOND.on(secs);
    let usage = Usage {
        capacity: gpu_secs(1000),
        allocated: gpu_secs(800),
        solo_work: gpu_secs(900),
        shared: gpu_secs(320),
        compute: gpu_secs(600),
        memory: gpu_secs(300),
        arrival_window: ArrivalWindow {
            to: Time::from_secs(40),
            capacity: gpu_secs(400),
            allocated: gpu_secs(320),
            solo_work: gpu_secs(300),
            shared: gpu_secs(80),
            compute: gpu_secs(200),
            memory: gpu_secs(100),
        },
        ..run().usage
    };
    let refused = vec![("memory".to_owned(), 2), ("tolerance".to_owned(), 7)];
    let pairs = PairRecord { formed: 3, revoked: 1, refused };
    RunRecord { jobs: shared_records(), usage, pairs, ..run() }
}
