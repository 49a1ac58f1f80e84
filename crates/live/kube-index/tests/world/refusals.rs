//! What can never run says so at once, and what is no business of ours is left alone.

use crate::cluster::{Kind, World};
use crate::objects::{PodMaker, pod};
use deepshare_kube_index::Action;
use serde_json::json;

fn mixed() -> PodMaker {
    let mut pod = pod("a", "mixed");
    let requests = &mut pod.0["spec"]["containers"][0]["resources"]["requests"];
    requests["nvidia.com/gpu"] = json!("1");
    pod
}

#[test]
fn a_pod_that_can_never_run_says_why_within_two_seconds() {
    let mut world = World::with(1, 4, &[("a", 8)]);
    world.change(Kind::Quota, "a", |quota| {
        quota["spec"]["allowedClasses"] = json!(["guaranteed"]);
    });
    world.namespace("nobody", json!({}));
    world.run(1);
    let cases = [
        (pod("a", "wide").gpus(5), "Unschedulable", "5"),
        (pod("nobody", "stray"), "NoTenant", "TenantQuota"),
        (pod("a", "when").note("deepshare.io/run-time", "soon"), "BadAnnotation", "run-time"),
        (pod("a", "lent").best_effort(), "ClassNotAllowed", "allowedClasses"),
        (pod("a", "typo").note("deepshare.io/class", "gold"), "ClassNotAllowed", "gold"),
        (pod("a", "none").resource("cpu", 1), "NoGpuRequested", "deepshare.io/gpu"),
        (mixed(), "MixedGpuRequests", "one of them"),
        (pod("a", "lone").note("deepshare.io/gang-size", "2"), "BadGang", "deepshare.io/gang"),
    ];
    for (pod, _, _) in &cases {
        world.create(pod.0.clone());
    }
    world.run(2);
    for (pod, reason, part) in cases {
        let name = format!(
            "{}/{}",
            pod.0["metadata"]["namespace"].as_str().unwrap(),
            pod.0["metadata"]["name"].as_str().unwrap()
        );
        let (said, message) = world.why(&name);
        assert_eq!(said, reason, "{name}: {message}");
        assert!(message.contains(part), "{name}: {message}");
    }
}

#[test]
fn a_refused_pod_runs_once_its_namespace_has_a_tenant() {
    let mut world = World::with(1, 4, &[]);
    world.namespace("a", json!({}));
    world.create(pod("a", "p").0);
    world.run(3);
    assert_eq!(world.why("a/p").0, "NoTenant");
    world.set(Kind::Quota, "a", crate::objects::quota("a", 4));
    world.run(3);
    assert!(world.runs("a/p"), "{}", world.report());
}

#[test]
fn a_gated_pod_is_not_looked_at_until_its_gates_are_open() {
    let mut world = World::with(1, 4, &[("a", 4)]);
    let uid = world.create(pod("a", "p").gated().0);
    world.run(5);
    assert!(world.written.iter().all(|(_, action)| matches!(action, Action::TenantStatus { .. })));
    world.change(Kind::Pod, &uid, |pod| pod["spec"]["schedulingGates"] = json!([]));
    world.run(5);
    assert!(world.runs("a/p"), "{}", world.report());
}

#[test]
fn pods_of_other_schedulers_are_left_alone_and_their_devices_withheld() {
    let mut world = World::with(1, 2, &[("a", 2)]);
    let uid = world.create(pod("a", "theirs").scheduler("default-scheduler").0);
    world.run(2);
    assert_eq!(world.phase("a/theirs"), "Pending");
    world.change(Kind::Pod, &uid, |pod| pod["spec"]["nodeName"] = json!("n0"));
    world.admit(&uid);
    world.run(3);
    world.create(pod("a", "both").gpus(2).0);
    let one = world.create(pod("a", "one").gpus(1).0);
    world.run(5);
    assert!(world.runs("a/one"), "{}", world.report());
    assert_eq!(world.phase("a/both"), "Pending");
    // It stays listed for as long as its Job does, without its GPU.
    world.end(&uid);
    world.delete(&one, 1);
    world.run(5);
    assert_eq!(world.phase("a/theirs"), "Succeeded");
    assert!(world.runs("a/both"), "{}", world.report());
    assert_eq!(world.rejections, Vec::<String>::new());
}

#[test]
fn words_are_written_once_and_not_every_second() {
    let mut world = World::with(1, 1, &[("a", 1)]);
    for index in 0..3 {
        world.create(pod("a", &format!("p{index}")).0);
    }
    world.run(100);
    let said = world.count(|action| matches!(action, Action::Explain { .. }));
    assert!((2..=4).contains(&said), "{said} conditions for two waiting pods");
    let told = world
        .count(|action| matches!(action, Action::Announce { reason, .. } if reason != "Scheduled"));
    assert_eq!(told, 2, "an event for each that waits, and no more");
    let statuses = world.count(|action| matches!(action, Action::TenantStatus { .. }));
    assert!((1..=5).contains(&statuses), "{statuses} statuses, and nothing has happened");
}
