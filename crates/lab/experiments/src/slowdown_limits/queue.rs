//! The queue that every cell runs: lengths of Philly, Poisson arrivals, 16 nodes of 4 GPUs.

use crate::ExperimentError;
use deepshare_model::{Class, GpuTypeId, Span, Time};
use deepshare_trace::{Cluster, NodeEntry, ReadOptions, Trace, TraceJob, read_trace};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::path::Path;

/// Jobs of a queue.
pub const JOBS: usize = 1_000;
/// Nodes, and GPUs of each.
const NODES: (usize, u32) = (16, 4);
/// Shortest and longest job, s: 10 minutes and 10 hours.
const LENGTHS_S: (u64, u64) = (600, 36_000);
/// Jobs of 1, 2 and 4 workers, per cent.
const WORKERS: [(u32, u32); 3] = [(1, 60), (2, 25), (4, 15)];
/// Work that arrives, over what the GPUs can do one job at a time.
const OFFERED: f64 = 1.2;

/// Seeds of the streams, so that none disturbs another.
const PURPOSE: u64 = 0x534c_4f57;
const SIZES: u64 = 0x5349_5a45;

/// Lengths of jobs as Philly had them.
pub struct Lengths {
    all: Vec<Span>,
    history: Trace,
}

impl Lengths {
    /// The history's lengths from 10 minutes to 10 hours.
    ///
    /// # Errors
    /// If the data folder does not have the file.
    pub fn philly(data: &Path) -> Result<Lengths, ExperimentError> {
        let file = data.join("philly").join("philly.csv.zst");
        let mut history = read_trace(&file, &ReadOptions::default())?;
        let (least, most) = LENGTHS_S;
        let within = Span::from_secs(least)..=Span::from_secs(most);
        let lengths = history.jobs.iter().map(|job| job.duration);
        let all = lengths.filter(|length| within.contains(length)).collect();
        history.jobs.clear();
        Ok(Lengths { all, history })
    }

    fn mean_s(&self) -> f64 {
        let sum: f64 = self.all.iter().map(|length| length.as_secs_f64()).sum();
        sum / self.all.len().max(1) as f64
    }

    /// The queue of a seed.
    pub fn queue(&self, seed: u64) -> Trace {
        let mut rng = stream(seed, PURPOSE);
        let work =
            self.mean_s() * WORKERS.map(|(of, share)| f64::from(of * share)).iter().sum::<f64>();
        let gpus = f64::from(NODES.1) * NODES.0 as f64;
        let between_s = work / 100.0 / (gpus * OFFERED);
        let mut at_s = 0.0;
        let jobs = (1..=JOBS).map(|row| {
            at_s -= between_s * libm::log(1.0 - rng.random_range(0.0..1.0));
            let length = self.all[rng.random_range(0..self.all.len())];
            let workers = workers(rng.random_range(0..100));
            TraceJob {
                id: row.to_string(),
                class: Some(Class::Guaranteed),
                row: row as u64,
                ..TraceJob::plain(workers, Time((at_s * 1e6) as u64), length)
            }
        });
        let jobs = jobs.collect();
        let (tenants, users) = (vec!["lab".to_owned()], vec!["lab".to_owned()]);
        Trace { jobs, tenants, users, gpu_types: vec!["gpu".to_owned()], ..self.history.clone() }
    }

    /// What a queue is, in words.
    pub fn describe(&self) -> String {
        let (nodes, each) = NODES;
        let workers = WORKERS.map(|(of, share)| format!("{share} % {of}"));
        format!(
            "{JOBS} jobs a seed on {nodes} nodes of {each} GPUs, one pool without quotas. Lengths \
             are drawn from the {} jobs of Philly that ran 10 minutes to 10 hours (mean {:.0} s), \
             workers are {}, arrivals Poisson with an offered load of {OFFERED}.",
            self.all.len(),
            self.mean_s(),
            workers.join(", "),
        )
    }
}

/// A random stream of a seed.
pub fn stream(seed: u64, purpose: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The workers of a job, by a number from 0 to 99.
fn workers(drawn: u32) -> u32 {
    let mut below = 0;
    let found = WORKERS.iter().find(|(_, share)| {
        below += share;
        drawn < below
    });
    found.map_or(1, |&(workers, _)| workers)
}

/// The machines, with so much memory on each GPU.
pub fn cluster(gpu_memory_mib: u32) -> Cluster {
    let node = |number: usize| NodeEntry {
        name: format!("node-{number}"),
        tenant: None,
        gpu_type: GpuTypeId(0),
        gpus: NODES.1,
        gpu_memory_mib,
        cpu_milli: None,
        memory_mib: None,
    };
    let gpu_types = vec!["gpu".to_owned()];
    Cluster { tenants: Vec::new(), nodes: (0..NODES.0).map(node).collect(), gpu_types }
}

/// Run times as somebody guesses them: true ones times a lognormal error with this deviation of the
/// logarithm.
pub fn guesses(trace: &Trace, sigma: f64, seed: u64) -> Vec<Span> {
    let mut rng = stream(seed, SIZES);
    let mut normal = move || {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.random_range(0.0..1.0)));
        radius * libm::cos(core::f64::consts::TAU * rng.random_range(0.0..1.0))
    };
    let guess = |job: &TraceJob| {
        Span((job.duration.0 as f64 * libm::exp(sigma * normal())).max(1.0) as u64)
    };
    trace.jobs.iter().map(guess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::with_philly;

    #[test]
    fn workers_are_drawn_by_their_shares() {
        let drawn: Vec<u32> = (0..100).map(workers).collect();
        for (of, share) in WORKERS {
            assert_eq!(drawn.iter().filter(|&&workers| workers == of).count(), share as usize);
        }
    }

    #[test]
    fn a_queue_is_as_it_is_described_and_another_with_each_seed() {
        let Some(data) = with_philly() else { return };
        let lengths = Lengths::philly(&data).unwrap();
        let queue = lengths.queue(1);
        assert_eq!((queue.jobs.len(), lengths.queue(1)), (JOBS, queue.clone()));
        assert_ne!(lengths.queue(2), queue);
        let last = queue.jobs.last().unwrap().submit.0 as f64 * 1e-6;
        let offered = queue.gpu_time().as_gpu_secs() / (64.0 * last);
        assert!((offered - OFFERED).abs() < 0.2, "{offered}");
        let errors = guesses(&queue, 0.3, 1);
        let log =
            |(job, guess): (&TraceJob, &Span)| libm::log(guess.0 as f64 / job.duration.0 as f64);
        let squares: f64 = queue.jobs.iter().zip(&errors).map(|both| log(both).powi(2)).sum();
        assert!((libm::sqrt(squares / JOBS as f64) - 0.3).abs() < 0.03);
    }
}
