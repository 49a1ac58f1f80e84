//! Who may share GPUs with whom, and how fast both then go.

use crate::error::LucidError;
use crate::inputs::{LucidInputs, LucidJob};
use crate::settings::LucidSettings;
use deepshare_interference::Workload;

/// Models whose pairs were not measured; the artifact lets such a pair run as fast as alone.
const UNMEASURED: [&str; 4] = ["NeuMF", "ResNet50", "BERT", "Transformer"];

/// True if the artifact takes any pair with it for free of interference.
fn is_unmeasured(workload: &Workload) -> bool {
    UNMEASURED.contains(&workload.model.as_str())
}

/// The rule that a job may join another, which has the same number of GPUs and shares them with
/// nobody.
pub(crate) fn may_join(settings: &LucidSettings, new: &LucidJob, old: &LucidJob) -> bool {
    let memory = u64::from(new.memory_mib) + u64::from(old.memory_mib);
    let urgent = u128::from(settings.priority_factor).saturating_mul(old.priority());
    memory < settings.gpu_memory_mib
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
    if is_unmeasured(&workloads[new.workload]) || is_unmeasured(&workloads[old.workload]) {
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
