//! As much of pods and nodes as a simulated kubelet reads; the rest is dropped in the parser.

use kube::core::{ApiResource, Object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pod.
pub type ObservedPod = Object<PodSpec, PodStatus>;
/// A node.
pub type ObservedNode = Object<NodeSpecPart, NodeStatusPart>;

/// How the API server names pods.
pub fn pods() -> ApiResource {
    ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&())
}

/// How the API server names nodes.
pub fn nodes() -> ApiResource {
    ApiResource::erase::<k8s_openapi::api::core::v1::Node>(&())
}

/// Of a pod's specification.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Where it is bound to.
    pub node_name: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its init containers, sidecars among them.
    pub init_containers: Vec<Container>,
    /// What it costs beside its containers.
    pub overhead: BTreeMap<String, String>,
    /// Resources of the pod as a whole, which win over its containers'.
    pub resources: Option<Resources>,
}

/// Of a container's specification.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// What it asks for.
    pub resources: Resources,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
}

/// Requests and limits, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// What is set aside for it.
    pub requests: BTreeMap<String, String>,
    /// The most that it gets.
    pub limits: BTreeMap<String, String>,
}

/// Of a pod's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
    /// When a kubelet took it, RFC 3339.
    pub start_time: Option<String>,
}

/// Nothing of a node's specification.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeSpecPart {}

/// Of a node's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatusPart {
    /// Its conditions.
    pub conditions: Vec<NodeCondition>,
}

/// One condition of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// Which.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}
