//! Quotas: held and promised, of a tenant and of everyone it belongs to.

use crate::books::Books;
use crate::violation::Violation;
use deepshare_engine::CapacityMode;
use deepshare_model::{AttemptId, Class, GpuTypeId, JobId};

impl Books {
    /// A new attempt is within every quota that binds: with hard quotas, of both classes together;
    /// with elastic ones, of the class it is charged to. What is preempted in the same step counts
    /// as gone for a reservation (`waits`), like its devices; a quota lowered below its use forbids
    /// new attempts only.
    pub fn check_quota(
        &self,
        id: AttemptId,
        job: JobId,
        charged: Class,
        gpu_type: GpuTypeId,
        waits: bool,
    ) -> Result<(), Violation> {
        let spec = &self.job(job)?.spec;
        let yielded =
            |tenant, class| self.step.yielded.get(&(tenant, class, gpu_type)).copied().unwrap_or(0);
        for tenant in self.tenants.lineage(spec.tenant) {
            let of = |class| {
                let used = self.tenants.used_by_class(tenant, class, gpu_type);
                used.saturating_sub(yielded(tenant, class))
            };
            let (stays, quota) = match self.settings.capacity {
                CapacityMode::Partition | CapacityMode::Pool => return Ok(()),
                CapacityMode::Hard => {
                    let quota = self.tenants.quota(tenant, gpu_type);
                    (of(Class::Guaranteed) + of(Class::BestEffort), quota)
                }
                CapacityMode::Elastic => {
                    let used = match waits {
                        true => of(charged),
                        // Whoever starts at once must not rely on what still holds devices.
                        false => self.tenants.used_by_class(tenant, charged, gpu_type),
                    };
                    (used, self.tenants.cap(tenant, charged, gpu_type))
                }
            };
            let used = stays + spec.demand.gpus;
            if used > quota {
                return Err(Violation::OverQuota { attempt: id, tenant, gpu_type, used, quota });
            }
        }
        Ok(())
    }

    /// Devices are charged as the job was submitted; only elastic quotas let a guaranteed job be
    /// charged as best-effort, and none lets a best-effort job be charged to a quota.
    pub fn check_charge(&self, id: AttemptId, job: JobId, charged: Class) -> Result<(), Violation> {
        let class = self.job(job)?.spec.class;
        let spilled = class == Class::Guaranteed && self.settings.capacity == CapacityMode::Elastic;
        if charged == class || spilled {
            return Ok(());
        }
        Err(Violation::WrongCharge { attempt: id, job, class, charged })
    }

    /// Only a live guaranteed job charged as best-effort is promoted, and only into quota that has
    /// room for it.
    pub fn check_promote(&self, id: AttemptId) -> Result<(), Violation> {
        let attempt = self.attempt(id)?;
        let (job, charged) = (attempt.job, attempt.charged);
        let class = self.job(job)?.spec.class;
        let spilled = charged == Class::BestEffort && class == Class::Guaranteed;
        if !spilled || !attempt.holds() || attempt.is_leaving() {
            return Err(Violation::WrongCharge { attempt: id, job, class, charged });
        }
        self.check_quota(id, job, Class::Guaranteed, attempt.gpu_type, false)
    }
}
