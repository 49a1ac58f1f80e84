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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGang {
    min_count: u32,
}

impl From<WireGroup> for PodGroup {
    fn from(wire: WireGroup) -> PodGroup {
        let of_policy = wire.spec.scheduling_policy.gang.map(|gang| gang.min_count);
        PodGroup { metadata: wire.metadata, min_members: wire.spec.min_member.or(of_policy) }
    }
}
