//! Volumes that are made once their pod has a node: chosen, awaited, and given up where they do not come.

use crate::cluster::{Kind, World};
use crate::objects::pod;
use deepshare_kube_api::names::SELECTED_NODE;
use deepshare_kube_index::Action;
use serde_json::json;

fn world(nodes: u32, gpus: u32, tenants: &[(&str, u32)]) -> World {
    let mut world = World::with(nodes, gpus, tenants);
    world.storage_class();
    world
}

/// Nodes that were written on claims, in order; `-`: taken back.
fn selected(world: &World) -> Vec<String> {
    let node = |action: &Action| match action {
        Action::SelectNode { node, .. } => Some(node.clone().unwrap_or_else(|| "-".to_owned())),
        _ => None,
    };
    world.written.iter().filter_map(|(_, action)| node(action)).collect()
}

fn bindings(world: &World) -> usize {
    world.count(|action| matches!(action, Action::Bind { .. }))
}

fn ends(world: &World) -> usize {
    world.count(|action| matches!(action, Action::Evict { .. } | Action::Delete { .. }))
}

/// Where the newest pod of this name is.
fn node_of(world: &World, name: &str) -> String {
    world.find(name).unwrap()["spec"]["nodeName"].as_str().unwrap_or("-").to_owned()
}

#[test]
fn a_pod_has_its_place_while_its_volume_is_made_and_is_bound_when_that_is_there() {
    let mut world = world(1, 1, &[("a", 1)]);
    world.faults.provision_ms = 30_000;
    world.claim("a", "data");
    world.create(pod("a", "p").claim("data").0);
    world.run(10);
    assert_eq!(world.selected_node("a/data"), Some("n0"), "{}", world.report());
    let (reason, message) = world.why("a/p");
    assert_eq!((&*reason, bindings(&world)), ("AwaitingVolumes", 0));
    assert!(message.contains("n0") && message.contains("a/data"), "{message}");
    world.create(pod("a", "other").0);
    world.run(10);
    assert_eq!(world.phase("a/other"), "Pending", "the GPU is taken");
    world.run(20);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_eq!(selected(&world), ["n0"]);
}

#[test]
fn a_provisioner_that_gives_the_node_back_has_the_pod_go_to_another() {
    let mut world = world(2, 1, &[("a", 2)]);
    let elsewhere = world.create(pod("a", "elsewhere").0);
    world.run(3);
    // Its place is on the only node left, which its volume cannot be made for.
    let first = world.node_of(&elsewhere).unwrap();
    let refused = if first == "n0" { "n1" } else { "n0" };
    world.claim_with("a", "data", &[("test/refused", refused)]);
    world.create(pod("a", "p").claim("data").0);
    world.run(5);
    assert_eq!(world.phase("a/p"), "Pending");
    assert_eq!(world.selected_node("a/data"), None, "{}", world.report());
    world.delete(&elsewhere, 1);
    world.run(10);
    assert_eq!(node_of(&world, "a/p"), first, "{}", world.report());
    assert!(world.runs("a/p"), "{}", world.report());
}

#[test]
fn a_node_that_a_volume_is_never_made_for_is_left_alone_for_longer_each_time() {
    let mut world = world(1, 1, &[("a", 1)]);
    world.claim_with("a", "data", &[("test/refused", "everywhere")]);
    world.create(pod("a", "p").claim("data").0);
    world.run(60);
    let early = selected(&world).len();
    assert!((2..=5).contains(&early), "{early} tries in a minute: {}", world.report());
    world.run(600);
    let later = selected(&world).len() - early;
    assert!(later <= 5, "{later} tries in ten minutes more: {}", world.report());
    assert_ne!(world.why("a/p").0, "AwaitingVolumes");
    // The provisioner has room again.
    world.change(Kind::Claim, "a/data", |claim| {
        claim["metadata"]["annotations"]["test/refused"] = json!("");
    });
    world.run(700);
    assert!(world.runs("a/p"), "{}", world.report());
}

