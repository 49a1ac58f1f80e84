//! Two pods on one device, and pods that give way in CPU and memory before anybody is evicted.

use crate::cluster::{Kind, World, rfc3339};
use crate::objects::{PodMaker, pod};
use deepshare_engine::RetentionTable;
use deepshare_kube_index::Action;
use deepshare_model::Retention;
use serde_json::json;

/// One device, and a tenant whose pods may share it.
fn shared() -> World {
    let mut world = World::new(1);
    world.config.profiles = vec!["light".to_owned()];
    world.config.retentions = RetentionTable {
        version: 1,
        rows: vec![vec![Retention::from_ppm(950_000)]],
        ..RetentionTable::default()
    };
    world.add_node("n0", "A100", 1);
    let mut quota = crate::objects::quota("a", 1);
    quota["spec"]["colocation"] = json!({"allowed": true});
    world.set(Kind::Quota, "a", quota);
    world.namespace("a", json!({}));
    world.lead();
    world
}

fn light(name: &str) -> PodMaker {
    pod("a", name)
        .slot()
        .best_effort()
        .note("deepshare.io/profile", "light")
        .note("deepshare.io/gpu-memory", "16Gi")
}

#[test]
fn two_best_effort_pods_share_a_device_on_different_slots() {
    let mut world = shared();
    world.create(light("one").0);
    world.create(light("two").0);
    world.run(10);
    assert_eq!(world.running("a/"), 2, "{}", world.report());
    let mut slots = [world.devices("a/one"), world.devices("a/two")].concat();
    slots.sort();
    assert_eq!(slots, ["GPU-n0-0::0", "GPU-n0-0::1"]);
    let told = |action: &Action| matches!(action, Action::Announce { reason, .. } if reason == "Colocated");
    assert_eq!(world.count(told), 2, "each hears of it once");
}

#[test]
fn who_does_not_consent_has_its_device_alone() {
    let mut world = shared();
    world.create(light("one").note("deepshare.io/colocation", "false").0);
    world.create(light("two").0);
    world.run(10);
    assert_eq!(world.running("a/"), 1, "{}", world.report());
}

#[test]
fn bad_samples_part_a_pair() {
    let mut world = shared();
    world.create(light("one").0);
    world.run(3);
    world.create(light("two").0);
    world.run(5);
    assert_eq!(world.running("a/"), 2, "{}", world.report());
    let uids: Vec<String> = world.pods().map(|(uid, _)| uid.to_owned()).collect();
    for _ in 0..4 {
        let taken = rfc3339(world.now);
        let sample = json!({"podUids": uids, "retentionsPpm": [300_000, 300_000], "taken": taken});
        world.change(Kind::Gpus, "n0", |gpus| gpus["status"]["samples"] = json!([sample]));
        world.run(10);
    }
    // Which of two equal ones goes is the engine's business.
    assert_eq!(world.running("a/"), 1, "{}", world.report());
    assert_eq!(world.count(|action| matches!(action, Action::Evict { .. })), 1);
}

/// A node of 64 CPUs of which a best-effort pod has 60 and needs 20.
fn crowded() -> World {
    let mut world = World::with(1, 2, &[("a", 1), ("b", 1)]);
    let recommended = pod("a", "big")
        .best_effort()
        .cpu(60)
        .note("deepshare.io/recommended-cpu", "20")
        .note("deepshare.io/recommended-memory", "1Gi");
    world.create(recommended.0);
    world.run(5);
    assert!(world.runs("a/big"), "{}", world.report());
    world
}

fn cpu(world: &World) -> String {
    let pod = world.find("a/big").unwrap();
    let shown = &pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"];
    shown.as_str().unwrap().to_owned()
}

#[test]
fn a_best_effort_pod_is_shrunk_rather_than_evicted_and_grows_back() {
    let mut world = crowded();
    world.create(pod("b", "own").cpu(30).lasts(90).0);
    world.run(10);
    assert!(world.runs("b/own") && world.runs("a/big"), "{}", world.report());
    // What is recommended, and a tenth.
    assert_eq!(cpu(&world), "22");
    world.run(240);
    assert_eq!(world.phase("b/own"), "Succeeded");
    assert_eq!(cpu(&world), "60", "{}", world.report());
    assert_eq!(world.count(|action| matches!(action, Action::Evict { .. })), 0);
}

#[test]
fn who_cannot_be_shrunk_is_evicted() {
    for (refused, takes) in [(100, 500), (0, 60_000)] {
        let mut world = crowded();
        world.faults.resize_refused = refused;
        world.faults.resize_ms = takes;
        world.create(pod("b", "own").cpu(30).0);
        world.run(60);
        assert!(world.runs("b/own"), "{refused} {takes}: {}", world.report());
        assert_eq!(world.phase("a/big"), "gone");
    }
}

#[test]
fn a_scheduler_that_dies_during_a_shrink_leaves_nothing_doubled() {
    let mut world = crowded();
    world.faults.resize_ms = 3_000;
    world.create(pod("b", "own").cpu(30).lasts(60).0);
    while world.count(|action| matches!(action, Action::Resize { .. })) == 0 {
        world.step();
    }
    world.run(1);
    world.crash(0);
    world.run(1);
    world.lead();
    world.run(20);
    assert!(world.runs("b/own"), "{}", world.report());
    assert_eq!(world.rejections, Vec::<String>::new());
    world.run(240);
    assert_eq!(cpu(&world), "60", "it has not forgotten what it had: {}", world.report());
}
