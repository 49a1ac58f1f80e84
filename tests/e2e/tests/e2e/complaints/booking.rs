//! Double booking and the wrong device.

use crate::scene::{end, nodes, scheduling, whole};
use deepshare_e2e::{Bed, Beds, JobDraft, Stage, wait};
use deepshare_kube_api::{Decision, GpuNode, names};
use futures_util::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Project-HAMi/HAMi#2232, #1491 and kubernetes/kubernetes#136269: among many pods at once one
/// device was given to two.
async fn of_forty_pods_at_once_no_two_get_one_device(bed: &Bed) {
    let mut stage = Stage::set(bed, "rush", nodes(4, 4)).await;
    stage.tenant("red", 16, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let apart = Arc::new(Mutex::new(BTreeSet::new()));
    let watch = tokio::spawn(node_and_devices(bed.pods(&stage.namespace("red")), apart.clone()));
    let short =
        |name: &str| JobDraft { pod: whole(name, 1).behaves("run-seconds", "0.5"), pods: 20 };
    let (one, other) = (short("one"), short("other"));
    tokio::join!(stage.submit("red", &one), stage.submit("red", &other));
    for job in ["one", "other"] {
        // Of the Job, not its pods: Kubernetes deletes those of a node whose heartbeats are late.
        let jobs: Api<Job> = Api::namespaced(bed.admin.clone(), &stage.namespace("red"));
        wait(&format!("all of {job} are done"), async || {
            let status = jobs.get(job).await.ok()?.status?;
            (status.succeeded == Some(20)).then_some(())
        })
        .await;
    }
    watch.abort();
    // volcano-sh/volcano#5532 and #5335: annotations were written before the binding, and
    // stayed where that failed or went elsewhere.
    let apart = apart.lock().expect("nobody panics with it").clone();
    assert_eq!(apart, BTreeSet::new(), "pods with a node and no devices, or the reverse");
    end(stage, scheduler).await;
}

/// Notes every pod that is ever seen with a node and without a decision, or the reverse.
async fn node_and_devices(pods: Api<Pod>, apart: Arc<Mutex<BTreeSet<String>>>) {
    let stream = watcher(pods, watcher::Config::default()).default_backoff().applied_objects();
    let mut stream = std::pin::pin!(stream);
    while let Some(pod) = stream.next().await {
        let Ok(pod) = pod else { continue };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        if node.is_some() != pod.annotations().contains_key(names::DECISION) {
            apart.lock().expect("nobody panics with it").insert(pod.name_any());
        }
    }
}

/// volcano-sh/volcano#4505 and AliyunContainerService/gpushare-scheduler-extender#228: with several
/// containers devices were counted once too often or too seldom, or the scheduler crashed.
async fn every_container_of_a_pod_gets_devices_of_its_own(bed: &Bed) {
    let mut stage = Stage::set(bed, "several", nodes(1, 4)).await;
    stage.tenant("red", 4, &json!({})).await;
    let scheduler = scheduling(bed, "").await;
    let container = |name: &str, limits: Value| {
        let resources = json!({ "limits": limits });
        json!({ "name": name, "image": "train", "resources": resources })
    };
    let red = bed.pods(&stage.namespace("red"));
    let pod = json!({
        "metadata": { "name": "three" },
        "spec": {
            "schedulerName": "deepshare",
            "containers": [
                container("log", json!({ "cpu": "1" })),
                container("train", json!({ "deepshare.io/gpu": 2 })),
                container("test", json!({ "deepshare.io/gpu": 1 })),
            ],
        },
    });
    create(&red, pod).await.expect("the pod is created");
    let pod = wait("the pod runs", async || {
        let pod = red.get("three").await.ok()?;
        let runs = pod.status.as_ref()?.phase.as_deref() == Some("Running");
        runs.then_some(pod)
    })
    .await;
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let text = pod.annotations().get(names::DECISION).expect("a decision");
    let decision = Decision::read(text, &uid).expect("a decision of this pod");
    let given: BTreeMap<&str, BTreeSet<String>> = decision
        .containers
        .iter()
        .map(|own| (own.name.as_str(), own.devices.iter().map(|slot| slot.id()).collect()))
        .filter(|(_, devices): &(_, BTreeSet<String>)| !devices.is_empty())
        .collect();
    let counts: Vec<(&str, usize)> = given.iter().map(|(name, on)| (*name, on.len())).collect();
    assert_eq!(counts, [("test", 1), ("train", 2)]);
    let decided: BTreeSet<String> = given.into_values().flatten().collect();
    assert_eq!(decided.len(), 3, "no device is two containers'");
    // Project-HAMi/HAMi#1741: the container had other devices than the annotation said.
    let nodes: Api<GpuNode> = Api::all(bed.admin.clone());
    let held = wait("the node says what the pod has", async || {
        let status = nodes.get(&stage.node(0)).await.ok()?.status?;
        let own = status.allocations.into_iter().find(|own| own.pod_uid == uid)?;
        Some(own.devices.iter().map(|slot| slot.id()).collect::<BTreeSet<_>>())
    })
    .await;
    assert_eq!(held, decided);
    end(stage, scheduler).await;
}

/// Project-HAMi/HAMi#723: users chose their own devices by environment or annotation.
async fn a_pod_that_picks_its_own_gpu_is_refused_when_it_is_created(bed: &Bed) {
    bed.namespace("picky").await;
    let pods = bed.pods("picky");
    let pod = |annotations: Value, env: Value| {
        json!({
            "metadata": { "name": "picky", "annotations": annotations },
            "spec": {
                "schedulerName": "deepshare",
                "containers": [{
                    "name": "main", "image": "train", "env": env,
                    "resources": { "limits": { "deepshare.io/gpu": 1 } },
                }],
            },
        })
    };
    let all = json!([{ "name": "NVIDIA_VISIBLE_DEVICES", "value": "all" }]);
    let forged = json!({ (names::DECISION): "{}" });
    for (pod, part) in
        [(pod(json!({}), all), "NVIDIA_VISIBLE_DEVICES"), (pod(forged, json!([])), names::DECISION)]
    {
        let refused = create(&pods, pod).await.expect_err("it is refused").to_string();
        assert!(refused.contains(part), "{refused}");
    }
    create(&pods, pod(json!({}), json!([]))).await.expect("an honest pod is created");
    bed.clear(&["picky".to_owned()]).await;
}

async fn create(pods: &Api<Pod>, pod: Value) -> kube::Result<Pod> {
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await
}

pub fn tests(beds: &Arc<Beds>) -> Vec<Trial> {
    tests!(
        beds,
        of_forty_pods_at_once_no_two_get_one_device,
        every_container_of_a_pod_gets_devices_of_its_own,
        a_pod_that_picks_its_own_gpu_is_refused_when_it_is_created
    )
}
