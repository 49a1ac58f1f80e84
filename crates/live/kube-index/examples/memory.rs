//! What a cluster of 2,000 nodes and 20,000 pods costs in memory: `cargo run --release -p
//! deepshare-kube-index --example memory`. Resident memory is read from `/proc`, so on Linux only.

use deepshare_kube_index::sites::{Change, Sites};
use deepshare_kube_index::watched::{Node, Pod};
use deepshare_model::NodeId;
use serde_json::json;

const NODES: u32 = 2_000;
const PODS: u32 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (text, start) = (pod(0), resident_kib()?);
    println!("a pod as the API server sends it: {} bytes", text.len());

    let pods: Vec<Pod> =
        (0..PODS).map(|at| serde_json::from_str(&pod(at))).collect::<Result<_, _>>()?;
    let parsed = resident_kib()?;
    println!("{PODS} pods as watched: {} bytes each", (parsed - start) * 1024 / u64::from(PODS));

    let mut sites = Sites::default();
    for at in 0..NODES {
        let node: Node = serde_json::from_str(&node(at))?;
        sites.apply(Change::Node(NodeId(at), &node));
    }
    let with_nodes = resident_kib()?;
    let each = (with_nodes - parsed) * 1024 / u64::from(NODES);
    println!("{NODES} nodes in the sites: {each} bytes each");

    for (pod, at) in pods.iter().zip(0..) {
        let node = NodeId(at % NODES);
        sites.site(pod);
        sites.apply(Change::Pod { pod, node, ours: true });
    }
    let all = resident_kib()?;
    let each = (all - with_nodes) * 1024 / u64::from(PODS);
    println!("{PODS} pods in the sites: {each} bytes each");
    println!("in all: {} MiB", (all - start) / 1024);
    Ok(())
}

/// A training pod of a Job, with what comes with it in a real cluster.
fn pod(at: u32) -> String {
    let (job, variables) = (at / 4, 0..40);
    let env: Vec<_> = variables
        .map(|at| json!({"name": format!("SETTING_{at}"), "value": "a value of usual length"}))
        .collect();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": null,
               "lastTransitionTime": "2026-05-01T10:00:00Z"})
    };
    let conditions =
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition).to_vec();
    let status = |name: &str| {
        json!({"name": name, "state": {"running": {"startedAt": "2026-05-01T10:00:00Z"}},
               "allocatedResources": {"cpu": "8", "memory": "64Gi"},
               "resources": {"requests": {"cpu": "8", "memory": "64Gi"}}})
    };
    let statuses = ["main", "logs"].map(status).to_vec();
    json!({
        "metadata": {
            "name": format!("train-{job}-{at}"), "namespace": format!("team-{}", at % 20),
            "uid": format!("0b7e2f3a-90a1-4f0e-8a55-{at:012}"), "resourceVersion": "123456789",
            "creationTimestamp": "2026-05-01T10:00:00Z",
            "labels": {
                "app": "training", "team": format!("team-{}", at % 20),
                "job-name": format!("train-{job}"),
                "batch.kubernetes.io/job-name": format!("train-{job}"),
                "controller-uid": format!("5d2c1b0a-0000-4000-8000-{job:012}"),
                "batch.kubernetes.io/controller-uid": format!("5d2c1b0a-0000-4000-8000-{job:012}")},
            "annotations": {
                "deepshare.io/class": "best-effort", "deepshare.io/run-time": "90m",
                "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(2000)},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": format!("train-{job}"),
                "uid": format!("5d2c1b0a-0000-4000-8000-{job:012}"), "controller": true}],
            "managedFields": [{"manager": "controller", "fieldsV1": {"f:all": "y".repeat(1500)}}]},
        "spec": {
            "schedulerName": "deepshare", "nodeName": format!("gpu-node-{}", at % NODES),
            "priority": 0, "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                 "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                 "effect": "NoExecute", "tolerationSeconds": 300}],
            "containers": [
                {"name": "main", "image": "registry.example.com/training:1", "env": env,
                 "resources": {"requests": {"cpu": "8", "memory": "64Gi",
                     "deepshare.io/gpu-slot": "1"}}},
                {"name": "logs", "image": "registry.example.com/logs:1",
                 "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]},
        "status": {
            "phase": "Running", "qosClass": "Burstable", "startTime": "2026-05-01T10:00:00Z",
            "conditions": conditions,
            "containerStatuses": statuses}
    })
    .to_string()
}

fn node(at: u32) -> String {
    let mut labels: serde_json::Map<_, _> =
        (0..30).map(|one| (format!("feature.example.com/{one}"), json!("a value"))).collect();
    labels.insert("kubernetes.io/hostname".into(), json!(format!("gpu-node-{at}")));
    labels.insert("topology.kubernetes.io/zone".into(), json!(format!("zone-{}", at % 3)));
    json!({
        "metadata": {"name": format!("gpu-node-{at}"), "labels": labels},
        "status": {
            "allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110", "ephemeral-storage": "1Ti",
                "hugepages-2Mi": "0", "deepshare.io/gpu": "8", "deepshare.io/gpu-slot": "16"},
            "conditions": [{"type": "Ready", "status": "True"}]}
    })
    .to_string()
}

fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS in /proc")?;
    Ok(line.split_whitespace().nth(1).ok_or("VmRSS without a number")?.parse()?)
}
