//! Keys that need not be asked again yet.
//!
//! A key that was refused for want of devices is refused again until some node offers more than it
//! did; one that was refused by a quota, until its tenants use less. A policy that only ever places
//! what fits (and evicts what is reclaimable) may let such keys sleep: it then looks, round by
//! round, at the few keys for which something changed, and a job that joins a sleeping key costs
//! no round at all. What wakes a key errs on the side of waking it.

use crate::placement::Placer;
use crate::queue::{KeyId, SchedulingKey};
use crate::reason::Reason;
use crate::settings::CapacityMode;
use crate::state::State;
use deepshare_model::{Class, Demand, GpuTypeId, Layout, NodeId, PoolId, TenantId, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most that a node of one GPU type has come to offer since the last round.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Freed {
    open: u32,
    obtainable: u32,
}

/// A pool's keys, awake and asleep, by the class that their next start would be charged to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sleepers {
    awake: [BTreeSet<KeyId>; 2],
    quota: [BTreeMap<TenantId, BTreeSet<KeyId>>; 2],
    devices: [Vec<(Demand, BTreeSet<KeyId>)>; 2],
    freed: Vec<Freed>,
    /// Tenants that came to use less of their guarantee, where guaranteed jobs spill.
    freed_quotas: BTreeSet<TenantId>,
    /// When time alone may change what some sleeper was refused for.
    pub(crate) retry_at: Option<Time>,
    /// A round is under way: what its draft frees is not free yet.
    in_round: bool,
}

impl Sleepers {
    /// Keys with waiting jobs that are awake, charged to a class.
    pub(crate) fn awake(&self, charge: Class) -> impl Iterator<Item = KeyId> {
        self.awake[charge as usize].iter().copied()
    }

    pub(crate) fn is_awake(&self, key: KeyId) -> bool {
        self.awake.iter().any(|keys| keys.contains(&key))
    }

    pub(crate) fn note_freed(&mut self, tenant: TenantId) {
        self.freed_quotas.insert(tenant);
    }

    pub(crate) fn take_freed_quotas(&mut self) -> Vec<TenantId> {
        std::mem::take(&mut self.freed_quotas).into_iter().collect()
    }

    pub(crate) fn set_in_round(&mut self, in_round: bool) {
        self.in_round = in_round;
    }

    /// Notes that a node offers other numbers of devices than before.
    #[inline]
    pub(crate) fn note(&mut self, gpu_type: GpuTypeId, open: [u32; 2], obtainable: [u32; 2]) {
        if self.in_round || (open[1] <= open[0] && obtainable[1] <= obtainable[0]) {
            return;
        }
        if self.freed.len() <= gpu_type.index() {
            self.freed.resize(gpu_type.index() + 1, Freed::default());
        }
        let freed = &mut self.freed[gpu_type.index()];
        if open[1] > open[0] {
            freed.open = freed.open.max(open[1]);
        }
        if obtainable[1] > obtainable[0] {
            freed.obtainable = freed.obtainable.max(obtainable[1]);
        }
    }
}

impl State {
    /// Classes that a start of a key's jobs may be charged to.
    fn charges(&self, key: KeyId) -> impl Iterator<Item = Class> + use<> {
        let own = self.queues.key(key).class;
        let spills = own == Class::Guaranteed && self.spills;
        [Some(own), spills.then_some(Class::BestEffort)].into_iter().flatten()
    }

    /// Goes on under a policy that may charge guaranteed jobs to another class than before.
    pub(crate) fn set_spills(&mut self, spills: bool) {
        if self.spills == spills {
            return;
        }
        for pool in (0..self.pools.len()).map(PoolId::from_index) {
            self.wake_all_keys(pool);
            let filled: Vec<KeyId> = self.active_keys(pool).collect();
            filled.iter().for_each(|&key| self.key_filled(key, false));
            self.spills = spills;
            filled.iter().for_each(|&key| self.key_filled(key, true));
            self.spills = !spills;
        }
        self.spills = spills;
    }

    /// A key has waiting jobs again, or has none left.
    pub(crate) fn key_filled(&mut self, key: KeyId, filled: bool) {
        let pool = self.queues.key(key).pool.index();
        for charge in self.charges(key) {
            let asleep = self.queues.sleep(key)[charge as usize].is_some();
            let awake = &mut self.pools[pool].sleepers.awake[charge as usize];
            match filled && !asleep {
                true => awake.insert(key),
                false => awake.remove(&key),
            };
        }
    }

    /// Lets a key sleep, charged to a class, until what it was refused for changes: of some GPU
    /// types devices, of others quota.
    pub(crate) fn put_to_sleep(&mut self, key: KeyId, charge: Class, reason: Reason) {
        if self.queues.sleep(key)[charge as usize].is_some() {
            return;
        }
        let SchedulingKey { pool, tenant, demand, .. } = *self.queues.key(key);
        let types = (0..self.pools[pool.index()].usable.len()).map(GpuTypeId::from_index);
        let wanted = types.filter(|gpu_type| demand.gpu_type.is_none_or(|t| t == *gpu_type));
        let (mut for_quota, mut for_devices) = (false, false);
        for gpu_type in wanted {
            match self.admits((tenant, charge), gpu_type, demand.gpus) {
                Ok(()) => for_devices = true,
                Err(_) => for_quota = true,
            }
        }
        self.queues.sleep_mut(key)[charge as usize] = Some(reason);
        let sleepers = &mut self.pools[pool.index()].sleepers;
        sleepers.awake[charge as usize].remove(&key);
        if for_quota {
            sleepers.quota[charge as usize].entry(tenant).or_default().insert(key);
        }
        if for_devices || !for_quota {
            let by_demand = &mut sleepers.devices[charge as usize];
            match by_demand.binary_search_by(|(other, _)| other.cmp(&demand)) {
                Ok(at) => {
                    by_demand[at].1.insert(key);
                }
                Err(at) => by_demand.insert(at, (demand, BTreeSet::from([key]))),
            }
        }
    }

