//! DeepShare's custom resources, labels and annotations, typed.
//!
//! `deploy/crds/` is generated from here (`cargo xtask crds`).

#![allow(
    clippy::duplicated_attributes,
    reason = "two printer columns of one type are no mistake: clippy reads the derive's arguments"
)]

mod condition;
mod decision;
mod definitions;
mod gpu_node;
pub mod names;
pub mod quantity;
mod tenant_quota;

pub use condition::Condition;
pub use decision::{ContainerDevices, Decision, DecisionError, DeviceSlot};
pub use definitions::{Definition, definitions};
pub use gpu_node::{
    Allocation, GpuDevice, GpuNode, GpuNodeSpec, GpuNodeStatus, MpsState, PairSample,
};
pub use tenant_quota::{
    Colocation, PodClass, Reclaim, TenantQuota, TenantQuotaSpec, TenantQuotaStatus,
};
