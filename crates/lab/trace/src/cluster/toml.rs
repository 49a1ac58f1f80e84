//! Our own cluster file, in TOML: `[[node]]` and `[[tenant]]` tables (`docs/formats/cluster.md`).

mod fields;

use super::{Cluster, MAX_NODES, NodeEntry, TenantEntry};
use crate::error::{Problem, Problems, TraceError, quote};
use crate::names::Names;
use deepshare_model::{Devices, GpuTypeId, Quota, Span, TenantId};
use fields::{Fields, Place};
use std::collections::BTreeMap;
use toml_edit::{Document, Item};

/// Most tenants of a cluster. Checking a chain of parents takes the square of their number.
const MAX_TENANTS: usize = 10_000;
/// Most GPU types of a cluster.
const MAX_GPU_TYPES: u16 = 64;
/// Most GPUs of one type in a quota: those of the largest cluster. With the limit on types, the
/// total of a quota stays in range.
const MAX_QUOTA: u32 = 64_000_000;

/// Keys of the two kinds of tables.
const NODE_KEYS: [&str; 8] =
    ["name", "count", "gpus", "gpu_type", "gpu_memory_mib", "cpus", "memory_mib", "tenant"];
const TENANT_KEYS: [&str; 6] =
    ["name", "quota", "parent", "best_effort_multiple", "lending_limit", "min_run_time_s"];

/// Reads the text of a cluster file.
pub(super) fn parse(file: &str, text: &str) -> Result<Cluster, TraceError> {
    let mut problems = Problems::of(file);
    let place = Place::of(text);
    let document = match text.parse::<Document<String>>() {
        Ok(document) => document,
        Err(error) => {
            let what = format!("not valid TOML: {}", error.message().trim());
            let problem = Problem::of_file(what.replace('\n', ", "), "correct the syntax");
            return Err(problems.fatal(place.put(problem, error.span())));
        }
    };
    for (key, item) in document.iter() {
        if !matches!(key, "node" | "tenant") {
            let span = document.key(key).and_then(|k| k.span()).or(item.span());
            let what = format!("unknown table {}", quote(key));
            let problem = Problem::of_file(what, "use [[node]] and [[tenant]]");
            problems.push(place.put(problem, span));
        }
    }
    let nodes = tables(document.get("node"), "node", &NODE_KEYS, &place, &mut problems);
    let tenants = tables(document.get("tenant"), "tenant", &TENANT_KEYS, &place, &mut problems);
    if tenants.len() > MAX_TENANTS || nodes.len() > MAX_NODES {
        let what = format!("more than {MAX_TENANTS} tenants or {MAX_NODES} kinds of nodes");
        return Err(problems.fatal(Problem::of_file(what, "describe a smaller cluster")));
    }
    let mut reader = Reader::default();
    let listed = document.get("tenant").is_some();
    // Names first, so that tenants may refer to each other and nodes to tenants.
    for table in &tenants {
        reader.name_tenant(table, &mut problems);
    }
    for table in &nodes {
        reader.node(table, listed, &mut problems);
    }
    if reader.nodes.is_empty() && problems.is_empty() {
        problems.push(Problem::of_file("there is no node", "add a table [[node]] with gpus = 8"));
    }
    let mut cluster = reader.cluster();
    for (index, table) in tenants.iter().enumerate() {
        terms(index, table, &mut cluster, &mut problems);
    }
    cycles(&tenants, &cluster, &mut problems);
    problems.check()?;
    let given: Vec<bool> = tenants.iter().map(|table| table.has("quota")).collect();
    default_quotas(&mut cluster, &given);
    Ok(cluster)
}

/// The tables of an array of tables, checked for unknown keys.
fn tables<'a>(
    item: Option<&'a Item>,
    name: &'static str,
    keys: &[&str],
    place: &'a Place<'a>,
    problems: &mut Problems,
) -> Vec<Fields<'a>> {
    let Some(item) = item else { return Vec::new() };
    let Some(array) = item.as_array_of_tables() else {
        let what = format!("{name} is not a list of tables");
        let problem = Problem::of_file(what, format!("begin each with [[{name}]]"));
        problems.push(place.put(problem, item.span()));
        return Vec::new();
    };
    let fields: Vec<Fields<'a>> = array.iter().map(|t| Fields::of(t, place)).collect();
    for table in &fields {
        table.refuse_unknown(name, keys, problems);
    }
    fields
}

