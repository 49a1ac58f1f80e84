//! `GpuNode`: the devices of a node, as its agent sees them.

use crate::Condition;
use crate::decision::DeviceSlot;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The GPUs of the node of the same name. Cluster-scoped; written by the node agent.
#[derive(
    kube::CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize,
)]
#[kube(
    group = "deepshare.io",
    version = "v1alpha1",
    kind = "GpuNode",
    plural = "gpunodes",
    shortname = "gn",
    status = "GpuNodeStatus",
    category = "deepshare",
    doc = "The GPUs of the node of the same name, as its agent sees them.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.gpuType"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.total"),
    printcolumn(name = "Healthy", type_ = "integer", json_path = ".status.healthy"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GpuNodeSpec {
    /// Model of the GPUs, as in `A100-80GB`: a node has one.
    #[x_kube(validation = Rule::new("self != ''").message("name the model of the node's GPUs"))]
    #[schemars(extend("maxLength" = 253))]
    pub gpu_type: String,
    /// Pods that may share one device.
    #[serde(default = "two")]
    #[x_kube(validation = Rule::new("self >= 1 && self <= 2")
        .message("a device has 1 or 2 slots"))]
    pub slots_per_gpu: u32,
}

fn two() -> u32 {
    2
}

/// What the agent sees.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuNodeStatus {
    /// Number of devices.
    #[serde(default)]
    pub total: u32,
    /// Number of devices that work.
    #[serde(default)]
    pub healthy: u32,
    /// The devices, ordered as on the node's bus.
    #[serde(default)]
    #[schemars(extend("maxItems" = 64))]
    pub devices: Vec<GpuDevice>,
    /// What each pod holds, as the kubelet has it.
    #[serde(default)]
    pub allocations: Vec<Allocation>,
    /// What pairs kept of their solo speed, in the last sampling period.
    #[serde(default)]
    pub samples: Vec<PairSample>,
    /// State of the agent.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One GPU.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuDevice {
    /// Its UUID.
    pub uuid: String,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Whether it works.
    pub healthy: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// State of its MPS daemon: whether pods can share it.
    #[serde(default)]
    pub mps: MpsState,
}

/// State of a device's MPS daemon.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MpsState {
    /// There is none: the device takes whole-GPU pods, and a slot alone.
    #[default]
    Off,
    /// It answers.
    Ready,
    /// A client failed, and it takes nobody until all clients are gone.
    Faulted,
}

/// What one pod holds.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// The pod.
    pub pod_uid: String,
    /// Its devices.
    pub devices: Vec<DeviceSlot>,
}

/// What two pods on one device kept of their solo speed.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairSample {
    /// The two.
    pub pod_uids: Vec<String>,
    /// What each kept, parts per million, in the same order.
    pub retentions_ppm: Vec<u32>,
    /// When the period ended, RFC 3339.
    pub taken: String,
}
