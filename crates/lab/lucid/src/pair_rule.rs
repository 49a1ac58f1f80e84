//! Who may share GPUs with whom, and how fast both then go.

use crate::error::LucidError;
use crate::inputs::{LucidInputs, LucidJob};
use crate::settings::LucidSettings;

/// The rule that a job may join another, which has the same number of GPUs and shares them with
/// nobody.
pub(crate) fn may_join(settings: &LucidSettings, new: &LucidJob, old: &LucidJob) -> bool {
    let memory = u128::from(new.memory_milli_mib) + u128::from(old.memory_milli_mib);
    let urgent = u128::from(settings.priority_factor).saturating_mul(old.priority());
    memory < u128::from(settings.gpu_memory_mib) * 1_000
        && new.score.saturating_add(old.score) <= settings.score_limit
        && new.priority() <= urgent
}

/// Speeds of the newcomer and of the job that it joins.
///
/// # Errors
/// If the pair was not measured and is not one that the artifact takes for free of interference.
pub(crate) fn speeds(
    inputs: &LucidInputs,
    new: &LucidJob,
    old: &LucidJob,
) -> Result<(f64, f64), LucidError> {
    let workloads = &inputs.workloads;
    if workloads[new.workload].is_unmeasured() || workloads[old.workload].is_unmeasured() {
        return Ok((1.0, 1.0));
    }
    let measured = |a: usize, b: usize| inputs.speeds.get(&(a, b)).copied();
    let as_listed = measured(new.workload, old.workload);
    let reversed = || measured(old.workload, new.workload).map(|(old, new)| (new, old));
    as_listed.or_else(reversed).ok_or_else(|| LucidError::NoPair {
        file: inputs.pairs_file.clone(),
        new_job: new.id.clone(),
        new: workloads[new.workload].to_string(),
        old_job: old.id.clone(),
        old: workloads[old.workload].to_string(),
    })
}
