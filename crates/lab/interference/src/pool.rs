//! Jobs draw what they run from a pool of training configurations.

use crate::configurations::{Configuration, ConfigurationsFile};
use crate::random::stream;
use deepshare_model::{GpuTypeId, Training};
use deepshare_trace::tables::quote;
use deepshare_trace::{Cluster, Problem, Problems, Trace, TraceError, TraceJob};
use rand::RngExt;

/// Purpose of the stream from which configurations are drawn.
const PURPOSE: u64 = 0x504f_4f4c;

/// What training has to know of the machines.
pub(crate) struct Machines {
    nodes: Vec<Machine>,
}

/// Nodes that are alike.
struct Machine {
    gpu_type: GpuTypeId,
    gpus: u32,
    memory_mib: u32,
    /// The first of them, and the type of its GPUs.
    name: String,
}

impl Machines {
    /// Those of `cluster`; GPUs whose node does not say have `device_mib` of memory.
    pub(crate) fn of(cluster: &Cluster, device_mib: u32) -> Machines {
        let mut nodes: Vec<Machine> = Vec::new();
        for node in &cluster.nodes {
            let (gpu_type, gpus) = (node.gpu_type, node.gpus);
            let memory_mib =
                if node.gpu_memory_mib == 0 { device_mib } else { node.gpu_memory_mib };
            let like =
                |m: &Machine| (m.gpu_type, m.gpus, m.memory_mib) == (gpu_type, gpus, memory_mib);
            if !nodes.iter().any(like) {
                let of_type = cluster.gpu_types.get(gpu_type.index()).map_or("gpu", String::as_str);
                let name = format!("{} (GPU type {})", quote(&node.name), quote(of_type));
                nodes.push(Machine { gpu_type, gpus, memory_mib, name });
            }
        }
        Machines { nodes }
    }

    /// Those that a job may run on.
    fn usable(&self, job: &TraceJob) -> impl Iterator<Item = &Machine> {
        let wanted = job.gpu_type;
        self.nodes.iter().filter(move |m| wanted.is_none_or(|gpu_type| gpu_type == m.gpu_type))
    }
}

/// The configuration of each job of `trace`, as its position in the pool: each job draws once, by
/// weight, among those for its number of GPUs.
pub(crate) fn draw(
    pool: &ConfigurationsFile,
    trace: &Trace,
    seed: u64,
) -> Result<Vec<usize>, TraceError> {
    let mut rng = stream(seed, PURPOSE);
    let mut drawn = Vec::with_capacity(trace.jobs.len());
    for job in &trace.jobs {
        let all = pool.configurations.iter().enumerate();
        let suits = |one: &Configuration| (one.least_gpus..=one.most_gpus).contains(&job.gpus);
        let suiting = || all.clone().filter(|(_, one)| suits(one));
        let total: u64 = suiting().map(|(_, one)| one.weight_milli).sum();
        if total == 0 {
            let what =
                format!("no configuration is for {} GPUs, as job {} has", job.gpus, quote(&job.id));
            let remedy = "widen gpus_min and gpus_max of a row, or add one";
            return Err(Problems::of(&pool.file).fatal(Problem::of_file(what, remedy)));
        }
        let mut left = rng.random_range(0..total);
        let found = suiting().find(|(_, one)| match left.checked_sub(one.weight_milli) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        drawn.push(found.expect("the draw is below the sum of weights").0);
    }
    Ok(drawn)
}

/// What each job trains.
pub(crate) fn train(
    pool: &ConfigurationsFile,
    drawn: &[usize],
    trace: &Trace,
    machines: &Machines,
) -> Result<Vec<Training>, TraceError> {
    let mut problems = Problems::of(&pool.file);
    let mut said = vec![false; pool.configurations.len()];
    let mut training = Vec::with_capacity(drawn.len());
    for (job, &at) in trace.jobs.iter().zip(drawn) {
        let one = &pool.configurations[at];
        let node_gpus = machines.usable(job).map(|machine| machine.gpus).max().unwrap_or(0);
        let profile = one.profile.training.expect("configurations of a pool have it");
        let of_job = profile.of_job(job.gpus, node_gpus, job.duration);
        let largest = machines.usable(job).max_by_key(|machine| machine.memory_mib);
        if let Some(largest) = largest
            && of_job.memory_mib(1) > largest.memory_mib
            && !std::mem::replace(&mut said[at], true)
        {
            problems.push(does_not_fit(one, &of_job, largest, job));
        }
        training.push(of_job);
    }
    problems.check()?;
    Ok(training)
}

fn does_not_fit(
    one: &Configuration,
    training: &Training,
    largest: &Machine,
    job: &TraceJob,
) -> Problem {
    let what = format!(
        "{} takes {} MiB of a GPU in one step, and the largest that job {} may use has {} MiB, on \
         node {}",
        one.profile.workload,
        training.memory_mib(1),
        quote(&job.id),
        largest.memory_mib,
        largest.name,
    );
    let remedy = "lower its batch or memory, leave it out, or correct gpu_memory_mib of the nodes";
    Problem::at(one.line, what, remedy)
}
