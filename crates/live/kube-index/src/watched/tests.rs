//! What is kept of watched objects.

use super::*;
use serde_json::{Value, json};

fn read<T: for<'de> Deserialize<'de>>(object: Value) -> T {
    serde_json::from_str(&object.to_string()).unwrap()
}

#[test]
fn a_pod_keeps_what_decides_and_drops_the_rest() {
    let pod: Pod = read(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "train-0", "namespace": "vision", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "2026-05-01T10:00:00Z",
            "labels": {"job-name": "train", "app": "vision"},
            "annotations": {
                "deepshare.io/run-time": "90m",
                "kubectl.kubernetes.io/last-applied-configuration": "{a whole manifest}",
            },
            "managedFields": [{"manager": "kubectl"}],
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1",
                 "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "schedulerName": "deepshare", "nodeName": "", "priority": 5,
            "preemptionPolicy": "Never", "hostNetwork": true,
            "schedulingGroup": {"podGroupName": "train"},
            "schedulingGates": [{"name": "example.com/later"}],
            "securityContext": {"runAsUser": 1000},
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": null}]},
            },
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
                {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "volumes": [
                {"name": "config", "configMap": {"name": "settings"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "images"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
            "initContainers": [
                {"name": "proxy", "restartPolicy": "Always", "resources": {}}],
            "containers": [{
                "name": "main", "image": "trainer:1", "env": [{"name": "SECRET", "value": "x"}],
                "resources": {"requests": {"cpu": "1500m", "memory": "2Gi", "deepshare.io/gpu": "1"},
                              "limits": {"deepshare.io/gpu": "1"}},
                "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
                "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081,
                           "hostIP": "0.0.0.0", "protocol": "UDP"}]}],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable",
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "PodResizePending", "status": "True", "reason": "Infeasible",
                 "message": "swap", "lastProbeTime": null}],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-05-01T10:00:09Z"}},
                "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "2"}}}],
        },
    }));

    let at = |text: &str| Some(text.parse().unwrap());
    assert_eq!(pod.metadata.creation_timestamp, at("2026-05-01T10:00:00Z"));
    assert_eq!(pod.metadata.controller().map(|owner| &*owner.kind), Some("Job"));
    let annotations: Vec<_> = pod.metadata.annotations.iter().collect();
    assert_eq!(annotations, [("deepshare.io/run-time", "90m")]);
    assert_eq!(pod.metadata.labels.get("job-name"), Some("train"));

    let spec = &pod.spec;
    assert_eq!(spec.node_name, None, "an empty node name is none");
    assert_eq!(spec.pod_group.as_deref(), Some("train"));
    assert_eq!(&*spec.scheduling_gates[0], "example.com/later");
    assert!(spec.never_preempts);
    assert_eq!((spec.priority, spec.run_as_user), (5, Some(1000)));
    assert_eq!(spec.termination_grace_period_seconds, 30, "the default of the API");
    assert_eq!(spec.pod_anti_affinity.len(), 1);
    assert_eq!(spec.topology_spread.len(), 1, "only the hard constraint");
    let claims: Vec<_> = spec.volumes.iter().map(|volume| volume.claim("train-0")).collect();
    assert_eq!(claims, ["images".into(), "train-0-scratch".into()] as [Box<str>; 2]);
    assert!(spec.init_containers[0].sidecar);

    let main = &spec.containers[0];
    assert_eq!(main.requests.get("cpu"), Some(1500));
    assert_eq!(main.requests.get("memory"), Some(2 << 30));
    assert_eq!(main.requests.get("deepshare.io/gpu"), Some(1));
    assert!(main.restarts_on_resize);
    let udp = HostPort { port: 8081, protocol: Protocol::Udp, address: "".into() };
    assert_eq!(*main.host_ports, [udp]);

    let pending = pod.status.condition(ConditionKind::PodResizePending).unwrap();
    assert!(pending.holds);
    assert_eq!(&*pending.reason, "Infeasible");
    assert_eq!(pod.status.conditions.len(), 1);
    let status = &pod.status.container_statuses[0];
    assert_eq!((status.allocated.get("cpu"), status.requests.get("cpu")), (Some(1000), Some(2000)));
    assert_eq!(status.state, ContainerState::Running { since: at("2026-05-01T10:00:09Z") });
}

