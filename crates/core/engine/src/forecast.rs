//! A pool as it may be later: what planning policies search instead of the books.

use crate::attempt::{Attempt, Placement};
use crate::books::{FreeIndex, shares};
use crate::placement::Ground;
use crate::settings::CapacityMode;
use crate::state::State;
use deepshare_model::{
    Class, Demand, Devices, GpuTypeId, JobId, NodeId, PoolId, Resources, TenantId,
};

/// One node's free devices and host resources at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeContents {
    open: Devices,
    room: Resources,
}

/// What is free at some instant, or throughout some time: devices, host resources, quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// By node id from the pool's first on; nodes of other pools in between offer nothing.
    nodes: Vec<NodeContents>,
    /// Unused quota by tenant, class and GPU type; empty where quotas do not bind. Hard quotas are
    /// kept as those of guaranteed jobs.
    quota: Vec<u32>,
    gpus: u32,
}

impl Contents {
    /// Free devices in all.
    #[inline]
    pub fn free_gpus(&self) -> u32 {
        self.gpus
    }

    /// Keeps what is free here and there.
    pub fn intersect(&mut self, other: &Contents) {
        let mut gpus = 0;
        for (ours, theirs) in self.nodes.iter_mut().zip(&other.nodes) {
            ours.open = ours.open.intersect(theirs.open);
            gpus += ours.open.count();
            ours.room.cpu_milli = ours.room.cpu_milli.min(theirs.room.cpu_milli);
            ours.room.memory_mib = ours.room.memory_mib.min(theirs.room.memory_mib);
        }
        self.gpus = gpus;
        for (ours, &theirs) in self.quota.iter_mut().zip(&other.quota) {
            *ours = (*ours).min(theirs);
        }
    }

    fn put(&mut self, slot: usize, node: NodeContents) {
        let before = self.nodes[slot].open.count();
        self.nodes[slot] = node;
        self.gpus = self.gpus - before + node.open.count();
    }
}

/// What does not change with time: where nodes are and what they are.
#[derive(Clone, Debug)]
struct Frame {
    first: NodeId,
    /// GPU type and GPU memory, by slot; `None` for nodes of other pools.
    facts: Vec<Option<(GpuTypeId, u32)>>,
    types: usize,
    /// Quotas tell classes apart.
    by_class: bool,
}

impl Frame {
    fn slot(&self, node: NodeId) -> Option<usize> {
        let slot = node.index().checked_sub(self.first.index())?;
        self.facts.get(slot)?.map(|_| slot)
    }

    fn facts(&self, slot: usize) -> (GpuTypeId, u32) {
        self.facts[slot].expect("only nodes of the pool are looked at")
    }

    fn quota_slot(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> usize {
        let class = if self.by_class { class as usize } else { 0 };
        (tenant.index() * 2 + class) * self.types + gpu_type.index()
    }
}

/// A pool at some instant, in a form that can be searched as the books are.
#[derive(Clone, Debug)]
pub struct Forecast {
    frame: Frame,
    contents: Contents,
    indexes: Vec<FreeIndex>,
}

/// The forecast's nodes of one GPU type.
struct OfType<'a> {
    state: &'a State,
    forecast: &'a Forecast,
    index: &'a FreeIndex,
}

impl OfType<'_> {
    fn slot(&self, node: NodeId) -> usize {
        self.forecast.frame.slot(node).expect("the index holds nodes of the pool")
    }
}

impl Ground for OfType<'_> {
    fn index(&self) -> &FreeIndex {
        self.index
    }

    fn open(&self, node: NodeId) -> Devices {
        self.forecast.contents.nodes[self.slot(node)].open
    }

    fn host_room_for(&self, node: NodeId, per_gpu: Resources) -> u32 {
        shares(self.forecast.contents.nodes[self.slot(node)].room, per_gpu)
    }

    fn gpu_memory_mib(&self, node: NodeId) -> u32 {
        self.forecast.frame.facts(self.slot(node)).1
    }

    /// As now: who else comes and goes meanwhile is the driver's to know.
    fn admitted_gpus(&self, node: NodeId, demand: &Demand) -> u32 {
        self.state.admitted_gpus(node, demand)
    }
}

impl Forecast {
    /// The pool as it is now, proposals of the running draft included.
    pub fn now(state: &State, pool: PoolId) -> Forecast {
        let books = state.pool(pool);
        let first = books.nodes.first().copied().unwrap_or_default();
        let span = books.nodes.last().map_or(0, |last| last.index() - first.index() + 1);
        let nothing = NodeContents { open: Devices::NONE, room: Resources::default() };
        let types = books.free.len();
        let mut forecast = Forecast {
            frame: Frame {
                first,
                facts: vec![None; span],
                types,
                by_class: state.settings.capacity == CapacityMode::Elastic,
            },
            contents: Contents { nodes: vec![nothing; span], quota: Vec::new(), gpus: 0 },
            indexes: books.free.clone(),
        };
        for &id in &books.nodes {
            let node = &state.nodes[id.index()];
            let slot = id.index() - first.index();
            let contents = NodeContents { open: node.open(), room: node.host_room() };
            forecast.frame.facts[slot] = Some((node.spec.gpu_type, node.spec.gpu_memory_mib));
            forecast.contents.put(slot, contents);
        }
        if matches!(state.settings.capacity, CapacityMode::Hard | CapacityMode::Elastic) {
            let tenants = (0..state.tenant_count()).map(TenantId::from_index);
            let left = tenants.flat_map(|tenant| {
                let classes = [Class::Guaranteed, Class::BestEffort].into_iter();
                classes.flat_map(move |class| {
                    let types = (0..types).map(GpuTypeId::from_index);
                    types.map(move |gpu_type| {
                        let limit = state.limit(tenant, class, gpu_type);
                        limit.map_or(u32::MAX, |(most, used)| most.saturating_sub(used))
                    })
                })
            });
            forecast.contents.quota = left.collect();
        }
        forecast
    }

