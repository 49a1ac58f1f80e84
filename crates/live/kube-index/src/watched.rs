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
pub use pod_group::PodGroup;
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
