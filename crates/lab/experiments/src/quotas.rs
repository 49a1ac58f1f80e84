//! What quota assurance is worth: DeepShare, its ablations and its rivals on the Venus month.

mod bars;

use crate::ExperimentError;
use crate::cases::{self, Case};
use crate::figures::COLUMNS;
use crate::month::{Month, NODES};
use crate::tables::{Load, Table, coin, run as run_cases};
use deepshare_sim::Classes;

fn run(
    title: &str,
    month: &Month,
    nodes: usize,
    classes: Classes,
    seeds: u64,
    cases: Vec<Case>,
) -> Result<Table, ExperimentError> {
    let interference = &[];
    let load = Load { month, nodes, classes, seeds, interference, columns: COLUMNS };
    run_cases(title, &load, cases)
}

/// The page's tables and judgements, as Markdown.
///
/// # Errors
/// See [`ExperimentError`].
pub fn page(data: &std::path::Path, seeds: u64) -> Result<String, ExperimentError> {
    let venus = Month::venus(data)?;
    let main =
        run("135 nodes, best-effort share 0.4", &venus, NODES, coin(40), seeds, cases::all())?;
    let mut shares = Vec::new();
    for percent in [20, 60] {
        let title = format!("135 nodes, best-effort share 0.{}", percent / 10);
        shares.push(run(&title, &venus, NODES, coin(percent), seeds, cases::few())?);
    }
    let title = "135 nodes, best-effort beyond quota (`overflow`; one run, nothing is drawn)";
    shares.push(run(title, &venus, NODES, Classes::Overflow, 1, cases::few())?);
    let mut loads = Vec::new();
    for nodes in [120, 100, 85] {
        let title = format!("{nodes} nodes, quotas of 135, best-effort share 0.4");
        loads.push(run(&title, &venus, nodes, coin(40), seeds, cases::few())?);
    }
    let hashed = venus.with_hashed_tenants(12);
    let quotas: Vec<String> =
        hashed.cluster.tenants.iter().map(|t| t.quota.total().to_string()).collect();
    let title = format!("12 tenants by a hash of the user, quotas {}", quotas.join(", "));
    let twelve = run(&title, &hashed, NODES, coin(40), seeds, cases::few())?;
    let title = "12 tenants by a hash of the user, the same quotas on 100 nodes".to_owned();
    let twelve_loaded = run(&title, &hashed, 100, coin(40), seeds, cases::few())?;

    let mut text = bars::judge(&main, &shares, &loads);
    for table in [&main].into_iter().chain(&shares).chain(&loads).chain([&twelve, &twelve_loaded]) {
        table.show(&mut text);
    }
    Ok(text)
}
