//! The event log of a live scheduler as a history to simulate.

use crate::failure::Failure;
use crate::inputs::{Inputs, cluster_of};
use crate::settings::Settings;
use deepshare_engine::CapacityMode;
use deepshare_event_log::{Ended, History, PastJob, PastNode};
use deepshare_model::{GpuTypeId, Layout, Outcome, Resources, TenantId, Time};
use deepshare_trace::{Cluster, ImportReport, NodeEntry, TenantEntry, Trace, TraceJob, civil};
use std::collections::BTreeSet;
use std::path::Path;

/// Reads the log, and the cluster that settings name in place of its own.
///
/// # Errors
/// If one of them cannot be used.
pub fn load(log: &Path, settings: &Settings) -> Result<Inputs, Failure> {
    let other = settings.cluster.file.as_deref();
    let other = other.map(|file| cluster_of(file, settings)).transpose()?;
    let (trace, cluster) = read(log, other)?;
    Ok(Inputs { trace, cluster })
}

/// The jobs of a log, and its cluster or another one.
///
/// # Errors
/// If the log cannot be read, or has no nodes or a job that the other cluster has no place for.
pub fn read(log: &Path, other: Option<Cluster>) -> Result<(Trace, Cluster), Failure> {
    let mut history = History::read(log)?;
    let own = cluster(&history);
    let cluster = match other {
        Some(other) => {
            move_to(&mut history, &own, &other, log)?;
            other
        }
        None if own.nodes.is_empty() => {
            let what = format!(
                "{}: no node is left at the end of the log; give a cluster with \
                 `--cluster FILE`",
                log.display()
            );
            return Err(Failure::Usage(what));
        }
        None => own,
    };
    Ok((trace(history, &cluster, log), cluster))
}

/// The nodes and tenants of a log.
fn cluster(history: &History) -> Cluster {
    // In partitions, a pool is the nodes of one tenant.
    let partitions = history.capacity == CapacityMode::Partition;
    let owner = |node: &PastNode| {
        let tenant = history.tenants.iter().position(|tenant| tenant.spec.pool == node.spec.pool);
        tenant.filter(|_| partitions).map(TenantId::from_index)
    };
    let limited = |amount: u64, none: u64| (amount < none).then_some(amount);
    let nodes = history.nodes.iter().map(|node| NodeEntry {
        name: node.name.clone(),
        tenant: owner(node),
        gpu_type: node.spec.gpu_type,
        gpus: node.spec.gpus,
        gpu_memory_mib: node.spec.gpu_memory_mib,
        cpu_milli: limited(node.spec.capacity.cpu_milli, Resources::UNLIMITED.cpu_milli),
        memory_mib: limited(node.spec.capacity.memory_mib, Resources::UNLIMITED.memory_mib),
    });
    let tenants = history.tenants.iter().map(|tenant| TenantEntry {
        name: tenant.name.clone(),
        parent: tenant.spec.parent,
        quota: tenant.spec.quota.clone(),
        best_effort_milli: tenant.spec.best_effort_milli,
        lending_limit: tenant.spec.lending_limit,
        min_run_time: tenant.spec.min_run_time,
    });
    Cluster {
        nodes: nodes.filter(|node| node.gpus > 0).collect(),
        tenants: tenants.collect(),
        gpu_types: history.gpu_types.clone(),
    }
}

