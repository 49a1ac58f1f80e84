//! Tenants and what they use, their children included.

use deepshare_model::{Class, GpuTypeId, TenantId, TenantSpec};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tenants {
    pub specs: Vec<TenantSpec>,
    used: BTreeMap<(TenantId, Class, GpuTypeId), u32>,
}

impl Tenants {
    pub fn get(&self, tenant: TenantId) -> Option<&TenantSpec> {
        self.specs.get(tenant.index())
    }

    /// The tenant and its ancestors, nearest first, each once.
    pub fn lineage(&self, tenant: TenantId) -> Vec<TenantId> {
        let mut line = Vec::new();
        let mut next = Some(tenant);
        while let Some(tenant) = next.filter(|tenant| !line.contains(tenant)) {
            let Some(spec) = self.get(tenant) else { break };
            line.push(tenant);
            next = spec.parent;
        }
        line
    }

    /// GPUs used in both classes.
    pub fn used(&self, tenant: TenantId, gpu_type: GpuTypeId) -> u32 {
        let of = |class| self.used_by_class(tenant, class, gpu_type);
        of(Class::Guaranteed) + of(Class::BestEffort)
    }

    pub fn used_by_class(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        self.used.get(&(tenant, class, gpu_type)).copied().unwrap_or(0)
    }

    /// What a class may use: the quota, or so many times the quota.
    pub fn cap(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        let quota = self.quota(tenant, gpu_type);
        let milli = self.get(tenant).map_or(0, |spec| spec.best_effort_milli);
        match class {
            Class::Guaranteed => quota,
            Class::BestEffort => (u64::from(quota) * u64::from(milli) / 1_000) as u32,
        }
    }

    pub fn quota(&self, tenant: TenantId, gpu_type: GpuTypeId) -> u32 {
        self.get(tenant).map_or(0, |spec| spec.quota.of(gpu_type))
    }

    /// The GPU type of which a tenant was promised most.
    pub fn largest(&self, tenant: TenantId) -> GpuTypeId {
        self.get(tenant).map_or(GpuTypeId::default(), |spec| spec.quota.largest())
    }

    pub fn charge(&mut self, (tenant, class): (TenantId, Class), gpu_type: GpuTypeId, gpus: u32) {
        for tenant in self.lineage(tenant) {
            *self.used.entry((tenant, class, gpu_type)).or_default() += gpus;
        }
    }

    pub fn refund(&mut self, (tenant, class): (TenantId, Class), gpu_type: GpuTypeId, gpus: u32) {
        for tenant in self.lineage(tenant) {
            *self.used.entry((tenant, class, gpu_type)).or_default() -= gpus;
        }
    }

    /// Starts the sums afresh, for when the tree changed.
    pub fn recount(&mut self, charges: impl Iterator<Item = ((TenantId, Class), GpuTypeId, u32)>) {
        self.used.clear();
        for (payer, gpu_type, gpus) in charges {
            self.charge(payer, gpu_type, gpus);
        }
    }
}
