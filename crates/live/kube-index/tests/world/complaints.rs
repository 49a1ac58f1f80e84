//! What users of other schedulers complain about, as far as it takes no API server to show: see
//! docs/kubernetes/complaints.md.

use crate::cluster::{Kind, World};
use crate::objects::pod;
use serde_json::Value;

/// kubernetes-sigs/kueue#9715: with thousands waiting the queue was begun anew before the one that
/// fits was reached.
#[test]
fn the_one_that_fits_is_found_behind_a_thousand_that_do_not() {
    let mut world = World::with(1, 4, &[("a", 4), ("b", 4)]);
    world.create(pod("a", "holds").gpus(3).0);
    world.run(3);
    for number in 0..1_000 {
        world.create(pod("b", &format!("wide-{number}")).gpus(2).best_effort().0);
    }
    world.run(5);
    world.create(pod("b", "small").best_effort().0);
    world.run(5);
    assert!(world.runs("b/small"), "{}", world.report());
    assert_eq!(world.running("b/wide"), 0);
}

/// kubernetes-sigs/kueue#2270: whoever did not fit was tried again and again, though nothing had
/// changed.
#[test]
fn who_waits_is_not_tried_again_while_nothing_happens() {
    let mut world = World::with(1, 1, &[("a", 1), ("b", 1)]);
    world.create(pod("a", "holds").0);
    for number in 0..100 {
        world.create(pod("b", &format!("waits-{number}")).best_effort().0);
    }
    world.run(60);
    let steps = |world: &World| world.processes[0].audit.steps.len();
    let before = steps(&world);
    world.run(600);
    let more = steps(&world) - before;
    assert!(more <= 10, "{more} steps in ten minutes in which nothing happened");
}

/// volcano-sh/volcano#5805: a gang that had lost a node stayed below its least number, on devices
/// that nobody else could have.
#[test]
fn a_gang_that_lost_a_node_gives_the_rest_back_and_returns_as_a_whole() {
    let mut world = World::with(2, 2, &[("a", 8)]);
    world.controller("g", pod("a", "g").gpus(2).gang("g", 2).0, 2);
    world.run(5);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
    world.silence("n1", true);
    world.run(20);
    world.create(pod("a", "new").gpus(2).lasts(20).0);
    world.run(10);
    assert!(world.runs("a/new"), "what the gang had on n0 is free: {}", world.report());
    world.silence("n1", false);
    world.run(60);
    assert_eq!(world.phase("a/new"), "Succeeded");
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

/// kubernetes-sigs/kueue#14244: where two nodes failed, one of them was dealt with.
#[test]
fn a_gang_whose_nodes_go_one_after_the_other_is_back_at_once() {
    let mut world = World::with(4, 2, &[("a", 8)]);
    world.controller("g", pod("a", "g").gpus(2).gang("g", 2).stops_in(10).0, 2);
    world.run(5);
    let homes: Vec<String> =
        ["a/g-0", "a/g-1"].iter().filter_map(|name| world.find(name)).map(home).collect();
    assert_eq!(homes.len(), 2, "{}", world.report());
    for home in &homes {
        // The other pod is asked to stop, on a node that goes before it has.
        world.silence(home, true);
        world.remove(Kind::Node, home);
        world.run(1);
    }
    world.run(9);
    let now: Vec<String> =
        ["a/g-2", "a/g-3"].iter().filter_map(|name| world.find(name)).map(home).collect();
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
    assert!(homes.iter().all(|home| !now.contains(home)), "{now:?}");
}

fn home(pod: &Value) -> String {
    pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()
}
