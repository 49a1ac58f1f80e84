//! The vocabulary of DeepShare: ids, units, jobs, nodes and tenants.
//!
//! Plain data with no behaviour beyond arithmetic. Nothing here knows a policy, an engine, a
//! trace format or Kubernetes. Names (of jobs, users, nodes) are strings and stay at the edge;
//! inside, everything is a dense integer id.

mod cluster;
mod ids;
mod job;
mod retention;
mod tenant;
mod time;
mod training;

pub use cluster::{Devices, NodeSpec, Resources};
pub use ids::{
    AttemptId, DeviceId, Epoch, GpuTypeId, JobId, NodeId, PoolId, ProfileClassId, SiteId, TenantId,
    TrustDomainId, UserId,
};
pub use job::{Class, Demand, JobSpec, Layout, Outcome, Sharing};
pub use retention::Retention;
pub use tenant::{Quota, TenantSpec};
pub use time::{GpuTime, Span, Time};
pub use training::{IterationTime, Training, TrainingMemory};
