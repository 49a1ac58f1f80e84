//! What pods hold, by the accounting of Kubernetes.

use super::requests;
use crate::watched::Pod;
use serde_json::{Value, json};

fn pod(spec: Value, status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec, "status": status}))
        .unwrap()
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

fn sidecar(name: &str, cpu: &str, memory: &str) -> Value {
    let mut sidecar = container(name, cpu, memory);
    sidecar["restartPolicy"] = json!("Always");
    sidecar
}

/// CPU in thousandths and memory in MiB.
fn host(pod: &Pod) -> (u64, u64) {
    let total = requests(pod);
    (total.cpu_milli(), total.memory() >> 20)
}

#[test]
fn containers_add_up_and_a_pod_is_a_pod() {
    let pod = pod(
        json!({"containers": [
            {"name": "a", "resources": {"requests": {
                "cpu": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}}},
            {"name": "b", "resources": {"requests": {
                "cpu": "500m", "deepshare.io/gpu": "2", "example.com/nic": "1"}}}]}),
        json!({}),
    );
    let total = requests(&pod);
    let named: Vec<_> = total.iter().collect();
    assert_eq!(
        named,
        [
            ("cpu", 1500),
            ("deepshare.io/gpu", 2),
            ("ephemeral-storage", 1 << 30),
            ("example.com/nic", 1),
            ("hugepages-2Mi", 4 << 20),
            ("pods", 1)
        ]
    );
}

#[test]
fn an_init_step_counts_where_it_is_larger_than_what_comes_after() {
    let spec = json!({
        "initContainers": [container("unpack", "4", "100Mi"), container("check", "2", "900Mi")],
        "containers": [container("main", "3", "500Mi")]});
    assert_eq!(host(&pod(spec, json!({}))), (4000, 900), "each resource by itself");
}

#[test]
fn a_sidecar_counts_with_the_main_containers_and_with_init_steps_after_it() {
    let spec = json!({
        "initContainers": [
            container("before", "5", "100Mi"),
            sidecar("proxy", "1", "200Mi"),
            container("after", "5", "300Mi")],
        "containers": [container("main", "2", "400Mi")]});
    // before: 5; proxy 1 + after 5 = 6; proxy 1 + main 2 = 3. Memory: 200 + 400.
    assert_eq!(host(&pod(spec, json!({}))), (6000, 600));
}

#[test]
fn requests_of_the_pod_as_a_whole_stand_instead_of_the_sum_and_overhead_comes_on_top() {
    let spec = json!({
        "resources": {"requests": {"memory": "4Gi"}},
        "overhead": {"cpu": "250m", "memory": "128Mi"},
        "containers": [container("a", "1", "1Gi"), container("b", "1", "1Gi")]});
    assert_eq!(host(&pod(spec, json!({}))), (2250, 4096 + 128));
}

#[test]
fn a_resize_counts_at_its_larger_end_until_it_is_in_force() {
    // (asked, granted, in force, condition) → counted; all CPU.
    let cases = [
        ("shrink asked for", "1", "4", "4", None, 4000),
        ("shrink granted, not in force", "1", "1", "4", None, 4000),
        ("shrink in force", "1", "1", "1", None, 1000),
        ("growth asked for", "6", "4", "4", None, 6000),
        ("growth deferred still claims its room", "6", "4", "4", Some("Deferred"), 6000),
        ("growth that can never be", "6", "4", "4", Some("Infeasible"), 4000),
    ];
    for (story, asked, granted, in_force, pending, counted) in cases {
        let conditions = pending.map_or(
            json!([]),
            |reason| json!([{"type": "PodResizePending", "status": "True", "reason": reason}]),
        );
        let status = json!({"conditions": conditions, "containerStatuses": [{"name": "main",
            "allocatedResources": {"cpu": granted}, "resources": {"requests": {"cpu": in_force}}}]});
        let pod = pod(json!({"containers": [container("main", asked, "1Gi")]}), status);
        assert_eq!(host(&pod), (counted, 1024), "{story}");
    }
}

#[test]
fn a_sidecar_can_be_resized_too() {
    let status = json!({"initContainerStatuses": [{"name": "proxy",
        "allocatedResources": {"cpu": "3"}}]});
    let spec = json!({"initContainers": [sidecar("proxy", "1", "0")],
        "containers": [container("main", "2", "0")]});
    assert_eq!(host(&pod(spec, status)).0, 5000);
}

#[test]
fn a_pod_that_is_over_holds_nothing() {
    for phase in ["Succeeded", "Failed"] {
        let pod = pod(json!({"containers": [container("a", "1", "1Gi")]}), json!({"phase": phase}));
        assert_eq!(requests(&pod).iter().count(), 0, "{phase}");
    }
}
