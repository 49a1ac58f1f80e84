//! The published month, as the data folder lays it out.

use crate::cluster::{Cluster, ClusterOptions, NodeEntry, TenantEntry, read_cluster};
use crate::error::TraceError;
use crate::options::ReadOptions;
use crate::options::{Origin, TimeOptions};
use crate::proportion::all_in_proportion;
use crate::read::read_trace;
use crate::selection::Selection;
use crate::trace::Trace;
use deepshare_model::{GpuTypeId, Quota};
use jiff::civil::date;
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

/// GPUs of the cluster that the Philly window is replayed on: those of the paper's internal trace.
const PHILLY_GPUS: u32 = 219;
/// Seconds of the Philly window: 14 days.
const PHILLY_WINDOW_S: u64 = 14 * 86_400;

/// Microsoft Philly from 28 October 2017, 14 days, from the folder `philly` of `data`: jobs of up
/// to 4 GPUs outside the two virtual clusters that are much larger than the others. It stands in
/// for the paper's internal trace, which is not public. The cluster is one pool of 219 GPUs (27
/// nodes of 8 and one of 3) whose quotas are proportional to the GPU-hours of the window, but hold
/// each tenant's widest job.
///
/// # Errors
/// If the file is missing or cannot be used.
pub fn read_philly_window(data: &Path) -> Result<(Trace, Cluster), TraceError> {
    let options = ReadOptions {
        times: TimeOptions {
            not_before: Some(date(2017, 10, 28).at(0, 0, 0, 0)),
            origin: Origin::At(date(2017, 10, 28).at(0, 0, 0, 0)),
            // Times are whole seconds, and both ends are included.
            window_s: Some((0, PHILLY_WINDOW_S - 1)),
            ..TimeOptions::default()
        },
        ..ReadOptions::default()
    };
    let selection = Selection {
        without_tenants: vec!["6214e9".to_owned(), "11cb48".to_owned()],
        max_gpus: Some(4),
    };
    let trace = read_trace(&data.join("philly").join("philly.csv.zst"), &options)?;
    let trace = selection.of(trace);
    let cluster = proportional_pool(&trace, PHILLY_GPUS, ClusterOptions::default().gpus_per_node);
    Ok((trace, cluster))
}

/// One pool of `gpus` GPUs, in nodes of `per_node` and one with the rest, whose tenants are the
/// trace's. Quotas are proportional to GPU time, but hold the tenant's widest job, and add up to all
/// GPUs.
fn proportional_pool(trace: &Trace, gpus: u32, per_node: u32) -> Cluster {
    let mut used = vec![0_u128; trace.tenants.len()];
    let mut widest = vec![1_u32; trace.tenants.len()];
    for job in &trace.jobs {
        let tenant = job.tenant.index();
        used[tenant] += job.duration.on(job.gpus).0;
        widest[tenant] = widest[tenant].max(job.gpus);
    }
    let quotas = all_in_proportion(&used, &widest, gpus);
    let tenants = trace.tenants.iter().zip(quotas);
    let tenants = tenants.map(|(name, q)| TenantEntry::new(name.clone(), Quota::uniform(q, 1)));
    let sizes = (0..gpus.div_ceil(per_node)).map(|n| per_node.min(gpus - n * per_node));
    let nodes = sizes.enumerate().map(|(number, gpus)| NodeEntry {
        name: format!("node-{number}"),
        tenant: None,
        gpu_type: GpuTypeId(0),
        gpus,
        gpu_memory_mib: 0,
        cpu_milli: None,
        memory_mib: None,
    });
    Cluster {
        tenants: tenants.collect(),
        nodes: nodes.collect(),
        gpu_types: vec!["gpu".to_owned()],
    }
}
