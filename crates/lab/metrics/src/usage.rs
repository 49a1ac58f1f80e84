//! GPU time by use, integrated exactly as the run goes.

use deepshare_model::{GpuTime, PoolId, Time};
use serde::{Deserialize, Serialize};

/// GPU time of a run by use, from the first submission to the last end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The first submission.
    pub from: Time,
    /// The last end; if no job ended, the last instant the meter saw.
    pub to: Time,
    /// GPU time of installed and healthy devices.
    pub capacity: GpuTime,
    /// GPU time of devices given to a job, however many share one and however busy it is.
    pub allocated: GpuTime,
    /// GPU time of free healthy devices while any job of the cluster waits.
    pub idle_while_waiting: GpuTime,
    /// GPU time of free healthy devices while a job of their own pool waits.
    pub idle_while_pool_waits: GpuTime,
    /// Solo work done, in GPU time: what the devices would have had to run for, alone.
    pub solo_work: GpuTime,
    /// GPU time of devices with two jobs.
    pub shared: GpuTime,
    /// GPU time of compute in use.
    pub compute: GpuTime,
    /// GPU time of GPU memory in use.
    pub memory: GpuTime,
    /// The same up to the last submission: without the drain at the end, which says more about
    /// the longest job than about the policy.
    pub arrival_window: ArrivalWindow,
}

/// GPU time by use from the first to the last submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalWindow {
    /// The last submission.
    pub to: Time,
    /// GPU time of installed and healthy devices.
    pub capacity: GpuTime,
    /// GPU time of devices given to a job.
    pub allocated: GpuTime,
    /// Solo work done, in GPU time.
    pub solo_work: GpuTime,
    /// GPU time of devices with two jobs.
    pub shared: GpuTime,
    /// GPU time of compute in use.
    pub compute: GpuTime,
    /// GPU time of GPU memory in use.
    pub memory: GpuTime,
}

/// What running jobs together do between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingLevels {
    /// GPUs at work, each at the share of its job's solo speed, in 10⁻⁶.
    pub working_ppm: u64,
    /// GPUs with two jobs.
    pub shared: u64,
    /// Compute in use, in GPUs × 10⁻⁶.
    pub compute_ppm: u64,
    /// GPU memory in use, in GPUs × 10⁻⁶.
    pub memory_ppm: u64,
}

impl SharingLevels {
    /// Counts one job's part anew.
    pub fn change(&mut self, before: SharingLevels, after: SharingLevels) {
        let replace = |sum: &mut u64, old: u64, new: u64| *sum = *sum - old + new;
        replace(&mut self.working_ppm, before.working_ppm, after.working_ppm);
        replace(&mut self.shared, before.shared, after.shared);
        replace(&mut self.compute_ppm, before.compute_ppm, after.compute_ppm);
        replace(&mut self.memory_ppm, before.memory_ppm, after.memory_ppm);
    }
}

/// Integrates [`Usage`] step by step. Each call is O(1).
///
/// 1. Call [`advance`](Self::advance) before any other call at a new instant.
/// 2. Call [`set_pool`](Self::set_pool) after whatever changes a pool; several times at one
///    instant is fine, only the last one counts for the time that follows.
/// 3. Call [`submitted`](Self::submitted) and [`ended`](Self::ended) for each job: they fix the
///    windows. Nothing is counted before the first submission.
#[derive(Clone, Debug)]
pub struct UsageMeter {
    pools: Vec<Pool>,
    total: Levels,
    sharing: SharingLevels,
    sums: Sums,
    now: Time,
    first_submission: Option<Time>,
    last_submission: Option<Mark>,
    last_end: Option<Mark>,
}

/// Levels of one pool between two instants.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    capacity: u32,
    allocated: u32,
    waiting_jobs: u32,
}

/// Levels of the cluster between two instants.
#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    capacity: u64,
    allocated: u64,
    free: u64,
    free_where_pool_waits: u64,
    waiting_jobs: u64,
}

/// Levels in 10⁻⁶ are divided once, at the end.
const PPM: u128 = 1_000_000;

/// Integrals of the levels since the first submission.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    capacity: u128,
    allocated: u128,
    idle_while_waiting: u128,
    idle_while_pool_waits: u128,
    working_ppm: u128,
    shared: u128,
    compute_ppm: u128,
    memory_ppm: u128,
}

/// The integrals as they stood at an instant.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    sums: Sums,
}

impl Pool {
    fn free(self) -> u64 {
        u64::from(self.capacity.saturating_sub(self.allocated))
    }

    fn free_while_it_waits(self) -> u64 {
        if self.waiting_jobs > 0 { self.free() } else { 0 }
    }
}

impl UsageMeter {
    /// A meter of `pools` pools, all empty.
    pub fn new(pools: usize) -> UsageMeter {
        UsageMeter {
            pools: vec![Pool::default(); pools],
            total: Levels::default(),
            sharing: SharingLevels::default(),
            sums: Sums::default(),
            now: Time::ZERO,
            first_submission: None,
            last_submission: None,
            last_end: None,
        }
    }

    /// Counts the time since the last call at the levels set so far.
    ///
    /// # Panics
    /// If `now` runs backwards.
    pub fn advance(&mut self, now: Time) {
        let step = now.since(self.now).expect("the simulator's clock never runs backwards");
        self.now = now;
        if step.is_zero() || self.first_submission.is_none() {
            return;
        }
        let step = u128::from(step.0);
        let level = self.total;
        self.sums.capacity += step * u128::from(level.capacity);
        self.sums.allocated += step * u128::from(level.allocated);
        self.sums.idle_while_pool_waits += step * u128::from(level.free_where_pool_waits);
        let level = self.sharing;
        self.sums.working_ppm += step * u128::from(level.working_ppm);
        self.sums.shared += step * u128::from(level.shared);
        self.sums.compute_ppm += step * u128::from(level.compute_ppm);
        self.sums.memory_ppm += step * u128::from(level.memory_ppm);
        let level = self.total;
        if level.waiting_jobs > 0 {
            self.sums.idle_while_waiting += step * u128::from(level.free);
        }
    }

