//! A pool: nodes that share one queue.

use crate::books::FreeIndex;
use crate::queue::KeyId;
use crate::reason::Reason;
use crate::sharing::hosts::Hosts;
use crate::sleepers::Sleepers;
use deepshare_model::{AttemptId, GpuTypeId, JobId, NodeId, NodeSpec, TenantId, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A pool's nodes, waiting keys and live attempts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pool {
    /// Its nodes, in node order.
    pub nodes: BTreeSet<NodeId>,
    /// Free devices, by GPU type.
    pub(crate) free: Vec<FreeIndex>,
    /// Devices free or reclaimable, by GPU type.
    pub(crate) obtainable: Vec<FreeIndex>,
    /// Devices that an empty pool would offer, by GPU type.
    pub(crate) usable: Vec<FreeIndex>,
    /// Keys with waiting jobs.
    pub(crate) active_keys: BTreeSet<KeyId>,
    /// Waiting jobs in all.
    pub(crate) waiting: u32,
    /// Attempts that hold or are promised devices, oldest first.
    pub(crate) live: BTreeSet<AttemptId>,
    /// Those of them that are on their way out.
    pub(crate) ending: BTreeSet<AttemptId>,
    /// Attempts that can be evicted for a guaranteed job, by expected end.
    pub(crate) reclaimable: BTreeSet<(Time, AttemptId)>,
    /// Those of them who share their devices with nobody, or only with others of them: one for all
    /// who share the same, the first to end, by GPU type and when that is expected.
    pub(crate) parties: BTreeSet<(GpuTypeId, Time, AttemptId)>,
    /// Guaranteed jobs' attempts charged as best-effort, by tenant and submission.
    pub(crate) spilled: BTreeSet<(TenantId, Time, AttemptId)>,
    /// Something changed since its last round.
    pub(crate) dirty: bool,
    /// Its policy asked for a round then.
    pub(crate) wake_at: Option<Time>,
    /// Attempts that hold less than their jobs ask for, by when they may grow.
    pub(crate) shrunk: BTreeSet<(Time, AttemptId)>,
    /// When it is to be looked at who of them can.
    pub(crate) grow_at: Option<Time>,
    pub(crate) guard: Option<Guard>,
    /// No gang needs a guard before.
    pub(crate) guard_idle_until: Time,
    pub(crate) sleepers: Sleepers,
    pub(crate) hosts: Hosts,
    pub(crate) reasons: Reasons,
}

/// Nodes set aside for a waiting gang that would starve otherwise: as what runs there ends, only
/// the gang, or whoever its policy lets pass, is placed there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The gang.
    pub job: JobId,
    /// Its nodes.
    pub nodes: Vec<NodeId>,
    /// When they were chosen.
    pub since: Time,
    /// When they are expected to be empty.
    pub expected: Time,
}

/// What the last round said about the jobs it left waiting, kept by equivalence class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reasons {
    rest: Option<Reason>,
    tenants: Vec<(TenantId, Reason)>,
    keys: Vec<(KeyId, Reason)>,
    #[serde(with = "as_pairs")]
    jobs: BTreeMap<JobId, Reason>,
}

impl Reasons {
    pub(crate) fn clear(&mut self) {
        self.rest = None;
        self.tenants.clear();
        self.keys.clear();
        self.jobs.clear();
    }

    pub(crate) fn set_rest(&mut self, reason: Reason) {
        self.rest = Some(reason);
    }

    pub(crate) fn set_tenant(&mut self, tenant: TenantId, reason: Reason) {
        self.tenants.push((tenant, reason));
    }

    pub(crate) fn set_key(&mut self, key: KeyId, reason: Reason) {
        self.keys.push((key, reason));
    }

    pub(crate) fn set_job(&mut self, job: JobId, reason: Reason) {
        self.jobs.insert(job, reason);
    }

    /// True if some job is said to lack CPU or memory only.
    pub(crate) fn lack_host(&self) -> bool {
        let tenants = self.tenants.iter().map(|(_, reason)| reason);
        let keys = self.keys.iter().map(|(_, reason)| reason);
        let mut all = self.jobs.values().chain(keys).chain(tenants).chain(&self.rest);
        all.any(Reason::lacks_host)
    }

    /// The most specific thing said, the last one where several are.
    pub(crate) fn of(&self, job: JobId, key: KeyId, tenant: TenantId) -> Reason {
        let last = |said: &[(KeyId, Reason)]| {
            said.iter().rev().find(|(k, _)| *k == key).map(|(_, reason)| reason.clone())
        };
        let tenants =
            || self.tenants.iter().rev().find(|(t, _)| *t == tenant).map(|(_, r)| r.clone());
        self.jobs
            .get(&job)
            .cloned()
            .or_else(|| last(&self.keys))
            .or_else(tenants)
            .or_else(|| self.rest.clone())
            .unwrap_or(Reason::NotConsidered)
    }
}

/// JSON maps have string keys; ids are not strings, so the map is written as pairs.
mod as_pairs {
    use super::{BTreeMap, JobId, Reason};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<JobId, Reason>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<JobId, Reason>, D::Error> {
        Ok(Vec::<(JobId, Reason)>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl Pool {
    /// Counts a node among the pool's; what it offers is for the books to say.
    pub(crate) fn admit(&mut self, node: NodeId, spec: &NodeSpec) {
        self.nodes.insert(node);
        let types = self.free.len().max(spec.gpu_type.index() + 1);
        self.free.resize_with(types, FreeIndex::default);
        self.usable.resize_with(types, FreeIndex::default);
        self.obtainable.resize_with(types, FreeIndex::default);
        self.make_room(spec.gpu_type, spec.gpus);
    }

    /// Makes room in the indexes of a GPU type for nodes of this size.
    pub(crate) fn make_room(&mut self, gpu_type: GpuTypeId, gpus: u32) {
        for indexes in [&mut self.free, &mut self.usable, &mut self.obtainable] {
            indexes[gpu_type.index()].make_room(gpus);
        }
    }

    /// True if a round could change anything: jobs wait, or pairs are to be looked at or broken up.
    pub(crate) fn has_work(&self) -> bool {
        self.waiting > 0 || !self.hosts.degraded.is_empty() || self.hosts.look_at.is_some()
    }

    /// When a round is due, if nothing happens before.
    pub(crate) fn due(&self) -> Option<Time> {
        [self.wake_at, self.sleepers.retry_at, self.hosts.look_at].into_iter().flatten().min()
    }

    /// Nodes set aside for a gang.
    pub fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }

    /// The instant before which no gang needs nodes set aside, as its policy found.
    pub fn guard_idle_until(&self) -> Time {
        self.guard_idle_until
    }

    /// Free devices of a GPU type.
    pub fn free(&self, gpu_type: GpuTypeId) -> Option<&FreeIndex> {
        self.free.get(gpu_type.index())
    }

    /// Devices of a GPU type that are free, or could be freed for a guaranteed job.
    pub fn obtainable(&self, gpu_type: GpuTypeId) -> Option<&FreeIndex> {
        self.obtainable.get(gpu_type.index())
    }

    /// Free devices of every GPU type.
    pub fn free_gpus(&self) -> u32 {
        self.free.iter().map(FreeIndex::total).sum()
    }

    /// Devices an empty pool would offer.
    pub fn usable_gpus(&self) -> u32 {
        self.usable.iter().map(FreeIndex::total).sum()
    }

    /// Attempts that hold or are promised devices.
    pub fn live_attempts(&self) -> usize {
        self.live.len()
    }

    /// Waiting jobs.
    pub fn waiting_jobs(&self) -> u32 {
        self.waiting
    }
}
