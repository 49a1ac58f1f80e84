//! Simulated nodes do to pods what kubelets do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod cluster;

use cluster::{Cluster, now};
use deepshare_kube_api::DeviceSlot;
use deepshare_testbed::{GpuResource, NodeSpec};
use serde_json::json;
use std::time::Duration;

/// A cluster with nodes of two GPUs, 8 CPUs and 16 GiB, named as the test; `None`: left out.
async fn nodes(test: &str) -> Option<Cluster> {
    let spec = NodeSpec { prefix: test.to_owned(), ..small() };
    Cluster::with(spec).await
}

fn small() -> NodeSpec {
    NodeSpec {
        gpus: 2,
        cpus: 8,
        memory_gib: 16,
        heartbeat: Duration::from_secs(1),
        sample: Duration::from_millis(200),
        ..NodeSpec::default()
    }
}

#[tokio::test]
async fn a_pod_runs_for_its_time_and_ends_as_it_is_told() {
    let Some(cluster) = nodes("ends").await else { return };
    let good = cluster.pod("good").annotate("run-seconds", "0.2").create().await;
    let bad = cluster.pod("bad").annotate("run-seconds", "0.2").annotate("exit-code", "3");
    let bad = bad.create().await;
    let good = cluster.until(&good, "it succeeds", |pod| pod.phase() == "Succeeded").await;
    assert_eq!(good.container()["state"]["terminated"]["reason"], "Completed");
    let bad = cluster.until(&bad, "it fails", |pod| pod.phase() == "Failed").await;
    assert_eq!(bad.container()["state"]["terminated"]["exitCode"], 3);
}

#[tokio::test]
async fn a_deleted_pod_keeps_its_devices_until_it_has_stopped() {
    let Some(cluster) = nodes("slow").await else { return };
    let slow = cluster.pod("slow").gpus(2).annotate("stop-seconds", "1.5").create().await;
    cluster.until(&slow, "it runs", |pod| pod.phase() == "Running").await;
    let begun = now();
    cluster.delete(&slow, 30).await;
    let next = cluster.pod("next").gpus(1).create().await;
    let next = cluster.until(&next, "it is rejected", |pod| pod.phase() == "Failed").await;
    assert_eq!(next.status()["reason"], "UnexpectedAdmissionError");
    cluster.gone(&slow).await;
    assert!(begun.elapsed() >= Duration::from_millis(1400), "{:?}", begun.elapsed());
    let last = cluster.pod("last").gpus(2).create().await;
    cluster.until(&last, "it runs", |pod| pod.phase() == "Running").await;
}

#[tokio::test]
async fn a_pod_that_does_not_stop_is_killed_after_its_grace_period() {
    let Some(cluster) = nodes("kill").await else { return };
    let stubborn = cluster.pod("stubborn").annotate("stop-seconds", "600").create().await;
    cluster.until(&stubborn, "it runs", |pod| pod.phase() == "Running").await;
    cluster.delete(&stubborn, 1).await;
    cluster.gone(&stubborn).await;
}

#[tokio::test]
async fn what_does_not_fit_is_rejected_for_good() {
    let Some(cluster) = nodes("fit").await else { return };
    let first = cluster.pod("first").requests(json!({ "cpu": "5", "memory": "1Gi" }));
    let first = first.create().await;
    cluster.until(&first, "it runs", |pod| pod.phase() == "Running").await;
    for (name, requests, reason) in [
        ("cpu", json!({ "cpu": "3001m" }), "OutOfcpu"),
        ("memory", json!({ "memory": "15.5Gi" }), "OutOfmemory"),
        ("gpu", json!({ "nvidia.com/gpu": "1" }), "UnexpectedAdmissionError"),
    ] {
        let pod = cluster.pod(name).requests(requests).create().await;
        let pod = cluster.until(&pod, "it is rejected", |pod| pod.phase() == "Failed").await;
        assert_eq!(pod.status()["reason"], reason, "{}", pod.status());
    }
    let fits = cluster.pod("fits").requests(json!({ "cpu": "3" })).create().await;
    cluster.until(&fits, "it runs", |pod| pod.phase() == "Running").await;
}

