//! The whole preset `scale` under DeepShare: a million jobs of a hundred tenants.

use cpu_time::ProcessTime;
use deepshare_engine::CapacityMode;
use deepshare_metrics::{JobRecord, RunRecord};
use deepshare_model::Time;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Estimator, Oversize, SimError, SimSettings, Watch, simulate};
use deepshare_trace::generate::scale;

/// Seed of the history.
const SEED: u64 = 1;
/// Most CPU seconds and GiB of memory that the project promises for the million jobs.
const BAR: (f64, f64) = (60.0, 2.0);
/// A queue of this many jobs counts as a long one.
const LONG_QUEUE: usize = 50_000;

/// DeepShare on one pool with guarantees, with run times from the user's running mean.
pub fn settings() -> SimSettings {
    let policy = PolicyConfig::by_name("deepshare").expect("a policy of this name is built in");
    let mut settings = SimSettings::new(policy);
    settings.engine.capacity = CapacityMode::Elastic;
    settings.estimates = Estimator::RunningMean;
    settings.oversize = Oversize::Skip;
    settings
}

/// Simulates the preset with so many jobs. A Markdown table of what it took.
///
/// # Errors
/// If the simulation fails.
pub fn table(jobs: u32) -> Result<String, SimError> {
    let begin = ProcessTime::now();
    let (trace, cluster) = scale(SEED, jobs);
    let generating = begin.elapsed().as_secs_f64();
    let begin = ProcessTime::now();
    let run = simulate(&trace, &cluster, &settings(), &Watch::default())?;
    let seconds = begin.elapsed().as_secs_f64();
    let memory = peak_memory_gib();
    let window = trace.jobs.last().map_or(Time::ZERO, |job| job.submit);
    let share = |until| share_of_long_queue(&run.jobs, until) * 100.0;
    let end = run.jobs.iter().filter_map(|job| job.end).max().unwrap_or(window);
    let mut rows = vec![
        ("CPU s".to_owned(), format!("{seconds:.1}")),
        ("jobs / CPU s".to_owned(), format!("{:.0}", f64::from(jobs) / seconds)),
        ("peak memory, GiB".to_owned(), in_gib(memory)),
        (format!("time in which jobs come with ≥ {LONG_QUEUE} waiting, %"), one(share(window))),
        (format!("whole time with ≥ {LONG_QUEUE} waiting, %"), one(share(end))),
    ];
    rows.extend(counts(&run));
    let rows: String = rows.iter().map(|(what, value)| format!("| {what} | {value} |\n")).collect();
    let judged = judge(seconds, memory);
    Ok(format!(
        "| {jobs} jobs, seed {SEED} | |\n| --- | ---: |\n{rows}\nBar: at most {} CPU s and {} GiB \
         for a million jobs: {judged}. Generating the history took {generating:.1} CPU s more; \
         jobs that were preempted and wait again are not counted as waiting.\n",
        BAR.0, BAR.1
    ))
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}

fn in_gib(memory: Option<f64>) -> String {
    memory.map_or_else(|| "unknown".to_owned(), |gib| format!("{gib:.2}"))
}

fn counts(run: &RunRecord) -> Vec<(String, String)> {
    let preemptions: u64 = run.jobs.iter().map(|job| u64::from(job.preemptions)).sum();
    let refused = run.jobs.iter().filter(|job| job.refused).count();
    let unfinished = run.jobs.iter().filter(|job| job.end.is_none() && !job.refused).count();
    vec![
        ("preemptions".to_owned(), preemptions.to_string()),
        ("events".to_owned(), run.counters.events.to_string()),
        ("rounds".to_owned(), run.counters.rounds.to_string()),
        ("jobs refused for their size".to_owned(), refused.to_string()),
        ("jobs not ended".to_owned(), unfinished.to_string()),
    ]
}

fn judge(seconds: f64, memory: Option<f64>) -> &'static str {
    match (seconds <= BAR.0, memory.map(|gib| gib <= BAR.1)) {
        (true, Some(true)) => "met",
        (true, None) => "met in time, memory unknown",
        (false, Some(true)) => "missed in time",
        (true, Some(false)) => "missed in memory",
        (false, _) => "missed",
    }
}

/// Share of the time until `until` in which a long queue of jobs had not started yet.
fn share_of_long_queue(jobs: &[JobRecord], until: Time) -> f64 {
    let queued = || jobs.iter().filter(|job| !job.refused);
    let mut joins: Vec<Time> = queued().map(|job| job.submit).collect();
    let mut leaves: Vec<Time> = queued().filter_map(|job| job.first_start.or(job.end)).collect();
    joins.sort_unstable();
    leaves.sort_unstable();
    let mut changes: Vec<Time> = joins.iter().chain(&leaves).copied().collect();
    changes.push(until);
    changes.sort_unstable();
    changes.dedup();
    let (mut joined, mut left) = (0, 0);
    let mut long = 0;
    for pair in changes.windows(2).filter(|pair| pair[1] <= until) {
        joined += joins[joined..].partition_point(|&at| at <= pair[0]);
        left += leaves[left..].partition_point(|&at| at <= pair[0]);
        if joined - left >= LONG_QUEUE {
            long += pair[1].saturating_since(pair[0]).0;
        }
    }
    long as f64 / until.0.max(1) as f64
}

/// The most memory that this process has held, where the system says.
fn peak_memory_gib() -> Option<f64> {
    let facts = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = facts.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_model::{Class, JobId, Outcome, PoolId, Span, TenantId, UserId};

    #[test]
    fn a_queue_is_long_from_the_last_job_that_makes_it_so_until_one_starts() {
        let record = JobRecord {
            job: JobId(0),
            tenant: TenantId(0),
            user: UserId(0),
            pool: PoolId(0),
            class: Class::Guaranteed,
            gpus: 1,
            profile: None,
            slowdown_limit_milli: 0,
            submit: Time::from_secs(10),
            duration: Span::SECOND,
            first_start: Some(Time::from_secs(30)),
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
        };
        let mut jobs = vec![record; LONG_QUEUE];
        assert_eq!(share_of_long_queue(&jobs, Time::from_secs(100)), 0.2);
        assert_eq!(share_of_long_queue(&jobs, Time::from_secs(25)), 0.6);
        jobs[0].refused = true;
        assert_eq!(share_of_long_queue(&jobs, Time::from_secs(100)), 0.0);
    }
}
