//! What is kept of the objects that the scheduler watches: fields that decide something, no others.
//!
//! The rest (environments, images, managed fields) is dropped inside the parser, so a cluster of 2,000
//! nodes and 20,000 pods stays small. Field names are those of the Kubernetes API, units are in the
//! type: instants as [`jiff::Timestamp`], resources as [`ResourceList`]. `null` reads as absent.
//! Values that the API server would refuse are errors of the parser, except operators and the like,
//! which later versions may add to: those are kept by name, and refused where they would decide.

mod disruption;
mod metadata;
mod node;
mod pod;
mod pod_group;
mod resources;
mod scheduling;
mod status;
mod volumes;

pub use disruption::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
pub use metadata::{Labels, Metadata, Namespace, OwnerReference};
pub use node::{Node, NodeSpec, NodeStatus, Taint, TaintEffect};
pub use pod::{Container, HostPort, Pod, PodSpec, Protocol};
pub use pod_group::{PodGroup, Workload, WorkloadGroup};
pub use resources::ResourceList;
pub use scheduling::{
    LabelSelector, NodeInclusion, NodeSelector, NodeSelectorTerm, Operator, PodAffinityTerm,
    Requirement, Toleration, TopologySpreadConstraint,
};
pub use status::{ConditionKind, ContainerState, ContainerStatus, Phase, PodCondition, PodStatus};
pub use volumes::{
    BindingMode, CsiDriver, CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass, Volume,
};

use serde::{Deserialize, Deserializer};

/// A page of a list, as the API server answers it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct List<T> {
    /// Where the list stands.
    #[serde(default)]
    pub metadata: ListMetadata,
    /// The objects.
    #[serde(deserialize_with = "or_default", bound(deserialize = "T: Deserialize<'de>"))]
    pub items: Vec<T>,
}

/// Where a list stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMetadata {
    /// The version to watch from.
    #[serde(default)]
    pub resource_version: String,
    /// Token of the next page; empty: this was the last.
    #[serde(default)]
    pub r#continue: String,
}

/// Reads `null` as the default.
fn or_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
