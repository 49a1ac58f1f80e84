//! What is kept of a node, with what its pods use.

use super::Resident;
use crate::accounting::Amounts;
use crate::watched::{CsiDriver, HostPort, Labels, Node, ResourceList, Taint};
use deepshare_kube_api::names;
use std::collections::BTreeMap;

/// A node and what its pods use of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeFacts {
    /// False once it is gone, or while only pods on it are known.
    pub present: bool,
    pub name: Box<str>,
    pub labels: Labels,
    pub taints: Box<[Taint]>,
    pub cordoned: bool,
    pub ready: bool,
    pub allocatable: ResourceList,
    pub drivers: Box<[CsiDriver]>,
    /// What all its pods use.
    pub used: Amounts,
    /// CPU and memory of pods that the engine did not place.
    pub others_use: Amounts,
    pub ports: BTreeMap<HostPort, u32>,
    /// Number of pods on it by claim.
    pub claims: BTreeMap<Box<str>, u32>,
}

impl NodeFacts {
    /// Takes over what the node now is; what its pods use stays.
    pub fn set(&mut self, node: &Node) {
        self.present = true;
        self.name = node.metadata.name.clone();
        self.labels = node.metadata.labels.clone();
        self.taints = node.spec.taints.clone();
        self.cordoned = node.spec.unschedulable;
        self.ready = node.status.ready;
        self.allocatable = node.status.allocatable.clone();
    }

    pub fn add(&mut self, pod: &Resident) {
        for (name, amount) in pod.requests.iter() {
            self.used.add(name, amount);
            if !pod.ours {
                self.others_use.add(name, amount);
            }
        }
        pod.ports.iter().for_each(|port| *self.ports.entry(port.clone()).or_default() += 1);
        pod.claims.iter().for_each(|claim| *self.claims.entry(claim.clone()).or_default() += 1);
    }

    pub fn remove(&mut self, pod: &Resident) {
        let amounts = Amounts::from(&pod.requests);
        self.used.subtract(&amounts);
        if !pod.ours {
            self.others_use.subtract(&amounts);
        }
        pod.ports.iter().for_each(|port| release(&mut self.ports, port));
        pod.claims.iter().for_each(|claim| release(&mut self.claims, claim));
    }

    /// Allocatable and not used.
    pub fn free(&self, resource: &str) -> u64 {
        self.allocatable.get(resource).unwrap_or(0).saturating_sub(self.used.get(resource))
    }

    /// The value of a label that says which place it is in.
    pub fn place(&self, topology_key: &str) -> Option<&str> {
        self.labels.get(topology_key).filter(|_| self.present)
    }

    /// No more pods than this can be there: each needs a GPU, or a slot of one.
    pub fn gpu_slots(&self) -> u32 {
        let kinds = [names::GPU, names::GPU_SLOT, names::NVIDIA_GPU];
        let sum: u64 = kinds.iter().filter_map(|kind| self.allocatable.get(kind)).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// True if the port is taken: an address that is not given stands for all of them.
    pub fn port_is_taken(&self, wanted: &HostPort) -> bool {
        let same_number = self.ports.keys().filter(|taken| taken.port == wanted.port);
        same_number.filter(|taken| taken.protocol == wanted.protocol).any(|taken| {
            taken.address.is_empty() || wanted.address.is_empty() || taken.address == wanted.address
        })
    }
}

fn release<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