/// Collects nodes and names.
#[derive(Default)]
struct Reader {
    /// Tenants by name: for those with a table, their number is that of the table.
    tenants: Vec<String>,
    tenant_numbers: BTreeMap<String, TenantId>,
    gpu_types: Names,
    node_names: BTreeMap<String, usize>,
    nodes: Vec<NodeEntry>,
}

impl Reader {
    fn name_tenant(&mut self, table: &Fields<'_>, problems: &mut Problems) {
        let id = TenantId::from_index(self.tenants.len());
        let name = match table.text("name", problems) {
            Some("") => {
                table.problem("name", "a tenant's name is empty", "name it", problems);
                ""
            }
            Some(name) => name,
            None if table.has("name") => "",
            None => {
                table.problem("name", "a tenant has no name", "add name = \"…\"", problems);
                ""
            }
        };
        if !name.is_empty() && self.tenant_numbers.insert(name.to_owned(), id).is_some() {
            let what = format!("tenant {} is described twice", quote(name));
            table.problem("name", what, "merge the two tables", problems);
        }
        self.tenants.push(name.to_owned());
    }

    fn node(&mut self, table: &Fields<'_>, listed: bool, problems: &mut Problems) {
        let most = u64::from(Devices::MAX_PER_NODE);
        let gpus = table.whole("gpus", 1, most, problems);
        if gpus.is_none() && !table.has("gpus") {
            table.problem("gpus", "a node has no gpus", "add gpus = 8", problems);
        }
        let count = table.whole("count", 1, MAX_NODES as u64, problems);
        let name = table.text("name", problems);
        let gpu_type = table.text("gpu_type", problems).unwrap_or(super::vc_config::GPU_TYPE);
        let gpu_memory = table.whole("gpu_memory_mib", 1, 1 << 20, problems).unwrap_or(0);
        let cpu_milli = table.milli("cpus", 1_000_000.0, problems);
        let memory_mib = table.whole("memory_mib", 1, 1 << 40, problems);
        let tenant = table.text("tenant", problems).and_then(|name| {
            let known = self.tenant_numbers.get(name).copied();
            if known.is_none() && listed {
                let what = format!("there is no tenant {}", quote(name));
                table.problem("tenant", what, "add a [[tenant]] table or remove it", problems);
            }
            known.or_else(|| (!listed).then(|| self.add_tenant(name)))
        });
        let Some(gpus) = gpus else { return };
        let number = GpuTypeId(u16::try_from(self.gpu_types.number(gpu_type)).unwrap_or(u16::MAX));
        let copies = count.unwrap_or(1) as usize;
        if number.0 >= MAX_GPU_TYPES || self.nodes.len() + copies > MAX_NODES {
            let what = format!("more than {MAX_NODES} nodes or {MAX_GPU_TYPES} GPU types");
            table.problem("count", what, "describe a smaller cluster", problems);
            return;
        }
        for copy in 0..copies {
            let name = match name {
                Some(name) if count.is_none() => name.to_owned(),
                Some(name) => format!("{name}-{copy}"),
                None => format!("node-{}", self.nodes.len()),
            };
            if self.node_names.insert(name.clone(), self.nodes.len()).is_some() {
                let what = format!("a second node is called {}", quote(&name));
                table.problem("name", what, "give the nodes another name", problems);
                return;
            }
            self.nodes.push(NodeEntry {
                name,
                tenant,
                gpu_type: number,
                gpus: gpus as u32,
                gpu_memory_mib: gpu_memory as u32,
                cpu_milli,
                memory_mib,
            });
        }
    }

