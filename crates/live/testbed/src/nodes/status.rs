//! Objects of a simulated node: the Node, its Lease and its GpuNode.

use super::devices::Devices;
use super::spec::{GpuResource, NodeSpec, SIMULATOR};
use deepshare_kube_api::{Condition, GpuDevice, GpuNodeStatus, MpsState, PairSample, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// A lease lasts four heartbeats, as a kubelet's does.
const HEARTBEATS_PER_LEASE: u64 = 4;

/// The Node, as a kubelet registers it.
pub fn registration(spec: &NodeSpec, name: &str, devices: &Devices, now: Timestamp) -> Value {
    let mut labels = spec.labels.clone();
    for (key, value) in [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        (SIMULATOR, &spec.prefix),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let memory = spec.gpu_memory_mib.to_string();
    match spec.resource {
        _ if spec.gpus == 0 => {}
        GpuResource::Deepshare => {
            labels.insert(names::GPU_TYPE.to_owned(), spec.gpu_type.clone());
        }
        GpuResource::Nvidia => {
            labels.insert(names::NVIDIA_PRODUCT.to_owned(), spec.gpu_type.clone());
            labels.insert(names::NVIDIA_MEMORY.to_owned(), memory);
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "status": node(spec, devices, now),
    })
}

/// The Node's status.
pub fn node(spec: &NodeSpec, devices: &Devices, now: Timestamp) -> Value {
    let amounts = |gpus: usize| {
        let mut amounts = json!({
            "cpu": spec.cpus.to_string(),
            "memory": format!("{}Gi", spec.memory_gib),
            "pods": spec.pods.to_string(),
            "ephemeral-storage": "1Ti",
        });
        match spec.resource {
            _ if spec.gpus == 0 => {}
            GpuResource::Nvidia => amounts[names::NVIDIA_GPU] = json!(gpus.to_string()),
            GpuResource::Deepshare => {
                let slots = gpus * names::SLOTS_PER_GPU as usize;
                amounts[names::GPU] = json!(gpus.to_string());
                amounts[names::GPU_SLOT] = json!(slots.to_string());
            }
        }
        amounts
    };
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "as simulated",
            "lastHeartbeatTime": Time(now),
            "lastTransitionTime": Time(now),
        })
    };
    json!({
        "capacity": amounts(spec.gpus),
        "allocatable": amounts(devices.healthy()),
        "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "conditions": [
            condition("Ready", "True", "KubeletReady"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kubeletVersion": "testbed",
            "containerRuntimeVersion": "testbed://0",
            "kubeProxyVersion": "",
            "kernelVersion": "",
            "osImage": "",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
    })
}

/// The node's lease.
pub fn lease(spec: &NodeSpec, name: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "namespace": "kube-node-lease" },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": (spec.heartbeat.as_secs() * HEARTBEATS_PER_LEASE).max(1),
            "renewTime": MicroTime(now),
        },
    })
}

/// The GpuNode.
pub fn gpu_node_object(spec: &NodeSpec, name: &str) -> Value {
    json!({
        "apiVersion": "deepshare.io/v1alpha1",
        "kind": "GpuNode",
        "metadata": { "name": name, "labels": { SIMULATOR: spec.prefix } },
        "spec": { "gpuType": spec.gpu_type, "slotsPerGpu": names::SLOTS_PER_GPU },
    })
}

/// The GpuNode's status.
pub fn gpu_node(spec: &NodeSpec, devices: &Devices, samples: &[PairSample]) -> GpuNodeStatus {
    let device = |device: &super::devices::Device| GpuDevice {
        uuid: device.uuid.clone(),
        memory_mib: spec.gpu_memory_mib,
        healthy: device.healthy,
        reason: (!device.healthy).then(|| "simulated fault".to_owned()),
        mps: if device.healthy { MpsState::Ready } else { MpsState::Faulted },
    };
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    GpuNodeStatus {
        total: count(devices.all().len()),
        healthy: count(devices.healthy()),
        devices: devices.all().iter().map(device).collect(),
        allocations: devices.allocations(),
        samples: samples.to_vec(),
        conditions: vec![Condition {
            kind: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "Simulated".to_owned(),
            message: "written by the node simulator".to_owned(),
            last_transition_time: None,
        }],
    }
}
