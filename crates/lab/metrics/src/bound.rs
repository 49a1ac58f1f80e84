//! A mean completion time that no scheduler can beat.

mod machine;
mod mean_busy;

use deepshare_model::{PoolId, Span, Time};
use machine::{Machine, Task};
use mean_busy::{MeanBusy, mean_busy};

/// What the bound needs to know of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundJob {
    /// The pool whose GPUs it could use.
    pub pool: PoolId,
    /// Size of the gang.
    pub gpus: u32,
    /// When it was submitted.
    pub submit: Time,
    /// Solo work.
    pub duration: Span,
}

/// Lower bounds on the sum of the completion times (end less submission) of a set of jobs, in
/// microseconds, each rounded down. Divide by [`jobs`](Self::jobs) for the mean.
///
/// Let job `j` hold `g` GPUs for `d` of solo work, so that its size is `p = g d` GPU-seconds, and
/// let the pool have `m` GPUs on each of which at most `k` jobs may be; `s = m k`. In any
/// schedule let `x_j(t)` be the rate at which `j` does work that is not redone later, in
/// GPU-seconds per second. Gangs run whole, a shared GPU is no faster for a resident than one of
/// its own, and overheads and redone work only slow things down, so
/// (1) `x_j(t) <= g`, (2) the rates at `t` sum to at most `s`, (3) `j` ends no earlier than its
/// rates have summed to `p`.
///
/// **Duration.** By (1) and (3) a job takes at least `d`.
///
/// **SRPT.** By (2) and (3) the rates are a schedule for one machine of speed `s` that ends no
/// job later. On one machine, always serving the job with the least work left minimises the
/// number of unfinished jobs at every instant, hence the sum of completion times, which is that
/// number's integral. (Let `S_i` be the work left outside the `i` jobs with most of it. Serving
/// the least lowers every positive `S_i` at the full speed `s`, which nothing exceeds; an arrival
/// of size `p` makes it `min(S_i + p, S_(i-1))`, which keeps order. So every `S_i` is never above
/// that of another schedule, and where the other has `i` jobs left, its `S_i = 0`, so ours is.
/// After Schrage, Operations Research 16(3), 1968.)
///
/// **Mean busy time.** Let `M` be the mean instant at which `j`'s work is done, weighted by its
/// rate. By (1) and (3) `M` is latest if all is done in the last `d`, so `j` ends at `M + d/2` or
/// later. The sum of the `M` is linear in the work moved, an instant `t` costing `t/p` for each
/// unit of `j`; swapping a unit of a smaller job that is served later with one of a larger job
/// that is served earlier, where release times allow, never raises it; so on one machine always
/// serving the job with the smallest *total* size minimises it. (After Goemans et al., SIAM J.
/// Discrete Mathematics 15(2), 2002.) It beats SRPT where narrow jobs queue, since it knows that
/// one gang cannot use the whole pool, and loses where many jobs arrive while others run.
///
/// **Best.** Each of the three also bounds any subset of the jobs, as the other jobs could only
/// be in the way. The bounds of disjoint subsets add up. So a calm spell, where durations count,
/// need not dilute a busy one. The subsets used are the pools and, within a pool, the busy periods
/// of the machine that serves only jobs up to some size; these nest as the size grows. From the
/// innermost out, each period keeps the larger of its mean busy times and of what the periods
/// inside it kept, with the duration of the job that joins them. For an outermost period SRPT
/// counts too if it is larger still.
///
/// Cost: O(n log n).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// How many jobs.
    pub jobs: u64,
    /// Sum of the durations.
    pub duration_micros: u128,
    /// Sum of the completion times under SRPT.
    pub srpt_micros: u128,
    /// Sum of the mean busy times, each with half the duration.
    pub mean_busy_micros: u128,
    /// The best combination of the three.
    pub best_micros: u128,
}

impl Bound {
    /// The bounds of each pool. `pool_gpus` has the GPUs of each, at most `residents_per_gpu`
    /// jobs may share one.
    ///
    /// # Panics
    /// If a job names a pool beyond `pool_gpus`, or more than `u32::MAX` jobs are given.
    pub fn by_pool(jobs: &[BoundJob], pool_gpus: &[u32], residents_per_gpu: u32) -> Vec<Bound> {
        let mut tasks: Vec<Vec<Task>> = vec![Vec::new(); pool_gpus.len()];
        for job in jobs {
            tasks[job.pool.index()].push(Task {
                release: job.submit,
                duration: job.duration,
                work: job.duration.on(job.gpus).0,
            });
        }
        let speeds = pool_gpus.iter().map(|&m| u64::from(m) * u64::from(residents_per_gpu));
        tasks.into_iter().zip(speeds).map(|(tasks, speed)| Bound::of_pool(tasks, speed)).collect()
    }

    /// The bounds of all pools together.
    pub fn of(jobs: &[BoundJob], pool_gpus: &[u32], residents_per_gpu: u32) -> Bound {
        let mut total = Bound::default();
        for pool in Bound::by_pool(jobs, pool_gpus, residents_per_gpu) {
            total.jobs += pool.jobs;
            total.duration_micros += pool.duration_micros;
            total.srpt_micros += pool.srpt_micros;
            total.mean_busy_micros += pool.mean_busy_micros;
            total.best_micros += pool.best_micros;
        }
        total
    }

    /// The best bound on the mean completion time, in seconds. `None` without jobs.
    pub fn mean_s(&self) -> Option<f64> {
        self.mean_of(self.best_micros)
    }

    /// The SRPT bound on the mean completion time, in seconds. `None` without jobs.
    pub fn srpt_mean_s(&self) -> Option<f64> {
        self.mean_of(self.srpt_micros)
    }

    fn mean_of(&self, micros: u128) -> Option<f64> {
        (self.jobs > 0).then(|| micros as f64 / (self.jobs as f64 * 1e6))
    }

    fn of_pool(mut tasks: Vec<Task>, speed: u64) -> Bound {
        let mut bound = Bound { jobs: tasks.len() as u64, ..Bound::default() };
        // A job of no size needs no machine, and a pool of no GPUs is none: duration is all that
        // can be said.
        tasks.retain(|task| {
            let on_machine = task.work > 0 && speed > 0;
            if !on_machine {
                bound.duration_micros += u128::from(task.duration.0);
                bound.best_micros += u128::from(task.duration.0);
            }
            on_machine
        });
        tasks.sort_by_key(|task| (task.release, task.work, task.duration));
        let mut rest = &tasks[..];
        while !rest.is_empty() {
            let (group, others) = rest.split_at(busy_period(rest, speed));
            bound.add_busy_period(group, speed);
            rest = others;
        }
        bound
    }

    fn add_busy_period(&mut self, group: &[Task], speed: u64) {
        let srpt = Machine::new(group, speed).flow_micros();
        let MeanBusy { all, best } = mean_busy(group, speed);
        self.duration_micros += group.iter().map(|task| u128::from(task.duration.0)).sum::<u128>();
        self.srpt_micros += srpt;
        self.mean_busy_micros += all;
        self.best_micros += best.max(srpt);
    }
}

/// How many of `tasks`, sorted by release, come before the machine is first idle.
fn busy_period(tasks: &[Task], speed: u64) -> usize {
    let speed = u128::from(speed);
    let mut idle_from = 0;
    for (at, task) in tasks.iter().enumerate() {
        let release = u128::from(task.release.0) * speed;
        if at > 0 && release >= idle_from {
            return at;
        }
        idle_from = idle_from.max(release) + task.work;
    }
    tasks.len()
}

#[cfg(test)]
mod tests;
