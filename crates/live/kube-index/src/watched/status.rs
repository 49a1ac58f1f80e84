//! How a pod is doing.

use super::metadata::instant;
use super::pod::Requests;
use super::{ResourceList, or_default};
use serde::{Deserialize, Deserializer};

/// How a pod is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Where it is in its life.
    #[serde(default)]
    pub phase: Phase,
    /// Why it failed, as in `OutOfcpu`, `UnexpectedAdmissionError`.
    #[serde(default)]
    pub reason: Option<Box<str>>,
    /// Those conditions that DeepShare reads.
    #[serde(default, deserialize_with = "conditions")]
    pub conditions: Box<[PodCondition]>,
    /// Of its containers.
    #[serde(default, deserialize_with = "or_default")]
    pub container_statuses: Box<[ContainerStatus]>,
    /// Of its init containers.
    #[serde(default, deserialize_with = "or_default")]
    pub init_container_statuses: Box<[ContainerStatus]>,
    /// When its kubelet took it up.
    #[serde(default, deserialize_with = "instant")]
    pub start_time: Option<jiff::Timestamp>,
    /// The node that a preemption clears for it.
    #[serde(default)]
    pub nominated_node_name: Option<Box<str>>,
    /// `Guaranteed`, `Burstable` or `BestEffort`: fixed at creation, and not DeepShare's classes.
    #[serde(default)]
    pub qos_class: Option<Box<str>>,
}

impl PodStatus {
    /// The condition of this kind, if the pod has it.
    pub fn condition(&self, kind: ConditionKind) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Phase {
    /// Not all of its containers have started yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// Its containers ended well, for good.
    Succeeded,
    /// One of them failed, for good.
    Failed,
    /// Its node is silent.
    Unknown,
}

impl Phase {
    /// True when it is over: the pod holds nothing any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

/// Conditions that DeepShare reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// It has a node, or why not.
    PodScheduled,
    /// It serves.
    Ready,
    /// It is about to be evicted.
    DisruptionTarget,
    /// A resize has not been taken up: reason `Deferred` or `Infeasible`.
    PodResizePending,
    /// A resize has been taken up and is not in force yet.
    PodResizeInProgress,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// Which.
    pub kind: ConditionKind,
    /// It is `True`.
    pub holds: bool,
    /// A word for why.
    pub reason: Box<str>,
    /// A sentence for people; kept of `PodScheduled` and the resizes only.
    pub message: Box<str>,
}

fn conditions<'de, D: Deserializer<'de>>(input: D) -> Result<Box<[PodCondition]>, D::Error> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "type")]
        kind: Box<str>,
        status: Box<str>,
        #[serde(default)]
        reason: Option<Box<str>>,
        #[serde(default)]
        message: Option<Box<str>>,
    }
    let read = |wire: Wire| {
        let kind = match &*wire.kind {
            "PodScheduled" => ConditionKind::PodScheduled,
            "Ready" => ConditionKind::Ready,
            "DisruptionTarget" => ConditionKind::DisruptionTarget,
            "PodResizePending" => ConditionKind::PodResizePending,
            "PodResizeInProgress" => ConditionKind::PodResizeInProgress,
            _ => return None,
        };
        let message = match kind {
            ConditionKind::Ready | ConditionKind::DisruptionTarget => None,
            _ => wire.message,
        };
        Some(PodCondition {
            kind,
            holds: &*wire.status == "True",
            reason: wire.reason.unwrap_or_default(),
            message: message.unwrap_or_default(),
        })
    };
    let all = Option::<Vec<Wire>>::deserialize(input)?.unwrap_or_default();
    Ok(all.into_iter().filter_map(read).collect())
}

/// How a container is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireStatus")]
pub struct ContainerStatus {
    /// Its name.
    pub name: Box<str>,
    /// What it is doing.
    pub state: ContainerState,
    /// Requests in force, once the runtime has them.
    pub requests: ResourceList,
    /// Requests that the kubelet has admitted.
    pub allocated: ResourceList,
}

/// What a container is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContainerState {
    /// It has not started, or will again.
    #[default]
    Waiting,
    /// It runs.
    Running {
        /// Since when.
        since: Option<jiff::Timestamp>,
    },
    /// It ended.
    Terminated {
        /// A word for why, as in `OOMKilled`, `Completed`.
        reason: Box<str>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireStatus {
    name: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    state: WireState,
    #[serde(default, deserialize_with = "or_default")]
    resources: Requests,
    #[serde(default, deserialize_with = "or_default")]
    allocated_resources: ResourceList,
}

#[derive(Default, Deserialize)]
struct WireState {
    #[serde(default)]
    running: Option<WireRunning>,
    #[serde(default)]
    terminated: Option<WireTerminated>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRunning {
    #[serde(default, deserialize_with = "instant")]
    started_at: Option<jiff::Timestamp>,
}

#[derive(Deserialize)]
struct WireTerminated {
    #[serde(default)]
    reason: Option<Box<str>>,
}

impl From<WireStatus> for ContainerStatus {
    fn from(wire: WireStatus) -> ContainerStatus {
        let state = match (wire.state.running, wire.state.terminated) {
            (Some(running), _) => ContainerState::Running { since: running.started_at },
            (None, Some(end)) => {
                ContainerState::Terminated { reason: end.reason.unwrap_or_default() }
            }
            (None, None) => ContainerState::Waiting,
        };
        ContainerStatus {
            name: wire.name,
            state,
            requests: wire.resources.requests,
            allocated: wire.allocated_resources,
        }
    }
}
