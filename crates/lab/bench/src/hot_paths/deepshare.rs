//! DeepShare's rounds on a thousand GPUs with a queue, in the state that `latency` measures.

use crate::latency::{self, ALL_GPUS, Inputs, STEP, Steady, World, gang, settings};
use crate::preset;
use deepshare_model::TenantId;
use deepshare_sim::{Watch, simulate};
use deepshare_trace::generate::scale;
use std::sync::Arc;

const GPUS: u32 = 1_000;
const WAITING: u32 = 1_000;
/// Jobs of the short preset.
pub(super) const JOBS: u32 = 20_000;

fn warmed() -> Steady {
    let inputs = Arc::new(Inputs::scale(1, GPUS, 4 * WAITING));
    Steady::of(World::new(&settings(false), inputs), WAITING, 200)
}

/// Jobs end and come.
pub(super) fn steady(units: u32) {
    let mut steady = warmed();
    let rounds = steady.world.engine().state().rounds();
    for _ in 0..2 * units {
        steady.instant(&mut Vec::new());
    }
    assert!(steady.world.engine().state().rounds() >= rounds + u64::from(units) / 2);
}

/// A gang evicts its victims, starts and ends; others take its place.
pub(super) fn reclaim(units: u32) {
    let mut steady = warmed();
    for _ in 0..units {
        let world = &mut steady.world;
        world.advance_to(world.now() + STEP, &mut Vec::new());
        let started = gang(world, 16);
        world.advance_to(world.now() + STEP, &mut Vec::new());
        world.end(started.attempt);
        world.decide();
    }
}

/// An array comes, for whose jobs others are evicted.
pub(super) fn array(units: u32) {
    let inputs = Arc::new(Inputs::scale(1, ALL_GPUS, 30 * WAITING));
    let mut world = Steady::of(World::new(&settings(false), inputs), 10 * WAITING, 200).world;
    world.advance_to(world.now() + STEP, &mut Vec::new());
    let before = world.tally();
    latency::array(&mut world, TenantId(0), units);
    world.decide();
    let after = world.tally();
    assert!(after.starts - before.starts >= u64::from(units), "its quota is idle");
    assert!(after.victims > before.victims, "and lent");
}

/// The preset with a fiftieth of its jobs.
pub(super) fn preset(units: u32) {
    let (trace, cluster) = scale(1, JOBS);
    for _ in 0..units {
        let run = simulate(&trace, &cluster, &preset::settings(), &Watch::default());
        let run = run.expect("the preset can be run");
        assert!(run.jobs.iter().all(|job| job.end.is_some() || job.refused));
    }
}
