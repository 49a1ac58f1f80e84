//! A part of a trace: jobs of some tenants, of some sizes.

use crate::read::renumber;
use crate::trace::Trace;

/// Which jobs of a trace are kept. The default keeps all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Tenants whose jobs are left out.
    pub without_tenants: Vec<String>,
    /// Most GPUs of a job that is kept.
    pub max_gpus: Option<u32>,
}

impl Selection {
    /// The jobs that are kept, their order and clock unchanged. Tenants and users are numbered
    /// anew by their first job, and the report says how many jobs were left out.
    pub fn of(&self, mut trace: Trace) -> Trace {
        let left_out: Vec<bool> =
            trace.tenants.iter().map(|name| self.without_tenants.contains(name)).collect();
        let before = trace.jobs.len();
        trace.jobs.retain(|job| {
            !left_out[job.tenant.index()] && self.max_gpus.is_none_or(|most| job.gpus <= most)
        });
        let dropped = before - trace.jobs.len();
        if dropped > 0 {
            trace.report.kept -= dropped as u64;
            trace.report.zero_durations =
                trace.jobs.iter().filter(|job| job.duration.is_zero()).count() as u64;
            trace.report.notes.push(format!("{dropped} jobs were left out by a selection"));
        }
        renumber(&mut trace, false);
        trace
    }
}
