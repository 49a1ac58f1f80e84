//! The books on nodes and devices. Every change of who holds what goes through here.

use deepshare_model::{AttemptId, Devices, NodeId, NodeSpec, Resources, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Whether a node can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeCondition {
    /// Takes new work.
    Ready,
    /// Runs what it has, takes nothing new.
    Cordoned,
    /// Gone.
    Lost,
}

/// A node and who holds its devices.
///
/// Residency is many-to-many: a device has any number of residents, an attempt any number of
/// devices. Without sharing there is at most one resident a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    /// As described by its owner.
    pub spec: NodeSpec,
    /// Usable or not.
    pub condition: NodeCondition,
    /// Devices that work.
    pub healthy: Devices,
    /// Devices without resident, healthy or not.
    pub(crate) vacant: Devices,
    /// Devices promised to a reserved attempt.
    pub(crate) claimed: Devices,
    /// Devices whose residents can all be evicted for a guaranteed job.
    pub(crate) reclaimable: Devices,
    /// When the last of its residents is expected to leave; past where it has outlived that.
    pub(crate) empties_at: Time,
    /// That is out of date.
    pub(crate) emptying_changed: bool,
    /// Set aside in the round under way: nothing is placed there.
    #[serde(skip)]
    held_back: bool,
    /// Attempts on each device.
    residents: Vec<Vec<AttemptId>>,
    /// CPU left when all that is promised has started; below zero while victims still hold theirs.
    room_cpu_milli: i64,
    /// Host memory left, likewise.
    room_memory_mib: i64,
}

impl Node {
    pub(crate) fn new(spec: NodeSpec) -> Node {
        let all = Devices::first(spec.gpus);
        Node {
            condition: NodeCondition::Ready,
            healthy: all,
            vacant: all,
            claimed: Devices::NONE,
            reclaimable: Devices::NONE,
            empties_at: Time::ZERO,
            emptying_changed: false,
            held_back: false,
            residents: vec![Vec::new(); spec.gpus as usize],
            room_cpu_milli: spec.capacity.cpu_milli as i64,
            room_memory_mib: spec.capacity.memory_mib as i64,
            spec,
        }
    }

    /// Takes in more devices, all of them vacant and healthy, and other host resources.
    pub(crate) fn resize(&mut self, gpus: u32, capacity: Resources) {
        let new = Devices::first(gpus).minus(Devices::first(self.spec.gpus));
        self.healthy = self.healthy.union(new);
        self.vacant = self.vacant.union(new);
        self.residents.resize(gpus as usize, Vec::new());
        self.give_host(capacity);
        self.take_host(self.spec.capacity);
        (self.spec.gpus, self.spec.capacity) = (gpus, capacity);
    }

    /// Devices on which something can be placed now.
    #[inline]
    pub fn open(&self) -> Devices {
        match self.condition {
            _ if self.held_back => Devices::NONE,
            NodeCondition::Ready => self.vacant.intersect(self.healthy).minus(self.claimed),
            NodeCondition::Cordoned | NodeCondition::Lost => Devices::NONE,
        }
    }

    /// Devices on which a guaranteed job could be placed now, if need be by evicting.
    #[inline]
    pub fn obtainable(&self) -> Devices {
        match self.condition {
            _ if self.held_back => Devices::NONE,
            NodeCondition::Ready => {
                let reclaimed = self.reclaimable.intersect(self.healthy).minus(self.claimed);
                self.open().union(reclaimed)
            }
            NodeCondition::Cordoned | NodeCondition::Lost => Devices::NONE,
        }
    }

    /// Devices on which something could be placed if the node were empty.
    #[inline]
    pub fn usable(&self) -> Devices {
        match self.condition {
            NodeCondition::Ready => self.healthy,
            NodeCondition::Cordoned | NodeCondition::Lost => Devices::NONE,
        }
    }

    /// Devices with residents beside whom something could be placed, if they agree.
    pub fn shareable(&self) -> Devices {
        match self.held_back {
            true => Devices::NONE,
            false => self.unclaimed().minus(self.vacant),
        }
    }

