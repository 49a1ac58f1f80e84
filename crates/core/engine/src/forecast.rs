//! A pool's devices as they may be later: what planning policies search instead of the books.

use crate::attempt::{Attempt, Placement};
use crate::books::{FreeIndex, shares};
use crate::placement::Ground;
use crate::settings::EngineSettings;
use crate::state::State;
use deepshare_model::{Demand, Devices, GpuTypeId, NodeId, PoolId, Resources};

/// One node's free devices and host resources at some future instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeForecast {
    /// Free devices.
    pub open: Devices,
    /// Free CPU and host memory.
    pub room: Resources,
}

/// A pool at some future instant. Knows machines, not quotas.
#[derive(Clone, Debug)]
pub struct Forecast {
    first: NodeId,
    /// By node id from `first` on; nodes of other pools in between have no open device.
    nodes: Vec<NodeForecast>,
    facts: Vec<(GpuTypeId, u32)>,
    indexes: Vec<FreeIndex>,
}

struct OfType<'a> {
    forecast: &'a Forecast,
    index: &'a FreeIndex,
}

impl Ground for OfType<'_> {
    fn index(&self) -> &FreeIndex {
        self.index
    }

    fn open(&self, node: NodeId) -> Devices {
        self.forecast.nodes[self.forecast.slot(node)].open
    }

    fn host_room_for(&self, node: NodeId, per_gpu: Resources) -> u32 {
        shares(self.forecast.nodes[self.forecast.slot(node)].room, per_gpu)
    }

    fn gpu_memory_mib(&self, node: NodeId) -> u32 {
        self.forecast.facts[self.forecast.slot(node)].1
    }
}

impl Forecast {
    /// The pool as it is now, proposals of the running draft included.
    pub fn now(state: &State, pool: PoolId) -> Forecast {
        let books = state.pool(pool);
        let first = books.nodes.first().copied().unwrap_or_default();
        let span = books.nodes.last().map_or(0, |last| last.index() - first.index() + 1);
        let closed = NodeForecast { open: Devices::NONE, room: Resources::default() };
        let mut nodes = vec![closed; span];
        let mut facts = vec![(GpuTypeId(0), 0); span];
        for &id in &books.nodes {
            let node = &state.nodes[id.index()];
            let slot = id.index() - first.index();
            nodes[slot] = NodeForecast { open: node.open(), room: node.host_room() };
            facts[slot] = (node.spec.gpu_type, node.spec.gpu_memory_mib);
        }
        Forecast { first, nodes, facts, indexes: books.free.clone() }
    }

    /// A forecast of the same pool with other contents, for searching a window of time.
    pub fn with_nodes(&self, nodes: &[NodeForecast]) -> Forecast {
        let mut forecast = self.clone();
        for (slot, &node) in nodes.iter().enumerate() {
            forecast.put(slot, node);
        }
        forecast
    }

    /// Every node's contents, in node order.
    pub fn nodes(&self) -> &[NodeForecast] {
        &self.nodes
    }

    /// Free devices in all.
    pub fn free_gpus(&self) -> u32 {
        self.indexes.iter().map(FreeIndex::total).sum()
    }

    fn slot(&self, node: NodeId) -> usize {
        node.index() - self.first.index()
    }

    fn put(&mut self, slot: usize, node: NodeForecast) {
        let before = self.nodes[slot].open.count();
        self.nodes[slot] = node;
        let id = NodeId::from_index(self.first.index() + slot);
        let gpu_type = self.facts[slot].0;
        self.indexes[gpu_type.index()].change(id, before, node.open.count());
    }

    /// Adds what an attempt holds, as when it ends. Devices that no longer take work stay closed.
    pub fn release(&mut self, state: &State, attempt: &Attempt) {
        let per_gpu = state.job(attempt.job).spec.demand.per_gpu;
        for slice in &attempt.placement {
            let usable = state.nodes[slice.node.index()].usable();
            let within = slice.node >= self.first && self.slot(slice.node) < self.nodes.len();
            if within {
                self.give(slice.node, slice.devices.intersect(usable), per_gpu);
            }
        }
    }

    fn give(&mut self, node: NodeId, devices: Devices, per_gpu: Resources) {
        let slot = self.slot(node);
        let mut contents = self.nodes[slot];
        contents.open = contents.open.union(devices);
        contents.room.add(per_gpu.times(devices.count()));
        self.put(slot, contents);
    }

    /// Takes devices for a demand, as when it starts there.
    pub fn take(&mut self, demand: &Demand, placement: &Placement) {
        for slice in placement {
            let slot = self.slot(slice.node);
            let mut contents = self.nodes[slot];
            contents.open = contents.open.minus(slice.devices);
            let used = demand.per_gpu.times(slice.devices.count());
            contents.room.cpu_milli = contents.room.cpu_milli.saturating_sub(used.cpu_milli);
            contents.room.memory_mib = contents.room.memory_mib.saturating_sub(used.memory_mib);
            self.put(slot, contents);
        }
    }

    /// Where the placer would put the demand.
    pub fn find(&self, settings: &EngineSettings, demand: &Demand) -> Option<Placement> {
        self.indexes.iter().enumerate().find_map(|(gpu_type, index)| {
            let wanted = demand.gpu_type.is_none_or(|wanted| wanted.index() == gpu_type);
            let ground = OfType { forecast: self, index };
            wanted.then(|| settings.placer.find(&ground, demand).ok()).flatten()
        })
    }
}
