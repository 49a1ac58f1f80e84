//! Machines and tenants: what a trace is replayed on.

mod toml;
mod vc_config;
mod write;

use crate::error::{Problem, Problems, TraceError};
use crate::source::{Lines, read_text};
use deepshare_model::{GpuTypeId, Quota, Span, TenantId};
use std::io::{Cursor, Read};
use std::path::Path;
pub use write::cluster_toml;

/// Largest cluster file, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Most nodes of a cluster.
const MAX_NODES: usize = 1_000_000;

/// Nodes, and who may use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Tenants, by id. Empty if the file names none: whoever has jobs may use every node.
    pub tenants: Vec<TenantEntry>,
    /// Nodes, in the order placement prefers.
    pub nodes: Vec<NodeEntry>,
    /// Names of GPU types, by id.
    pub gpu_types: Vec<String>,
}

/// A tenant of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantEntry {
    /// Its name, unique in the cluster.
    pub name: String,
    /// A tenant whose quota caps the sum of its children's use.
    pub parent: Option<TenantId>,
    /// Guaranteed GPUs by GPU type.
    pub quota: Quota,
    /// Best-effort use is capped at this many thousandths of the quota.
    pub best_effort_milli: u32,
    /// Most GPUs of its idle quota that others may borrow; `None` = all.
    pub lending_limit: Option<u32>,
    /// A job runs at least this long before it may be preempted.
    pub min_run_time: Span,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its name, unique in the cluster.
    pub name: String,
    /// The tenant whose partition it is in, if it is reserved for one.
    pub tenant: Option<TenantId>,
    /// The model of its GPUs.
    pub gpu_type: GpuTypeId,
    /// Number of GPUs, 1 to 64.
    pub gpus: u32,
    /// Memory of each GPU, MiB; 0 = unknown.
    pub gpu_memory_mib: u32,
    /// Allocatable CPU in thousandths of a core; `None` = not limited.
    pub cpu_milli: Option<u64>,
    /// Allocatable host memory, MiB; `None` = not limited.
    pub memory_mib: Option<u64>,
}

/// How a cluster file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// GPUs of each node of a `vc_config.csv`, which does not say.
    pub gpus_per_node: u32,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions { gpus_per_node: 8 }
    }
}

/// Reads a cluster: our TOML file, or the `vc_config.csv` of Helios and Lucid. Which of the two is
/// decided by the first line that is not blank.
///
/// # Errors
/// If the file cannot be read or describes no cluster; all problems are named together.
pub fn read_cluster(path: &Path, options: ClusterOptions) -> Result<Cluster, TraceError> {
    read(Lines::open(path, u64::MAX)?, options)
}

/// As [`read_cluster`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_cluster`].
pub fn read_cluster_from(
    name: &str,
    input: impl Read + 'static,
    options: ClusterOptions,
) -> Result<Cluster, TraceError> {
    read(Lines::new(name.to_owned(), input, u64::MAX)?, options)
}

fn read(lines: Lines, options: ClusterOptions) -> Result<Cluster, TraceError> {
    let file = lines.file().to_owned();
    let text = read_text(lines, MAX_BYTES)?;
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match first {
        None => Err(Problems::of(&file).fatal(Problem::at(
            1,
            "the file is empty",
            "describe the nodes as in docs/formats/cluster.md",
        ))),
        Some(line) if line.starts_with(['[', '#']) || line.contains('=') => {
            toml::parse(&file, &text)
        }
        Some(_) => {
            vc_config::parse(Lines::new(file, Cursor::new(text), MAX_NODES as u64)?, options)
        }
    }
}

impl Cluster {
    /// Names of the tenants, by id.
    pub fn tenant_names(&self) -> Vec<String> {
        self.tenants.iter().map(|tenant| tenant.name.clone()).collect()
    }

    /// GPUs of all nodes.
    pub fn gpus(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.gpus)).sum()
    }

    /// A cluster of partitions: for each tenant, whole nodes of `gpus_per_node` GPUs of one
    /// unnamed type, and a quota of just these GPUs. Nodes are in the order of the tenants.
    pub fn partitions(tenants: &[(String, u32)], gpus_per_node: u32) -> Cluster {
        let mut cluster = Cluster {
            tenants: Vec::new(),
            nodes: Vec::new(),
            gpu_types: vec![vc_config::GPU_TYPE.to_owned()],
        };
        for (index, (name, nodes)) in tenants.iter().enumerate() {
            let quota = Quota::uniform(nodes * gpus_per_node, 1);
            cluster.tenants.push(TenantEntry::new(name.clone(), quota));
            for number in 0..*nodes {
                cluster.nodes.push(NodeEntry {
                    name: format!("{name}-{number}"),
                    tenant: Some(TenantId::from_index(index)),
                    gpu_type: GpuTypeId(0),
                    gpus: gpus_per_node,
                    gpu_memory_mib: 0,
                    cpu_milli: None,
                    memory_mib: None,
                });
            }
        }
        cluster
    }
}

impl TenantEntry {
    /// A tenant with `quota` and every other term at its default.
    pub fn new(name: String, quota: Quota) -> TenantEntry {
        TenantEntry {
            name,
            parent: None,
            quota,
            best_effort_milli: 2_000,
            lending_limit: None,
            min_run_time: Span::ZERO,
        }
    }
}
