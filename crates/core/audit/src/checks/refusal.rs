//! Whether a job could ever run, worked out from nodes and quotas alone.

use crate::books::Books;
use crate::books::job::Job;
use crate::books::node::Node;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, Placer, Reason};
use deepshare_model::{Demand, GpuTypeId, JobId, Layout, PoolId, TenantId};

/// What an empty node would give to a job.
struct Room {
    /// Usable devices.
    usable: u32,
    /// As many of them as GPU memory, CPU and host memory allow.
    takes: u32,
}

impl Books {
    pub fn check_refusal(&self, id: JobId, reason: &Reason) -> Result<(), Violation> {
        let job = self.job(id)?;
        let falsely =
            |truth| Err(Violation::FalseRefusal { job: id, reason: reason.clone(), truth });
        if job.ended.is_some() {
            return falsely("it is over");
        }
        if job.live.is_some() {
            return falsely("it has an attempt");
        }
        if self.could_run(job) {
            return falsely("an empty pool would take it");
        }
        match *reason {
            Reason::LargerThanPool { need, pool } => {
                let most = self.types_for(job).map(|gpu_type| self.offered(job.pool, gpu_type));
                if need != job.gpus() || pool != most.max().unwrap_or(0) {
                    return falsely("it or the pool has other figures");
                }
            }
            Reason::LargerThanQuota { tenant, need, quota } => {
                let binds = self.tenants.lineage(job.spec.tenant).contains(&tenant)
                    && self
                        .types_for(job)
                        .any(|g| self.largest_share(tenant, job, g) == Some(quota));
                if !binds {
                    return falsely("no such quota binds it");
                }
                if need != job.gpus() || need <= quota {
                    return falsely("it is not larger than the quota");
                }
            }
            _ => return falsely("the reason is none to keep it from ever running"),
        }
        Ok(())
    }

    /// True if the job could run on its pool's nodes if they were empty, within its quotas.
    pub fn could_run(&self, job: &Job) -> bool {
        self.types_for(job).any(|gpu_type| {
            let quotas = self.tenants.lineage(job.spec.tenant);
            let binds = |&tenant: &TenantId| {
                self.largest_share(tenant, job, gpu_type).is_some_and(|most| job.gpus() > most)
            };
            !quotas.iter().any(binds) && self.fits_empty(job, gpu_type)
        })
    }

    /// Most GPUs that a job's class may use of a tenant's quota; `None` where quotas do not bind.
    fn largest_share(&self, tenant: TenantId, job: &Job, gpu_type: GpuTypeId) -> Option<u32> {
        match self.settings.capacity {
            CapacityMode::Partition | CapacityMode::Pool => None,
            CapacityMode::Hard => Some(self.tenants.quota(tenant, gpu_type)),
            CapacityMode::Elastic => Some(self.tenants.cap(tenant, job.spec.class, gpu_type)),
        }
    }

    /// GPU models of the job's pool that would do.
    fn types_for(&self, job: &Job) -> impl Iterator<Item = GpuTypeId> {
        let (pool, wanted) = (job.pool, job.spec.demand.gpu_type);
        let known = self.node_size.keys().filter(move |&&(at, _)| at == pool);
        known.map(|&(_, gpu_type)| gpu_type).filter(move |&g| wanted.is_none_or(|w| w == g))
    }

    fn offered(&self, pool: PoolId, gpu_type: GpuTypeId) -> u32 {
        self.nodes_of(pool, gpu_type).map(|node| node.usable().count()).sum()
    }

    fn nodes_of(&self, pool: PoolId, gpu_type: GpuTypeId) -> impl Iterator<Item = &Node> {
        let of = move |node: &&Node| node.spec.pool == pool && node.spec.gpu_type == gpu_type;
        self.nodes.iter().filter(of)
    }

    fn fits_empty(&self, job: &Job, gpu_type: GpuTypeId) -> bool {
        let demand = &job.spec.demand;
        let nodes = self.nodes_of(job.pool, gpu_type);
        let rooms: Vec<Room> =
            nodes.map(|node| room(node, demand)).filter(|room| room.usable > 0).collect();
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

fn room(node: &Node, demand: &Demand) -> Room {
    let usable = node.usable().count();
    let memory = node.spec.gpu_memory_mib;
    if memory != 0 && demand.gpu_memory_mib > memory {
        return Room { usable, takes: 0 };
    }
    let (each, all) = (demand.per_gpu, node.spec.capacity);
    let enough = |n: &u32| {
        each.cpu_milli.saturating_mul(u64::from(*n)) <= all.cpu_milli
            && each.memory_mib.saturating_mul(u64::from(*n)) <= all.memory_mib
    };
    Room { usable, takes: (0..=usable).rev().find(enough).unwrap_or(0) }
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
