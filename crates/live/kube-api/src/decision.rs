//! What the scheduler decided for a pod, as it travels in the Binding's annotations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One pod's part of an attempt. Written with the Binding in one request, so that a pod that has a
/// node has a decision too; read back after a restart, and by the node agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Layout of this annotation: [`Decision::VERSION`].
    pub version: u32,
    /// The pod it was made for; a copy on another pod is void.
    pub pod_uid: String,
    /// The attempt, unique in its epoch.
    pub attempt: u32,
    /// The term of leadership that decided it (`leaseTransitions`).
    pub epoch: u32,
    /// Class to which its GPUs are charged: `guaranteed` or `best-effort`.
    pub charged: String,
    /// What it gets, by container.
    pub containers: Vec<ContainerDevices>,
    /// Pods of its job: all of them run, or none.
    pub members: u32,
    /// When its job was first submitted, RFC 3339: a recreated pod keeps its job's place.
    pub submitted: String,
    /// When its job was preempted within the hour before, RFC 3339, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preempted: Vec<String>,
    /// Seconds that its job had run before.
    #[serde(default)]
    pub served_seconds: u64,
    /// In how many steps it is to do each iteration (gradient accumulation).
    #[serde(default = "one")]
    pub steps: u32,
}

/// Devices of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerDevices {
    /// The container.
    pub name: String,
    /// Its devices.
    pub devices: Vec<DeviceSlot>,
}

/// A device, and which of its slots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSlot {
    /// The GPU's UUID, as in `GPU-3e7e…`.
    pub uuid: String,
    /// The slot, from 0; absent for a whole GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
}

fn one() -> u32 {
    1
}

impl Decision {
    /// The layout this release writes.
    pub const VERSION: u32 = 1;

    /// The annotation's text.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    /// Reads the annotation.
    ///
    /// # Errors
    /// If it is not JSON of this shape, has another version, or was made for another pod.
    pub fn read(text: &str, pod_uid: &str) -> Result<Decision, DecisionError> {
        let decision: Decision =
            serde_json::from_str(text).map_err(|error| DecisionError::Shape(error.to_string()))?;
        if decision.version != Decision::VERSION {
            return Err(DecisionError::Version(decision.version));
        }
        if decision.pod_uid != pod_uid {
            return Err(DecisionError::OtherPod(decision.pod_uid));
        }
        Ok(decision)
    }
}

impl DeviceSlot {
    /// The id under which the device plugin serves it: `UUID`, or `UUID::slot`.
    pub fn id(&self) -> String {
        match self.slot {
            None => self.uuid.clone(),
            Some(slot) => format!("{}::{slot}", self.uuid),
        }
    }
}

/// Why a decision does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// It is not a decision at all.
    #[error("annotation deepshare.io/decision is not readable: {0}")]
    Shape(String),
    /// Another release wrote it.
    #[error("annotation deepshare.io/decision has version {0}, this release reads version 1")]
    Version(u32),
    /// It was copied.
    #[error("annotation deepshare.io/decision was made for the pod with UID {0}")]
    OtherPod(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_counts_for_its_own_pod_only() {
        let decision = Decision {
            version: 1,
            pod_uid: "u-1".to_owned(),
            attempt: 7,
            epoch: 2,
            charged: "best-effort".to_owned(),
            containers: vec![ContainerDevices {
                name: "main".to_owned(),
                devices: vec![DeviceSlot { uuid: "GPU-1".to_owned(), slot: Some(1) }],
            }],
            members: 1,
            submitted: "2026-01-01T00:00:00Z".to_owned(),
            preempted: Vec::new(),
            served_seconds: 0,
            steps: 1,
        };
        let text = decision.to_text();
        assert_eq!(Decision::read(&text, "u-1"), Ok(decision.clone()));
        assert_eq!(Decision::read(&text, "u-2"), Err(DecisionError::OtherPod("u-1".to_owned())));
        let newer = text.replace("\"version\":1", "\"version\":2");
        assert_eq!(Decision::read(&newer, "u-1"), Err(DecisionError::Version(2)));
        assert!(matches!(Decision::read("GPU-1", "u-1"), Err(DecisionError::Shape(_))));
        assert_eq!(decision.containers[0].devices[0].id(), "GPU-1::1");
    }
}