    fn add_tenant(&mut self, name: &str) -> TenantId {
        let id = TenantId::from_index(self.tenants.len());
        self.tenants.push(name.to_owned());
        self.tenant_numbers.insert(name.to_owned(), id);
        id
    }

    fn cluster(self) -> Cluster {
        let unset = |name: String| TenantEntry::new(name, Quota::default());
        Cluster {
            tenants: self.tenants.into_iter().map(unset).collect(),
            nodes: self.nodes,
            gpu_types: self.gpu_types.into_list(),
        }
    }
}

/// Reads the terms of the tenant with this index.
fn terms(index: usize, table: &Fields<'_>, cluster: &mut Cluster, problems: &mut Problems) {
    let quota = table.quota("quota", &cluster.gpu_types, MAX_QUOTA, problems);
    let parent = table.text("parent", problems).and_then(|name| {
        let found = cluster.tenants.iter().position(|t| t.name == name);
        if found.is_none() {
            let what = format!("there is no tenant {}", quote(name));
            table.problem("parent", what, "add a [[tenant]] table or remove it", problems);
        }
        found.map(TenantId::from_index)
    });
    let best_effort = table.milli("best_effort_multiple", 1_000_000.0, problems);
    let lending_limit = table.whole("lending_limit", 0, u64::from(u32::MAX), problems);
    let min_run_time = table.span("min_run_time_s", problems);
    let tenant = &mut cluster.tenants[index];
    tenant.quota = quota.unwrap_or_default();
    tenant.parent = parent;
    tenant.best_effort_milli = best_effort.map_or(tenant.best_effort_milli, |m| m as u32);
    tenant.lending_limit = lending_limit.map(|gpus| gpus as u32);
    tenant.min_run_time = min_run_time.unwrap_or(Span::ZERO);
}

/// Reports tenants that are their own ancestors.
fn cycles(tables: &[Fields<'_>], cluster: &Cluster, problems: &mut Problems) {
    for (index, table) in tables.iter().enumerate() {
        let mut above = cluster.tenants[index].parent;
        // A chain longer than there are tenants has met a circle further up, which its own
        // members report.
        for _ in 0..cluster.tenants.len() {
            match above {
                Some(id) if id.index() == index => {
                    let name = &cluster.tenants[index].name;
                    let what = format!("tenant {} is its own ancestor", quote(name));
                    table.problem("parent", what, "remove one parent of the circle", problems);
                    break;
                }
                Some(id) => above = cluster.tenants[id.index()].parent,
                None => break,
            }
        }
    }
}

/// Gives tenants without a quota that of their own nodes and of their children.
fn default_quotas(cluster: &mut Cluster, given: &[bool]) {
    let types = cluster.gpu_types.len();
    let is_given = |index: usize| given.get(index).copied().unwrap_or(false);
    let mut own = vec![vec![0_u32; types]; cluster.tenants.len()];
    for node in &cluster.nodes {
        if let Some(tenant) = node.tenant
            && !is_given(tenant.index())
        {
            own[tenant.index()][node.gpu_type.index()] += node.gpus;
        }
    }
    // Children before parents: by how many ancestors they have.
    let depth = |mut tenant: TenantId| {
        let mut depth = 0;
        while let Some(parent) = cluster.tenants[tenant.index()].parent {
            tenant = parent;
            depth += 1;
        }
        depth
    };
    let mut order: Vec<TenantId> = (0..own.len()).map(TenantId::from_index).collect();
    order.sort_by_key(|&tenant| std::cmp::Reverse(depth(tenant)));
    for tenant in order {
        if !is_given(tenant.index()) {
            for (number, &gpus) in own[tenant.index()].iter().enumerate() {
                cluster.tenants[tenant.index()].quota.set(GpuTypeId::from_index(number), gpus);
            }
        }
        let entry = &cluster.tenants[tenant.index()];
        if let Some(parent) = entry.parent.filter(|p| !is_given(p.index())) {
            for (number, sum) in own[parent.index()].iter_mut().enumerate() {
                *sum = (*sum + entry.quota.of(GpuTypeId::from_index(number))).min(MAX_QUOTA);
            }
        }
    }
}
