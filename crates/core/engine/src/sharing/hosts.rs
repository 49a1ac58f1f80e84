//! Who could take a partner.
//!
//! Hosts are kept by size, tenant and kind, so that a search looks only at those whose tenants would
//! let anybody join.

use super::asks::Asks;
use crate::attempt::{Attempt, Slice};
use crate::state::State;
use deepshare_model::{
    AttemptId, Class, GpuTypeId, Layout, NodeId, PoolId, ProfileClassId, TenantId, Time,
    TrustDomainId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What makes a tenant's hosts interchangeable: attempts that run alone and could take a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostKind {
    /// GPUs of the job; a partner has as many.
    pub gpus: u32,
    /// Of which type.
    pub gpu_type: GpuTypeId,
    /// Shape over nodes.
    pub layout: Layout,
    /// The job's profile.
    pub profile: ProfileClassId,
    /// As it was submitted.
    pub class: Class,
    /// Only jobs of the same domain may share with it.
    pub trust_domain: TrustDomainId,
    /// GPU memory it leaves on each of its devices, MiB; the most there is where nodes do not say.
    pub memory_left_mib: u32,
}

/// Hosts of one kind, by expected end.
type OfKind = (HostKind, BTreeSet<(Time, AttemptId)>);

/// Hosts of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OfSize {
    /// In order of kind; none is empty.
    by_tenant: BTreeMap<TenantId, Vec<OfKind>>,
    /// By tenant, how often one of them left or was taken, from 1: what was worked out before may be
    /// too much.
    losses: Vec<u32>,
}

impl OfSize {
    fn lose(&mut self, tenant: TenantId) {
        let tenants = self.losses.len().max(tenant.index() + 1);
        self.losses.resize(tenants, 1);
        let losses = &mut self.losses[tenant.index()];
        *losses = losses.checked_add(1).unwrap_or(1);
    }
}

/// A pool's hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hosts {
    by_size: BTreeMap<u32, OfSize>,
    /// Kinds that gained a host since the last round.
    fresh: BTreeSet<(HostKind, TenantId)>,
    /// Nodes that kept partners off hosts there for want of CPU, memory or a device in order.
    blocked: BTreeSet<NodeId>,
    /// Pairs to be broken up: the attempt that joined, and the one that was there.
    pub(crate) degraded: BTreeSet<(AttemptId, AttemptId)>,
    /// When pairs are to be looked at again, whether anybody waits or not.
    pub(crate) look_at: Option<Time>,
    /// Who looks for a partner.
    pub(crate) asks: Asks,
}

impl Hosts {
    fn insert(&mut self, kind: HostKind, tenant: TenantId, (end, attempt): (Time, AttemptId)) {
        let of_size = self.by_size.entry(kind.gpus).or_default();
        let kinds = of_size.by_tenant.entry(tenant).or_default();
        match kinds.binary_search_by(|(known, _)| known.cmp(&kind)) {
            Ok(at) => _ = kinds[at].1.insert((end, attempt)),
            Err(at) => kinds.insert(at, (kind, BTreeSet::from([(end, attempt)]))),
        }
        self.fresh.insert((kind, tenant));
    }

    fn remove(&mut self, kind: &HostKind, tenant: TenantId, (end, attempt): (Time, AttemptId)) {
        let Some(of_size) = self.by_size.get_mut(&kind.gpus) else { return };
        of_size.lose(tenant);
        let Some(kinds) = of_size.by_tenant.get_mut(&tenant) else { return };
        if let Ok(at) = kinds.binary_search_by(|(known, _)| known.cmp(kind)) {
            kinds[at].1.remove(&(end, attempt));
            if kinds[at].1.is_empty() {
                kinds.remove(at);
            }
        }
        if kinds.is_empty() {
            of_size.by_tenant.remove(&tenant);
        }
    }

