//! Whether a job could ever run, worked out from nodes and quotas alone.

use crate::books::Books;
use crate::books::job::Job;
use crate::books::node::Node;
use crate::feasible::Offer;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, Reason};
use deepshare_model::{Class, GpuTypeId, JobId, NodeId, PoolId, TenantId};

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
            Reason::NotAdmitted { need, nodes, admitting } => {
                let demand = &job.spec.demand;
                let here = || self.types_for(job).flat_map(|g| self.nodes_of(job.pool, g));
                let takes = |id: NodeId| self.sites.said(demand, id) > 0;
                let counts = (here().count(), here().filter(|(id, _)| takes(*id)).count());
                if (need, nodes as usize, admitting as usize) != (job.gpus(), counts.0, counts.1) {
                    return falsely("it or the pool has other figures");
                }
                let mut types = self.types_for(job);
                if !types.any(|gpu_type| self.fits_empty(job, gpu_type, false)) {
                    return falsely("it would not fit on nodes that admit it either");
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
            Reason::LendingLimit { need, left } => {
                let mut most = self.types_for(job).filter_map(|g| self.lent_at_most(job, g));
                if need != job.gpus() || need <= left || most.all(|m| m != u64::from(left)) {
                    return falsely("others lend another number of GPUs");
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
            let lent = self.lent_at_most(job, gpu_type);
            let lends = lent.is_none_or(|most| u64::from(job.gpus()) <= most);
            !quotas.iter().any(binds) && lends && self.fits_empty(job, gpu_type, true)
        })
    }

    /// GPUs of a type that a best-effort job could have in an empty pool: its tenant's own, those
    /// promised to nobody, and what each other tenant lends. `None` where lending is not limited.
    fn lent_at_most(&self, job: &Job, gpu_type: GpuTypeId) -> Option<u64> {
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        let tenants: Vec<_> = self.tenants.specs.iter().enumerate().collect();
        let limited = tenants.iter().any(|(_, spec)| spec.lending_limit.is_some());
        if !elastic || !limited || job.spec.class == Class::Guaranteed {
            return None;
        }
        let own = |id: usize| {
            let quota = self.tenants.quota(TenantId::from_index(id), gpu_type);
            let of_children =
                tenants.iter().filter(|(_, spec)| spec.parent == Some(TenantId::from_index(id)));
            let of_children: u32 = of_children.map(|(_, spec)| spec.quota.of(gpu_type)).sum();
            u64::from(quota.saturating_sub(of_children))
        };
        let here = || tenants.iter().filter(|(_, spec)| spec.pool == job.pool);
        let promised: u64 = here().map(|&(id, _)| own(id)).sum();
        let unpromised = u64::from(self.offered(job.pool, gpu_type)).saturating_sub(promised);
        let others = here().filter(|(id, _)| *id != job.spec.tenant.index());
        let lent = others.map(|&(id, spec)| {
            let most = spec.lending_limit.map_or(u64::MAX, u64::from);
            own(id).min(most)
        });
        Some(own(job.spec.tenant.index()) + unpromised + lent.sum::<u64>())
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
        self.nodes_of(pool, gpu_type).map(|(_, node)| node.usable().count()).sum()
    }

    pub fn nodes_of(
        &self,
        pool: PoolId,
        gpu_type: GpuTypeId,
    ) -> impl Iterator<Item = (NodeId, &Node)> {
        let of = move |node: &Node| node.spec.pool == pool && node.spec.gpu_type == gpu_type;
        let all = self.nodes.iter().enumerate().filter(move |(_, node)| of(node));
        all.map(|(index, node)| (NodeId::from_index(index), node))
    }

    /// True if the job fits the empty nodes; on those that do not admit it, too, unless `admitted`.
    fn fits_empty(&self, job: &Job, gpu_type: GpuTypeId, admitted: bool) -> bool {
        let offer = |id: NodeId, node: &Node| Offer {
            devices: node.usable(),
            host: node.spec.capacity,
            members: match admitted {
                true => self.sites.said(&job.spec.demand, id),
                false => u32::MAX,
            },
        };
        self.fits(job, gpu_type, offer)
    }
}
