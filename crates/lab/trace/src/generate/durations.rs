//! How long jobs run: long tails whose quantiles, mean and GPU time are the published ones.

use super::statistics::{CLASSES, LONGEST_S, SHARES, TAIL, VirtualCluster};

/// The longest job of a virtual cluster runs this many times as long as its 99th percentile,
/// about. Assumed.
const LAST_PERCENT: f64 = 2.5;
/// Rounds of fitting the GPU time of each class of sizes.
const ROUNDS: u32 = 40;
/// How far a round goes, in deviations of the inclination per unit of the logarithm of the error.
const STRIDE: f64 = 0.3;

/// Durations in whole seconds for the jobs of one virtual cluster, given each one's size and its
/// inclination to run long (normal, deviation 1).
///
/// The durations handed out are fixed. Who gets which follows the inclination, to which so much is
/// added (or taken) in each class of sizes that the class gets its GPU time.
pub(super) fn hand_out(vc: &VirtualCluster, sizes: &[u32], inclination: &[f64]) -> Vec<u64> {
    let ladder = ladder(vc, sizes.len());
    let class = |gpus: u32| CLASSES.partition_point(|&largest| largest < gpus);
    let all = vc.gpu_hours * 3600.0 * sizes.len() as f64 / f64::from(vc.jobs());
    let wanted = vc.percent_by_size.map(|percent| percent / 100.0 * all);
    let mut shift = [0.0; CLASSES.len()];
    let mut best = (f64::INFINITY, shift);
    for _ in 0..ROUNDS {
        let durations = assign(&ladder, |job| inclination[job] + shift[class(sizes[job])]);
        let mut got = [0.0; CLASSES.len()];
        for (&seconds, &gpus) in durations.iter().zip(sizes) {
            got[class(gpus)] += seconds as f64 * f64::from(gpus);
        }
        let apart: f64 = got.iter().zip(&wanted).map(|(g, w)| (g - w).abs()).sum();
        if apart < best.0 {
            best = (apart, shift);
        }
        for ((shift, got), wanted) in shift.iter_mut().zip(got).zip(wanted) {
            if got > 0.0 && wanted > 0.0 {
                *shift += STRIDE * libm::log(wanted / got).clamp(-1.0, 1.0);
            }
        }
    }
    let shift = best.1;
    to_the_load(all, sizes, |weight| {
        assign(&ladder, |job| {
            inclination[job] + shift[class(sizes[job])] + weight * libm::log(f64::from(sizes[job]))
        })
    })
}

/// Of the durations for each weight of the size, those with the GPU time nearest to `wanted`.
fn to_the_load(wanted: f64, sizes: &[u32], durations: impl Fn(f64) -> Vec<u64>) -> Vec<u64> {
    let (mut low, mut high) = (-1.0, 1.0);
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..16 {
        let weight = (low + high) / 2.0;
        let durations = durations(weight);
        let got: f64 = durations.iter().zip(sizes).map(|(&d, &g)| d as f64 * f64::from(g)).sum();
        if got < wanted {
            low = weight;
        } else {
            high = weight;
        }
        if (got - wanted).abs() < best.0 {
            best = ((got - wanted).abs(), durations);
        }
    }
    best.1
}

/// The ladder's durations, handed to jobs in order of their score.
fn assign(ladder: &[u64], score: impl Fn(usize) -> f64) -> Vec<u64> {
    let mut order: Vec<(f64, usize)> = (0..ladder.len()).map(|job| (score(job), job)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut durations = vec![0; ladder.len()];
    order.iter().zip(ladder).for_each(|(&(_, job), &seconds)| durations[job] = seconds);
    durations
}

/// `n` durations in whole seconds, ascending: the quantiles of the virtual cluster, of which those
/// above the median are stretched to its mean.
fn ladder(vc: &VirtualCluster, n: usize) -> Vec<u64> {
    let steps: Vec<f64> = (0..n).map(|i| log_quantile(vc, (i as f64 + 0.5) / n as f64)).collect();
    let middle = libm::log(vc.durations_s[TAIL]);
    let stretched = |stretch: f64| -> Vec<u64> {
        let duration = |&step: &f64| {
            let factor = if step > middle { stretch } else { 1.0 };
            let seconds = libm::exp(middle + factor * (step - middle));
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

/// Logarithm of the duration below which a share of the jobs stays: straight between the
/// published quantiles. The ends are assumed.
fn log_quantile(vc: &VirtualCluster, share: f64) -> f64 {
    let knot = |at: usize| match at {
        0 => (0.0, 0.0),
        _ if at > SHARES.len() => {
            let last = vc.durations_s[SHARES.len() - 1];
            (1.0, libm::log(last * LAST_PERCENT))
        }
        _ => (SHARES[at - 1], libm::log(vc.durations_s[at - 1])),
    };
    let after = SHARES.partition_point(|&known| known <= share) + 1;
    let ((u0, d0), (u1, d1)) = (knot(after - 1), knot(after));
    let part = ((share - u0) / (u1 - u0)).clamp(0.0, 1.0);
    d0 * (1.0 - part) + d1 * part
}
