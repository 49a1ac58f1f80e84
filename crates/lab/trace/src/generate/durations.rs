//! How long jobs run: long tails whose mean, median and GPU time are the published ones.

use super::statistics::{DURATIONS, GPU_HOURS, LONGEST_S, MEAN_S, MEDIAN_S, SIZES, VirtualCluster};

/// How much of what is known of a size's mean duration goes into a job's inclination to run long.
const SIZE_PART: f64 = 0.5;

/// Durations in whole seconds for the jobs of one virtual cluster, given each one's size and its
/// inclination to run long (normal, deviation 1).
///
/// The durations handed out are fixed: the quantiles of all jobs, stretched to the virtual
/// cluster's median and mean. Who gets which follows the inclination, to which so much of the size
/// is added (or taken) that the GPU time comes out right.
pub(super) fn hand_out(vc: &VirtualCluster, sizes: &[u32], inclination: &[f64]) -> Vec<u64> {
    let ladder = ladder(vc, sizes.len());
    let wanted = vc.gpu_hours * 3600.0 * sizes.len() as f64 / f64::from(vc.jobs);
    let logs: Vec<f64> = sizes.iter().map(|&gpus| libm::log(f64::from(gpus))).collect();
    let known: Vec<f64> = sizes.iter().map(|&gpus| SIZE_PART * log_excess(gpus)).collect();
    let assign = |weight: f64| {
        let score = |job: usize| inclination[job] + known[job] + weight * logs[job];
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
        let mut durations = vec![0; sizes.len()];
        order.iter().zip(&ladder).for_each(|(&job, &seconds)| durations[job] = seconds);
        durations
    };
    let gpu_seconds = |durations: &[u64]| -> f64 {
        durations.iter().zip(sizes).map(|(&d, &gpus)| d as f64 * f64::from(gpus)).sum()
    };
    let (mut low, mut high) = (-3.0, 3.0);
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..16 {
        let weight = (low + high) / 2.0;
        let durations = assign(weight);
        let excess = gpu_seconds(&durations) - wanted;
        if excess < 0.0 {
            low = weight;
        } else {
            high = weight;
        }
        if excess.abs() < best.0 {
            best = (excess.abs(), durations);
        }
    }
    best.1
}

/// Logarithm of the mean duration of jobs of this size, as a multiple of that of all jobs.
fn log_excess(gpus: u32) -> f64 {
    let at = SIZES.partition_point(|&(size, ..)| size < gpus).min(SIZES.len() - 1);
    let (size, jobs, percent) = SIZES[at];
    let hours = GPU_HOURS * percent / 100.0 / (f64::from(size) * f64::from(jobs));
    libm::log(hours * 3600.0 / MEAN_S)
}

/// `n` durations in whole seconds, ascending, with the median and mean of the virtual cluster.
fn ladder(vc: &VirtualCluster, n: usize) -> Vec<u64> {
    let steps: Vec<f64> = (0..n).map(|i| log_quantile((i as f64 + 0.5) / n as f64)).collect();
    let middle = libm::log(MEDIAN_S);
    let stretched = |stretch: f64| -> Vec<u64> {
        let duration = |&step: &f64| {
            let factor = if step > middle { stretch } else { 1.0 };
            let seconds = vc.median_s * libm::exp(factor * (step - middle));
            libm::round(seconds.clamp(1.0, LONGEST_S)) as u64
        };
        steps.iter().map(duration).collect()
    };
    let (mut low, mut high) = (0.1, 3.0);
    for _ in 0..30 {
        let stretch = (low + high) / 2.0;
        let sum: u64 = stretched(stretch).iter().sum();
        if (sum as f64) < vc.mean_s * n as f64 {
            low = stretch;
        } else {
            high = stretch;
        }
    }
    stretched((low + high) / 2.0)
}

/// Logarithm of the duration below which a share of all jobs stays: straight between the published
/// quantiles.
fn log_quantile(share: f64) -> f64 {
    let after = DURATIONS.partition_point(|&(u, _)| u <= share).clamp(1, DURATIONS.len() - 1);
    let ((u0, d0), (u1, d1)) = (DURATIONS[after - 1], DURATIONS[after]);
    let part = ((share - u0) / (u1 - u0)).clamp(0.0, 1.0);
    libm::log(d0) * (1.0 - part) + libm::log(d1) * part
}
