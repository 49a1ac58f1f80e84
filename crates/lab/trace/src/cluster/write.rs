//! Writes a cluster as our TOML, which [`crate::read_cluster`] reads back.

use super::{Cluster, NodeEntry, TenantEntry, vc_config};
use deepshare_model::GpuTypeId;
use std::fmt::Write;

/// The cluster as TOML. Like nodes in a row whose names are numbered from 0 are one table.
pub fn cluster_toml(cluster: &Cluster) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(first) = cluster.nodes.get(at) {
        let group = group(&cluster.nodes[at..]);
        at += group.map_or(1, |(_, count)| count);
        node(cluster, first, group, &mut text);
    }
    for entry in &cluster.tenants {
        tenant(cluster, entry, &mut text);
    }
    text
}

/// The common name and the number of nodes that one table with a `count` makes; `None` if the
/// first node's name is not numbered from 0.
fn group(nodes: &[NodeEntry]) -> Option<(&str, usize)> {
    let first = nodes.first()?;
    let name = first.name.strip_suffix("-0")?;
    let alike = |&(number, node): &(usize, &NodeEntry)| {
        let numbered = node.name.strip_prefix(name) == Some(&format!("-{number}"));
        numbered && NodeEntry { name: first.name.clone(), ..node.clone() } == *first
    };
    Some((name, nodes.iter().enumerate().take_while(alike).count()))
}

fn node(cluster: &Cluster, first: &NodeEntry, group: Option<(&str, usize)>, text: &mut String) {
    let mut line = |key: &str, value: String| {
        writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
    };
    line("\n[[node]]\nname", quote(group.map_or(&first.name, |(name, _)| name)));
    if let Some((_, count)) = group {
        line("count", count.to_string());
    }
    line("gpus", first.gpus.to_string());
    let gpu_type = &cluster.gpu_types[first.gpu_type.index()];
    if gpu_type != vc_config::GPU_TYPE {
        line("gpu_type", quote(gpu_type));
    }
    if first.gpu_memory_mib > 0 {
        line("gpu_memory_mib", first.gpu_memory_mib.to_string());
    }
    if let Some(milli) = first.cpu_milli {
        line("cpus", thousandths(milli));
    }
    if let Some(mib) = first.memory_mib {
        line("memory_mib", mib.to_string());
    }
    if let Some(tenant) = first.tenant {
        line("tenant", quote(&cluster.tenants[tenant.index()].name));
    }
}

fn tenant(cluster: &Cluster, entry: &TenantEntry, text: &mut String) {
    let mut line = |key: &str, value: String| {
        writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
    };
    line("\n[[tenant]]\nname", quote(&entry.name));
    if let Some(parent) = entry.parent {
        line("parent", quote(&cluster.tenants[parent.index()].name));
    }
    line("quota", quota(cluster, entry));
    let usual = TenantEntry::new(String::new(), entry.quota.clone());
    if entry.best_effort_milli != usual.best_effort_milli {
        line("best_effort_multiple", thousandths(u64::from(entry.best_effort_milli)));
    }
    if let Some(limit) = entry.lending_limit {
        line("lending_limit", limit.to_string());
    }
    if entry.min_run_time != usual.min_run_time {
        line("min_run_time_s", entry.min_run_time.as_secs_f64().to_string());
    }
}

fn quota(cluster: &Cluster, entry: &TenantEntry) -> String {
    if cluster.gpu_types.len() == 1 {
        return entry.quota.total().to_string();
    }
    let each = (0..)
        .zip(&cluster.gpu_types)
        .map(|(number, name)| format!("{} = {}", quote(name), entry.quota.of(GpuTypeId(number))));
    format!("{{ {} }}", each.collect::<Vec<_>>().join(", "))
}

fn quote(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn thousandths(milli: u64) -> String {
    let (whole, rest) = (milli / 1_000, milli % 1_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}
