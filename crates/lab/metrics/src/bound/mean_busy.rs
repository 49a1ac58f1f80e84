//! The mean-busy-time bound, refined: smallest jobs first, merging busy periods as larger ones
//! come.

use super::machine::Task;
use std::collections::BTreeMap;

/// Lower bounds on the sum of completion times, in microseconds; each job's rounded down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanBusy {
    /// From the mean busy times of all jobs.
    pub all: u128,
    /// The best choice, busy period by busy period, between those and durations.
    pub best: u128,
}

/// A stretch without idle time of the machine that serves only the jobs taken so far.
struct Period {
    end: u128,
    bound: MeanBusy,
}

/// Serves `tasks` on one machine, always the smallest that is there, and bounds them.
///
/// Serving by size means that a job gets the time that smaller ones leave over. So jobs are taken
/// by size, each filling the gaps after its release. Its mean busy time is then final, and the
/// jobs taken so far are a machine's whole load, to which the bound applies as it does to any
/// subset. A job makes one busy period of those it bridges. For that period the larger of two
/// bounds is kept: the mean busy times of all its jobs, or what was kept for the bridged periods
/// and this job's duration.
///
/// The clock counts microseconds times `speed`. Cost: O(n log n), as a period is bridged once.
pub(super) fn mean_busy(tasks: &[Task], speed: u64) -> MeanBusy {
    let mut by_size: Vec<&Task> = tasks.iter().collect();
    by_size.sort_by_key(|task| (task.work, task.release, task.duration));
    let mut periods: BTreeMap<u128, Period> = BTreeMap::new();
    for task in by_size {
        fill(&mut periods, task, u128::from(speed));
    }
    let mut total = MeanBusy::default();
    for period in periods.into_values() {
        total.all += period.bound.all;
        total.best += period.bound.best;
    }
    total
}

/// Gives `task` the machine wherever it is idle from the task's release on.
fn fill(periods: &mut BTreeMap<u128, Period>, task: &Task, speed: u128) {
    let release = u128::from(task.release.0) * speed;
    let mut start = release;
    let mut period = Period { end: release, bound: MeanBusy::default() };
    let before = periods.range(..=release).next_back();
    if let Some(at) = before.filter(|(_, period)| period.end > release).map(|(&at, _)| at) {
        start = at;
        period = periods.remove(&at).expect("it was just found");
    }
    let mut left = task.work;
    // The share of the work in one gap is a fraction, so this is a float, in a fixed order; its
    // relative error is some 1e-15.
    let mut mean = 0.0;
    loop {
        let next = periods.range(start..).next().map(|(&at, _)| at);
        let to = next.unwrap_or(u128::MAX).min(period.end + left);
        let served = to - period.end;
        let middle = (period.end - release) as f64 + served as f64 / 2.0;
        mean += middle * (served as f64 / task.work as f64);
        left -= served;
        period.end = to;
        if left == 0 {
            break;
        }
        let bridged = next.and_then(|at| periods.remove(&at)).expect("only a period can stop it");
        period.end = bridged.end;
        period.bound.all += bridged.bound.all;
        period.bound.best += bridged.bound.best;
    }
    let half = task.duration.0 as f64 / 2.0;
    period.bound.all += (mean / speed as f64 + half) as u128;
    let apart = period.bound.best + u128::from(task.duration.0);
    period.bound.best = apart.max(period.bound.all);
    periods.insert(start, period);
}