#[tokio::test]
async fn devices_are_those_of_the_decision_or_the_pod_is_rejected() {
    let Some(cluster) = nodes("decided").await else { return };
    let node = cluster.spec().name(0);
    let uuid = |index| cluster.spec().uuid(&node, index);
    let slot = |index, slot| DeviceSlot { uuid: uuid(index), slot: Some(slot) };
    let whole = |index| DeviceSlot { uuid: uuid(index), slot: None };

    let one = cluster.pod("one").slot().bind_with(&[slot(1, 0)]).await;
    cluster.until(&one, "it runs", |pod| pod.phase() == "Running").await;
    let other = cluster.pod("other").slot().bind_with(&[slot(1, 1)]).await;
    cluster.until(&other, "it runs", |pod| pod.phase() == "Running").await;

    let unknown = DeviceSlot { uuid: "GPU-of-another-node".to_owned(), slot: Some(0) };
    for (name, devices, why) in [
        ("twice", vec![slot(1, 1)], "is held by another pod"),
        ("unknown", vec![unknown], "is no device of this node"),
        ("third", vec![slot(0, 2)], "is no slot"),
        ("more", vec![slot(0, 0), slot(0, 1)], "the pod asks for"),
        ("other-kind", vec![whole(0)], "the pod asks for"),
    ] {
        let pod = cluster.pod(name).slot().bind_with(&devices).await;
        let pod = cluster.until(&pod, "it is rejected", |pod| pod.phase() == "Failed").await;
        assert_eq!(pod.status()["reason"], "UnexpectedAdmissionError");
        let message = pod.status()["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{name}: {message}");
    }
    let pod = cluster.pod("whole").gpus(1).bind_with(&[whole(1)]).await;
    cluster.until(&pod, "it is rejected", |pod| pod.phase() == "Failed").await;
    let pod = cluster.pod("free").gpus(1).bind_with(&[whole(0)]).await;
    cluster.until(&pod, "it runs", |pod| pod.phase() == "Running").await;
}

#[tokio::test]
async fn its_gpu_node_tells_who_holds_what_and_what_pairs_keep() {
    let Some(cluster) = nodes("tells").await else { return };
    let node = cluster.spec().name(0);
    let uuid = cluster.spec().uuid(&node, 0);
    let slot = |slot| DeviceSlot { uuid: uuid.clone(), slot: Some(slot) };
    let one = cluster.pod("one").slot().annotate("keeps", "0.55").bind_with(&[slot(0)]).await;
    let other = cluster.pod("other").slot().annotate("keeps", "0.8").bind_with(&[slot(1)]).await;
    let status =
        cluster.gpu_node(&node, "a sample of the pair", |status| !status.samples.is_empty()).await;
    assert_eq!((status.total, status.healthy), (2, 2));
    assert_eq!(status.allocations.len(), 2);
    let sample = &status.samples[0];
    let kept = sample.pod_uids.iter().zip(&sample.retentions_ppm);
    for (uid, ppm) in kept {
        assert_eq!(*ppm, if *uid == one.uid() { 550_000 } else { 800_000 });
    }
    cluster.delete(&other, 0).await;
    cluster.gpu_node(&node, "no pair", |status| status.samples.is_empty()).await;

    cluster.annotate_node(&node, "unhealthy", "1").await;
    let status = cluster.gpu_node(&node, "a broken device", |status| status.healthy == 1).await;
    assert!(!status.devices[1].healthy && status.devices[1].reason.is_some());
    let node = cluster.until_node(&node, "one GPU less", |node| {
        node["status"]["allocatable"]["deepshare.io/gpu"] == "1"
    });
    assert_eq!(node.await["status"]["capacity"]["deepshare.io/gpu-slot"], "4");
}

