//! The usual state: all GPUs taken, a long queue, jobs that end and jobs that come.

use super::inputs::Inputs;
use super::world::{STEP, World};
use deepshare_sim::SimSettings;
use std::sync::Arc;
use std::time::Duration;

/// Jobs beside the waiting ones that a history needs.
const SPARE_JOBS: u32 = 20_000;
/// Equal runs of each measurement.
pub const RUNS: usize = 3;
/// Seed of every history here.
pub const SEED: u64 = 1;

/// Most arrivals at one instant: as many as have started since the last, if not more.
const MOST_ARRIVALS: u32 = 10;

/// A world and how many jobs should wait in it.
pub struct Steady {
    /// The world.
    pub world: World,
    /// So many, about.
    pub target: u32,
    /// Instants so far.
    instants: u32,
}

/// What was measured.
pub struct Figures {
    /// GPUs of the cluster.
    pub gpus: u32,
    /// Waiting jobs, least and most.
    pub waiting: (u32, u32),
    /// Engine's time for each instant with an event.
    pub instants: Times,
    /// Engine's time for each wake between them that it had asked for.
    pub between: Times,
    /// Rounds of the policy.
    pub rounds: u64,
    /// Jobs started.
    pub starts: u64,
    /// Guaranteed jobs for which others were evicted, and how many were.
    pub reclaims: (u64, u64),
}

/// Times in ascending order.
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts them.
    pub fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        Times(times)
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Microseconds that a share of the times, in thousandths, does not exceed; 0 of none.
    pub fn micros(&self, milli: usize) -> f64 {
        let place = (self.0.len() * milli).div_ceil(1_000).max(1) - 1;
        self.0.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }

    /// The longest in microseconds; 0 of none.
    pub fn max(&self) -> f64 {
        self.micros(1_000)
    }
}

impl Steady {
    /// A full cluster with `target` jobs waiting, `instants` instants after it became so.
    pub fn warmed(settings: &SimSettings, gpus: u32, target: u32, instants: u32) -> Steady {
        let inputs = Arc::new(Inputs::scale(SEED, gpus, target + SPARE_JOBS));
        Steady::of(World::new(settings, inputs), target, instants)
    }

    /// The same for a given empty world.
    pub fn of(world: World, target: u32, instants: u32) -> Steady {
        let mut steady = Steady { world, target, instants: 0 };
        // Whoever fits starts at once, so that it takes more than one turn.
        while steady.world.waiting() < target {
            let missing = target - steady.world.waiting();
            let at = steady.world.now() + STEP;
            steady.world.advance_to(at, &mut Vec::new());
            for _ in 0..missing {
                steady.world.submit_next();
            }
            steady.world.decide();
        }
        for _ in 0..instants {
            steady.instant(&mut Vec::new());
        }
        steady
    }

    /// One instant: ends of jobs, or arrivals, in turn. The engine's time for it.
    pub fn instant(&mut self, between: &mut Vec<Duration>) -> Duration {
        let world = &mut self.world;
        let soon = world.now() + STEP;
        self.instants += 1;
        if self.instants.is_multiple_of(2) {
            let at = world.next_end().map_or(soon, |end| end.max(soon));
            world.advance_to(at, between);
            world.end_due();
        } else {
            world.advance_to(soon, between);
            let missing = self.target.saturating_sub(world.waiting());
            for _ in 0..missing.clamp(1, MOST_ARRIVALS) {
                world.submit_next();
            }
        }
        world.decide()
    }

    /// Another in the same state.
    pub fn fork(&self) -> Steady {
        Steady { world: self.world.fork(), ..*self }
    }

    /// Measures the next so many instants, in copies: what else the machine does disturbs some
    /// instants of a run, but hardly the same ones of most runs.
    pub fn measure(&self, instants: u32) -> Figures {
        let mut runs: Vec<Run> = (0..RUNS).map(|_| self.fork().run(instants)).collect();
        let all =
            |of: fn(&Run) -> &Vec<Duration>| medians(&runs.iter().map(of).collect::<Vec<_>>());
        let (instants, between) = (all(|run| &run.instants), all(|run| &run.between));
        let last = runs.pop().expect("there was a run");
        Figures { instants: Times::of(instants), between: Times::of(between), ..last.figures }
    }

    /// Measures so many instants as they come.
    pub fn run(&mut self, instants: u32) -> Run {
        let before = (self.world.tally(), self.world.engine().state().rounds());
        let mut between = Vec::new();
        let mut waiting = (self.world.waiting(), self.world.waiting());
        let times = (0..instants).map(|_| {
            let time = self.instant(&mut between);
            let now = self.world.waiting();
            waiting = (waiting.0.min(now), waiting.1.max(now));
            time
        });
        let instants = times.collect();
        let after = (self.world.tally(), self.world.engine().state().rounds());
        let victims = after.0.victims - before.0.victims;
        let figures = Figures {
            gpus: self.world.inputs().gpus(),
            waiting,
            instants: Times::of(Vec::new()),
            between: Times::of(Vec::new()),
            rounds: after.1 - before.1,
            starts: after.0.starts - before.0.starts,
            reclaims: (after.0.reclaims - before.0.reclaims, victims),
        };
        Run { instants, between, figures }
    }
}

/// One run: times in order, and the other figures.
pub struct Run {
    instants: Vec<Duration>,
    between: Vec<Duration>,
    /// Without times.
    pub figures: Figures,
}

/// The median of each place.
fn medians(runs: &[&Vec<Duration>]) -> Vec<Duration> {
    let length = runs.iter().map(|run| run.len()).min().unwrap_or(0);
    let median = |place: usize| {
        let mut times: Vec<Duration> = runs.iter().map(|run| run[place]).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    (0..length).map(median).collect()
}