#[test]
fn how_a_container_ended_is_kept() {
    let status: ContainerStatus = read(json!({"name": "main",
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}));
    let end = ContainerState::Terminated { reason: "OOMKilled".into() };
    assert_eq!(status.state, end);
}

#[test]
fn null_reads_as_absent() {
    let pod: Pod = read(json!({
        "metadata": {"name": "a", "creationTimestamp": null, "labels": null, "annotations": null},
        "spec": {"containers": null, "affinity": null, "tolerations": null, "overhead": null,
                 "securityContext": null, "volumes": null, "priority": null},
        "status": {"conditions": null, "containerStatuses": null}}));
    assert_eq!(&*pod.metadata.name, "a");
    assert!(pod.spec.containers.is_empty());
}

#[test]
fn a_node_is_ready_only_when_it_says_so() {
    for (conditions, ready) in [
        (json!([{"type": "Ready", "status": "True"}]), true),
        (json!([{"type": "Ready", "status": "Unknown"}]), false),
        (json!([{"type": "MemoryPressure", "status": "True"}]), false),
        (json!(null), false),
    ] {
        let node: Node = read(json!({"metadata": {"name": "n"},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "64", "pods": "110"}, "conditions": conditions}}));
        assert_eq!(node.status.ready, ready, "{conditions}");
        assert_eq!(node.status.allocatable.get("cpu"), Some(64_000));
        assert_eq!(node.spec.taints[0].effect, TaintEffect::NoSchedule);
    }
}

#[test]
fn an_operator_of_a_later_version_is_kept_by_name() {
    let requirement: Requirement = read(json!({"key": "zone", "operator": "Near"}));
    assert_eq!(requirement.operator, Operator::Unknown("Near".into()));
}

#[test]
fn a_quantity_that_is_none_is_an_error_that_names_it() {
    let bad = r#"{"metadata": {}, "spec": {"overhead": {"memory": "-1Gi"}}}"#;
    let error = serde_json::from_str::<Pod>(bad).unwrap_err().to_string();
    assert!(error.contains("resource `memory`") && error.contains("negative"), "{error}");
}

#[test]
fn the_size_of_a_group_is_read_from_each_system_that_has_groups() {
    let volcano: PodGroup = read(json!({"metadata": {"name": "a"}, "spec": {"minMember": 4}}));
    let core: PodGroup = read(json!({"metadata": {"name": "a"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 8}}}}));
    let basic: PodGroup =
        read(json!({"metadata": {"name": "a"}, "spec": {"schedulingPolicy": {"basic": {}}}}));
    let sizes = [volcano.min_members, core.min_members, basic.min_members];
    assert_eq!(sizes, [Some(4), Some(8), None]);
}

#[test]
fn volumes_tell_what_they_are_bound_to() {
    let claim = |phase: &str| -> PersistentVolumeClaim {
        read(json!({"metadata": {"name": "c", "annotations": {
                "volume.kubernetes.io/selected-node": "n1"}},
            "spec": {"volumeName": "v", "storageClassName": "fast",
                     "accessModes": ["ReadWriteOncePod"]},
            "status": {"phase": phase}}))
    };
    assert_eq!(claim("Bound").volume.as_deref(), Some("v"));
    assert_eq!(claim("Pending").volume, None, "named but not bound yet");
    assert!(claim("Pending").names_volume);
    assert_eq!(claim("Bound").selected_node(), Some("n1"));
    assert!(claim("Bound").one_pod);

    let class: StorageClass = read(json!({"metadata": {"name": "fast"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}));
    assert!(!class.is_dynamic());
    assert_eq!(class.volume_binding_mode, BindingMode::WaitForFirstConsumer);

    let node: CsiNode = read(json!({"metadata": {"name": "n"}, "spec": {"drivers": [
        {"name": "csi.example.com", "nodeID": "i", "allocatable": {"count": 3}}]}}));
    assert_eq!(node.drivers[0].count, Some(3));
}

#[test]
fn a_disruption_budget_tells_what_is_left_of_it() {
    let budget: PodDisruptionBudget = read(json!({"metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": "50%"},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"a-1": "2026-05-01T10:00:00Z"}}}));
    assert_eq!(budget.status.disruptions_allowed, 1);
    assert_eq!(*budget.status.disrupted_pods, ["a-1".into()] as [Box<str>; 1]);
    assert!(budget.spec.selector.is_some());
}
