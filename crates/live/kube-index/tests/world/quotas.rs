//! Quotas that contradict each other, change, or go.

use crate::cluster::{Key, Kind, World};
use crate::objects::{pod, quota};
use serde_json::json;

fn condition(world: &World, name: &str, kind: &str) -> (String, String) {
    let key = Key { kind: Kind::Quota, name: name.to_owned() };
    let conditions = world.objects[&key]["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    let text = |field: &str| condition[field].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn of_two_quotas_that_claim_one_namespace_the_older_has_it() {
    let mut world = World::with(1, 4, &[("a", 2)]);
    let mut late = quota("late", 2);
    late["spec"]["namespaces"] = json!(["a"]);
    late["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    world.set(Kind::Quota, "late", late);
    world.create(pod("a", "p").gpus(2).0);
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
    let (reason, message) = condition(&world, "late", "Ready");
    assert_eq!(reason, "NamespaceConflict");
    assert!(message.contains("namespace a"), "{message}");
    assert_eq!(condition(&world, "a", "Ready").0, "Served");
}

#[test]
fn a_conflict_shows_where_nothing_else_happens() {
    let mut world = World::with(1, 4, &[("a", 2), ("b", 2)]);
    world.run(5);
    assert_eq!(condition(&world, "b", "Ready").0, "Served");
    world.change(Kind::Quota, "b", |quota| quota["spec"]["namespaces"] = json!(["a", "b"]));
    world.run(5);
    assert_eq!(condition(&world, "b", "Ready").0, "NamespaceConflict");
}

#[test]
fn parents_that_cannot_count_are_named_in_a_condition() {
    let mut world = World::with(1, 4, &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)]);
    for (child, parent) in [("a", "b"), ("b", "a"), ("c", "gone"), ("d", "e"), ("e", "c")] {
        world.change(Kind::Quota, child, |quota| quota["spec"]["parent"] = json!(parent));
    }
    world.create(pod("a", "p").0);
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
    let reasons = ["a", "b", "c", "d"].map(|name| condition(&world, name, "Ready").0);
    assert_eq!(reasons, ["ParentCycle", "ParentCycle", "ParentMissing", "ParentTooDeep"]);
}

#[test]
fn children_share_what_their_parent_is_promised() {
    let mut world = World::with(1, 8, &[("top", 4), ("a", 4), ("b", 4)]);
    for child in ["a", "b"] {
        world.change(Kind::Quota, child, |quota| quota["spec"]["parent"] = json!("top"));
    }
    world.run(1);
    world.create(pod("a", "p").gpus(3).0);
    world.create(pod("b", "q").gpus(3).0);
    world.run(5);
    assert_eq!(world.running("a/") + world.running("b/"), 1, "{}", world.report());
}

#[test]
fn promising_more_than_there_is_shows_in_a_condition_and_all_promises_stand() {
    let mut world = World::with(1, 4, &[("a", 3), ("b", 3)]);
    world.create(pod("a", "p").gpus(3).0);
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
    let (reason, message) = condition(&world, "a", "Satisfiable");
    assert_eq!(reason, "QuotaExceedsCluster");
    assert!(message.contains("6 GPUs") && message.contains("4 work"), "{message}");
}

#[test]
fn a_deleted_quota_leaves_its_pods_running_and_serves_again_once_it_is_back() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.create(pod("a", "p").0);
    world.run(5);
    world.remove(Kind::Quota, "a");
    world.run(1);
    world.create(pod("a", "q").0);
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_eq!(world.why("a/q").0, "NoTenant");
    world.set(Kind::Quota, "a", quota("a", 4));
    world.run(5);
    assert!(world.runs("a/q"), "{}", world.report());
}
