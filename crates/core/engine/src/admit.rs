//! Quotas: who may use how much, in each capacity mode.

use crate::reason::Reason;
use crate::settings::CapacityMode;
use deepshare_model::{Class, GpuTypeId, TenantId, TenantSpec};
use serde::{Deserialize, Serialize};

/// A tenant's terms and what it uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tenant {
    pub(crate) spec: TenantSpec,
    /// GPUs held or promised, by class and GPU type; those of its children included.
    used: [Vec<u32>; 2],
}

/// Every tenant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tenants {
    pub(crate) all: Vec<Tenant>,
}

impl Tenants {
    /// Sets a tenant's terms. True if it has another parent than before. A parent that would close
    /// a circle counts as none.
    pub(crate) fn set(&mut self, id: TenantId, mut spec: TenantSpec) -> bool {
        if spec.parent.is_some_and(|parent| self.lineage(parent).any(|above| above == id)) {
            spec.parent = None;
        }
        match self.all.get_mut(id.index()) {
            Some(tenant) => {
                let moved = tenant.spec.parent != spec.parent;
                tenant.spec = spec;
                moved
            }
            None => {
                assert_eq!(id.index(), self.all.len(), "tenant ids are issued in order");
                self.all.push(Tenant { spec, used: Default::default() });
                // Children may have come before it.
                true
            }
        }
    }

    /// Forgets what everybody uses, to be charged anew.
    pub(crate) fn clear_use(&mut self) {
        for tenant in &mut self.all {
            tenant.used = Default::default();
        }
    }

    pub(crate) fn spec(&self, id: TenantId) -> &TenantSpec {
        &self.all[id.index()].spec
    }

    /// GPUs of a type that a tenant holds or is promised, both classes.
    pub(crate) fn used(&self, id: TenantId, gpu_type: GpuTypeId) -> u32 {
        let tenant = &self.all[id.index()];
        tenant.used.iter().map(|by_type| by_type.get(gpu_type.index()).copied().unwrap_or(0)).sum()
    }

    /// The tenant and its ancestors, nearest first, as far as they are known.
    pub(crate) fn lineage(&self, id: TenantId) -> impl Iterator<Item = TenantId> {
        let known = move |id: &TenantId| id.index() < self.all.len();
        let first = Some(id).filter(known);
        std::iter::successors(first, move |id| self.all[id.index()].spec.parent.filter(known))
    }

    /// The tenant and ancestors that use more of a type than their quota.
    pub(crate) fn overdrawn(
        &self,
        id: TenantId,
        gpu_type: GpuTypeId,
    ) -> impl Iterator<Item = TenantId> {
        let over = move |&id: &TenantId| self.used(id, gpu_type) > self.spec(id).quota.of(gpu_type);
        self.lineage(id).filter(over)
    }

    pub(crate) fn charge(&mut self, id: TenantId, class: Class, gpu_type: GpuTypeId, gpus: u32) {
        let lineage: Vec<TenantId> = self.lineage(id).collect();
        for tenant in lineage {
            let by_type = &mut self.all[tenant.index()].used[class as usize];
            if by_type.len() <= gpu_type.index() {
                by_type.resize(gpu_type.index() + 1, 0);
            }
            by_type[gpu_type.index()] += gpus;
        }
    }

    pub(crate) fn refund(&mut self, id: TenantId, class: Class, gpu_type: GpuTypeId, gpus: u32) {
        let lineage: Vec<TenantId> = self.lineage(id).collect();
        for tenant in lineage {
            self.all[tenant.index()].used[class as usize][gpu_type.index()] -= gpus;
        }
    }

    /// Whether `gpus` more of a type are within every quota that binds.
    pub(crate) fn admits(
        &self,
        mode: CapacityMode,
        id: TenantId,
        gpu_type: GpuTypeId,
        gpus: u32,
    ) -> Result<(), Reason> {
        match mode {
            CapacityMode::Partition | CapacityMode::Pool => Ok(()),
            CapacityMode::Hard => {
                // What can never be is said before what cannot be now.
                for tenant in self.lineage(id) {
                    let quota = self.spec(tenant).quota.of(gpu_type);
                    if gpus > quota {
                        return Err(Reason::LargerThanQuota { tenant, need: gpus, quota });
                    }
                }
                for tenant in self.lineage(id) {
                    let quota = self.spec(tenant).quota.of(gpu_type);
                    let used = self.used(tenant, gpu_type);
                    if used + gpus > quota {
                        let need = gpus;
                        return Err(Reason::OverQuota { tenant, gpu_type, need, used, quota });
                    }
                }
                Ok(())
            }
        }
    }
}
