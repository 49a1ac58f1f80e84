//! Many runs on all cores, with results in the order asked for.

use crate::error::SimError;
use crate::settings::SimSettings;
use crate::simulation::{Watch, simulate};
use deepshare_metrics::RunRecord;
use deepshare_trace::{Cluster, Trace};
use rayon::prelude::*;

/// Replays the trace once for each of `settings`. Runs share nothing but the watch, so results do
/// not depend on the number of threads.
///
/// # Errors
/// The error of the first run, in the order given, that had one; the others are stopped.
pub fn simulate_all(
    trace: &Trace,
    cluster: &Cluster,
    settings: &[SimSettings],
    watch: &Watch,
) -> Result<Vec<RunRecord>, SimError> {
    let runs: Vec<Result<RunRecord, SimError>> =
        settings.par_iter().map(|one| simulate(trace, cluster, one, watch)).collect();
    runs.into_iter().collect()
}