    /// A key may have slept for two causes; the other then wakes it once more for nothing.
    fn wake_key(&mut self, pool: usize, key: KeyId, charge: usize) {
        self.queues.sleep_mut(key)[charge] = None;
        if self.queues.has_jobs(key) {
            self.pools[pool].sleepers.awake[charge].insert(key);
        }
    }

    /// Wakes every key of a pool.
    pub(crate) fn wake_all_keys(&mut self, pool: PoolId) {
        for charge in 0..2 {
            let sleepers = &mut self.pools[pool.index()].sleepers;
            let by_quota = std::mem::take(&mut sleepers.quota[charge]);
            let by_devices = std::mem::take(&mut sleepers.devices[charge]);
            let keys = by_quota.into_values().chain(by_devices.into_iter().map(|(_, keys)| keys));
            for key in keys.flatten().collect::<Vec<_>>() {
                self.wake_key(pool.index(), key, charge);
            }
        }
    }

    /// What is worth asking for again in a round that begins now.
    pub(crate) fn wake_sleepers(&mut self, pool: PoolId) {
        let sleepers = &mut self.pools[pool.index()].sleepers;
        if sleepers.retry_at.is_some_and(|at| at <= self.now) {
            sleepers.retry_at = None;
            sleepers.freed.clear();
            self.wake_all_keys(pool);
        } else {
            self.wake_for_devices(pool);
        }
    }

    /// Wakes the keys that a smaller use of a tenant's quota may let start.
    pub(crate) fn wake_for_quota(&mut self, pool: PoolId, tenant: TenantId, charge: Class) {
        let everybody = self.tenants.entangled;
        if self.spills && charge == Class::Guaranteed {
            self.note_freed_quota(pool, tenant);
        }
        // Where quotas do not tell classes apart, either gives room to both.
        let both = everybody || self.settings.capacity != CapacityMode::Elastic;
        for charge in if both { 0..2 } else { charge as usize..charge as usize + 1 } {
            let by_tenant = &mut self.pools[pool.index()].sleepers.quota[charge];
            let woken: Vec<KeyId> = if everybody {
                std::mem::take(by_tenant).into_values().flatten().collect()
            } else {
                by_tenant.remove(&tenant).into_iter().flatten().collect()
            };
            for key in woken {
                self.wake_key(pool.index(), key, charge);
            }
        }
    }

    /// Notes that a tenant's guaranteed jobs may use more than before, and those of its relatives.
    pub(crate) fn note_freed_quota(&mut self, pool: PoolId, tenant: TenantId) {
        let freed = &mut self.pools[pool.index()].sleepers.freed_quotas;
        match self.tenants.entangled {
            true => freed.extend((0..self.tenants.all.len()).map(TenantId::from_index)),
            false => freed.extend([tenant]),
        }
    }

    /// Wakes the keys for which some node has come to offer enough since the last round.
    fn wake_for_devices(&mut self, pool: PoolId) {
        let sleepers = &mut self.pools[pool.index()].sleepers;
        let freed = std::mem::take(&mut sleepers.freed);
        if freed.iter().all(|freed| freed.open == 0 && freed.obtainable == 0) {
            sleepers.freed = freed;
            return;
        }
        for charge in [Class::Guaranteed, Class::BestEffort] {
            let by_demand =
                std::mem::take(&mut self.pools[pool.index()].sleepers.devices[charge as usize]);
            let (woken, asleep): (Vec<_>, Vec<_>) = by_demand
                .into_iter()
                .partition(|(demand, _)| self.may_fit(pool, charge, demand, &freed));
            self.pools[pool.index()].sleepers.devices[charge as usize] = asleep;
            for key in woken.into_iter().flat_map(|(_, keys)| keys) {
                self.wake_key(pool.index(), key, charge as usize);
            }
        }
    }

    /// Whether a demand that fitted nowhere may fit now.
    fn may_fit(&self, pool: PoolId, charge: Class, demand: &Demand, freed: &[Freed]) -> bool {
        let books = &self.pools[pool.index()];
        freed.iter().enumerate().any(|(index, freed)| {
            if demand.gpu_type.is_some_and(|wanted| wanted.index() != index) {
                return false;
            }
            // What is charged to a guarantee may evict.
            let (most, offers) = match charge {
                Class::Guaranteed => (freed.obtainable, &books.obtainable),
                Class::BestEffort => (freed.open, &books.free),
            };
            let Some(offers) = offers.get(index) else { return false };
            if most == 0 || offers.total() < demand.gpus {
                return false;
            }
            let size = offers.levels();
            match demand.layout {
                // First fit spreads anything over any nodes.
                _ if self.settings.placer == Placer::NodeOrder => true,
                Layout::Consolidated if demand.gpus > size => {
                    offers.nodes_with(size) >= demand.gpus / size
                }
                Layout::Consolidated => most >= demand.gpus,
                Layout::Members(_) => true,
            }
        })
    }

    /// Notes what a node offers beside what it offered.
    #[inline]
    pub(crate) fn note_offer(&mut self, id: NodeId, open: [u32; 2], obtainable: [u32; 2]) {
        let spec = &self.nodes[id.index()].spec;
        let (pool, gpu_type) = (spec.pool.index(), spec.gpu_type);
        self.pools[pool].sleepers.note(gpu_type, open, obtainable);
    }
}
