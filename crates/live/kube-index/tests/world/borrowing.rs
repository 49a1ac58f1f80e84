//! Tenants lend what idles, and get it back.

use crate::cluster::{Kind, World};
use crate::objects::{pod, quota};
use deepshare_kube_index::Action;
use serde_json::json;

fn evictions(world: &World) -> usize {
    world.count(|action| matches!(action, Action::Evict { .. }))
}

#[test]
fn a_pod_runs_on_the_devices_that_its_annotation_names() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "p").gpus(2).0);
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_eq!(world.devices("a/p").len(), 2);
}

#[test]
fn idle_quota_is_borrowed_and_reclaimed_by_evicting_the_borrower() {
    let mut world = World::with(1, 4, &[("a", 2), ("b", 2)]);
    world.controller("lent", pod("a", "lent").best_effort().0, 4);
    world.run(5);
    assert_eq!(world.running("a/lent"), 4, "{}", world.report());
    world.create(pod("b", "own").gpus(2).0);
    world.run(20);
    assert!(world.runs("b/own"), "{}", world.report());
    assert_eq!(evictions(&world), 2);
    assert_eq!(world.running("a/lent"), 2);
}

#[test]
fn a_guaranteed_gang_evicts_no_more_than_it_needs() {
    let mut world = World::with(2, 4, &[("a", 4), ("b", 4)]);
    world.create(pod("a", "wide").gpus(4).best_effort().0);
    world.controller("small", pod("a", "small").best_effort().0, 4);
    world.run(5);
    for member in 0..2 {
        world.create(pod("b", &format!("gang-{member}")).gpus(2).gang("g", 2).0);
    }
    world.run(20);
    assert_eq!(world.running("b/gang"), 2, "{}", world.report());
    assert_eq!(evictions(&world), 1, "one wide victim is cheaper than four small ones");
    assert_eq!(world.running("a/small"), 4);
}

#[test]
fn recreated_pods_of_a_victim_do_not_evict_their_way_back() {
    let mut world = World::with(1, 4, &[("a", 0), ("b", 4)]);
    world.set(Kind::Quota, "a", {
        let mut quota = quota("a", 1);
        quota["spec"]["bestEffortMultiple"] = json!(4.0);
        quota
    });
    world.controller("lent", pod("a", "lent").best_effort().0, 4);
    world.run(5);
    world.create(pod("b", "own").gpus(4).lasts(100).0);
    world.run(60);
    assert!(world.runs("b/own"), "{}", world.report());
    let before = evictions(&world);
    assert_eq!(before, 4);
    world.run(60);
    assert_eq!(world.running("a/lent"), 4, "{}", world.report());
    assert_eq!(evictions(&world), before);
    world.check_quiet();
}

#[test]
fn who_takes_long_to_stop_is_waited_for_and_nobody_else_is_evicted() {
    let mut world = World::with(1, 2, &[("a", 1), ("b", 1)]);
    world.create(pod("a", "slow").best_effort().grace(25).stops_in(20).0);
    world.create(pod("a", "own").0);
    world.run(5);
    world.create(pod("b", "waits").0);
    world.run(15);
    assert_eq!(world.phase("b/waits"), "Pending");
    assert_eq!(evictions(&world), 1);
    world.run(15);
    assert!(world.runs("b/waits"), "{}", world.report());
    assert!(world.runs("a/own"));
}

#[test]
fn grace_is_what_the_pod_asks_for_up_to_the_operators_limit() {
    let graces = |asked: u32| {
        let mut world = World::with(1, 1, &[("a", 0), ("b", 1)]);
        world.change(Kind::Quota, "a", |quota| {
            quota["spec"]["gpus"] = json!({"*": 1});
        });
        world.run(1);
        world.create(pod("a", "lent").best_effort().grace(asked).0);
        world.run(5);
        world.create(pod("b", "own").0);
        world.run(2);
        world.written.iter().find_map(|(_, action)| match action {
            Action::Evict { grace_s, .. } => Some(*grace_s),
            _ => None,
        })
    };
    assert_eq!(graces(5), Some(5));
    assert_eq!(graces(3_600), Some(30), "most_grace_s");
}

#[test]
fn a_quota_lowered_below_use_evicts_nobody_guaranteed() {
    let mut world = World::with(1, 4, &[("a", 4), ("b", 0)]);
    world.create(pod("a", "one").gpus(2).0);
    world.create(pod("a", "two").gpus(2).0);
    world.run(5);
    world.change(Kind::Quota, "a", |quota| quota["spec"]["gpus"] = json!({"*": 2}));
    world.create(pod("a", "three").0);
    world.run(20);
    assert_eq!((evictions(&world), world.running("a/")), (0, 2), "{}", world.report());
    assert_eq!(world.why("a/three").0, "OverQuota");
}

#[test]
fn a_budget_that_refuses_keeps_its_pod_and_another_is_evicted() {
    let mut world = World::with(1, 2, &[("a", 1), ("b", 1)]);
    world.set(Kind::Budget, "a/keep", budget("a", "keep", 0));
    world.create(pod("a", "kept").best_effort().label("app", "keep").0);
    world.create(pod("a", "other").best_effort().0);
    world.run(5);
    world.create(pod("b", "own").0);
    world.run(60);
    assert!(world.runs("a/kept") && world.runs("b/own"), "{}", world.report());
}

#[test]
fn where_a_budget_protects_the_only_victim_whoever_waits_is_told_who_stays() {
    let mut world = World::with(1, 1, &[("a", 1), ("b", 1)]);
    world.set(Kind::Budget, "a/keep", budget("a", "keep", 0));
    world.create(pod("a", "kept").best_effort().label("app", "keep").0);
    world.run(5);
    world.create(pod("b", "own").0);
    world.run(20);
    let (reason, message) = world.why("b/own");
    assert_eq!(reason, "Unschedulable");
    assert!(message.contains("a/kept stays: a disruption budget refuses"), "{message}");
    world.set(Kind::Budget, "a/keep", budget("a", "keep", 1));
    world.run(70);
    assert!(world.runs("b/own"), "it is asked again: {}", world.report());
}

#[test]
fn a_budget_is_overridden_after_the_wait_where_the_tenant_may() {
    let mut world = World::with(1, 1, &[("a", 1), ("b", 1)]);
    world.set(Kind::Budget, "a/keep", budget("a", "keep", 0));
    world.change(Kind::Quota, "b", |quota| {
        quota["spec"]["reclaim"] = json!({"overridePdb": true, "pdbWaitSeconds": 20});
    });
    world.create(pod("a", "kept").best_effort().label("app", "keep").0);
    world.run(5);
    world.create(pod("b", "own").0);
    world.run(15);
    assert!(world.runs("a/kept"), "{}", world.report());
    world.run(20);
    assert!(world.runs("b/own"), "{}", world.report());
}

fn budget(namespace: &str, app: &str, allowed: u32) -> serde_json::Value {
    json!({
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    })
}
