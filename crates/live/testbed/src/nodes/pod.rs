//! One pod on a simulated node, and its status as a kubelet writes it.

use super::behaviour::PodBehaviour;
use super::observed::{Container, ObservedPod, PodSpec, Resources};
use super::requests::{self, Compute};
use super::write::PodKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Admitted; its containers are being started.
    Starting,
    /// Its containers run.
    Running,
    /// It was deleted and its containers are stopping.
    Stopping,
    /// Nothing of it runs. It holds nothing.
    Ended,
}

/// How far a resize is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resizing {
    /// There is none.
    No,
    /// It waits for room.
    Deferred,
    /// It is on its way; charged already where it grows.
    Accepted,
}

/// A pod on a node.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Which.
    pub key: PodKey,
    /// How far it is.
    pub stage: Stage,
    /// What it does.
    pub behaviour: PodBehaviour,
    /// Its specification as last seen.
    pub spec: PodSpec,
    /// Generation of that.
    pub generation: i64,
    /// Its specification with the resources that its containers run with.
    pub actual: PodSpec,
    /// How far a resize is.
    pub resizing: Resizing,
    /// When it was taken.
    pub taken: Timestamp,
    /// When its containers were started.
    pub started: Option<Timestamp>,
    /// Seconds that it may take to stop, once it is deleted.
    pub grace: Option<i64>,
}

impl Pod {
    /// A pod just seen.
    pub fn new(key: PodKey, pod: &ObservedPod, behaviour: PodBehaviour, now: Timestamp) -> Pod {
        Pod {
            key,
            stage: Stage::Starting,
            behaviour,
            spec: pod.spec.clone(),
            generation: pod.metadata.generation.unwrap_or(0),
            actual: pod.spec.clone(),
            resizing: Resizing::No,
            taken: now,
            started: None,
            grace: None,
        }
    }

    /// What its node sets aside for it: the larger while it shrinks, and already while it grows.
    pub fn charge(&self) -> Compute {
        let actual = requests::compute(&self.actual);
        match (self.stage, self.resizing) {
            (Stage::Ended, _) => Compute::default(),
            (_, Resizing::Accepted) => actual.max(requests::compute(&self.spec)),
            _ => actual,
        }
    }

    /// Status: its containers run, with the resources in force; `allocated` are those promised.
    pub fn running(&self, allocated: &PodSpec, conditions: Vec<Value>) -> Value {
        let started = Time(self.started.unwrap_or(self.taken));
        let container = |(container, promised): (&Container, &Container)| {
            let mut status = base(&self.key, container);
            status["ready"] = json!(true);
            status["started"] = json!(true);
            status["state"] = json!({ "running": { "startedAt": started } });
            status["resources"] = json!(container.resources);
            status["allocatedResources"] = json!(promised.resources.requests);
            status
        };
        let containers: Vec<Value> =
            self.actual.containers.iter().zip(&allocated.containers).map(container).collect();
        let init = |(first, promised): (&Container, &Container)| {
            if requests::is_sidecar(first) {
                container((first, promised))
            } else {
                let ended = json!({
                    "exitCode": 0, "reason": "Completed",
                    "startedAt": started, "finishedAt": started,
                });
                let mut status = base(&self.key, first);
                status["ready"] = json!(true);
                status["started"] = json!(false);
                status["state"] = json!({ "terminated": ended });
                status
            }
        };
        let first: Vec<Value> =
            self.actual.init_containers.iter().zip(&allocated.init_containers).map(init).collect();
        json!({
            "phase": "Running",
            "observedGeneration": self.generation,
            "startTime": Time(self.taken),
            "hostIP": "127.0.0.1",
            "hostIPs": [{ "ip": "127.0.0.1" }],
            "conditions": conditions,
            "containerStatuses": containers,
            "initContainerStatuses": first,
        })
    }

    /// Conditions of a pod that has just been started.
    pub fn ready(&self, now: Timestamp) -> Vec<Value> {
        let types = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
        types.map(|kind| self.condition(kind, "True", "", "", now)).to_vec()
    }

    /// Status: its containers have ended.
    pub fn ended(&self, exit_code: i32, reason: &str, now: Timestamp) -> Value {
        let started = Time(self.started.unwrap_or(self.taken));
        let ended = json!({ "terminated": {
            "exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": Time(now),
        }});
        let container = |container: &Container| {
            let mut status = base(&self.key, container);
            status["ready"] = json!(false);
            status["started"] = json!(false);
            status["state"] = ended.clone();
            status
        };
        let containers: Vec<Value> = self.actual.containers.iter().map(container).collect();
        let why = if exit_code == 0 { "PodCompleted" } else { "PodFailed" };
        let conditions = ["ContainersReady", "Ready"]
            .map(|kind| self.condition(kind, "False", why, "its containers have ended", now));
        json!({
            "phase": if exit_code == 0 { "Succeeded" } else { "Failed" },
            "observedGeneration": self.generation,
            "startTime": Time(self.taken),
            "conditions": conditions,
            "containerStatuses": containers,
        })
    }

    /// One condition.
    pub fn condition(
        &self,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> Value {
        let mut condition = json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": Time(now),
            "observedGeneration": self.generation,
        });
        if !reason.is_empty() {
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
        condition
    }
}

/// Takes a condition away, in a strategic merge patch.
pub fn without(kind: &str) -> Value {
    json!({ "$patch": "delete", "type": kind })
}

/// Status of a pod that is not admitted: final.
pub fn rejected(reason: &str, message: &str, now: Timestamp) -> Value {
    json!({
        "phase": "Failed",
        "reason": reason,
        "message": format!("Pod was rejected: {message}"),
        "startTime": Time(now),
    })
}

/// Whether the CPU and memory of containers differ: nothing else of them can be resized.
pub fn is_resize(one: &PodSpec, other: &PodSpec) -> bool {
    let differ = |one: &[Container], other: &[Container]| {
        one.iter().zip(other).any(|(one, other)| one.resources != other.resources)
    };
    differ(&one.containers, &other.containers)
        || differ(&one.init_containers, &other.init_containers)
        || resources(one) != resources(other)
}

fn resources(spec: &PodSpec) -> Option<&Resources> {
    spec.resources.as_ref()
}

fn base(key: &PodKey, container: &Container) -> Value {
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": format!("testbed://{}/{}", key.uid, container.name),
        "restartCount": 0,
    })
}
