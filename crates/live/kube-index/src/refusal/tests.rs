//! What is refused, and the sentence that says why.

use super::*;
use crate::watched::Pod;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

fn asking(requests: Value) -> Value {
    json!({"name": "main", "resources": {"requests": requests}})
}

fn one_gpu() -> Value {
    asking(json!({"deepshare.io/gpu": "1"}))
}

#[test]
fn gpus_of_several_containers_add_up_sidecars_included() {
    let pod = pod(json!({
        "initContainers": [
            {"name": "unpack", "resources": {"requests": {"deepshare.io/gpu": "3"}}},
            {"name": "server", "restartPolicy": "Always",
             "resources": {"requests": {"deepshare.io/gpu": "1"}}}],
        "containers": [asking(json!({"deepshare.io/gpu": "2"})), one_gpu(), asking(json!({}))]}));
    let request = gpu_request(&pod).unwrap();
    assert_eq!((request.resource, request.count), ("deepshare.io/gpu", 4));
    assert_eq!(refusal(&pod, true), None);
}

#[test]
fn what_is_asked_of_gpus_in_a_way_that_cannot_be_served_is_refused() {
    let main = |requests: Value| json!({"containers": [asking(requests)]});
    let cases = [
        (main(json!({"cpu": "1"})), RefusalKind::NoGpu),
        (main(json!({"deepshare.io/gpu": "0"})), RefusalKind::NoGpu),
        (main(json!({"nvidia.com/mig-1g.10gb": "1"})), RefusalKind::NoGpu),
        (
            json!({"containers": [one_gpu(), asking(json!({"deepshare.io/gpu-slot": "1"}))]}),
            RefusalKind::MixedGpus,
        ),
        (main(json!({"deepshare.io/gpu": "1", "nvidia.com/gpu": "1"})), RefusalKind::MixedGpus),
        (main(json!({"deepshare.io/gpu-slot": "2"})), RefusalKind::SeveralSlots),
        (
            json!({"initContainers": [asking(json!({"deepshare.io/gpu": "2"}))],
                   "containers": [one_gpu()]}),
            RefusalKind::GpusOfInitContainer,
        ),
    ];
    for (spec, kind) in cases {
        let refused = refusal(&pod(spec.clone()), false).map(|refusal| refusal.kind);
        assert_eq!(refused, Some(kind), "{spec}");
    }
}

#[test]
fn resource_claims_are_refused_with_what_to_ask_for_instead() {
    let pod = pod(json!({"containers": [one_gpu()],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}));
    let refusal = refusal(&pod, false).unwrap();
    assert_eq!(refusal.kind.to_string(), "ResourceClaimsUnsupported");
    assert!(refusal.message.contains("request `deepshare.io/gpu`"), "{}", refusal.message);
}

#[test]
fn conditions_of_a_later_version_are_refused_wherever_they_stand() {
    let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let terms = |selector: &Value| {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": selector}]})
    };
    let places = [
        (
            "affinity",
            json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [near]}}}),
        ),
        ("affinity", json!({"podAffinity": terms(&near)})),
        ("affinity", json!({"podAntiAffinity": terms(&near)})),
        ("tolerations", json!([{"key": "a", "operator": "Near"}])),
        (
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": near}]),
        ),
        (
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleElsewhere"}]),
        ),
    ];
    for (field, value) in places {
        let mut spec = json!({"containers": [one_gpu()]});
        spec[field] = value;
        let refused = refusal(&pod(spec.clone()), false).map(|refusal| refusal.kind);
        assert_eq!(refused, Some(RefusalKind::UnknownCondition), "{spec}");
    }
}

#[test]
fn a_gang_keeps_to_rules_that_can_be_judged_before_its_pods_run() {
    let anti = |key: &str| {
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {}}]}})
    };
    for (key, in_gang, refused) in
        [("kubernetes.io/hostname", true, false), ("zone", true, true), ("zone", false, false)]
    {
        let pod = pod(json!({"containers": [one_gpu()], "affinity": anti(key)}));
        let kind = refusal(&pod, in_gang).map(|refusal| refusal.kind);
        assert_eq!(kind, refused.then_some(RefusalKind::GangTopology), "{key} {in_gang}");
    }
}

#[test]
fn the_user_of_the_gpus_is_the_containers_else_the_pods() {
    let with_user = |user: Value| {
        let mut main = one_gpu();
        main["securityContext"] = user;
        pod(json!({"securityContext": {"runAsUser": 1000}, "containers": [
            {"name": "other", "securityContext": {"runAsUser": 0}}, main]}))
    };
    assert_eq!(gpu_user(&with_user(json!({"runAsUser": 2000}))), Some(2000));
    assert_eq!(gpu_user(&with_user(json!(null))), Some(1000));
}