#[tokio::test]
async fn a_resize_is_promised_first_and_in_force_later() {
    let Some(cluster) = nodes("resize").await else { return };
    let pod = cluster.pod("pod").requests(json!({ "cpu": "6" }));
    let pod = pod.annotate("resize-seconds", "3").create().await;
    cluster.until(&pod, "it runs", |pod| pod.phase() == "Running").await;
    let history = cluster.record(&pod);
    cluster.resize(&pod, json!({ "cpu": "2" })).await;
    // Its room is not free yet: who is bound now is rejected.
    let early = cluster.pod("early").requests(json!({ "cpu": "6" })).create().await;
    let early = cluster.until(&early, "it is rejected", |pod| pod.phase() == "Failed").await;
    assert_eq!(early.status()["reason"], "OutOfcpu");
    let done = cluster
        .until(&pod, "the resize is in force", |pod| {
            pod.container()["resources"]["requests"]["cpu"] == "2"
        })
        .await;
    assert_eq!(done.condition("PodResizeInProgress"), None);
    {
        let history = history.lock().unwrap();
        let promised =
            history.iter().find(|pod| pod.container()["allocatedResources"]["cpu"] == "2");
        let promised = promised.unwrap();
        assert_eq!(promised.container()["resources"]["requests"]["cpu"], "6");
        assert_eq!(promised.condition("PodResizeInProgress"), Some("True".to_owned()));
    }
    let late = cluster.pod("late").requests(json!({ "cpu": "6" })).create().await;
    cluster.until(&late, "it runs", |pod| pod.phase() == "Running").await;

    // Growing waits for room, and happens by itself when there is some.
    cluster.resize(&pod, json!({ "cpu": "4" })).await;
    cluster
        .until(&pod, "it waits for room", |pod| {
            pod.condition("PodResizePending") == Some("True".to_owned())
        })
        .await;
    cluster.delete(&late, 0).await;
    let grown = cluster
        .until(&pod, "it has grown", |pod| pod.container()["resources"]["requests"]["cpu"] == "4")
        .await;
    assert_eq!(grown.condition("PodResizePending"), None);
}

#[tokio::test]
async fn a_node_rejects_as_many_pods_as_it_is_told() {
    let Some(cluster) = nodes("rejects").await else { return };
    let node = cluster.spec().name(0);
    cluster.annotate_node(&node, "reject-next", "1").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let first = cluster.pod("first").create().await;
    cluster.until(&first, "it is rejected", |pod| pod.phase() == "Failed").await;
    let second = cluster.pod("second").create().await;
    cluster.until(&second, "it runs", |pod| pod.phase() == "Running").await;
}

#[tokio::test]
async fn a_lost_node_is_noticed_and_comes_back() {
    let Some(cluster) = nodes("lost").await else { return };
    let node = cluster.spec().name(0);
    let ready = |wanted: &'static str| {
        move |node: &serde_json::Value| {
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == wanted)
        }
    };
    let pod = cluster.pod("pod").annotate("run-seconds", "1").create().await;
    cluster.until(&pod, "it runs", |pod| pod.phase() == "Running").await;
    cluster.annotate_node(&node, "lost", "true").await;
    cluster.until_node(&node, "it counts as lost", ready("Unknown")).await;
    // Its pod should have ended by now, but nobody can know.
    let silent = cluster.get(&pod).await;
    assert_eq!(silent.phase(), "Running");
    cluster.annotate_node(&node, "lost", "false").await;
    cluster.until_node(&node, "it is back", ready("True")).await;
    cluster.until(&pod, "its end is told", |pod| pod.phase() == "Succeeded").await;
}

#[tokio::test]
async fn nodes_of_nvidias_plugin_have_whole_gpus_only() {
    let spec = NodeSpec { prefix: "nv".to_owned(), resource: GpuResource::Nvidia, ..small() };
    let Some(cluster) = Cluster::with(spec).await else { return };
    let both = cluster.pod("both").requests(json!({ "nvidia.com/gpu": "2" })).create().await;
    cluster.until(&both, "it runs", |pod| pod.phase() == "Running").await;
    let slot = cluster.pod("slot").slot().create().await;
    cluster.until(&slot, "it is rejected", |pod| pod.phase() == "Failed").await;
    let third = cluster.pod("third").requests(json!({ "nvidia.com/gpu": "1" })).create().await;
    cluster.until(&third, "it is rejected", |pod| pod.phase() == "Failed").await;
}
