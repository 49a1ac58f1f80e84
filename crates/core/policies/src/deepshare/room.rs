//! Whether a demand would fit if some attempts were gone.
//!
//! Counts only: how many devices each node would give. The more attempts are gone the more fits,
//! so a set of victims from which each was tried to be spared once has no subset that suffices.

use deepshare_engine::{Node, State};
use deepshare_model::{AttemptId, Demand, Devices, GpuTypeId, Layout, NodeId, PoolId, Resources};
use std::collections::BTreeSet;

/// One demand on the nodes of one pool and GPU type.
pub(super) struct Room<'a> {
    state: &'a State,
    demand: Demand,
    /// GPUs of the largest node: what "a node" means to a wide job.
    size: u32,
    /// Nodes that change when attempts go.
    touched: Vec<NodeId>,
    /// What the others give as they are.
    rest: Count,
}

/// Nodes by what they would give.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Those that give all their GPUs.
    whole: u32,
    /// Those that give enough for what is left of a wide job beside whole nodes.
    part: u32,
    /// Those that take the whole job.
    single: u32,
    /// Members of a gang that find a place.
    members: u32,
}

/// How many of the demand's GPUs a node would give if some attempts were gone.
pub(super) fn given(
    state: &State,
    node: NodeId,
    demand: &Demand,
    gone: &impl Fn(AttemptId) -> bool,
) -> u32 {
    let admitted = state.admitted_gpus(node, demand);
    let node = &state.nodes()[node.index()];
    if admitted == 0 || !has_memory(node, demand) {
        return 0;
    }
    let mut devices = node.open();
    for device in node.obtainable().minus(devices).iter() {
        if node.residents(device).iter().all(|&id| gone(id)) {
            devices = devices.union(Devices(1 << device));
        }
    }
    if demand.per_gpu == Resources::default() {
        return devices.count().min(admitted);
    }
    let mut freed = Resources::default();
    for device in node.held().iter() {
        for &id in node.residents(device).iter().filter(|&&id| gone(id)) {
            freed.add(state.attempt(id).per_gpu);
        }
    }
    let host = node.host_room_with(freed);
    let most = devices.count().min(admitted);
    (0..=most).rev().find(|&n| demand.per_gpu.times(n).fits(host)).unwrap_or(0)
}

/// True if the node's GPUs have the memory asked for.
pub(super) fn has_memory(node: &Node, demand: &Demand) -> bool {
    let memory = node.spec.gpu_memory_mib;
    memory == 0 || demand.gpu_memory_mib <= memory
}

impl<'a> Room<'a> {
    /// The nodes as they are, of which those with a device of `attempts` may change.
    pub(super) fn new(
        state: &'a State,
        (pool, gpu_type): (PoolId, GpuTypeId),
        demand: &Demand,
        attempts: impl Iterator<Item = AttemptId>,
    ) -> Room<'a> {
        let placed = attempts.flat_map(|id| state.attempt(id).placement.iter());
        let touched: BTreeSet<NodeId> = placed.map(|slice| slice.node).collect();
        let size = state.pool(pool).obtainable(gpu_type).map_or(0, |index| index.levels());
        let mut room =
            Room { state, demand: *demand, size, touched: Vec::new(), rest: Count::default() };
        for &node in &state.pool(pool).nodes {
            if state.nodes()[node.index()].spec.gpu_type != gpu_type {
                continue;
            }
            match touched.contains(&node) {
                true => room.touched.push(node),
                false => room.rest = room.count(room.rest, node, &|_| false),
            }
        }
        room
    }

    /// True if the demand fits with these gone.
    pub(super) fn fits(&self, gone: impl Fn(AttemptId) -> bool) -> bool {
        let mut count = self.rest;
        for &node in &self.touched {
            count = self.count(count, node, &gone);
        }
        let Demand { gpus, layout, .. } = self.demand;
        match layout {
            Layout::Members(each) => count.members * each >= gpus,
            Layout::Consolidated => {
                let wide = gpus > self.size && self.size > 0;
                let (whole, left) = match wide {
                    true => (gpus / self.size, gpus % self.size),
                    false => (0, 0),
                };
                let part = left == 0 || count.part > whole;
                count.single > 0 || (wide && count.whole >= whole && part)
            }
        }
    }

    fn count(&self, so_far: Count, node: NodeId, gone: &impl Fn(AttemptId) -> bool) -> Count {
        let Demand { gpus, layout, .. } = self.demand;
        let given = given(self.state, node, &self.demand, gone);
        let left = gpus.checked_rem(self.size).unwrap_or(0);
        let members = match layout {
            Layout::Members(each) => given / each.max(1),
            Layout::Consolidated => 0,
        };
        Count {
            whole: so_far.whole + u32::from(given == self.size),
            part: so_far.part + u32::from(given >= left),
            single: so_far.single + u32::from(given >= gpus),
            members: so_far.members + members,
        }
    }
}
