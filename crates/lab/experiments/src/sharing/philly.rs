//! The Philly window over ε: other jobs than those that ε is chosen on.

use super::{COLUMNS, FEW, lines, truth};
use crate::ExperimentError;
use crate::cases::Case;
use crate::month::Month;
use crate::tables::{Load, Table, coin, run};
use deepshare_sim::SharedInterference;
use std::path::Path;
use std::sync::Arc;

/// Nodes of 8 of the overloaded cluster.
const OVERLOADED: usize = 16;
/// Days of the window.
const DAYS: f64 = 14.0;

/// Tables over ε: on the window's own 219 GPUs, and with more load than GPUs. Profiles are drawn,
/// pairs are by the contention model for MPS.
///
/// # Errors
/// See [`ExperimentError`].
pub fn sweeps(data: &Path, seeds: u64) -> Result<Vec<Table>, ExperimentError> {
    let month = Month::philly(data)?;
    let own = month.cluster.nodes.len();
    let table = |nodes: usize| table(&month, nodes, seeds.min(FEW), lines::sweep(900));
    [own, OVERLOADED].into_iter().map(table).collect()
}

fn table(
    month: &Month,
    nodes: usize,
    seeds: u64,
    cases: Vec<Case>,
) -> Result<Table, ExperimentError> {
    let drawn = |seed| -> SharedInterference { Arc::new(truth::drawn(&month.trace, seed)) };
    let interference: Vec<SharedInterference> = (1..=seeds).map(drawn).collect();
    let gpus = month.with_nodes(nodes).cluster.gpus();
    let offered = month.trace.gpu_time().as_gpu_secs() / (gpus as f64 * DAYS * 86_400.0);
    let title = format!(
        "ε, as a multiple of all GPUs: Philly window, {gpus} GPUs (offered load {offered:.2}), drawn \
         profiles"
    );
    let (classes, interference, columns) = (coin(40), interference.as_slice(), COLUMNS);
    run(&title, &Load { month, nodes, classes, seeds, interference, columns }, cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::with_philly;
    use crate::sharing::{figure, queueing};
    use deepshare_metrics::Summary;

    #[test]
    fn the_window_runs_on_its_own_gpus_and_overloaded() {
        let Some(data) = with_philly() else { return };
        let month = Month::philly(&data).unwrap();
        let cases = || {
            let mut cases = lines::sweep(900);
            cases.retain(|case| ["off", "ε = 4"].contains(&case.name.as_str()));
            cases
        };
        let own = table(&month, month.cluster.nodes.len(), 1, cases()).unwrap();
        let overloaded = table(&month, OVERLOADED, 1, cases()).unwrap();
        assert!(own.title.contains("219 GPUs (offered load 0.66)"), "{}", own.title);
        assert!(overloaded.title.contains("128 GPUs (offered load 1.13)"), "{}", overloaded.title);
        let of = |table: &Table, name: &str, get: fn(&Summary) -> Option<f64>| {
            table.line(name).unwrap().of_seed(get, 0).unwrap_or(0.0)
        };
        let pairs = |summary: &Summary| figure(summary, "pairs_formed");
        for table in [&own, &overloaded] {
            assert_eq!(of(table, "off", pairs), 0.0);
            assert!(of(table, "ε = 4", pairs) > 0.0);
            assert!(of(table, "ε = 4", queueing) < of(table, "off", queueing));
        }
        assert!(of(&overloaded, "off", queueing) > 5.0 * of(&own, "off", queueing));
    }
}
