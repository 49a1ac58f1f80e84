//! Groups of pods that start together, as other systems describe them.

use super::{Metadata, or_default};
use serde::Deserialize;

/// A group: Volcano's (`scheduling.volcano.sh`), the coscheduling plugin's (`scheduling.x-k8s.io`) or
/// Kubernetes's own (`scheduling.k8s.io`, since 1.36).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireGroup")]
pub struct PodGroup {
    /// Namespace and name.
    pub metadata: Metadata,
    /// Pods that must start together; `None`: they need not.
    pub min_members: Option<u32>,
}

/// A workload with its groups (`scheduling.k8s.io`, 1.35).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireWorkload")]
pub struct Workload {
    /// Namespace and name.
    pub metadata: Metadata,
    /// Its groups.
    pub groups: Box<[WorkloadGroup]>,
}

/// A group of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadGroup {
    /// Its name, unique in the workload.
    pub name: Box<str>,
    /// Pods that must start together; `None`: they need not.
    pub min_members: Option<u32>,
}

#[derive(Deserialize)]
struct WireGroup {
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: WireGroupSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGroupSpec {
    #[serde(default)]
    min_member: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    scheduling_policy: WirePolicy,
}

#[derive(Default, Deserialize)]
struct WirePolicy {
    #[serde(default)]
    gang: Option<WireGang>,
}

impl WirePolicy {
    fn min_members(self) -> Option<u32> {
        self.gang.map(|gang| gang.min_count)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGang {
    min_count: u32,
}

impl From<WireGroup> for PodGroup {
    fn from(wire: WireGroup) -> PodGroup {
        let of_policy = wire.spec.scheduling_policy.min_members();
        PodGroup { metadata: wire.metadata, min_members: wire.spec.min_member.or(of_policy) }
    }
}

#[derive(Deserialize)]
struct WireWorkload {
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: WireWorkloadSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireWorkloadSpec {
    #[serde(default, deserialize_with = "or_default")]
    pod_groups: Vec<WireWorkloadGroup>,
}

#[derive(Deserialize)]
struct WireWorkloadGroup {
    name: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    policy: WirePolicy,
}

impl From<WireWorkload> for Workload {
    fn from(wire: WireWorkload) -> Workload {
        let slim = |group: WireWorkloadGroup| WorkloadGroup {
            name: group.name,
            min_members: group.policy.min_members(),
        };
        Workload {
            metadata: wire.metadata,
            groups: wire.spec.pod_groups.into_iter().map(slim).collect(),
        }
    }
}
