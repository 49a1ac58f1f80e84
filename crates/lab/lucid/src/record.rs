//! A run in the form of every other run.

use crate::outcome::LucidOutcome;
use deepshare_metrics::{
    Counters, JobRecord, PairRecord, QuotaRecord, RunRecord, Usage, UsageMeter,
};
use deepshare_model::{JobId, Outcome, PoolId, Span, Time};
use deepshare_trace::Trace;

const MICROS: u64 = 1_000_000;

/// The record of a run over `trace`, under the policy's name `lucid`.
///
/// Every virtual cluster is a pool, and the profiler is one more, which jobs that ended there name.
/// Waiting is what the artifact counts, so that a job's delay and duration may be more than its
/// completion time: profiling is free. A GPU that two jobs share counts once.
pub fn run_record(trace: &Trace, outcome: &LucidOutcome, estimates: String) -> RunRecord {
    let pools = outcome.levels.iter().map(|level| level.pool + 1).max().unwrap_or(0);
    let pools = pools.max(trace.tenants.len() + 1);
    let mut pool_gpus = vec![0; pools];
    for level in &outcome.levels {
        let most = &mut pool_gpus[level.pool];
        *most = level.gpus.max(*most);
    }
    let shares = outcome.records.iter().flatten().any(|record| record.shared);
    let jobs: Vec<JobRecord> =
        (0..trace.jobs.len()).map(|job| job_record(trace, outcome, job, pools - 1)).collect();
    RunRecord {
        policy: "lucid".to_owned(),
        estimates,
        usage: usage(outcome, &jobs, pools),
        jobs,
        quota: QuotaRecord::default(),
        pool_gpus,
        residents_per_gpu: if shares { 2 } else { 1 },
        pairs: PairRecord::default(),
        counters: Counters { events: outcome.ticks, ..Counters::default() },
    }
}

fn seconds(s: u64) -> Time {
    Time(s.saturating_mul(MICROS))
}

fn job_record(trace: &Trace, outcome: &LucidOutcome, job: usize, profiler: usize) -> JobRecord {
    let given = &trace.jobs[job];
    let fate = outcome.records[job];
    let in_profiler = fate.and_then(|fate| fate.profiled).is_some_and(|profile| profile.finished);
    let pool = if in_profiler { profiler } else { given.tenant.index() };
    let mut record = JobRecord {
        job: JobId::from_index(job),
        tenant: given.tenant,
        user: given.user,
        pool: PoolId::from_index(pool),
        class: given.class.unwrap_or_default(),
        gpus: given.gpus,
        profile: None,
        slowdown_limit_milli: 0,
        submit: given.submit,
        duration: given.duration,
        first_start: fate.map(|fate| seconds(fate.start_s)),
        end: fate.map(|fate| seconds(fate.end_s)),
        waited: fate.map_or(Span::ZERO, |fate| Span(seconds(fate.queue_s).0)),
        preemptions: 0,
        restarts_by_failure: 0,
        // The artifact does not say how long.
        shared: Span::ZERO,
        slowed: Span::ZERO,
        beside: Vec::new(),
        work_lost: Span::ZERO,
        restart_overhead: Span::ZERO,
        outcome: given.outcome,
        refused: fate.is_none(),
    };
    // Every job here runs to its end. Where profiling was free or a pair was faster than alone, the
    // sum of waiting and work says otherwise, and only a job said to be cancelled is asked for it.
    if record.is_cancelled() && record.outcome == Outcome::Cancelled {
        record.outcome = Outcome::Succeeded;
    }
    record
}

/// GPU time by use, from the levels of all pools.
fn usage(outcome: &LucidOutcome, jobs: &[JobRecord], pools: usize) -> Usage {
    enum Change {
        Level(usize),
        Submitted,
        Ended,
    }
    let levels = outcome.levels.iter().enumerate();
    let mut changes: Vec<(Time, Change)> =
        levels.map(|(index, level)| (seconds(level.at_s), Change::Level(index))).collect();
    for job in jobs.iter().filter(|job| !job.refused) {
        changes.push((job.submit, Change::Submitted));
        changes.extend(job.end.map(|end| (end, Change::Ended)));
    }
    changes.sort_by_key(|change| change.0);
    let mut meter = UsageMeter::new(pools);
    for (at, change) in changes {
        meter.advance(at);
        match change {
            Change::Level(index) => {
                let level = &outcome.levels[index];
                let pool = PoolId::from_index(level.pool);
                meter.set_pool(pool, level.gpus, level.allocated, level.waiting);
            }
            Change::Submitted => meter.submitted(),
            Change::Ended => meter.ended(),
        }
    }
    meter.usage()
}
