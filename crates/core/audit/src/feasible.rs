//! Whether a demand fits what nodes offer, by arithmetic on counts: no placement is made.

use crate::books::Books;
use crate::books::job::Job;
use crate::books::node::Node;
use crate::books::sites::devices_of;
use deepshare_engine::Placer;
use deepshare_model::{Demand, Devices, GpuTypeId, Layout, NodeId, Resources};

/// What a node offers.
pub(crate) struct Offer {
    pub devices: Devices,
    pub host: Resources,
    /// Members of the job that it admits; `u32::MAX`: any number.
    pub members: u32,
}

/// What a node would give to a job.
struct Room {
    /// Devices offered.
    usable: u32,
    /// As many of them as GPU memory, CPU, host memory and requirements allow.
    takes: u32,
}

impl Books {
    /// True if the job fits the nodes of its pool and one GPU model, where each offers so much.
    pub fn fits(
        &self,
        job: &Job,
        gpu_type: GpuTypeId,
        offer: impl Fn(NodeId, &Node) -> Offer,
    ) -> bool {
        let demand = &job.spec.demand;
        let nodes = self.nodes_of(job.pool, gpu_type);
        let rooms: Vec<Room> = nodes
            .map(|(id, node)| room(node, &offer(id, node), demand))
            .filter(|room| room.usable > 0)
            .collect();
        let size = self.node_size.get(&(job.pool, gpu_type)).copied().unwrap_or(0);
        match (demand.layout, self.settings.placer) {
            (Layout::Members(each), _) => {
                let each = each.max(1);
                let members: u32 = rooms.iter().map(|room| room.takes / each).sum();
                members >= demand.gpus.div_ceil(each)
            }
            (Layout::Consolidated, Placer::NodeOrder) => {
                rooms.iter().map(|room| room.takes).sum::<u32>() >= demand.gpus
            }
            (Layout::Consolidated, placer) => fits_consolidated(&rooms, demand.gpus, size, placer),
        }
    }
}

fn room(node: &Node, offer: &Offer, demand: &Demand) -> Room {
    let usable = offer.devices.count();
    let memory = node.spec.gpu_memory_mib;
    if memory != 0 && demand.gpu_memory_mib > memory {
        return Room { usable, takes: 0 };
    }
    let (each, all) = (demand.per_gpu, offer.host);
    let enough = |n: &u32| {
        each.cpu_milli.saturating_mul(u64::from(*n)) <= all.cpu_milli
            && each.memory_mib.saturating_mul(u64::from(*n)) <= all.memory_mib
    };
    let most = usable.min(devices_of(demand, offer.members));
    Room { usable, takes: (0..=most).rev().find(enough).unwrap_or(0) }
}

/// One node if it fits the largest, else whole nodes and at most one part of another.
fn fits_consolidated(rooms: &[Room], gpus: u32, size: u32, placer: Placer) -> bool {
    if rooms.iter().any(|room| room.takes >= gpus) {
        return true;
    }
    if size == 0 || gpus <= size {
        return false;
    }
    let (whole, rest) = ((gpus / size) as usize, gpus % size);
    let is_whole = |room: &&Room| room.takes == size;
    if rooms.iter().filter(is_whole).count() < whole {
        return false;
    }
    if rest == 0 {
        return true;
    }
    match placer {
        Placer::ConsolidateArtifact => {
            // The part goes to the node with most GPUs of those left, whatever it can take.
            let mut left_whole = whole;
            let left = rooms.iter().filter(|room| {
                let takes_whole = left_whole > 0 && is_whole(room);
                left_whole -= usize::from(takes_whole);
                !takes_whole
            });
            let next =
                left.reduce(|best, next| if next.usable > best.usable { next } else { best });
            next.is_some_and(|room| room.takes >= rest)
        }
        _ => rooms.iter().filter(|room| room.takes >= rest).count() > whole,
    }
}
