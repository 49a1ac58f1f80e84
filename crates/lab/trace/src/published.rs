//! The published month, as the data folder lays it out.

use crate::cluster::{Cluster, ClusterOptions, read_cluster};
use crate::error::TraceError;
use crate::options::ReadOptions;
use crate::read::read_trace;
use crate::trace::Trace;
use std::path::Path;

/// Helios Venus, September 2020, from the folder `helios_venus` of `data`: tenants are its virtual
/// clusters, simultaneous jobs are in the order of the Lucid artifact.
///
/// # Errors
/// If a file is missing or cannot be used.
pub fn read_venus_month(data: &Path) -> Result<(Trace, Cluster), TraceError> {
    let venus = data.join("helios_venus");
    let cluster = read_cluster(&venus.join("vc_config.csv"), ClusterOptions::default())?;
    let options = ReadOptions {
        known_tenants: Some(cluster.tenant_names()),
        order: Some(venus.join("venus_sept2020_trace_order.csv.zst")),
        ..ReadOptions::default()
    };
    let trace = read_trace(&venus.join("venus_sept2020_jobs.csv.zst"), &options)?;
    Ok((trace, cluster))
}