#[test]
fn a_volume_that_does_not_come_in_time_gives_the_place_to_others() {
    let mut world = world(1, 1, &[("a", 1)]);
    world.claim_with("a", "data", &[("test/never", "everywhere")]);
    world.create(pod("a", "p").claim("data").0);
    world.run(5);
    world.create(pod("a", "other").lasts(1_000).0);
    world.run(50);
    assert_eq!(world.phase("a/other"), "Pending");
    world.run(15);
    assert!(world.runs("a/other"), "{}", world.report());
    assert_eq!(selected(&world), ["n0", "-"]);
    assert_eq!(world.selected_node("a/data"), None);
    let told = |action: &Action| {
        let Action::Announce { reason, message, .. } = action else { return false };
        reason == "FailedProvisioning" && message.contains("60 s") && message.contains("a/data")
    };
    assert_eq!(world.count(told), 1, "{}", world.report());
}

#[test]
fn a_gang_that_shares_a_claim_is_bound_at_once_when_its_volume_is_there() {
    let mut world = world(2, 2, &[("a", 4)]);
    world.faults.provision_ms = 20_000;
    world.claim_with("a", "data", &[("test/reach", "everywhere")]);
    world.controller("g", pod("a", "g").gang("g", 4).claim("data").0, 4);
    world.run(15);
    assert_eq!(bindings(&world), 0, "{}", world.report());
    world.run(15);
    assert_eq!(world.running("a/g"), 4, "{}", world.report());
    assert_eq!(selected(&world).len(), 1, "one node for all of them");
}

