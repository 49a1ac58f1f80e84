//! What holds in every world.

use super::RandomWorld;
use deepshare_engine::CapacityMode;
use deepshare_metrics::{Bound, BoundJob, JobRecord, RunRecord, result_hash};
use deepshare_model::{Class, JobId, Span, Time};
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Outages, Watch, Workload, simulate};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) fn check(world: &RandomWorld) -> Result<(), String> {
    let run = catch_unwind(AssertUnwindSafe(|| check_run(world)));
    run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn run(world: &RandomWorld) -> Result<RunRecord, String> {
    simulate(&world.trace, &world.cluster, &world.settings, &Watch::default())
        .map_err(|error| error.to_string())
}

fn check_run(world: &RandomWorld) -> Result<(), String> {
    let record = run(world)?;
    let again = run(world)?;
    if result_hash(&record.jobs) != result_hash(&again.jobs) || record != again {
        return Err("two runs of the same world differ".to_owned());
    }
    all_end(world, &record)?;
    record.jobs.iter().filter(|job| !job.refused).try_for_each(|job| account(world, job))?;
    company(&record)?;
    if world.settings.policy == (PolicyConfig::Fifo { skip: false }) && is_calm(world) {
        in_order(world, &record)?;
    }
    bound(&record)
}

/// True if nothing but jobs and policy decides the order of starts.
fn is_calm(world: &RandomWorld) -> bool {
    world.settings.actuation.is_ideal() && world.settings.outages == Outages::None
}

fn all_end(world: &RandomWorld, record: &RunRecord) -> Result<(), String> {
    let workload =
        Workload::new(&world.trace, &world.cluster, world.settings.engine.capacity).expect("ran");
    let never: Vec<_> =
        workload.oversize(&world.settings.engine).into_iter().map(|(job, _)| job).collect();
    for job in &record.jobs {
        let refused = never.contains(&job.job);
        if job.refused != refused {
            return Err(format!(
                "{} is refused: {}, and should be: {refused}",
                job.job, job.refused
            ));
        }
        if job.refused == job.end.is_some() {
            return Err(format!("{} is refused: {}, and ends at {:?}", job.job, refused, job.end));
        }
    }
    Ok(())
}

/// A job's own account: nothing before its submission, every moment waited or run.
fn account(world: &RandomWorld, job: &JobRecord) -> Result<(), String> {
    let (start, end) = (job.first_start.unwrap_or(Time::MAX), job.end.unwrap_or(Time::ZERO));
    if start < job.submit || end < start {
        return Err(format!("{} of {} starts {start} and ends {end}", job.job, job.submit));
    }
    // A pair may be broken up where nobody is evicted for anybody.
    let shares = world.settings.interference.is_some();
    if job.preemptions > 0 && !world.settings.policy.preempts() && !shares {
        return Err(format!(
            "{} was preempted {} times by fifo or alike",
            job.job, job.preemptions
        ));
    }
    let jct = end.saturating_since(job.submit);
    let ran = job.duration + job.work_lost + job.restart_overhead + job.slowed;
    if job.slowed > job.shared {
        return Err(format!("{} lost {} in {} of company", job.job, job.slowed, job.shared));
    }
    if jct != job.waited + ran {
        let waited = job.waited;
        return Err(format!("{} took {jct}: waited {waited}, and ran {ran}", job.job));
    }
    Ok(())
}

/// Company is mutual, and whoever shared had some.
fn company(record: &RunRecord) -> Result<(), String> {
    for job in &record.jobs {
        let alone = job.beside.is_empty() && !job.shared.is_zero();
        let twice = (1..job.beside.len()).any(|at| job.beside[..at].contains(&job.beside[at]));
        let met = |other: &JobId| record.jobs[other.index()].beside.contains(&job.job);
        if alone || twice || job.beside.contains(&job.job) || !job.beside.iter().all(met) {
            return Err(format!("{} shared {} beside {:?}", job.job, job.shared, job.beside));
        }
    }
    Ok(())
}

/// FIFO starts in order: in a pool, and where quotas bind in a tenant (each class by itself where
/// it has a cap of its own).
fn in_order(world: &RandomWorld, record: &RunRecord) -> Result<(), String> {
    let capacity = world.settings.engine.capacity;
    let mut last: BTreeMap<(u32, Class), &JobRecord> = BTreeMap::new();
    for job in record.jobs.iter().filter(|job| !job.refused) {
        let class = world.trace.jobs[job.job.index()].class.unwrap_or_default();
        let queue = match capacity {
            CapacityMode::Hard => (job.tenant.0, Class::Guaranteed),
            CapacityMode::Elastic => (job.tenant.0, class),
            _ => (u32::from(job.pool.0), Class::Guaranteed),
        };
        if let Some(before) = last.insert(queue, job)
            && job.first_start < before.first_start
        {
            return Err(format!("fifo starts {} before {}", job.job, before.job));
        }
    }
    Ok(())
}

fn bound(record: &RunRecord) -> Result<(), String> {
    let ran = || record.jobs.iter().filter(|job| !job.refused);
    let jobs: Vec<BoundJob> = ran()
        .map(|job| BoundJob {
            pool: job.pool,
            gpus: job.gpus,
            submit: job.submit,
            duration: job.duration,
        })
        .collect();
    let bound = Bound::of(&jobs, &record.pool_gpus, record.residents_per_gpu).best_micros;
    let sum: u128 = ran().map(|job| u128::from(job.jct().unwrap_or(Span::ZERO).0)).sum();
    match sum < bound {
        true => Err(format!("completion times sum to {sum} us, and nothing can beat {bound} us")),
        false => Ok(()),
    }
}
