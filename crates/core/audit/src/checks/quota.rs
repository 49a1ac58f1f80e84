//! Hard quotas: held and promised, of a tenant and of everyone it belongs to.

use crate::books::Books;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, Placement};
use deepshare_model::{AttemptId, JobId};

impl Books {
    /// A new attempt is within every quota that binds. What is preempted in the same step counts
    /// as gone, like its devices; a quota lowered below its use forbids new attempts only.
    pub fn check_quota(
        &self,
        id: AttemptId,
        job: JobId,
        placement: &Placement,
    ) -> Result<(), Violation> {
        if self.settings.capacity != CapacityMode::Hard {
            return Ok(());
        }
        let spec = &self.job(job)?.spec;
        let gpu_type = self.node(placement[0].node)?.spec.gpu_type;
        for tenant in self.tenants.lineage(spec.tenant) {
            let yielded = self.step.yielded.get(&(tenant, gpu_type)).copied().unwrap_or(0);
            let stays = self.tenants.used(tenant, gpu_type).saturating_sub(yielded);
            let used = stays + spec.demand.gpus;
            let quota = self.tenants.quota(tenant, gpu_type);
            if used > quota {
                return Err(Violation::OverQuota { attempt: id, tenant, gpu_type, used, quota });
            }
        }
        Ok(())
    }
}
