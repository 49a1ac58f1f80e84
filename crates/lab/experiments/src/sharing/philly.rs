//! The Philly window over ε: other jobs than those that ε is chosen on.

use super::{COLUMNS, FEW, lines, truth};
use crate::ExperimentError;
use crate::month::Month;
use crate::tables::{Load, Table, coin, run};
use deepshare_sim::SharedInterference;
use std::path::Path;
use std::sync::Arc;

/// Nodes of 8 of the overloaded cluster.
const OVERLOADED: usize = 16;

/// Tables over ε: on the window's own 219 GPUs, and with more load than GPUs. Profiles are drawn,
/// pairs are by the contention model for MPS.
///
/// # Errors
/// See [`ExperimentError`].
pub fn sweeps(data: &Path, seeds: u64) -> Result<Vec<Table>, ExperimentError> {
    let month = Month::philly(data)?;
    let seeds = seeds.min(FEW);
    let interference: Vec<SharedInterference> =
        (1..=seeds).map(|seed| Arc::new(truth::drawn(&month.trace, seed)) as _).collect();
    let asked = month.trace.gpu_time().as_gpu_secs();
    let table = |nodes: usize| {
        let gpus = month.with_nodes(nodes).cluster.gpus();
        // The window is 14 days.
        let load = asked / (gpus as f64 * 14.0 * 86_400.0);
        let title = format!(
            "ε, as a multiple of all GPUs: Philly window, {gpus} GPUs (offered load {load:.2}), drawn \
             profiles"
        );
        let load = Load {
            month: &month,
            nodes,
            classes: coin(40),
            seeds,
            interference: &interference,
            columns: COLUMNS,
        };
        run(&title, &load, lines::sweep(900))
    };
    [month.cluster.nodes.len(), OVERLOADED].into_iter().map(table).collect()
}
