//! Objects as users write them.

use serde_json::{Map, Value, json};

/// A pod that asks for GPUs.
#[derive(Clone, Debug)]
pub struct PodDraft {
    name: String,
    annotations: Map<String, Value>,
    requests: Map<String, Value>,
    limits: Map<String, Value>,
    spec: Map<String, Value>,
}

impl PodDraft {
    /// A pod of this name for DeepShare, without any GPU yet.
    pub fn new(name: &str) -> PodDraft {
        let spec = json!({
            "schedulerName": "deepshare",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "securityContext": { "runAsUser": 1000 },
        });
        PodDraft {
            name: name.to_owned(),
            annotations: Map::new(),
            requests: Map::new(),
            limits: Map::new(),
            spec: spec.as_object().cloned().unwrap_or_default(),
        }
    }

    /// With so many whole GPUs.
    #[must_use]
    pub fn gpus(self, gpus: u32) -> PodDraft {
        self.limit("deepshare.io/gpu", &gpus.to_string())
    }

    /// With one slot.
    #[must_use]
    pub fn slot(self) -> PodDraft {
        self.limit("deepshare.io/gpu-slot", "1")
    }

    /// With a resource that is requested and limited alike.
    #[must_use]
    pub fn limit(mut self, resource: &str, amount: &str) -> PodDraft {
        self.limits.insert(resource.to_owned(), json!(amount));
        self.request(resource, amount)
    }

    /// With a resource requested.
    #[must_use]
    pub fn request(mut self, resource: &str, amount: &str) -> PodDraft {
        self.requests.insert(resource.to_owned(), json!(amount));
        self
    }

    /// With one of DeepShare's annotations.
    #[must_use]
    pub fn deepshare(self, key: &str, value: &str) -> PodDraft {
        self.annotation(&format!("deepshare.io/{key}"), value)
    }

    /// With an annotation that tells the simulated node what to do.
    #[must_use]
    pub fn behaves(self, key: &str, value: &str) -> PodDraft {
        self.annotation(&format!("testbed.deepshare.io/{key}"), value)
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> PodDraft {
        self.annotations.insert(key.to_owned(), json!(value));
        self
    }

    /// With a field of its specification.
    #[must_use]
    pub fn spec(mut self, key: &str, value: Value) -> PodDraft {
        self.spec.insert(key.to_owned(), value);
        self
    }

    /// The pod itself, without a controller.
    pub fn pod(&self) -> Value {
        let mut pod = self.template();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(self.name);
        pod
    }

    fn template(&self) -> Value {
        let mut spec = self.spec.clone();
        let resources = json!({ "requests": self.requests, "limits": self.limits });
        let container = json!({ "name": "main", "image": "train", "resources": resources });
        spec.insert("containers".to_owned(), json!([container]));
        let metadata = json!({ "annotations": self.annotations });
        json!({ "metadata": metadata, "spec": spec })
    }
}

/// A `batch/v1` Job of equal pods, which makes new ones for those that are evicted.
#[derive(Clone, Debug)]
pub struct JobDraft {
    /// What each pod is.
    pub pod: PodDraft,
    /// How many run side by side.
    pub pods: u32,
}

impl JobDraft {
    /// The Job, in a namespace.
    pub fn job(&self, namespace: &str) -> Value {
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": self.pod.name, "namespace": namespace },
            "spec": {
                "parallelism": self.pods,
                "completions": self.pods,
                "backoffLimit": 1000,
                "podReplacementPolicy": "Failed",
                // An eviction is no failure of the job, and is made good at once.
                "podFailurePolicy": { "rules": [{
                    "action": "Ignore",
                    "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
                }]},
                "template": self.pod.template(),
            },
        })
    }
}

/// A TenantQuota of one namespace, with further fields of its specification.
pub fn quota_with(name: &str, namespace: &str, gpus: &Value, more: &Value) -> Value {
    let mut spec = json!({ "gpus": gpus, "namespaces": [namespace] });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "deepshare.io/v1alpha1",
        "kind": "TenantQuota",
        "metadata": { "name": name },
        "spec": spec,
    })
}
