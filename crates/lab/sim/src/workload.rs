//! A trace and a cluster in the engine's terms.

use crate::error::SimError;
use crate::interference::Interference;
use crate::world::stream;
use deepshare_engine::{CapacityMode, Command, Engine, EngineSettings, Event, Reason};
use deepshare_model::{
    Class, Demand, JobId, JobSpec, Layout, NodeId, NodeSpec, PoolId, Quota, Resources, Sharing,
    TenantId, TenantSpec, Time,
};
use deepshare_policies::PolicyConfig;
use deepshare_trace::{Cluster, Trace, TraceJob};
use rand::RngExt;
use std::collections::BTreeMap;

/// The random stream of recommendations.
const RECOMMENDATIONS: u64 = 1 << 33;

/// A trace and a cluster in the engine's terms: what a run begins with.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Tenants by id.
    pub tenants: Vec<TenantSpec>,
    /// Nodes by id.
    pub nodes: Vec<NodeSpec>,
    /// Jobs in trace order.
    pub jobs: Vec<JobSpec>,
    /// Number of pools.
    pub pools: usize,
    /// Names of tenants by id.
    pub names: Vec<String>,
}

impl Workload {
    /// Puts jobs, nodes and tenants into pools as the capacity mode has it: one pool a tenant, or
    /// one for all.
    ///
    /// # Errors
    /// If the cluster does not have what the mode needs, or a job asks for something that no
    /// node describes.
    pub fn new(trace: &Trace, cluster: &Cluster, mode: CapacityMode) -> Result<Workload, SimError> {
        let pool_of = |tenant: TenantId| match mode {
            CapacityMode::Partition => PoolId::from_index(tenant.index()),
            CapacityMode::Hard | CapacityMode::Pool | CapacityMode::Elastic => PoolId(0),
        };
        if mode == CapacityMode::Partition && cluster.nodes.iter().any(|n| n.tenant.is_none()) {
            return Err(SimError::NoPartitions);
        }
        let quotas = matches!(mode, CapacityMode::Hard | CapacityMode::Elastic);
        if quotas && cluster.tenants.is_empty() {
            return Err(SimError::NoQuotas { mode: mode.name() });
        }
        let count = trace.tenants.len().max(cluster.tenants.len());
        let tenants = (0..count)
            .map(|index| match cluster.tenants.get(index) {
                Some(entry) => TenantSpec {
                    pool: pool_of(TenantId::from_index(index)),
                    parent: entry.parent,
                    quota: entry.quota.clone(),
                    best_effort_milli: entry.best_effort_milli,
                    lending_limit: entry.lending_limit,
                    min_run_time: entry.min_run_time,
                },
                None => TenantSpec::new(pool_of(TenantId::from_index(index)), Quota::default()),
            })
            .collect();
        let nodes: Vec<NodeSpec> = cluster
            .nodes
            .iter()
            .map(|node| NodeSpec {
                pool: node.tenant.map_or(PoolId(0), pool_of),
                gpu_type: node.gpu_type,
                gpus: node.gpus,
                gpu_memory_mib: node.gpu_memory_mib,
                capacity: Resources {
                    cpu_milli: node.cpu_milli.unwrap_or(Resources::UNLIMITED.cpu_milli),
                    memory_mib: node.memory_mib.unwrap_or(Resources::UNLIMITED.memory_mib),
                },
            })
            .collect();
        let limits = Limits::of(cluster);
        let jobs = trace.jobs.iter().map(|job| limits.spec(job)).collect();
        let pools = match mode {
            CapacityMode::Partition => count,
            CapacityMode::Hard | CapacityMode::Pool | CapacityMode::Elastic => 1,
        };
        let known =
            if cluster.tenants.is_empty() { trace.tenants.clone() } else { cluster.tenant_names() };
        Ok(Workload { tenants, nodes, jobs, pools, names: known })
    }

