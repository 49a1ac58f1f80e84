//! Tenants and what they use, their children included.

use deepshare_model::{GpuTypeId, TenantId, TenantSpec};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tenants {
    pub specs: Vec<TenantSpec>,
    used: BTreeMap<(TenantId, GpuTypeId), u32>,
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

    pub fn used(&self, tenant: TenantId, gpu_type: GpuTypeId) -> u32 {
        self.used.get(&(tenant, gpu_type)).copied().unwrap_or(0)
    }

    pub fn quota(&self, tenant: TenantId, gpu_type: GpuTypeId) -> u32 {
        self.get(tenant).map_or(0, |spec| spec.quota.of(gpu_type))
    }

    pub fn charge(&mut self, tenant: TenantId, gpu_type: GpuTypeId, gpus: u32) {
        for tenant in self.lineage(tenant) {
            *self.used.entry((tenant, gpu_type)).or_default() += gpus;
        }
    }

    pub fn refund(&mut self, tenant: TenantId, gpu_type: GpuTypeId, gpus: u32) {
        for tenant in self.lineage(tenant) {
            *self.used.entry((tenant, gpu_type)).or_default() -= gpus;
        }
    }

    /// Starts the sums afresh, for when the tree changed.
    pub fn recount(&mut self, charges: impl Iterator<Item = (TenantId, GpuTypeId, u32)>) {
        self.used.clear();
        for (tenant, gpu_type, gpus) in charges {
            self.charge(tenant, gpu_type, gpus);
        }
    }
}