#[test]
fn a_gang_whose_volume_only_some_of_its_nodes_reach_is_placed_anew() {
    let mut world = world(2, 2, &[("a", 4)]);
    world.claim("a", "data");
    // One on each node, so that the gang has to be on both.
    for node in ["n0", "n1"] {
        let mut other = pod("a", &format!("other-{node}")).lasts(20);
        other.0["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        world.create(other.0);
    }
    world.run(2);
    world.controller("g", pod("a", "g").gang("g", 2).claim("data").0, 2);
    world.run(10);
    assert_eq!(bindings(&world), 2, "half of it does not reach: {}", world.report());
    assert!(world.selected_node("a/data").is_some(), "it was tried");
    world.run(40);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
    assert_eq!(node_of(&world, "a/g-0"), node_of(&world, "a/g-1"));
}

#[test]
fn a_gang_that_loses_a_pod_while_its_volume_is_made_waits_for_the_successor() {
    let mut world = world(1, 2, &[("a", 2)]);
    world.faults.provision_ms = 5_000;
    world.claim("a", "data");
    world.controller("g", pod("a", "g").gang("g", 2).claim("data").0, 2);
    world.run(2);
    world.controllers.get_mut("g").unwrap().slow_ms = 7_000;
    let uid = world.find("a/g-0").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    world.delete(&uid, 0);
    world.run(6);
    assert_eq!(bindings(&world), 0, "half of a gang: {}", world.report());
    world.run(10);
    assert_eq!(world.running("a/g"), 2, "{}", world.report());
}

#[test]
fn who_is_preempted_while_its_volume_is_made_is_not_deleted_and_may_go_elsewhere() {
    let mut world = world(1, 1, &[("a", 1), ("b", 1)]);
    world.faults.provision_ms = 300_000;
    world.claim("a", "data");
    world.create(pod("a", "lent").best_effort().claim("data").0);
    world.run(3);
    assert_eq!(world.selected_node("a/data"), Some("n0"), "{}", world.report());
    world.create(pod("b", "own").lasts(20).0);
    world.run(5);
    assert!(world.runs("b/own"), "{}", world.report());
    assert_eq!((ends(&world), world.phase("a/lent")), (0, "Pending"));
    assert_eq!(world.selected_node("a/data"), None);
    world.faults.provision_ms = 500;
    world.run(60);
    assert!(world.runs("a/lent"), "{}", world.report());
}

#[test]
fn a_pod_deleted_while_its_volume_is_made_leaves_its_place_and_its_claim() {
    let mut world = world(1, 1, &[("a", 1)]);
    world.claim_with("a", "data", &[("test/never", "everywhere")]);
    let uid = world.create(pod("a", "p").claim("data").0);
    world.run(3);
    world.delete(&uid, 0);
    world.create(pod("a", "next").0);
    world.run(5);
    assert!(world.runs("a/next"), "{}", world.report());
    assert_eq!(world.selected_node("a/data"), None);
}

#[test]
fn a_node_that_is_lost_while_a_volume_is_made_for_it_is_given_up() {
    let mut world = world(2, 1, &[("a", 2)]);
    world.claim_with("a", "data", &[("test/reach", "everywhere")]);
    world.faults.provision_ms = 40_000;
    world.create(pod("a", "p").claim("data").0);
    world.run(3);
    let first = world.selected_node("a/data").unwrap().to_owned();
    world.silence(&first, true);
    world.run(90);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_ne!(node_of(&world, "a/p"), first);
    assert_eq!(ends(&world), 0);
}

#[test]
fn pods_that_share_a_claim_go_to_the_node_that_was_chosen_for_it() {
    let mut world = world(2, 2, &[("a", 4)]);
    world.faults.provision_ms = 10_000;
    world.claim("a", "data");
    world.create(pod("a", "p").gpus(2).claim("data").lasts(30).0);
    world.create(pod("a", "q").gpus(2).claim("data").0);
    world.run(25);
    let running = world.running("a/p") + world.running("a/q");
    assert_eq!(running, 1, "the other node does not reach it: {}", world.report());
    world.run(60);
    assert!(world.runs("a/q"), "{}", world.report());
}

#[test]
fn the_next_scheduler_goes_on_with_the_node_that_was_chosen() {
    let mut world = world(2, 1, &[("a", 2)]);
    world.faults.provision_ms = 10_000;
    world.claim("a", "data");
    world.create(pod("a", "p").claim("data").0);
    world.run(3);
    let chosen = world.selected_node("a/data").unwrap().to_owned();
    world.crash(0);
    world.run(1);
    world.lead();
    world.run(15);
    assert_eq!(node_of(&world, "a/p"), chosen, "{}", world.report());
    assert!(world.runs("a/p"), "{}", world.report());
    assert_eq!(selected(&world).len(), 1);
}

#[test]
fn a_node_that_was_left_on_a_claim_is_honoured_for_a_while_and_then_taken_back() {
    let mut world = world(2, 1, &[("a", 2)]);
    world.create(pod("a", "other").lasts(1_000).0);
    world.run(3);
    let full = node_of(&world, "a/other");
    world.claim_with("a", "data", &[(SELECTED_NODE, &full)]);
    world.create(pod("a", "p").claim("data").0);
    world.run(50);
    assert_eq!(world.selected_node("a/data"), Some(&*full), "its provisioner may be at work");
    assert_eq!(world.phase("a/p"), "Pending");
    world.run(20);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_ne!(node_of(&world, "a/p"), full);
}

#[test]
fn a_node_that_is_gone_with_the_scheduler_that_chose_it_is_taken_back_at_once() {
    let mut world = world(2, 1, &[("a", 2)]);
    world.claim_with("a", "data", &[("test/never", "everywhere")]);
    world.create(pod("a", "p").claim("data").0);
    world.run(3);
    let gone = world.selected_node("a/data").unwrap().to_owned();
    world.crash(0);
    world.remove(Kind::Node, &gone);
    world.lead();
    world.change(Kind::Claim, "a/data", |claim| {
        claim["metadata"]["annotations"]["test/never"] = json!("");
    });
    world.run(10);
    assert!(world.runs("a/p"), "{}", world.report());
    assert_ne!(node_of(&world, "a/p"), gone);
}

#[test]
fn a_claim_that_nobody_may_write_is_said_to_be() {
    let mut world = world(1, 1, &[("a", 1)]);
    world.claim_with("a", "data", &[("test/forbidden", "yes")]);
    world.create(pod("a", "p").claim("data").0);
    world.run(5);
    let (reason, message) = world.why("a/p");
    assert_eq!(reason, "BindingRefused");
    assert!(message.contains("a/data"), "{message}");
    world.create(pod("a", "next").0);
    world.run(5);
    assert!(world.runs("a/next"), "{}", world.report());
}

#[test]
fn a_pods_own_volume_is_awaited_and_another_pods_is_not_taken_for_it() {
    let mut world = world(1, 1, &[("a", 1)]);
    let mut owner = pod("a", "p");
    owner.0["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral": {}}]);
    let uid = world.create(owner.0);
    world.run(2);
    assert_eq!(world.why("a/p").0, "VolumeNotReady");
    world.claim("a", "p-scratch");
    world.run(2);
    let (reason, message) = world.why("a/p");
    assert_eq!(reason, "VolumeNotReady");
    assert!(message.contains("not this pod's"), "{message}");
    world.change(Kind::Claim, "a/p-scratch", |claim| {
        claim["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true,
        }]);
    });
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
}