    /// Tells an engine of tenants and nodes.
    pub(crate) fn inventory(&self) -> impl Iterator<Item = Event> + '_ {
        let tenants = self.tenants.iter().enumerate().map(|(index, spec)| Event::TenantSet {
            tenant: TenantId::from_index(index),
            spec: spec.clone(),
        });
        let nodes = self.nodes.iter().enumerate().map(|(index, spec)| Event::NodeAdded {
            node: NodeId::from_index(index),
            spec: spec.clone(),
        });
        tenants.chain(nodes)
    }

    /// Jobs that this cluster can never run, with the reason, by asking an engine about each kind
    /// of job once.
    pub fn oversize(&self, settings: &EngineSettings) -> Vec<(JobId, String)> {
        let fifo = PolicyConfig::Fifo { skip: false }.build();
        let mut engine = Engine::new(*settings, fifo);
        let mut out = Vec::new();
        for event in self.inventory() {
            engine.step(Time::ZERO, &event, &mut out).expect("no round, no proposal");
        }
        let mut verdicts: BTreeMap<(TenantId, Class, Demand), Option<String>> = BTreeMap::new();
        let mut asked = 0;
        let mut oversize = Vec::new();
        for (index, spec) in self.jobs.iter().enumerate() {
            // A tenant's cap is another for each class.
            let kind = (spec.tenant, spec.class, spec.demand);
            let verdict = verdicts.entry(kind).or_insert_with(|| {
                out.clear();
                let event = Event::Submitted { job: JobId(asked), spec: spec.clone() };
                asked += 1;
                engine.step(Time::ZERO, &event, &mut out).expect("no round, no proposal");
                out.iter().find_map(|command| match command {
                    Command::Refuse { reason, .. } => Some(self.in_words(spec, reason)),
                    _ => None,
                })
            });
            if let Some(reason) = verdict {
                oversize.push((JobId::from_index(index), reason.clone()));
            }
        }
        oversize
    }
}

impl Workload {
    /// Gives jobs their profiles: the class by which policies know them, what they train, the memory
    /// they need, and consent to share. What the trace says of memory counts, except of a job whose
    /// training is known: what it needs then hangs together with its batch. Devices of nodes that do
    /// not say what memory they have get the one the profiles were taken on.
    ///
    /// Without sharing only what the meters count matters, and jobs stay as they are.
    pub(crate) fn profile(&mut self, interference: &Interference, shares: bool) {
        if !shares {
            return;
        }
        for node in self.nodes.iter_mut().filter(|node| node.gpu_memory_mib == 0) {
            node.gpu_memory_mib = interference.device_memory_mib;
        }
        for (index, (job, &class)) in self.jobs.iter_mut().zip(&interference.class_of).enumerate() {
            job.profile = Some(class);
            job.sharing.consent = true;
            job.training = interference.training_of.get(index).copied().flatten();
            if let Some(training) = &job.training {
                job.demand.gpu_memory_mib = training.memory_mib(1);
            } else if job.demand.gpu_memory_mib == 0 {
                job.demand.gpu_memory_mib = interference.classes[class.index()].memory_mib;
            }
        }
    }

    /// Draws what a vertical autoscaler would recommend for best-effort jobs that ask for CPU or
    /// memory: a share of it, the same for both.
    pub(crate) fn recommend(&mut self, (least, most): (u32, u32), seed: u64) {
        let mut rng = stream(seed, RECOMMENDATIONS);
        for job in &mut self.jobs {
            let share = u64::from(rng.random_range(least..=most.max(least)));
            let asked = job.demand.per_gpu;
            if job.class == Class::BestEffort && asked != Resources::default() {
                job.recommended = Some(Resources {
                    cpu_milli: asked.cpu_milli * share / 1_000,
                    memory_mib: asked.memory_mib * share / 1_000,
                });
            }
        }
    }

    /// Why a job can never run, with the tenant's name and what to do about a quota.
    fn in_words(&self, spec: &JobSpec, reason: &Reason) -> String {
        let class = spec.class.name();
        match reason {
            Reason::LargerThanQuota { tenant, need, quota } => {
                let name = self.names.get(tenant.index()).map_or("?", String::as_str);
                format!(
                    "{} (needs {need} GPUs; tenant {name} may use {quota} for {class} jobs)",
                    reason.name()
                )
            }
            _ => reason.to_string(),
        }
    }
}

