//! `vc_config.csv` of Helios and Lucid, and the like of it for Philly: virtual clusters and their numbers of nodes.

use super::{Cluster, ClusterOptions, MAX_NODES};
use crate::error::{Problem, Problems, TraceError};
use crate::source::Lines;
use crate::table::Table;
use deepshare_model::Devices;
use std::collections::BTreeMap;

/// Name of the GPU type of a file that does not name it.
pub(super) const GPU_TYPE: &str = "gpu";

/// Reads the table. The column of names is headed `vc` or not at all.
pub(super) fn parse(lines: Lines, options: ClusterOptions) -> Result<Cluster, TraceError> {
    let mut table = Table::new(lines)?;
    let mut problems = Problems::of(table.file());
    let per_node = options.gpus_per_node;
    if !(1..=Devices::MAX_PER_NODE).contains(&per_node) {
        let what = format!("{per_node} GPUs per node were asked for");
        return Err(problems.fatal(Problem::of_file(what, "give 1 to 64")));
    }
    let name = table.column("vc", &mut problems).or_else(|| table.column("", &mut problems));
    let nodes =
        table.column("num", &mut problems).or_else(|| table.column("node num", &mut problems));
    let (Some(name), Some(nodes)) = (name, nodes) else {
        return Err(problems.fatal(Problem::at(
            1,
            "this is neither a cluster file in TOML nor a table with the columns vc,num",
            "describe the nodes as in docs/formats/cluster.md",
        )));
    };
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut tenants: Vec<(String, u32)> = Vec::new();
    let mut total = 0;
    while let Some(row) = table.next_row(&mut problems)? {
        let vc = match row.name(name, "name the virtual cluster") {
            Ok(vc) => vc.to_owned(),
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if let Some(line) = seen.insert(vc.clone(), row.line) {
            let why = format!("is on line {line} too");
            problems.push(row.problem(name, &why, "give each virtual cluster one row"));
        }
        match row.whole(nodes, MAX_NODES as u64, "give its number of nodes") {
            Ok(n) => {
                total += n;
                tenants.push((vc, u32::try_from(n).expect("within the limit on nodes")));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() && (total == 0 || total > MAX_NODES as u64) {
        let what = format!("{total} nodes in all");
        problems.push(Problem::of_file(what, format!("give 1 to {MAX_NODES}")));
    }
    problems.check()?;
    Ok(Cluster::partitions(&tenants, per_node))
}
