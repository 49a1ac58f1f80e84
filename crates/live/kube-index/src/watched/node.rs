//! Nodes.

use super::{Metadata, ResourceList, or_default};
use serde::{Deserialize, Deserializer};

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// Name and labels.
    pub metadata: Metadata,
    /// What its owner wants.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: NodeSpec,
    /// What its kubelet reports.
    #[serde(default, deserialize_with = "or_default")]
    pub status: NodeStatus,
}

/// What a node's owner wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NodeSpec {
    /// Cordoned.
    #[serde(default)]
    pub unschedulable: bool,
    /// Whom it keeps away.
    #[serde(default, deserialize_with = "or_default")]
    pub taints: Box<[Taint]>,
}

/// What keeps away pods that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Taint {
    /// Its name.
    pub key: Box<str>,
    /// Its value.
    #[serde(default)]
    pub value: Box<str>,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Rather no new pods: it decides nothing here.
    PreferNoSchedule,
    /// No new pods, and those that are there leave.
    NoExecute,
}

/// What a kubelet reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NodeStatus {
    /// What pods may use in all.
    #[serde(default, deserialize_with = "or_default")]
    pub allocatable: ResourceList,
    /// Condition `Ready` is `True`.
    #[serde(default, rename = "conditions", deserialize_with = "ready")]
    pub ready: bool,
}

fn ready<'de, D: Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Condition {
        #[serde(rename = "type")]
        kind: Box<str>,
        status: Box<str>,
    }
    let conditions = Option::<Vec<Condition>>::deserialize(input)?.unwrap_or_default();
    Ok(conditions.iter().any(|at| &*at.kind == "Ready" && &*at.status == "True"))
}
