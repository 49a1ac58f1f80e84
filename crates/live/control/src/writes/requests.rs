//! The request of each kind of write. Every one names the UID of its pod or claim, so that one recreated
//! under the same name is never meant.

use crate::api::Call;
use crate::leadership::timestamp;
use deepshare_kube_api::TenantQuotaStatus;
use deepshare_kube_api::names::{PREEMPTED, SELECTED_NODE};
use deepshare_kube_index::{ClaimRef, PodRef};
use http::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Longest sentence that is written into a condition or event, in bytes. The API allows an event's note
/// 1,024.
const MAX_MESSAGE_BYTES: usize = 1_000;

fn pod_path(pod: &PodRef, subresource: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{}{subresource}", pod.namespace, pod.name)
}

/// The sentence, cut to what the API takes.
pub fn shortened(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// Binds the pod. The API server copies the annotations in the write that sets the node.
pub fn bind(pod: &PodRef, node: &str, annotations: &BTreeMap<String, String>) -> Call {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": annotations,
        },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    Call::post(pod_path(pod, "/binding"), &body)
}

/// Says for which node a claim's volume is to be made; `None`: for none any more.
pub fn select_node(claim: &ClaimRef, node: Option<&str>) -> Call {
    let ClaimRef { namespace, name, uid } = claim;
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    let annotations = json!({ SELECTED_NODE: node });
    Call::merge(path, &json!({ "metadata": { "uid": uid, "annotations": annotations } }))
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": shortened(message),
        "lastTransitionTime": timestamp(),
    })
}

/// Changes the pod's status.
fn status(pod: &PodRef, status: &Value) -> Call {
    let body = json!({ "metadata": { "uid": pod.uid }, "status": status });
    Call::strategic(pod_path(pod, "/status"), &body)
}

/// Says why the pod waits.
pub fn explain(pod: &PodRef, reason: &str, message: &str) -> Call {
    let waits = condition("PodScheduled", "False", reason, message);
    status(pod, &json!({ "conditions": [waits] }))
}

/// Says that the pod is about to be disrupted, and why: a Job's `podFailurePolicy` reads it.
pub fn disruption_target(pod: &PodRef, message: &str) -> Call {
    let goes = condition("DisruptionTarget", "True", PREEMPTED, message);
    status(pod, &json!({ "conditions": [goes] }))
}

/// Ends a pod whose node is no part of the cluster any more, as pod garbage collection does.
pub fn fail_orphan(pod: &PodRef, message: &str) -> Call {
    let goes = condition("DisruptionTarget", "True", "DeletionByPodGC", message);
    status(pod, &json!({ "phase": "Failed", "conditions": [goes] }))
}

/// Sets or clears the nominated node.
pub fn nominate(pod: &PodRef, node: Option<&str>) -> Call {
    status(pod, &json!({ "nominatedNodeName": node }))
}

fn delete_options(pod: &PodRef, grace_s: u32) -> Value {
    json!({ "gracePeriodSeconds": grace_s, "preconditions": { "uid": pod.uid } })
}

/// Asks for an eviction, which honours disruption budgets.
pub fn evict(pod: &PodRef, grace_s: u32) -> Call {
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": pod.name, "namespace": pod.namespace },
        "deleteOptions": delete_options(pod, grace_s),
    });
    Call::post(pod_path(pod, "/eviction"), &body)
}

/// Deletes the pod, asking no budget.
pub fn delete(pod: &PodRef, grace_s: u32) -> Call {
    let mut body = delete_options(pod, grace_s);
    body["apiVersion"] = "v1".into();
    body["kind"] = "DeleteOptions".into();
    let call = Call::of(Method::DELETE, pod_path(pod, ""), "application/json", &body);
    Call { metadata_only: true, ..call }
}

/// Sets annotations; an empty text removes one.
pub fn annotate(pod: &PodRef, annotations: &BTreeMap<String, String>) -> Call {
    let value = |text: &String| if text.is_empty() { Value::Null } else { text.clone().into() };
    let annotations: Map<String, Value> =
        annotations.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    let body = json!({ "metadata": { "uid": pod.uid, "annotations": annotations } });
    Call::merge(pod_path(pod, ""), &body)
}

/// Changes requests in place.
pub fn resize(pod: &PodRef, requests: &BTreeMap<String, BTreeMap<String, String>>) -> Call {
    let requests = requests.iter();
    let containers: Vec<Value> = requests
        .map(|(name, requests)| json!({ "name": name, "resources": { "requests": requests } }))
        .collect();
    let body = json!({ "metadata": { "uid": pod.uid }, "spec": { "containers": containers } });
    Call::strategic(pod_path(pod, "/resize"), &body)
}

/// Replaces a tenant's status as a whole: a merge patch would keep reasons that nobody waits for any
/// more.
pub fn tenant_status(name: &str, status: &TenantQuotaStatus) -> Call {
    let path = format!("/apis/deepshare.io/v1alpha1/tenantquotas/{name}/status");
    let body = json!([{ "op": "add", "path": "/status", "value": status }]);
    let call = Call::of(Method::PATCH, path, "application/json-patch+json", &body);
    Call { metadata_only: true, ..call }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodRef {
        PodRef { namespace: "ns".to_owned(), name: "p".to_owned(), uid: "u-1".to_owned() }
    }

    fn body(call: &Call) -> Value {
        serde_json::from_slice(&call.body).unwrap()
    }

    #[test]
    fn every_write_to_a_pod_or_claim_names_its_uid() {
        let none = BTreeMap::new();
        let claim =
            ClaimRef { namespace: "ns".to_owned(), name: "data".to_owned(), uid: "u-1".to_owned() };
        let uid_at = [
            (bind(&pod(), "n", &none), "/metadata/uid"),
            (select_node(&claim, Some("n")), "/metadata/uid"),
            (explain(&pod(), "R", "m"), "/metadata/uid"),
            (nominate(&pod(), None), "/metadata/uid"),
            (annotate(&pod(), &none), "/metadata/uid"),
            (resize(&pod(), &BTreeMap::new()), "/metadata/uid"),
            (evict(&pod(), 30), "/deleteOptions/preconditions/uid"),
            (delete(&pod(), 30), "/preconditions/uid"),
        ];
        for (call, place) in uid_at {
            let found = body(&call).pointer(place).cloned();
            assert_eq!(found, Some("u-1".into()), "{}", call.path);
        }
    }

    #[test]
    fn an_empty_annotation_is_removed_and_an_absent_nomination_cleared() {
        let annotations =
            BTreeMap::from([("a".to_owned(), String::new()), ("b".to_owned(), "1".to_owned())]);
        let call = annotate(&pod(), &annotations);
        assert_eq!(body(&call)["metadata"]["annotations"], json!({ "a": null, "b": "1" }));
        assert_eq!(body(&nominate(&pod(), None))["status"], json!({ "nominatedNodeName": null }));
    }

    #[test]
    fn long_sentences_are_cut_between_characters() {
        let long = "é".repeat(600);
        assert_eq!(shortened(&long), "é".repeat(500));
        assert_eq!(shortened("short"), "short");
    }
}
