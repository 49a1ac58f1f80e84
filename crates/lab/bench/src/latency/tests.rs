//! The measured world is a real one: nothing is wrong in it, and what is measured happens.

use super::*;
use deepshare_audit::{Auditor, ReclaimRules};
use std::sync::Arc;

const GPUS: u32 = 320;

fn audited(spill: bool) -> Steady {
    let settings = settings(spill);
    let auditor = Auditor::new(&settings.engine)
        .preempts_guaranteed(false)
        .reclaims(ReclaimRules { preemption_cap: 3 })
        .check_every(64);
    let inputs = Arc::new(Inputs::scale(SEED, GPUS, 2_000));
    Steady::of(World::watched(&settings, inputs, Some(auditor)), 300, 100)
}

#[test]
fn the_usual_state_is_full_has_its_queue_and_reclaims_under_the_auditors_eyes() {
    for spill in [false, true] {
        let mut steady = audited(spill);
        let figures = steady.run(600).figures;
        assert!(figures.reclaims.0 > 0 && figures.starts > 100, "spill {spill}");
        assert!(figures.waiting.0 > 200 && figures.waiting.1 < 400, "{:?}", figures.waiting);
        let pool = &steady.world.engine().state().pools()[0];
        assert!(pool.free_gpus() * 10 < pool.usable_gpus(), "{} are free", pool.free_gpus());
    }
}

#[test]
fn a_copy_of_a_world_goes_the_same_way() {
    let mut steady = Steady::warmed(&settings(false), GPUS, 300, 50);
    let mut copy = steady.fork();
    let went = |of: &mut Steady| {
        for _ in 0..60 {
            of.instant(&mut Vec::new());
        }
        (of.world.now(), of.world.tally(), of.world.waiting())
    };
    assert_eq!(went(&mut steady), went(&mut copy));
}

#[test]
fn what_is_measured_is_as_many_instants_and_leaves_the_state_as_it_was() {
    let steady = Steady::warmed(&settings(false), GPUS, 300, 50);
    let now = steady.world.now();
    let figures = steady.measure(40);
    assert_eq!((figures.instants.count(), steady.world.now()), (40, now));
    assert!(figures.rounds > 0 && figures.instants.max() >= figures.instants.micros(500));
}

#[test]
fn a_gang_of_the_tenant_that_lends_all_starts_by_reclaim() {
    let mut world = audited(false).world;
    world.advance_to(world.now() + STEP, &mut Vec::new());
    assert!(gang(&mut world, 16).victims > 1);
}