/// Which resources any node limits. What none limits is left out of demands, so that jobs that
/// differ only in it stay interchangeable.
struct Limits {
    cpu: bool,
    memory: bool,
    gpu_memory: bool,
}

impl Limits {
    fn of(cluster: &Cluster) -> Limits {
        Limits {
            cpu: cluster.nodes.iter().any(|node| node.cpu_milli.is_some()),
            memory: cluster.nodes.iter().any(|node| node.memory_mib.is_some()),
            gpu_memory: cluster.nodes.iter().any(|node| node.gpu_memory_mib > 0),
        }
    }

    fn spec(&self, job: &TraceJob) -> JobSpec {
        let each = |amount: u64, limited: bool| {
            if limited { amount.div_ceil(u64::from(job.gpus)) } else { 0 }
        };
        JobSpec {
            tenant: job.tenant,
            user: job.user,
            class: job.class.unwrap_or(Class::Guaranteed),
            priority: job.priority,
            submit: job.submit,
            demand: Demand {
                gpus: job.gpus,
                layout: Layout::Consolidated,
                gpu_type: job.gpu_type,
                gpu_memory_mib: if self.gpu_memory { job.gpu_memory_mib } else { 0 },
                per_gpu: Resources {
                    cpu_milli: each(job.cpu_milli, self.cpu),
                    memory_mib: each(job.memory_mib, self.memory),
                },
                site: None,
            },
            sharing: Sharing {
                slowdown_limit_milli: job.slowdown_limit_milli,
                ..Sharing::default()
            },
            profile: None,
            training: None,
            recommended: None,
            requested_time: job.requested_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_interference::{
        Assignment, ContentionModel, Mechanism, RetentionMatrix, read_configurations_from,
    };
    use deepshare_trace::{ClusterOptions, ReadOptions, read_cluster_from, read_trace_from};
    use std::io::Cursor;

    #[test]
    fn jobs_of_a_pool_get_their_training_and_its_memory_where_jobs_share() {
        let input = |text: &str| Cursor::new(text.to_owned().into_bytes());
        let rows = "job_id,tenant,gpus,submit_s,duration_s,gpu_memory_mib,gpu_sla\n\
                    a,t,2,0,100,777,1.5\n";
        let trace = read_trace_from("t.csv", input(rows), &ReadOptions::default()).unwrap();
        let nodes = "[[node]]\ngpus = 4\ngpu_memory_mib = 9000\n";
        let cluster = read_cluster_from("c", input(nodes), ClusterOptions::default()).unwrap();
        let pool = "model,batchsize,weight,gpu_util,gmem_util,memory_fixed_mib,memory_sample_kib,\
                    compute_fixed_s,compute_sample_s,comm_node_s,source\n\
                    m,8,1,50,20,900,1024,0.1,0.05,0.5,ours\n";
        let pool = read_configurations_from("p.csv", input(pool)).unwrap();
        let assignment = Assignment::from_pool(&pool, &trace, &cluster, 9_000, 1).unwrap();
        let model = ContentionModel::default();
        let (truth, _) =
            RetentionMatrix::truth(&assignment.catalogue, None, &model, Mechanism::Mps);
        let interference = Interference::new(&assignment, &truth, &truth);
        let profiled = |shares| {
            let mut workload = Workload::new(&trace, &cluster, CapacityMode::Pool).unwrap();
            workload.profile(&interference, shares);
            workload.jobs.remove(0)
        };
        let job = profiled(true);
        // One iteration takes 0.1 + 8 · 0.05 + 0.5 s.
        assert_eq!(job.training.map(|training| training.iterations), Some(100));
        assert_eq!((job.demand.gpu_memory_mib, job.sharing.slowdown_limit_milli), (908, 1_500));
        let alone = profiled(false);
        assert_eq!((alone.training, alone.demand.gpu_memory_mib), (None, 777));
    }
}
