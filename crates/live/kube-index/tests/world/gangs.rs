//! All pods of a gang, or none.

use crate::cluster::{Faults, Kind, World};
use crate::objects::pod;
use deepshare_kube_index::Action;
use serde_json::json;

fn gang_of(world: &mut World, name: &str, size: u32, gpus: u32) -> Vec<String> {
    (0..size)
        .map(|member| {
            world.create(pod("a", &format!("{name}-{member}")).gpus(gpus).gang(name, size).0)
        })
        .collect()
}

#[test]
fn a_gang_waits_for_its_last_pod_and_says_so() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "g-0").gang("g", 2).0);
    world.run(5);
    let (reason, message) = world.why("a/g-0");
    assert_eq!(reason, "GangIncomplete");
    assert!(message.contains("1 of 2"), "{message}");
    world.create(pod("a", "g-1").gang("g", 2).0);
    world.run(5);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

#[test]
fn surplus_pods_of_a_gang_run_on_their_own() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    gang_of(&mut world, "g", 2, 1);
    world.run(2);
    world.create(pod("a", "g-9").gang("g", 2).0);
    world.run(10);
    assert_eq!(world.running("a/g"), 3, "{}", world.report());
}

#[test]
fn a_pod_group_says_how_many_there_are() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    let label = "scheduling.x-k8s.io/pod-group";
    for member in 0..2 {
        world.create(pod("a", &format!("g-{member}")).label(label, "pg").0);
    }
    world.run(3);
    assert_eq!(world.why("a/g-0").0, "PodGroupMissing");
    let group = json!({"metadata": {"name": "pg", "namespace": "a"}, "spec": {"minMember": 2}});
    world.set(Kind::Group, "a/pg", group);
    world.run(5);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

#[test]
fn a_gang_whose_pods_differ_is_refused_with_the_reason() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "g-0").gpus(1).gang("g", 2).0);
    world.create(pod("a", "g-1").gpus(2).gang("g", 2).0);
    world.run(5);
    assert_eq!(world.why("a/g-0").0, "UnequalGang");
    assert_eq!(world.why("a/g-1").0, "UnequalGang");
}

#[test]
fn a_member_deleted_while_waiting_holds_its_gang_until_it_is_back() {
    let mut world = World::with(1, 2, &[("a", 4)]);
    world.create(pod("a", "first").gpus(2).lasts(20).0);
    world.run(3);
    world.controller("g", pod("a", "g").gang("g", 2).0, 2);
    world.run(5);
    let uid = world.find("a/g-0").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    world.controllers.get_mut("g").unwrap().slow_ms = 30_000;
    world.delete(&uid, 0);
    world.run(20);
    assert_eq!(world.running("a/g"), 0, "{}", world.report());
    world.run(20);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

#[test]
fn the_successor_of_a_running_member_gets_its_devices() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.controller("g", pod("a", "g").gang("g", 2).0, 2);
    world.run(5);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
    let before = world.devices("a/g-0");
    let uid = world.find("a/g-0").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    world.delete(&uid, 5);
    world.run(9);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
    assert_eq!(world.devices("a/g-2"), before);
    assert_eq!(world.count(|action| matches!(action, Action::Delete { .. })), 0);
}

#[test]
fn a_gang_whose_member_is_not_back_in_time_starts_again_as_a_whole() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.controller("g", pod("a", "g").gang("g", 2).0, 2);
    world.run(5);
    let uid = world.find("a/g-0").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    world.controllers.get_mut("g").unwrap().slow_ms = 20_000;
    world.delete(&uid, 5);
    world.run(16);
    assert_eq!(world.count(|action| matches!(action, Action::Delete { .. })), 1);
    world.run(60);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

#[test]
fn a_binding_that_fails_for_good_in_the_middle_of_a_gang_undoes_the_others() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "g-0").gang("g", 2).0);
    world.create(pod("a", "g-1").gang("g", 2).note("test/bind", "permanent").0);
    world.run(40);
    assert_eq!(world.running("a/g"), 0, "{}", world.report());
    world.create(pod("a", "next").gpus(4).0);
    world.run(10);
    assert!(world.runs("a/next"), "{}", world.report());
}

#[test]
fn bindings_that_fail_once_or_without_a_word_are_made_good() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "once").note("test/bind", "transient once").0);
    world.run(5);
    assert!(world.runs("a/once"), "{}", world.report());
    world.faults = Faults { bind_unknown: 100, ..Faults::default() };
    gang_of(&mut world, "g", 3, 1);
    world.run(10);
    assert_eq!(world.running("a/g"), 3, "{}", world.report());
    assert_eq!(world.count(|action| matches!(action, Action::Delete { .. })), 0);
}

#[test]
fn a_pod_whose_binding_never_works_does_not_keep_the_devices() {
    let mut world = World::with(1, 1, &[("a", 1)]);
    world.create(pod("a", "bad").note("test/bind", "permanent").0);
    world.run(1);
    world.create(pod("a", "good").0);
    world.run(10);
    assert!(world.runs("a/good"), "{}", world.report());
    assert_ne!(world.why("a/bad").0, "");
}
