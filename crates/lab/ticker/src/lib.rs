//! A naive one-second reference simulator, used as a differential oracle in tests.
//!
//! It exists to be obviously right rather than fast: one loop per simulated second and virtual
//! cluster, sorted lists, and a scan of every GPU of every node for each placement. It shares no
//! code with the engine, so a mistake would have to be made twice to go unseen.
//!
//! Two [`Semantics`] are offered. `Artifact` follows the simulator published with Lucid
//! (ASPLOS 2023) to the second, its oddities included; a test that is run by hand checks every
//! job of a month against that simulator's logs. `Plain` is the same loop with the oddities
//! taken out, for comparing with an ordinary event-driven simulator.
//!
//! Order of work within a second, always: jobs that are done leave, jobs submitted in this second
//! arrive, then the policy orders and places. A GPU freed in a second can be used in it.

mod cluster;
mod preemptive;
mod run_to_end;
mod settings;
mod virtual_cluster;

pub use settings::{OraclePolicy, OracleSettings, Semantics};

use virtual_cluster::VirtualCluster;

/// A job as the oracle sees it: nothing but numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleJob {
    /// The caller's name for the job. It is printed in panics and decides nothing.
    pub id: u32,
    /// Index into the list of virtual clusters.
    pub vc: usize,
    /// GPUs needed, all at once. At least 1, and no more than the virtual cluster has.
    pub gpus: u32,
    /// Second at which the job arrives; not before the start of the simulation.
    pub submit_s: u64,
    /// Seconds of work, at least 1.
    pub duration_s: u64,
    /// Estimated seconds of work. Only QSSF reads it. It may be zero or negative.
    pub estimate_s: i64,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleResult {
    /// Second of the first start.
    pub start_s: u64,
    /// Second of the end.
    pub end_s: u64,
    /// Seconds spent waiting: before the first start, and after each preemption.
    pub queue_s: u64,
    /// How often the job was preempted.
    pub preemptions: u32,
}

/// Runs `jobs` until the last has ended and returns their results in the order given.
///
/// `vcs[v]` is the number of nodes of virtual cluster `v`; the virtual clusters share nothing.
/// `jobs` are in trace order: among jobs of one second, the earlier in the slice arrives first.
/// They need not be sorted by submission. The clock starts at `start_s`; it is absolute, so
/// Tiresias' minute marks are the multiples of 60.
///
/// # Panics
/// If a job could never end: no such virtual cluster, no GPUs, more GPUs than its virtual cluster
/// has, no work, or submitted before `start_s`.
pub fn simulate(
    settings: &OracleSettings,
    vcs: &[u32],
    jobs: &[OracleJob],
    start_s: u64,
) -> Vec<OracleResult> {
    for job in jobs {
        check(settings, vcs, job, start_s);
    }
    let mut results = vec![None; jobs.len()];
    for (vc, &nodes) in vcs.iter().enumerate() {
        let mine: Vec<usize> = (0..jobs.len()).filter(|&i| jobs[i].vc == vc).collect();
        let mine_in_order = mine.iter().map(|&i| jobs[i].clone()).collect();
        let ended = VirtualCluster::new(settings, nodes, mine_in_order, start_s).run();
        for (&i, result) in mine.iter().zip(ended) {
            results[i] = Some(result);
        }
    }
    results.into_iter().map(|r| r.expect("every job belongs to a checked vc")).collect()
}

fn check(settings: &OracleSettings, vcs: &[u32], job: &OracleJob, start_s: u64) {
    let id = job.id;
    assert!(job.vc < vcs.len(), "job {id}: virtual cluster {} does not exist", job.vc);
    assert!(job.gpus > 0, "job {id}: needs no gpus");
    let gpus = vcs[job.vc] * settings.gpus_per_node;
    assert!(job.gpus <= gpus, "job {id}: needs {} gpus of {gpus}, so it never starts", job.gpus);
    assert!(job.duration_s > 0, "job {id}: has no work, so its end is never seen");
    assert!(job.submit_s >= start_s, "job {id}: submitted at {} before the start", job.submit_s);
}