    /// What is free.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Shows other contents of the same pool.
    pub fn load(&mut self, contents: &Contents) {
        for slot in 0..contents.nodes.len() {
            let (before, after) = (self.contents.nodes[slot], contents.nodes[slot]);
            if before != after {
                self.put(slot, after);
            }
        }
        self.contents.quota.clone_from(&contents.quota);
    }

    fn put(&mut self, slot: usize, node: NodeContents) {
        let before = self.contents.nodes[slot].open.count();
        self.contents.put(slot, node);
        let id = NodeId::from_index(self.frame.first.index() + slot);
        let gpu_type = self.frame.facts(slot).0;
        self.indexes[gpu_type.index()].change(id, before, node.open.count());
    }

    /// Adds what an attempt holds, as when it ends. Devices that take no new work stay closed.
    pub fn release(&mut self, state: &State, attempt: &Attempt) {
        let spec = &state.job(attempt.job).spec;
        for slice in &attempt.placement {
            let Some(slot) = self.frame.slot(slice.node) else { continue };
            let mut node = self.contents.nodes[slot];
            let usable = state.nodes[slice.node.index()].usable();
            node.open = node.open.union(slice.devices.intersect(usable));
            node.room.add(attempt.per_gpu.times(slice.devices.count()));
            self.put(slot, node);
        }
        if self.contents.quota.is_empty() {
            return;
        }
        if let Some(slice) = attempt.placement.first() {
            let gpu_type = state.nodes[slice.node.index()].spec.gpu_type;
            for tenant in state.lineage(spec.tenant) {
                let slot = self.frame.quota_slot(tenant, attempt.charged, gpu_type);
                let most =
                    state.limit(tenant, attempt.charged, gpu_type).map_or(0, |limit| limit.0);
                let left = self.contents.quota[slot].saturating_add(attempt.gpus());
                self.contents.quota[slot] = left.min(most);
            }
        }
    }

    /// Takes what a job uses on a placement out of contents of this pool.
    pub fn occupy(&self, state: &State, job: JobId, placement: &Placement, of: &mut Contents) {
        let spec = &state.job(job).spec;
        for slice in placement {
            let slot = self.frame.slot(slice.node).expect("a plan is for nodes of its pool");
            let mut node = of.nodes[slot];
            let used = spec.demand.per_gpu.times(slice.devices.count());
            node.open = node.open.minus(slice.devices);
            node.room.cpu_milli = node.room.cpu_milli.saturating_sub(used.cpu_milli);
            node.room.memory_mib = node.room.memory_mib.saturating_sub(used.memory_mib);
            of.put(slot, node);
        }
        if of.quota.is_empty() {
            return;
        }
        if let Some(slice) = placement.first() {
            let gpu_type = state.nodes[slice.node.index()].spec.gpu_type;
            for tenant in state.lineage(spec.tenant) {
                let left = &mut of.quota[self.frame.quota_slot(tenant, spec.class, gpu_type)];
                *left = left.saturating_sub(spec.demand.gpus);
            }
        }
    }

    /// Takes what a job uses on a placement, as when it starts there.
    pub fn take(&mut self, state: &State, job: JobId, placement: &Placement) {
        let mut contents = self.contents.clone();
        self.occupy(state, job, placement, &mut contents);
        self.load(&contents);
    }

    /// Where the placer would put a job, its quota allowing.
    pub fn find(&self, state: &State, job: JobId) -> Option<Placement> {
        let spec = &state.job(job).spec;
        let demand: &Demand = &spec.demand;
        let types = self.indexes.iter().enumerate();
        types.into_iter().find_map(|(gpu_type, index)| {
            let gpu_type = GpuTypeId::from_index(gpu_type);
            let wanted = demand.gpu_type.is_none_or(|wanted| wanted == gpu_type);
            if !wanted || index.total() < demand.gpus {
                return None;
            }
            let slot = |tenant| self.frame.quota_slot(tenant, spec.class, gpu_type);
            let quota_left = |tenant| self.contents.quota[slot(tenant)];
            let binds = !self.contents.quota.is_empty();
            if binds && state.lineage(spec.tenant).any(|t| quota_left(t) < demand.gpus) {
                return None;
            }
            let ground = OfType { state, forecast: self, index };
            state.settings.placer.find(&ground, demand).ok()
        })
    }
}
