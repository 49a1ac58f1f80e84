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
use std::collections::BTreeSet;

/// The most that a node of one GPU type has come to offer since the last round.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Freed {
    open: u32,
    obtainable: u32,
}

/// What a sleeping key waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Sleep {
    /// It is awake.
    #[default]
    Awake,
    /// Devices.
    Devices,
    /// Quota of its tenants.
    Quota,
    /// Of some GPU types devices, of others quota.
    Either,
}

/// Whether a key is worth asking for, charged to one class.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rest {
    sleep: Sleep,
    /// It is in its pool's list of keys that are awake.
    listed: bool,
}

impl Rest {
    pub(crate) fn is_awake(self) -> bool {
        self.sleep == Sleep::Awake
    }

    /// It waits for devices, whatever else.
    fn is_hungry(self) -> bool {
        matches!(self.sleep, Sleep::Devices | Sleep::Either)
    }
}

/// Keys with the same demand.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kind {
    demand: Demand,
    keys: Vec<KeyId>,
    /// How many of them wait for devices, by the class charged.
    waiting: [u32; 2],
}

/// A pool's keys, and those of them that are worth asking for, by the class charged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sleepers {
    /// Keys that are awake, and some that were.
    awake: [Vec<KeyId>; 2],
    /// Every key of the pool by demand, in the order in which demands came up.
    kinds: Vec<Kind>,
    /// Every key of the pool by tenant.
    by_tenant: Vec<Vec<KeyId>>,
    freed: Vec<Freed>,
    /// Tenants that came to use less of their guarantee, where guaranteed jobs spill.
    freed_quotas: BTreeSet<TenantId>,
    /// When time alone may change what some sleeper charged to a guarantee was refused for.
    pub(crate) retry_at: Option<Time>,
    /// A round is under way: what its draft frees is not free yet.
    in_round: bool,
    /// Its policy lets keys sleep.
    in_use: bool,
}

impl Sleepers {
    pub(crate) fn note_freed(&mut self, tenant: TenantId) {
        self.freed_quotas.insert(tenant);
    }

    pub(crate) fn take_freed_quotas(&mut self) -> Vec<TenantId> {
        std::mem::take(&mut self.freed_quotas).into_iter().collect()
    }

    pub(crate) fn set_in_round(&mut self, in_round: bool) {
        self.in_round = in_round;
    }

    pub(crate) fn is_in_round(&self) -> bool {
        self.in_round
    }

    /// Notes that a node offers other numbers of devices than before.
    #[inline]
    fn note(&mut self, gpu_type: GpuTypeId, open: [u32; 2], obtainable: [u32; 2]) {
        if self.in_round || (open[1] <= open[0] && obtainable[1] <= obtainable[0]) {
            return;
        }
        let risen = |count: [u32; 2]| if count[1] > count[0] { count[1] } else { 0 };
        self.raise(gpu_type, risen(open), risen(obtainable));
    }

    fn raise(&mut self, gpu_type: GpuTypeId, open: u32, obtainable: u32) {
        if self.freed.len() <= gpu_type.index() {
            self.freed.resize(gpu_type.index() + 1, Freed::default());
        }
        let freed = &mut self.freed[gpu_type.index()];
        freed.open = freed.open.max(open);
        freed.obtainable = freed.obtainable.max(obtainable);
    }
}

const CHARGES: [Class; 2] = [Class::Guaranteed, Class::BestEffort];

impl State {
    /// The number of a key, which is listed with its kind if it is new.
    pub(crate) fn intern(&mut self, key: SchedulingKey) -> KeyId {
        let (id, fresh) = self.queues.intern(key);
        if fresh {
            let sleepers = &mut self.pools[key.pool.index()].sleepers;
            let kinds = &mut sleepers.kinds;
            let known = kinds.iter().position(|kind| kind.demand == key.demand);
            let kind = known.unwrap_or_else(|| {
                kinds.push(Kind { demand: key.demand, keys: Vec::new(), waiting: [0; 2] });
                kinds.len() - 1
            });
            kinds[kind].keys.push(id);
            self.queues.set_kind(id, kind);
            let tenants = sleepers.by_tenant.len().max(key.tenant.index() + 1);
            sleepers.by_tenant.resize_with(tenants, Vec::new);
            sleepers.by_tenant[key.tenant.index()].push(id);
        }
        id
    }

    /// Keys of a pool whose next job, charged to a class, is worth asking for: all that have
    /// waiting jobs, but those that sleep (see [`Draft::sleep`](crate::Draft::sleep)).
    pub fn awake_keys(&self, pool: PoolId, charge: Class) -> impl Iterator<Item = KeyId> {
        let listed = self.pools[pool.index()].sleepers.awake[charge as usize].iter().copied();
        listed.filter(move |&key| {
            let awake = self.queues.rest(key, charge).is_awake();
            awake && self.queues.head(key).is_some()
        })
    }

