//! A node as the stream describes it, and who is on its devices.

use deepshare_engine::NodeCondition;
use deepshare_model::{AttemptId, Devices, NodeSpec, Resources};

/// A node and its devices.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub spec: NodeSpec,
    pub condition: NodeCondition,
    pub healthy: Devices,
    /// By device: the started attempts on it, oldest first.
    pub holders: Vec<Vec<AttemptId>>,
    /// By device: the reserved attempt it is promised to.
    pub claimant: Vec<Option<AttemptId>>,
}

/// Every device in exactly one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Held by a started attempt, on whatever node.
    pub held: Devices,
    /// Holders of these beyond the first of each.
    pub shared: u32,
    /// Usable, empty and promised.
    pub promised: Devices,
    /// Usable, empty and not promised.
    pub free: Devices,
    /// Empty and unusable.
    pub closed: Devices,
}

impl Node {
    pub fn new(spec: NodeSpec) -> Node {
        Node {
            condition: NodeCondition::Ready,
            healthy: Devices::first(spec.gpus),
            holders: vec![Vec::new(); spec.gpus as usize],
            claimant: vec![None; spec.gpus as usize],
            spec,
        }
    }

    /// Takes in more devices, all of them healthy, and other CPU and memory.
    pub fn resize(&mut self, gpus: u32, capacity: Resources) {
        let new = Devices::first(gpus).minus(self.all());
        self.healthy = self.healthy.union(new);
        self.holders.resize(gpus as usize, Vec::new());
        self.claimant.resize(gpus as usize, None);
        (self.spec.gpus, self.spec.capacity) = (gpus, capacity);
    }

    pub fn all(&self) -> Devices {
        Devices::first(self.spec.gpus)
    }

    /// Devices that could be placed on if the node were empty.
    pub fn usable(&self) -> Devices {
        match self.condition {
            NodeCondition::Ready => self.healthy,
            NodeCondition::Cordoned | NodeCondition::Lost => Devices::NONE,
        }
    }

    pub fn shares(&self) -> Shares {
        let held = with_holders(&self.holders);
        let holders: usize = self.holders.iter().map(Vec::len).sum();
        let shared = holders as u32 - held.count();
        let vacant = self.usable().minus(held);
        let promised = vacant.intersect(taken(&self.claimant));
        let closed = self.all().minus(held).minus(vacant);
        Shares { held, shared, promised, free: vacant.minus(promised), closed }
    }

    pub fn hold(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            let holders = &mut self.holders[device as usize];
            let at = holders.partition_point(|&holder| holder < attempt);
            holders.insert(at, attempt);
        }
    }

    pub fn vacate(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            self.holders[device as usize].retain(|&holder| holder != attempt);
        }
    }

    pub fn claim(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            self.claimant[device as usize] = Some(attempt);
        }
    }

    pub fn unclaim(&mut self, devices: Devices, attempt: AttemptId) {
        for device in devices.iter() {
            let claimant = &mut self.claimant[device as usize];
            if *claimant == Some(attempt) {
                *claimant = None;
            }
        }
    }
}

fn with_holders(holders: &[Vec<AttemptId>]) -> Devices {
    let bits = holders.iter().enumerate().filter(|(_, on)| !on.is_empty());
    Devices(bits.fold(0, |set, (device, _)| set | 1 << device))
}

fn taken(table: &[Option<AttemptId>]) -> Devices {
    let bits = table.iter().enumerate().filter(|(_, entry)| entry.is_some());
    Devices(bits.fold(0, |set, (device, _)| set | 1 << device))
}
