//! How many jobs of each size every virtual cluster gets.
//!
//! Published are the sizes of all jobs together and, by virtual cluster, jobs, GPU-hours, mean
//! duration and largest job. The table that agrees with all of these and assumes nothing else is
//! found by proportional fitting.

use super::apportion;
use super::statistics::{CLUSTERS, SIZES};

const ROWS: usize = CLUSTERS.len();
const COLUMNS: usize = SIZES.len();
/// GPUs of a job averaged over GPU time are more than averaged over jobs, by the tables.
const JOB_MEAN_SHARE: f64 = 0.81;

/// GPU counts of the `jobs[v]` jobs of each virtual cluster `v`, ascending.
pub(super) fn by_cluster(jobs: &[u32]) -> Vec<Vec<u32>> {
    let table = fit();
    let mut all = Vec::new();
    for ((row, vc), &n) in table.iter().zip(&CLUSTERS).zip(jobs) {
        let counts = apportion(row, n);
        let mut sizes: Vec<u32> = (SIZES.iter().zip(counts))
            .flat_map(|(&(gpus, ..), count)| std::iter::repeat_n(gpus, count as usize))
            .collect();
        if let Some(last) = sizes.last_mut() {
            *last = vc.largest;
        }
        all.push(sizes);
    }
    all
}

/// Weights of the sizes in each virtual cluster.
fn fit() -> [[f64; COLUMNS]; ROWS] {
    let mut table = [[0.0; COLUMNS]; ROWS];
    for (row, vc) in table.iter_mut().zip(&CLUSTERS) {
        let by_time = vc.gpu_hours * 3600.0 / (f64::from(vc.jobs) * vc.mean_s);
        *row = tilted(vc.largest, (by_time * JOB_MEAN_SHARE).max(1.05));
    }
    for _ in 0..60 {
        for (column, &(_, jobs, _)) in SIZES.iter().enumerate() {
            let sum: f64 = table.iter().map(|row| row[column]).sum();
            table.iter_mut().for_each(|row| row[column] *= f64::from(jobs) / sum);
        }
        for (row, vc) in table.iter_mut().zip(&CLUSTERS) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|cell| *cell *= f64::from(vc.jobs) / sum);
        }
    }
    table
}

/// The sizes of all jobs up to `largest`, tilted by a power of the size so that the mean is `mean`.
fn tilted(largest: u32, mean: f64) -> [f64; COLUMNS] {
    let tilt = |power: f64| {
        SIZES.map(|(gpus, jobs, _)| {
            let fits = gpus <= largest;
            if fits { f64::from(jobs) * libm::pow(f64::from(gpus), power) } else { 0.0 }
        })
    };
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..50 {
        let power = (low + high) / 2.0;
        let row = tilt(power);
        let weighted = row.iter().zip(SIZES).map(|(w, (gpus, ..))| w * f64::from(gpus));
        if weighted.sum::<f64>() / row.iter().sum::<f64>() < mean {
            low = power;
        } else {
            high = power;
        }
    }
    tilt((low + high) / 2.0)
}