    /// Devices that work and are promised to nobody, whoever is on them.
    pub(crate) fn unclaimed(&self) -> Devices {
        self.usable().minus(self.claimed)
    }

    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back
    }

    pub(crate) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Attempts on a device.
    pub fn residents(&self, device: u32) -> &[AttemptId] {
        &self.residents[device as usize]
    }

    /// Attempts on its devices, each once.
    pub fn everyone(&self) -> BTreeSet<AttemptId> {
        self.held().iter().flat_map(|device| self.residents(device)).copied().collect()
    }

    /// When the last of its residents is expected to leave, as of the last
    /// [`Draft::refresh_emptying`](crate::Draft::refresh_emptying): an instant in the past for one
    /// that has outlived its estimate, the end of time for one that nobody has estimated.
    pub fn empties_at(&self) -> Time {
        self.empties_at
    }

    /// Devices with at least one resident.
    pub fn held(&self) -> Devices {
        Devices::first(self.spec.gpus).minus(self.vacant)
    }

    /// How many GPUs the host resources left are enough for, at `per_gpu` each.
    #[inline]
    pub fn host_room_for(&self, per_gpu: Resources) -> u32 {
        shares(self.host_room(), per_gpu)
    }

    /// CPU and host memory left.
    pub fn host_room(&self) -> Resources {
        let room = |left: i64| left.max(0) as u64;
        Resources { cpu_milli: room(self.room_cpu_milli), memory_mib: room(self.room_memory_mib) }
    }

    /// CPU and host memory left once so much is given back; what is promised beyond what there is
    /// takes its share of that first.
    pub fn host_room_with(&self, given_back: Resources) -> Resources {
        let room = |left: i64, more: u64| left.saturating_add_unsigned(more).max(0) as u64;
        Resources {
            cpu_milli: room(self.room_cpu_milli, given_back.cpu_milli),
            memory_mib: room(self.room_memory_mib, given_back.memory_mib),
        }
    }

    /// CPU and host memory left, below zero while victims still hold what is promised.
    pub(crate) fn host_balance(&self) -> (i64, i64) {
        (self.room_cpu_milli, self.room_memory_mib)
    }

    /// How many GPUs the host resources of the empty node are enough for, at `per_gpu` each.
    pub fn host_capacity_for(&self, per_gpu: Resources) -> u32 {
        shares(self.spec.capacity, per_gpu)
    }

    /// True if more host resources are promised than there are until victims are gone.
    pub(crate) fn host_overdrawn(&self) -> bool {
        self.room_cpu_milli < 0 || self.room_memory_mib < 0
    }

    pub(crate) fn take_host(&mut self, amount: Resources) {
        self.room_cpu_milli -= amount.cpu_milli as i64;
        self.room_memory_mib -= amount.memory_mib as i64;
    }

    pub(crate) fn give_host(&mut self, amount: Resources) {
        self.room_cpu_milli += amount.cpu_milli as i64;
        self.room_memory_mib += amount.memory_mib as i64;
    }

    pub(crate) fn move_in(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            // In order of id, whoever was moved out and in again meanwhile.
            let residents = &mut self.residents[device as usize];
            let at = residents.partition_point(|&resident| resident < attempt);
            residents.insert(at, attempt);
        }
        self.vacant = self.vacant.minus(devices);
    }

    pub(crate) fn move_out(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            let residents = &mut self.residents[device as usize];
            residents.retain(|&resident| resident != attempt);
            if residents.is_empty() {
                self.vacant = self.vacant.union(Devices(1 << device));
            }
        }
    }
}

/// How many times `each` fits into `amount`.
#[inline]
pub(crate) fn shares(amount: Resources, each: Resources) -> u32 {
    let share = |amount: u64, each: u64| {
        amount.checked_div(each).map_or(u32::MAX, |n| n.min(u64::from(u32::MAX)) as u32)
    };
    share(amount.cpu_milli, each.cpu_milli).min(share(amount.memory_mib, each.memory_mib))
}

/// A set of nodes as a bit set: constant-time change, word-wise search in node order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    pub(crate) fn insert(&mut self, node: NodeId) {
        let (word, bit) = (node.index() / 64, node.index() % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        self.words[node.index() / 64] &= !(1 << (node.index() % 64));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            Devices(word).iter().map(move |bit| NodeId((index * 64) as u32 + bit))
        })
    }
}

/// Nodes of one pool and GPU type by the number of devices they offer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FreeIndex {
    by_count: Vec<NodeSet>,
    nodes: Vec<u32>,
    total: u32,
}

impl FreeIndex {
    /// Devices offered in all.
    #[inline]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Most devices that one node offers.
    pub fn largest(&self) -> u32 {
        (1..self.nodes.len()).rev().find(|&n| self.nodes[n] > 0).unwrap_or(0) as u32
    }

    /// Makes room for nodes of this size.
    pub(crate) fn make_room(&mut self, size: u32) {
        let levels = self.by_count.len().max(size as usize + 1);
        self.by_count.resize_with(levels, NodeSet::default);
        self.nodes.resize(levels, 0);
    }

    /// Size of the largest node so far.
    pub fn levels(&self) -> u32 {
        self.by_count.len().saturating_sub(1) as u32
    }

    /// Number of nodes that offer exactly `count` devices.
    pub fn nodes_with(&self, count: u32) -> u32 {
        self.nodes.get(count as usize).copied().unwrap_or(0)
    }

    /// The nodes that offer exactly `count` devices, in node order.
    pub fn at(&self, count: u32) -> impl Iterator<Item = NodeId> {
        let filled = self.nodes_with(count) > 0;
        self.by_count.get(count as usize).filter(|_| filled).into_iter().flat_map(NodeSet::iter)
    }

    pub(crate) fn change(&mut self, node: NodeId, before: u32, after: u32) {
        if before == after {
            return;
        }
        if before > 0 {
            self.by_count[before as usize].remove(node);
            self.nodes[before as usize] -= 1;
        }
        if after > 0 {
            self.by_count[after as usize].insert(node);
            self.nodes[after as usize] += 1;
        }
        self.total = self.total - before + after;
    }
}
