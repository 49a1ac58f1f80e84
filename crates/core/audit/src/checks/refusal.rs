//! Whether a job could ever run, worked out from nodes and quotas alone.

use crate::books::Books;
use crate::books::job::Job;
use crate::books::node::Node;
use crate::feasible::Offer;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, Reason};
use deepshare_model::{GpuTypeId, JobId, PoolId, TenantId};

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
    pub fn types_for(&self, job: &Job) -> impl Iterator<Item = GpuTypeId> {
        let (pool, wanted) = (job.pool, job.spec.demand.gpu_type);
        let known = self.node_size.keys().filter(move |&&(at, _)| at == pool);
        known.map(|&(_, gpu_type)| gpu_type).filter(move |&g| wanted.is_none_or(|w| w == g))
    }

    fn offered(&self, pool: PoolId, gpu_type: GpuTypeId) -> u32 {
        self.nodes_of(pool, gpu_type).map(|node| node.usable().count()).sum()
    }

    pub fn nodes_of(&self, pool: PoolId, gpu_type: GpuTypeId) -> impl Iterator<Item = &Node> {
        let of = move |node: &&Node| node.spec.pool == pool && node.spec.gpu_type == gpu_type;
        self.nodes.iter().filter(of)
    }

    fn fits_empty(&self, job: &Job, gpu_type: GpuTypeId) -> bool {
        let offer = |node: &Node| Offer { devices: node.usable(), host: node.spec.capacity };
        self.fits(job, gpu_type, offer)
    }
}