    /// Sets a pool's levels from now on: healthy GPUs, GPUs given to at least one job, and jobs
    /// waiting.
    pub fn set_pool(&mut self, pool: PoolId, capacity: u32, allocated: u32, waiting_jobs: u32) {
        let new = Pool { capacity, allocated, waiting_jobs };
        let old = std::mem::replace(&mut self.pools[pool.index()], new);
        let total = &mut self.total;
        let replace = |sum: &mut u64, old: u64, new: u64| *sum = *sum - old + new;
        replace(&mut total.capacity, old.capacity.into(), new.capacity.into());
        replace(&mut total.allocated, old.allocated.into(), new.allocated.into());
        replace(&mut total.waiting_jobs, old.waiting_jobs.into(), new.waiting_jobs.into());
        replace(&mut total.free, old.free(), new.free());
        replace(
            &mut total.free_where_pool_waits,
            old.free_while_it_waits(),
            new.free_while_it_waits(),
        );
    }

    /// Sets what running jobs together do from now on.
    pub fn set_sharing(&mut self, levels: SharingLevels) {
        self.sharing = levels;
    }

    /// A job was submitted now.
    pub fn submitted(&mut self) {
        self.first_submission.get_or_insert(self.now);
        self.last_submission = Some(self.mark());
    }

    /// A job ended for good now.
    pub fn ended(&mut self) {
        self.last_end = Some(self.mark());
    }

    /// What was counted, up to the last end (or up to now if no job has ended).
    pub fn usage(&self) -> Usage {
        let whole = self.last_end.unwrap_or_else(|| self.mark());
        let from = self.first_submission.unwrap_or(whole.at);
        let nothing = Mark { at: from, sums: Sums::default() };
        let arrivals = self.last_submission.unwrap_or(nothing);
        Usage {
            from,
            to: whole.at,
            capacity: GpuTime(whole.sums.capacity),
            allocated: GpuTime(whole.sums.allocated),
            idle_while_waiting: GpuTime(whole.sums.idle_while_waiting),
            idle_while_pool_waits: GpuTime(whole.sums.idle_while_pool_waits),
            solo_work: GpuTime(whole.sums.working_ppm / PPM),
            shared: GpuTime(whole.sums.shared),
            compute: GpuTime(whole.sums.compute_ppm / PPM),
            memory: GpuTime(whole.sums.memory_ppm / PPM),
            arrival_window: ArrivalWindow {
                to: arrivals.at,
                capacity: GpuTime(arrivals.sums.capacity),
                allocated: GpuTime(arrivals.sums.allocated),
                solo_work: GpuTime(arrivals.sums.working_ppm / PPM),
                shared: GpuTime(arrivals.sums.shared),
                compute: GpuTime(arrivals.sums.compute_ppm / PPM),
                memory: GpuTime(arrivals.sums.memory_ppm / PPM),
            },
        }
    }

    fn mark(&self) -> Mark {
        Mark { at: self.now, sums: self.sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P0: PoolId = PoolId(0);
    const P1: PoolId = PoolId(1);

    #[test]
    fn idle_gpus_count_by_cluster_and_by_pool_only_while_someone_waits() {
        let mut meter = UsageMeter::new(2);
        meter.set_pool(P0, 8, 0, 0);
        meter.set_pool(P1, 4, 0, 0);
        meter.advance(Time(100));
        meter.submitted();
        // A gang of 8 takes pool 0 but for one device; another job waits there for two.
        meter.set_pool(P0, 8, 7, 1);
        meter.advance(Time(110));
        meter.submitted();
        meter.set_pool(P0, 8, 8, 0);
        meter.advance(Time(130));
        meter.ended();
        meter.advance(Time(500));
        let usage = meter.usage();
        assert_eq!((usage.from, usage.to), (Time(100), Time(130)));
        assert_eq!(usage.capacity, GpuTime(30 * 12));
        assert_eq!(usage.allocated, GpuTime(10 * 7 + 20 * 8));
        assert_eq!(usage.idle_while_waiting, GpuTime(10 * 5), "pool 1 idles too");
        assert_eq!(usage.idle_while_pool_waits, GpuTime(10));
        assert_eq!(
            usage.arrival_window,
            ArrivalWindow {
                to: Time(110),
                capacity: GpuTime(120),
                allocated: GpuTime(70),
                ..ArrivalWindow::default()
            }
        );
    }

    #[test]
    fn a_failed_node_lowers_capacity_from_that_instant() {
        let mut meter = UsageMeter::new(1);
        meter.set_pool(P0, 16, 16, 0);
        meter.submitted();
        meter.advance(Time(10));
        meter.set_pool(P0, 8, 8, 1);
        meter.advance(Time(20));
        meter.ended();
        assert_eq!(meter.usage().capacity, GpuTime(10 * 16 + 10 * 8));
        assert_eq!(meter.usage().idle_while_waiting, GpuTime(0));
    }

    #[test]
    fn a_run_in_which_nothing_ends_is_counted_to_its_last_instant() {
        let mut meter = UsageMeter::new(1);
        meter.set_pool(P0, 2, 0, 1);
        meter.submitted();
        meter.advance(Time(5));
        assert_eq!(meter.usage().to, Time(5));
        assert_eq!(meter.usage().idle_while_pool_waits, GpuTime(10));
        assert_eq!(UsageMeter::new(1).usage(), Usage::default());
    }
}