    /// Asks for a look at the pairs; the earliest request counts.
    pub(crate) fn look_at(&mut self, at: Time) {
        self.look_at = Some(self.look_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Notes that a host is promised to somebody.
    pub(crate) fn note_taken(&mut self, gpus: u32, tenant: TenantId) {
        if let Some(of_size) = self.by_size.get_mut(&gpus) {
            of_size.lose(tenant);
        }
    }

    pub(crate) fn losses(&self, gpus: u32) -> &[u32] {
        self.by_size.get(&gpus).map_or(&[], |of_size| of_size.losses.as_slice())
    }

    pub(crate) fn take_fresh(&mut self) -> BTreeSet<(HostKind, TenantId)> {
        std::mem::take(&mut self.fresh)
    }

    /// Notes nodes that kept partners off.
    pub(crate) fn block(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        self.blocked.extend(nodes);
    }

    pub(crate) fn is_blocked(&self, node: NodeId) -> bool {
        !self.blocked.is_empty() && self.blocked.contains(&node)
    }
}

impl State {
    /// Sizes, in GPUs, of which a pool has hosts.
    pub fn host_sizes(&self, pool: PoolId) -> impl Iterator<Item = u32> {
        let sizes = self.pools[pool.index()].hosts.by_size.iter();
        sizes.filter(|(_, of_size)| !of_size.by_tenant.is_empty()).map(|(&gpus, _)| gpus)
    }

    /// Tenants with attempts of `gpus` GPUs that run alone and could take a partner.
    pub fn host_tenants(&self, pool: PoolId, gpus: u32) -> impl Iterator<Item = TenantId> {
        let of_size = self.pools[pool.index()].hosts.by_size.get(&gpus).into_iter();
        of_size.flat_map(|of_size| of_size.by_tenant.keys().copied())
    }

    /// A tenant's attempts of `gpus` GPUs that run alone and could take a partner, by kind, those
    /// expected to end first leading.
    pub fn hosts_of(
        &self,
        pool: PoolId,
        gpus: u32,
        tenant: TenantId,
    ) -> impl Iterator<Item = (&HostKind, &BTreeSet<(Time, AttemptId)>)> {
        let of_size = self.pools[pool.index()].hosts.by_size.get(&gpus);
        let kinds = of_size.and_then(|of_size| of_size.by_tenant.get(&tenant)).into_iter();
        kinds.flatten().map(|(kind, hosts)| (kind, hosts))
    }

    /// The same of every tenant.
    pub fn hosts(
        &self,
        pool: PoolId,
        gpus: u32,
    ) -> impl Iterator<Item = (&HostKind, &BTreeSet<(Time, AttemptId)>)> {
        let tenants = self.host_tenants(pool, gpus);
        tenants.flat_map(move |tenant| self.hosts_of(pool, gpus, tenant))
    }

    /// How often tenants have lost hosts of a size, by tenant; may be shorter.
    pub fn losses(&self, pool: PoolId, gpus: u32) -> &[u32] {
        self.pools[pool.index()].hosts.losses(gpus)
    }

    /// The kind of host an attempt is; `None` if it cannot take a partner.
    pub(crate) fn host_kind(&self, attempt: &Attempt) -> Option<HostKind> {
        if !self.shares || !attempt.is_evictable() || !attempt.beside.is_empty() {
            return None;
        }
        let spec = &self.job(attempt.job).spec;
        // Who was found with fewer devices than it asks for is nobody's equal.
        let whole = attempt.gpus() == spec.demand.gpus;
        let profile = spec.profile.filter(|_| spec.sharing.consent && whole)?;
        let first = attempt.placement.first()?;
        let needs = spec.demand.gpu_memory_mib;
        let mut memory_left_mib = u32::MAX;
        for slice in &attempt.placement {
            let memory = self.nodes[slice.node.index()].spec.gpu_memory_mib;
            // Where memory counts, a job that does not say what it needs shares with nobody.
            if memory > 0 {
                let left = memory.checked_sub(needs).filter(|_| needs > 0)?;
                memory_left_mib = memory_left_mib.min(left);
            }
        }
        Some(HostKind {
            gpus: spec.demand.gpus,
            gpu_type: self.nodes[first.node.index()].spec.gpu_type,
            layout: spec.demand.layout,
            profile,
            class: spec.class,
            trust_domain: spec.sharing.trust_domain,
            memory_left_mib,
        })
    }

    /// Keeps the index of hosts in step with an attempt.
    pub(crate) fn sync_host(
        &mut self,
        id: AttemptId,
        before: Option<(HostKind, Time)>,
        wanted: Option<(HostKind, Time)>,
    ) {
        let job = self.attempt(id).job;
        let (pool, tenant) = (self.pool_of(job).index(), self.job(job).spec.tenant);
        let pool = &mut self.pools[pool];
        if let Some((kind, end)) = before {
            pool.hosts.remove(&kind, tenant, (end, id));
        }
        if let Some((kind, end)) = wanted {
            pool.hosts.insert(kind, tenant, (end, id));
            // Somebody who waits may join it.
            pool.dirty |= pool.waiting > 0;
        }
    }

    /// True if a partner could be started on the devices of an attempt: they work, they are of its
    /// pool still, nobody else is promised them, and whoever is there stays.
    pub fn takes_partner(&self, host: &Attempt) -> bool {
        let pool = self.pool_of(host.job);
        let open = |slice: &Slice| {
            let node = &self.nodes[slice.node.index()];
            let ours = node.spec.pool == pool && !node.is_held_back();
            ours && slice.devices.minus(node.unclaimed()).is_empty()
        };
        host.is_evictable() && host.beside.is_empty() && host.placement.iter().all(open)
    }

    /// A node may have come to let partners join hosts there, if it did not: they are looked at again.
    pub(crate) fn unblock(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        if !self.pools[node.spec.pool.index()].hosts.is_blocked(id) {
            return;
        }
        let host = |resident: AttemptId| {
            let attempt = self.attempt(resident);
            let (kind, _) = attempt.counted.host?;
            Some((kind, self.job(attempt.job).spec.tenant))
        };
        let found: Vec<(HostKind, TenantId)> =
            node.everyone().into_iter().filter_map(host).collect();
        let pool = &mut self.pools[node.spec.pool.index()];
        pool.hosts.blocked.remove(&id);
        // What a draft frees is not free yet.
        pool.dirty |= !found.is_empty() && pool.waiting > 0 && !pool.sleepers.is_in_round();
        pool.hosts.fresh.extend(found);
    }
}