/// Numbers tenants and GPU types as another cluster does, by name.
fn move_to(
    history: &mut History,
    own: &Cluster,
    other: &Cluster,
    log: &Path,
) -> Result<(), Failure> {
    let position = |names: &[String], name: &String| names.iter().position(|known| known == name);
    let names = other.tenant_names();
    let mut lacks = BTreeSet::new();
    for job in &mut history.jobs {
        let tenant = &own.tenants[job.spec.tenant.index()].name;
        match position(&names, tenant) {
            Some(at) => job.spec.tenant = TenantId::from_index(at),
            // A cluster that names no tenants is everybody's.
            None if names.is_empty() => {}
            None => _ = lacks.insert(format!("tenant {tenant}")),
        }
        let Some(gpu_type) = &mut job.spec.demand.gpu_type else { continue };
        let name = &own.gpu_types[gpu_type.index()];
        match position(&other.gpu_types, name) {
            Some(at) => *gpu_type = GpuTypeId::from_index(at),
            None => _ = lacks.insert(format!("GPU type {name}")),
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    let lacks: Vec<String> = lacks.into_iter().collect();
    let (lacks, log) = (lacks.join(", "), log.display());
    Err(Failure::Usage(format!(
        "the cluster has no {lacks}, for which jobs of {log} ask; begin with the log's own \
         cluster: `deepshare generate --history {log} --out jobs.csv --cluster-out cluster.toml`"
    )))
}

/// The jobs that ran, as the simulator takes them.
fn trace(history: History, cluster: &Cluster, log: &Path) -> Trace {
    let count =
        |what: &dyn Fn(&PastJob) -> bool| history.jobs.iter().filter(|job| what(job)).count();
    let ran = |job: &PastJob| job.run_time.is_some_and(|time| !time.is_zero());
    let never = count(&|job| !ran(job));
    let unfinished = count(&|job| ran(job) && job.outcome.is_none());
    let withdrawn = count(&|job| ran(job) && job.outcome == Some(Outcome::Cancelled));
    let gangs = count(&|job| ran(job) && matches!(job.spec.demand.layout, Layout::Members(_)));
    let mut notes = Vec::new();
    let mut note = |number: usize, what: &str| {
        if number > 0 {
            notes.push(format!("{number} {what}"));
        }
    };
    note(never, "left out: they never ran, so nobody knows for how long they would");
    note(unfinished, "had not ended with the log: they run for as long as they had by then");
    note(withdrawn, "were withdrawn while they ran: they run for as long as they had by then");
    note(gangs, "are gangs of pods: here their GPUs may be spread as if they were one job's");
    note(history.lost_nodes as usize, "nodes are left out: they were lost at the end of the log");
    if let Ended::Cut { segment, offset } = history.ended {
        notes.push(format!("the log is cut at byte {offset} of segment {segment:08}"));
    }
    let rows = history.jobs.len() as u64;
    let kept: Vec<&PastJob> = history.jobs.iter().filter(|job| ran(job)).collect();
    // Without those that never ran, the first submission may be later: a trace begins with it.
    let zero = kept.first().map_or(Time::ZERO, |job| job.spec.submit);
    let mut names = BTreeSet::new();
    let jobs: Vec<TraceJob> = (1..)
        .zip(kept)
        .map(|(row, job)| {
            let again = !names.insert(job.name.clone());
            let id = if again { format!("{}#{row}", job.name) } else { job.name.clone() };
            trace_job(id, row, job, zero)
        })
        .collect();
    let report = ImportReport {
        file: log.display().to_string(),
        format: None,
        rows,
        kept: jobs.len() as u64,
        dropped: Vec::new(),
        imputed: Vec::new(),
        origin: Some(civil::show(history.time_zero_unix_us.saturating_add_unsigned(zero.0))),
        zero_durations: 0,
        notes,
    };
    let tenants = match cluster.tenants.is_empty() {
        true => history.tenants.into_iter().map(|tenant| tenant.name).collect(),
        false => cluster.tenant_names(),
    };
    let gpu_types = cluster.gpu_types.clone();
    Trace { jobs, tenants, users: history.users, gpu_types, report }
}

fn trace_job(id: String, row: u64, job: &PastJob, zero: Time) -> TraceJob {
    let spec = &job.spec;
    let demand = &spec.demand;
    TraceJob {
        id,
        tenant: spec.tenant,
        user: spec.user,
        gpu_type: demand.gpu_type,
        cpu_milli: demand.per_gpu.times(demand.gpus).cpu_milli,
        memory_mib: demand.per_gpu.times(demand.gpus).memory_mib,
        gpu_memory_mib: demand.gpu_memory_mib,
        outcome: job.outcome.unwrap_or(Outcome::Cancelled),
        class: Some(spec.class),
        priority: spec.priority,
        requested_time: spec.requested_time,
        slowdown_limit_milli: spec.sharing.slowdown_limit_milli,
        row,
        ..TraceJob::plain(
            demand.gpus.max(1),
            Time(spec.submit.saturating_since(zero).0),
            job.run_time.unwrap_or_default(),
        )
    }
}
