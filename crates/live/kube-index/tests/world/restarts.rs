//! A scheduler dies in the middle of things, and the next one knows no more than the API server.

use crate::cluster::{Kind, World};
use crate::objects::pod;
use deepshare_kube_index::Action;

/// Kills the scheduler and starts another one a second later.
fn fail_over(world: &mut World) {
    let last = world.processes.len() - 1;
    world.crash(last);
    world.run(1);
    world.lead();
}

#[test]
fn what_runs_is_taken_up_and_nobody_is_evicted() {
    let mut world = World::with(2, 4, &[("a", 4), ("b", 4)]);
    world.create(pod("a", "one").gpus(2).0);
    for member in 0..2 {
        world.create(pod("a", &format!("g-{member}")).gang("g", 2).0);
    }
    world.controller("lent", pod("b", "lent").best_effort().0, 2);
    world.run(5);
    fail_over(&mut world);
    world.create(pod("b", "new").gpus(2).0);
    world.run(10);
    assert_eq!((world.running("a/"), world.running("b/")), (3, 3), "{}", world.report());
    let ends = world.count(|action| matches!(action, Action::Evict { .. } | Action::Delete { .. }));
    assert_eq!(ends, 0);
    assert_eq!(world.leader().illegal(), 0);
}

#[test]
fn a_binding_on_its_way_counts_whether_it_arrives_or_not() {
    for lands in [0, 100] {
        let mut world = World::with(1, 2, &[("a", 2)]);
        world.faults.write_ms = 400;
        world.faults.lands = lands;
        world.create(pod("a", "p").gpus(2).0);
        while world.count(|action| matches!(action, Action::Bind { .. })) == 0 {
            world.step();
        }
        fail_over(&mut world);
        world.run(10);
        assert!(world.runs("a/p"), "{lands}: {}", world.report());
        assert_eq!(world.rejections, Vec::<String>::new());
    }
}

#[test]
fn an_eviction_under_way_ends_with_the_beneficiary_running() {
    let mut world = World::with(1, 2, &[("a", 1), ("b", 2)]);
    world.controller("lent", pod("a", "lent").best_effort().stops_in(8).0, 2);
    world.run(5);
    world.create(pod("b", "own").gpus(2).0);
    world.run(3);
    fail_over(&mut world);
    world.run(20);
    assert!(world.runs("b/own"), "{}", world.report());
    assert_eq!(world.rejections, Vec::<String>::new());
}

#[test]
fn a_gang_bound_in_part_starts_again_as_a_whole() {
    let mut world = World::with(2, 2, &[("a", 4)]);
    world.faults.lands = 0;
    world.controller("g", pod("a", "g").gang("g", 4).0, 4);
    world.faults.write_ms = 2_000;
    let bound =
        |world: &World| world.pods().filter(|(_, pod)| !pod["spec"]["nodeName"].is_null()).count();
    while bound(&world) < 2 {
        world.step();
    }
    fail_over(&mut world);
    world.run(60);
    assert_eq!(world.running("a/g"), 4, "{}", world.report());
}

#[test]
fn smoothed_assurance_survives() {
    let mut world = World::with(1, 2, &[("a", 2), ("b", 2)]);
    world.create(pod("b", "holds").gpus(2).0);
    world.create(pod("a", "waits").gpus(2).0);
    world.run(60);
    let told = |world: &World| {
        let key = crate::cluster::Key { kind: Kind::Quota, name: "a".to_owned() };
        world.objects[&key]["status"]["smoothed"]["A100"].as_str().unwrap().to_owned()
    };
    let before = told(&world);
    assert!(before.parse::<f64>().unwrap() < 0.5, "{before}");
    fail_over(&mut world);
    world.run(2);
    let after = told(&world).parse::<f64>().unwrap();
    assert!(after <= before.parse::<f64>().unwrap() + 0.01, "{before} became {after}");
}

#[test]
fn two_leaders_for_a_moment_give_no_device_twice() {
    for seed in 0..10 {
        let mut world = World::with(2, 2, &[("a", 4)]);
        world.chance = crate::chance::Chance::new(seed);
        world.faults.write_ms = 600;
        world.controller("j", pod("a", "j").0, 3);
        while world.written.is_empty() {
            world.step();
        }
        world.lead();
        world.run(2);
        world.crash(0);
        world.run(90);
        assert_eq!(world.running("a/j"), 3, "seed {seed}: {}", world.report());
    }
}
