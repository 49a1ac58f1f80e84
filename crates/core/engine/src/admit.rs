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
        self.used_by_class(id, Class::Guaranteed, gpu_type)
            + self.used_by_class(id, Class::BestEffort, gpu_type)
    }

    /// GPUs of a type that a tenant holds or is promised in one class.
    pub(crate) fn used_by_class(&self, id: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        let by_type = &self.all[id.index()].used[class as usize];
        by_type.get(gpu_type.index()).copied().unwrap_or(0)
    }

    /// What a tenant may use of a type in one class: its quota, or so many times its quota.
    fn cap(&self, id: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        let spec = self.spec(id);
        let quota = spec.quota.of(gpu_type);
        match class {
            Class::Guaranteed => quota,
            Class::BestEffort => {
                let cap = u64::from(quota) * u64::from(spec.best_effort_milli) / 1_000;
                u32::try_from(cap).unwrap_or(u32::MAX)
            }
        }
    }

    /// What a tenant may still be given of a type in one class.
    pub(crate) fn allowance(
        &self,
        mode: CapacityMode,
        (id, class): (TenantId, Class),
        gpu_type: GpuTypeId,
    ) -> u32 {
        let left = |tenant: TenantId| match mode {
            CapacityMode::Partition | CapacityMode::Pool => u32::MAX,
            CapacityMode::Hard => {
                let quota = self.spec(tenant).quota.of(gpu_type);
                quota.saturating_sub(self.used(tenant, gpu_type))
            }
            CapacityMode::Elastic => {
                let used = self.used_by_class(tenant, class, gpu_type);
                self.cap(tenant, class, gpu_type).saturating_sub(used)
            }
        };
        self.lineage(id).map(left).min().unwrap_or(u32::MAX)
    }

    /// The tenant and its ancestors, nearest first, as far as they are known.
    pub(crate) fn lineage(&self, id: TenantId) -> impl Iterator<Item = TenantId> {
        let known = move |id: &TenantId| id.index() < self.all.len();
        let first = Some(id).filter(known);
        std::iter::successors(first, move |id| self.all[id.index()].spec.parent.filter(known))
    }

    /// The tenant and ancestors that use more of a type than they may: of both classes together
    /// where quotas are hard, of one class where they are elastic.
    pub(crate) fn overdrawn(
        &self,
        mode: CapacityMode,
        (id, class): (TenantId, Class),
        gpu_type: GpuTypeId,
    ) -> impl Iterator<Item = TenantId> {
        let over = move |&id: &TenantId| match mode {
            CapacityMode::Partition | CapacityMode::Pool => false,
            CapacityMode::Hard => self.used(id, gpu_type) > self.spec(id).quota.of(gpu_type),
            CapacityMode::Elastic => {
                self.used_by_class(id, class, gpu_type) > self.cap(id, class, gpu_type)
            }
        };
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
        (id, class): (TenantId, Class),
        gpu_type: GpuTypeId,
        gpus: u32,
    ) -> Result<(), Reason> {
        match mode {
            CapacityMode::Elastic => {
                let need = gpus;
                // What can never be is said before what cannot be now.
                for tenant in self.lineage(id) {
                    let quota = self.cap(tenant, class, gpu_type);
                    if need > quota {
                        return Err(Reason::LargerThanQuota { tenant, need, quota });
                    }
                }
                for tenant in self.lineage(id) {
                    let quota = self.cap(tenant, class, gpu_type);
                    let used = self.used_by_class(tenant, class, gpu_type);
                    if used + need > quota {
                        return Err(Reason::OverQuota { tenant, gpu_type, need, used, quota });
                    }
                }
                Ok(())
            }
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
