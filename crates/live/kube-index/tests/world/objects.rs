//! Objects as the API server would serve them.
//!
//! What a kubelet of this world is to do with a pod stands in annotations of the pod: `test/starts-in`,
//! `test/lasts`, `test/stops-in` (seconds), `test/rejected`, `test/bind` (see [`crate::api`]).

use serde_json::{Value, json};

/// A node with `cpu` whole CPUs.
pub fn node(name: &str, cpu: u32) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("node-{name}"),
            "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            // The device plugin of the agent serves one set of devices whole and in slots.
            "allocatable": {
                "cpu": cpu.to_string(), "memory": "512Gi", "pods": "110",
                "deepshare.io/gpu": "8", "deepshare.io/gpu-slot": "16",
            },
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A node that NVIDIA's device plugin serves.
pub fn nvidia_node(name: &str, gpu_type: &str, gpus: u32) -> Value {
    let mut node = node(name, 64);
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = json!(gpu_type);
    node["metadata"]["labels"]["nvidia.com/gpu.memory"] = json!("81920");
    node["status"]["allocatable"]["nvidia.com/gpu"] = json!(gpus.to_string());
    node
}

/// What the agent of a node says of its devices.
pub fn gpu_node(name: &str, gpu_type: &str, gpus: u32) -> Value {
    let devices: Vec<Value> = (0..gpus)
        .map(|index| {
            json!({
                "uuid": format!("GPU-{name}-{index}"), "memoryMib": 81_920, "healthy": true,
                "mps": "ready",
            })
        })
        .collect();
    json!({
        "apiVersion": "deepshare.io/v1alpha1",
        "kind": "GpuNode",
        "metadata": {"name": name},
        "spec": {"gpuType": gpu_type, "slotsPerGpu": 2},
        "status": {"total": gpus, "healthy": gpus, "devices": devices, "allocations": []},
    })
}

/// A tenant with one namespace of its own name.
pub fn quota(name: &str, gpus: u32) -> Value {
    json!({
        "apiVersion": "deepshare.io/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {
            "name": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"gpus": {"*": gpus}, "namespaces": [name]},
    })
}

/// A pod of our scheduler with one container and one GPU.
pub fn pod(namespace: &str, name: &str) -> PodMaker {
    PodMaker(json!({
        "metadata": {
            "name": name, "namespace": namespace, "labels": {}, "annotations": {},
        },
        "spec": {
            "schedulerName": "deepshare",
            "terminationGracePeriodSeconds": 10,
            "securityContext": {"runAsUser": 1_000},
            "containers": [{
                "name": "main",
                "resources": {"requests": {
                    "cpu": "1", "memory": "1Gi", "deepshare.io/gpu": "1",
                }},
            }],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }))
}

/// A pod in the making.
#[derive(Clone)]
pub struct PodMaker(pub Value);

impl PodMaker {
    pub fn gpus(self, gpus: u32) -> PodMaker {
        self.resource("deepshare.io/gpu", gpus)
    }

    pub fn slot(self) -> PodMaker {
        self.resource("deepshare.io/gpu-slot", 1)
    }

    /// Asks for nothing but so many of this resource beside its CPU and memory.
    pub fn resource(mut self, resource: &str, amount: u32) -> PodMaker {
        let requests = &mut self.0["spec"]["containers"][0]["resources"]["requests"];
        for other in ["deepshare.io/gpu", "deepshare.io/gpu-slot", "nvidia.com/gpu"] {
            requests.as_object_mut().unwrap().remove(other);
        }
        requests[resource] = json!(amount.to_string());
        self
    }

    pub fn cpu(mut self, cpu: u32) -> PodMaker {
        self.0["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu.to_string());
        self
    }

    pub fn best_effort(self) -> PodMaker {
        self.note("deepshare.io/class", "best-effort")
    }

    pub fn gang(self, name: &str, size: u32) -> PodMaker {
        self.note("deepshare.io/gang", name).note("deepshare.io/gang-size", &size.to_string())
    }

    pub fn grace(mut self, seconds: u32) -> PodMaker {
        self.0["spec"]["terminationGracePeriodSeconds"] = json!(seconds);
        self
    }

    pub fn note(mut self, annotation: &str, text: &str) -> PodMaker {
        self.0["metadata"]["annotations"][annotation] = json!(text);
        self
    }

    pub fn label(mut self, label: &str, text: &str) -> PodMaker {
        self.0["metadata"]["labels"][label] = json!(text);
        self
    }

    /// Has a volume of this claim.
    pub fn claim(mut self, claim: &str) -> PodMaker {
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        self.0["spec"]["volumes"] = json!([volume]);
        self
    }

    pub fn lasts(self, seconds: u32) -> PodMaker {
        self.note("test/lasts", &seconds.to_string())
    }

    /// Takes so long to stop, if its grace allows.
    pub fn stops_in(self, seconds: u32) -> PodMaker {
        self.note("test/stops-in", &seconds.to_string())
    }

    pub fn scheduler(mut self, name: &str) -> PodMaker {
        self.0["spec"]["schedulerName"] = json!(name);
        self
    }

    pub fn gated(mut self) -> PodMaker {
        self.0["spec"]["schedulingGates"] = json!([{"name": "test/gate"}]);
        self
    }
}
