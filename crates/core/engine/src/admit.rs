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
    /// What one tenant uses may bind another: some have parents, or lend less than all they idle.
    pub(crate) entangled: bool,
    /// Some tenant lends less than all it does not use.
    pub(crate) limit_lending: bool,
}

impl Tenants {
    /// Sets a tenant's terms. True if it has another parent than before. A parent that would close
    /// a circle counts as none.
    pub(crate) fn set(&mut self, id: TenantId, mut spec: TenantSpec) -> bool {
        if spec.parent.is_some_and(|parent| self.lineage(parent).any(|above| above == id)) {
            spec.parent = None;
        }
        let moved = match self.all.get_mut(id.index()) {
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
        };
        self.limit_lending = self.all.iter().any(|t| t.spec.lending_limit.is_some());
        let related = self.all.iter().any(|tenant| tenant.spec.parent.is_some());
        self.entangled = related || self.limit_lending;
        moved
    }

    /// GPUs of a type that best-effort jobs could still be lent if `gpus` more were charged to a
    /// tenant, below zero if that is too many. A tenant's best-effort jobs use its own idle quota
    /// first and borrow the rest: from capacity that is promised to nobody, and from each other
    /// tenant's idle quota up to its lending limit. A parent's own is what its children leave.
    pub(crate) fn left_to_borrow(
        &self,
        borrower: TenantId,
        gpu_type: GpuTypeId,
        gpus: u32,
        capacity: u32,
    ) -> i64 {
        let used = |class: Class| move |id| self.used_by_class(id, class, gpu_type);
        let guaranteed = self.own(used(Class::Guaranteed));
        let best_effort = self.own(used(Class::BestEffort));
        self.to_borrow((borrower, gpus), gpu_type, capacity, &guaranteed, &best_effort)
    }

    /// GPUs of a type that a tenant's best-effort jobs may use if nobody uses anything.
    pub(crate) fn most_to_borrow(
        &self,
        borrower: TenantId,
        gpu_type: GpuTypeId,
        capacity: u32,
    ) -> i64 {
        let nothing = vec![0; self.all.len()];
        self.to_borrow((borrower, 0), gpu_type, capacity, &nothing, &nothing)
            + self.own_idle(borrower, gpu_type)
    }

    /// What of an idle tenant's own quota it does not lend, and could use itself.
    fn own_idle(&self, id: TenantId, gpu_type: GpuTypeId) -> i64 {
        let quota = self.own(|id| self.spec(id).quota.of(gpu_type))[id.index()];
        quota - quota.min(self.lends(id))
    }

    fn lends(&self, id: TenantId) -> i64 {
        self.spec(id).lending_limit.map_or(i64::MAX, i64::from)
    }

    /// An amount of each tenant less that of its children, which is part of it; not below zero.
    fn own(&self, amount: impl Fn(TenantId) -> u32) -> Vec<i64> {
        let ids = || (0..self.all.len()).map(TenantId::from_index);
        let mut own: Vec<i64> = ids().map(|id| i64::from(amount(id))).collect();
        for id in ids() {
            if let Some(parent) = self.spec(id).parent.filter(|p| p.index() < self.all.len()) {
                own[parent.index()] -= i64::from(amount(id));
            }
        }
        own.into_iter().map(|own| own.max(0)).collect()
    }

    fn to_borrow(
        &self,
        (borrower, gpus): (TenantId, u32),
        gpu_type: GpuTypeId,
        capacity: u32,
        guaranteed: &[i64],
        best_effort: &[i64],
    ) -> i64 {
        let pool = self.spec(borrower).pool;
        let quotas = self.own(|id| self.spec(id).quota.of(gpu_type));
        let (mut promised, mut lent, mut borrowed) = (0i64, 0i64, 0i64);
        for (index, &quota) in quotas.iter().enumerate() {
            let id = TenantId::from_index(index);
            if self.spec(id).pool != pool {
                continue;
            }
            let idle = (quota - guaranteed[index]).max(0);
            let more = if id == borrower { i64::from(gpus) } else { 0 };
            let best_effort = best_effort[index] + more;
            let own = idle.min(best_effort);
            promised += quota;
            lent += self.lends(id).min(idle - own);
            borrowed += best_effort - own;
        }
        (i64::from(capacity) - promised).max(0) + lent - borrowed
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

    /// What a tenant may use of a type in one class, and what it uses; `None` where no quota binds.
    /// Hard quotas are for both classes together.
    pub(crate) fn limit(
        &self,
        mode: CapacityMode,
        (id, class): (TenantId, Class),
        gpu_type: GpuTypeId,
    ) -> Option<(u32, u32)> {
        match mode {
            CapacityMode::Partition | CapacityMode::Pool => None,
            CapacityMode::Hard => Some((self.spec(id).quota.of(gpu_type), self.used(id, gpu_type))),
            CapacityMode::Elastic => {
                let used = self.used_by_class(id, class, gpu_type);
                Some((self.cap(id, class, gpu_type), used))
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
        let limits = self.lineage(id).filter_map(|t| self.limit(mode, (t, class), gpu_type));
        limits.map(|(most, used)| most.saturating_sub(used)).min().unwrap_or(u32::MAX)
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
        let need = gpus;
        let limits = || {
            let limit = |tenant| Some((tenant, self.limit(mode, (tenant, class), gpu_type)?));
            self.lineage(id).filter_map(limit)
        };
        // What can never be is said before what cannot be now.
        if let Some((tenant, (quota, _))) = limits().find(|&(_, (quota, _))| need > quota) {
            return Err(Reason::LargerThanQuota { tenant, need, quota });
        }
        match limits().find(|&(_, (quota, used))| used + need > quota) {
            Some((tenant, (quota, used))) => {
                Err(Reason::OverQuota { tenant, gpu_type, need, used, quota })
            }
            None => Ok(()),
        }
    }
}
