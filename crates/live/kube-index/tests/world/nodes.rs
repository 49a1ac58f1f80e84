//! Nodes that are lost, come back, are closed, change, or refuse pods.

use crate::cluster::{Key, Kind, World};
use crate::objects::{nvidia_node, pod};
use serde_json::json;

#[test]
fn what_ran_on_a_lost_node_runs_again_and_nothing_is_doubled_when_it_is_back() {
    let mut world = World::with(2, 1, &[("a", 2)]);
    world.controller("j", pod("a", "j").0, 1);
    world.run(5);
    let before = world.node_of(world.find("a/j").unwrap()["metadata"]["uid"].as_str().unwrap());
    let before = before.unwrap();
    world.silence(&before, true);
    // Its pod cannot stop on a node that is silent, and its controller waits for that.
    world.run(30);
    assert!(!world.runs("a/j-1"), "{}", world.report());
    world.silence(&before, false);
    world.create(pod("a", "next").0);
    world.run(30);
    assert!(world.runs("a/j-1"), "{}", world.report());
    assert!(world.runs("a/next"), "{}", world.report());
    assert_eq!(world.rejections, Vec::<String>::new());
}

#[test]
fn a_closed_node_gets_nothing_and_an_open_one_does_again() {
    let mut world = World::with(1, 1, &[("a", 1)]);
    world.change(Kind::Node, "n0", |node| node["spec"]["unschedulable"] = json!(true));
    world.run(1);
    world.create(pod("a", "p").0);
    world.run(5);
    assert_eq!(world.phase("a/p"), "Pending");
    world.change(Kind::Node, "n0", |node| node["spec"]["unschedulable"] = json!(false));
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
}

#[test]
fn an_unhealthy_device_is_not_given_out_and_who_is_on_it_stays() {
    let mut world = World::with(1, 2, &[("a", 2)]);
    world.create(pod("a", "p").0);
    world.run(5);
    let on = world.devices("a/p").remove(0);
    world.change(Kind::Gpus, "n0", |gpus| {
        for device in gpus["status"]["devices"].as_array_mut().unwrap() {
            device["healthy"] = json!(device["uuid"] == on.as_str());
        }
    });
    world.run(1);
    world.create(pod("a", "q").0);
    world.run(5);
    assert!(world.runs("a/p"));
    assert_eq!(world.phase("a/q"), "Pending", "{}", world.report());
}

#[test]
fn a_node_that_rejects_a_pod_gets_no_more_for_a_while() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    world.controller("j", pod("a", "j").note("test/rejected", "yes").0, 1);
    world.run(8);
    let early = world.rejections.len();
    assert!((1..=2).contains(&early), "{early}: {}", world.report());
    world.run(60);
    let later = world.rejections.len();
    assert!(later <= 8, "{later} rejections in a minute");
    // 10 s, 20 s, 40 s, …: a node that never does better is hardly asked any more.
    world.run(600);
    let last = world.rejections.len();
    assert!(last - later <= 5, "{} rejections in ten minutes more", last - later);
}

#[test]
fn what_was_ending_on_a_node_that_is_lost_is_over() {
    let mut world = World::with(1, 1, &[("a", 0), ("b", 1)]);
    world.change(Kind::Quota, "a", |quota| quota["spec"]["gpus"] = json!({"*": 1}));
    world.run(1);
    world.create(pod("a", "slow").best_effort().grace(60).stops_in(50).0);
    world.run(5);
    world.create(pod("b", "own").0);
    world.run(3);
    let key = Key { kind: Kind::Quota, name: "a".to_owned() };
    let borrowed = |world: &World| world.objects[&key]["status"]["bestEffort"].clone();
    assert_eq!(borrowed(&world), 1, "it is stopping: {}", world.report());
    world.silence("n0", true);
    world.run(30);
    assert_eq!(borrowed(&world), 0, "{}", world.report());
}

#[test]
fn what_stops_on_a_lost_node_is_deleted_when_the_node_goes() {
    let mut world = World::with(1, 1, &[("a", 1)]);
    let slow = world.create(pod("a", "slow").0);
    world.run(5);
    world.silence("n0", true);
    // The node counts as lost, its pod was asked to go, and is still there.
    world.run(90);
    let key = Key { kind: Kind::Pod, name: slow };
    assert!(world.objects.contains_key(&key), "{}", world.report());
    world.remove(Kind::Node, "n0");
    world.run(3);
    assert!(!world.objects.contains_key(&key), "{}", world.report());
}

#[test]
fn a_node_of_nvidias_plugin_is_served_by_count() {
    let mut world = World::with(0, 0, &[("a", 4)]);
    let kubelet = crate::kubelet::Kubelet {
        slots: (0..4).map(|index| (format!("GPU-x-{index}"), [None, None])).collect(),
        silent: false,
    };
    world.kubelets.insert("x".to_owned(), kubelet);
    world.set(Kind::Node, "x", nvidia_node("x", "NVIDIA-A100", 4));
    let uid = world
        .create(pod("a", "theirs").scheduler("default-scheduler").resource("nvidia.com/gpu", 3).0);
    world.change(Kind::Pod, &uid, |pod| pod["spec"]["nodeName"] = json!("x"));
    world.admit(&uid);
    world.run(2);
    world.create(pod("a", "one").resource("nvidia.com/gpu", 1).0);
    world.create(pod("a", "two").resource("nvidia.com/gpu", 1).0);
    world.create(pod("a", "ours").0);
    world.run(5);
    assert_eq!(world.running("a/one") + world.running("a/two"), 1, "{}", world.report());
    assert_eq!(world.phase("a/ours"), "Pending", "it asks for a device of our agent");
    assert_eq!(world.rejections, Vec::<String>::new());
}

#[test]
fn another_gpu_type_in_an_old_chassis_is_another_node() {
    let mut world = World::with(1, 1, &[("a", 1)]);
    world.create(pod("a", "p").note("deepshare.io/gpu-type", "H100").0);
    world.run(3);
    assert_eq!(world.phase("a/p"), "Pending");
    world.change(Kind::Gpus, "n0", |gpus| gpus["spec"]["gpuType"] = json!("H100"));
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
}