    /// Whether the next job of a key is worth asking for, charged to any class.
    pub(crate) fn is_awake(&self, key: KeyId) -> bool {
        let mut charges = self.charges(key);
        charges.any(|charge| self.queues.rest(key, charge).is_awake())
    }

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
        self.spills = spills;
        for pool in (0..self.pools.len()).map(PoolId::from_index) {
            self.wake_all_keys(pool);
        }
    }

    /// A key has waiting jobs again.
    pub(crate) fn key_filled(&mut self, key: KeyId) {
        for charge in self.charges(key) {
            if self.queues.rest(key, charge).is_awake() {
                self.list(key, charge);
            }
        }
    }

    fn list(&mut self, key: KeyId, charge: Class) {
        let pool = self.queues.key(key).pool.index();
        let rest = self.queues.rest_mut(key, charge);
        if !std::mem::replace(&mut rest.listed, true) {
            self.pools[pool].sleepers.awake[charge as usize].push(key);
        }
    }

    /// GPU types that would do for a key's jobs and of which its tenant has room for one more,
    /// charged to a class; a bit for each of the first 64.
    pub fn open_types(&self, key: KeyId, charge: Class) -> u64 {
        let SchedulingKey { pool, tenant, demand, .. } = *self.queues.key(key);
        let admits = |&gpu_type: &GpuTypeId| {
            let wanted = demand.gpu_type.is_none_or(|wanted| wanted == gpu_type);
            wanted && self.allows((tenant, charge), gpu_type, demand.gpus)
        };
        let types = self.pools[pool.index()].usable.len().min(64);
        let open = (0..types).map(GpuTypeId::from_index).filter(admits);
        open.fold(0, |set, gpu_type| set | 1 << gpu_type.index())
    }

    /// Lets a key sleep, charged to a class, until what it was refused for changes: of the GPU types
    /// in `open` devices, of others quota.
    pub(crate) fn put_to_sleep(&mut self, key: KeyId, charge: Class, open: u64, reason: Reason) {
        if !self.queues.rest(key, charge).is_awake() {
            return;
        }
        let SchedulingKey { pool, demand, .. } = *self.queues.key(key);
        let types = self.pools[pool.index()].usable.len();
        let wanted = match demand.gpu_type {
            Some(gpu_type) => u32::from(gpu_type.index() < types),
            None => types as u32,
        };
        let (for_devices, for_quota) = (open != 0 || types > 64, open.count_ones() < wanted);
        *self.queues.refused(key, charge) = Some(reason);
        let sleep = match (for_devices, for_quota) {
            (true, true) => Sleep::Either,
            (false, true) => Sleep::Quota,
            (_, false) => Sleep::Devices,
        };
        self.queues.rest_mut(key, charge).sleep = sleep;
        let sleepers = &mut self.pools[pool.index()].sleepers;
        sleepers.in_use = true;
        if sleep != Sleep::Quota {
            sleepers.kinds[self.queues.kind(key)].waiting[charge as usize] += 1;
        }
    }

    /// Numbers of GPUs that keys of a pool ask for that sleep for want of devices, charged to a class.
    pub fn hungry_sizes(&self, pool: PoolId, charge: Class) -> BTreeSet<u32> {
        let kinds = self.pools[pool.index()].sleepers.kinds.iter();
        let hungry = kinds.filter(|kind| kind.waiting[charge as usize] > 0);
        hungry.map(|kind| kind.demand.gpus).collect()
    }

    /// True if a key sleeps for want of devices, charged to a class: a partner may help.
    pub fn is_hungry(&self, key: KeyId, charge: Class) -> bool {
        self.queues.rest(key, charge).is_hungry()
    }

    fn wake_key(&mut self, key: KeyId, charge: Class) {
        let was_hungry = self.is_hungry(key, charge);
        self.queues.rest_mut(key, charge).sleep = Sleep::Awake;
        if was_hungry {
            let pool = self.queues.key(key).pool.index();
            let kind = self.queues.kind(key);
            self.pools[pool].sleepers.kinds[kind].waiting[charge as usize] -= 1;
        }
        if self.queues.head(key).is_some() {
            self.list(key, charge);
        }
    }

    /// Wakes those of some keys that sleep for one of these causes.
    fn wake_keys(&mut self, keys: &[KeyId], charge: Class, causes: [Sleep; 2]) {
        for &key in keys {
            let sleep = self.queues.rest(key, charge).sleep;
            if sleep == causes[0] || sleep == causes[1] {
                self.wake_key(key, charge);
            }
        }
    }

    /// Wakes every key of a pool: what they may hope for is not known any more either.
    pub(crate) fn wake_all_keys(&mut self, pool: PoolId) {
        self.pools[pool.index()].hosts.asks.forget();
        self.wake_charged(pool, &CHARGES);
    }

    /// Wakes every key of a pool, charged to some classes.
    fn wake_charged(&mut self, pool: PoolId, charges: &[Class]) {
        let by_tenant = std::mem::take(&mut self.pools[pool.index()].sleepers.by_tenant);
        for &key in by_tenant.iter().flatten() {
            for charge in self.charges(key).filter(|charge| charges.contains(charge)) {
                self.wake_key(key, charge);
            }
        }
        self.pools[pool.index()].sleepers.by_tenant = by_tenant;
    }

    /// What is worth asking for again in a round that begins now.
    pub(crate) fn wake_sleepers(&mut self, pool: PoolId) {
        let now = self.now;
        let sleepers = &mut self.pools[pool.index()].sleepers;
        if !sleepers.in_use {
            return;
        }
        if sleepers.retry_at.is_some_and(|at| at <= now) {
            sleepers.retry_at = None;
            self.wake_charged(pool, &[Class::Guaranteed]);
        }
        self.wake_for_devices(pool);
        for charge in CHARGES {
            let listed = &mut self.pools[pool.index()].sleepers.awake[charge as usize];
            let mut listed = std::mem::take(listed);
            listed.retain(|&key| {
                let awake = self.queues.rest(key, charge).is_awake();
                let keep = awake && self.queues.head(key).is_some();
                self.queues.rest_mut(key, charge).listed = keep;
                keep
            });
            self.pools[pool.index()].sleepers.awake[charge as usize] = listed;
        }
    }

    /// Wakes the keys that a smaller use of a tenant's quota may let start.
    pub(crate) fn wake_for_quota(&mut self, pool: PoolId, tenant: TenantId, charge: Class) {
        let everybody = self.tenants.entangled;
        if self.spills && charge == Class::Guaranteed {
            self.note_freed_quota(pool, tenant);
        }
        if !self.pools[pool.index()].sleepers.in_use {
            return;
        }
        // Where quotas do not tell classes apart, either gives room to both.
        let both = everybody || self.settings.capacity != CapacityMode::Elastic;
        let by_tenant = std::mem::take(&mut self.pools[pool.index()].sleepers.by_tenant);
        for of in CHARGES.into_iter().filter(|&of| both || of == charge) {
            let theirs = tenant.index()..tenant.index() + 1;
            let woken = if everybody { 0..by_tenant.len() } else { theirs };
            for keys in by_tenant.get(woken).into_iter().flatten() {
                self.wake_keys(keys, of, [Sleep::Quota, Sleep::Either]);
            }
        }
        self.pools[pool.index()].sleepers.by_tenant = by_tenant;
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
        if sleepers.freed.is_empty() {
            return;
        }
        let freed = std::mem::take(&mut sleepers.freed);
        for index in 0..sleepers.kinds.len() {
            for charge in CHARGES {
                let kind = &self.pools[pool.index()].sleepers.kinds[index];
                let waiting = kind.waiting[charge as usize] > 0;
                if !waiting || !self.may_fit(pool, charge, &kind.demand, &freed) {
                    continue;
                }
                let kinds = &mut self.pools[pool.index()].sleepers.kinds;
                let keys = std::mem::take(&mut kinds[index].keys);
                self.wake_keys(&keys, charge, [Sleep::Devices, Sleep::Either]);
                self.pools[pool.index()].sleepers.kinds[index].keys = keys;
            }
        }
    }

    /// Devices of nodes that were set aside are for everybody again.
    pub(crate) fn wake_for_nodes(&mut self, pool: PoolId, nodes: &[NodeId]) {
        for &id in nodes {
            let node = &self.nodes[id.index()];
            let (open, gpu_type) = (node.open().count(), node.spec.gpu_type);
            self.pools[pool.index()].sleepers.raise(gpu_type, open, 0);
            self.unblock(id);
        }
        self.wake_for_devices(pool);
    }

    /// Whether a demand that fitted nowhere may fit now.
    fn may_fit(&self, pool: PoolId, charge: Class, demand: &Demand, freed: &[Freed]) -> bool {
        let books = &self.pools[pool.index()];
        freed.iter().enumerate().any(|(index, freed)| {
            if demand.gpu_type.is_some_and(|wanted| wanted.index() != index) {
                return false;
            }
            // What is charged to a guarantee may evict. A device that could have been had by
            // evicting and is free now adds none, but the host resources beside it.
            let (most, offers) = match charge {
                Class::Guaranteed => (freed.obtainable.max(freed.open), &books.obtainable),
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

    /// Notes that a node has more CPU or memory beside the devices that it offers: those of who left
    /// may be promised already.
    pub(crate) fn note_room(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        let (open, obtainable) = (node.open().count(), node.obtainable().count());
        let (pool, gpu_type) = (node.spec.pool, node.spec.gpu_type);
        self.pools[pool.index()].sleepers.raise(gpu_type, open, obtainable);
        self.look_at_growth(pool);
    }

    /// Notes what a node offers beside what it offered.
    #[inline]
    pub(crate) fn note_offer(&mut self, id: NodeId, open: [u32; 2], obtainable: [u32; 2]) {
        let spec = &self.nodes[id.index()].spec;
        let (pool, gpu_type) = (spec.pool.index(), spec.gpu_type);
        self.pools[pool].sleepers.note(gpu_type, open, obtainable);
    }
}
