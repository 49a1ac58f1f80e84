//! A prediction of retention that is as good as asked for: the truth with seeded noise.

use crate::random::{normal, stream};

/// Purpose of the stream from which errors are drawn.
const PURPOSE: u64 = 0x4553_5449;
/// Halvings of the range of noise: enough for R² to be met to its last digits.
const HALVINGS: u32 = 60;

/// Millionths: all of its solo speed.
pub(crate) const WHOLE: u32 = 1_000_000;

/// `truth` with noise such that its R² is `wanted`, and the R² that was reached. Values are clamped
/// to 1 and a million; if clamping keeps R² above what was asked, it stays above.
pub(crate) fn with_error(truth: &[u32], wanted: f64, seed: u64) -> (Vec<u32>, f64) {
    let spread = spread(truth);
    let wanted_error = (1.0 - wanted) * spread;
    // Nothing varies, or nothing may be wrong: R² is 1 or undefined.
    if wanted.is_nan() || wanted_error <= 0.0 {
        return (truth.to_vec(), 1.0);
    }
    let mut rng = stream(seed, PURPOSE);
    let noise: Vec<f64> = truth.iter().map(|_| normal(&mut rng)).collect();
    let noisy = |scale: f64| -> Vec<u32> {
        let value = |(&t, z): (&u32, &f64)| {
            libm::round((f64::from(t) + scale * z).clamp(1.0, f64::from(WHOLE))) as u32
        };
        truth.iter().zip(&noise).map(value).collect()
    };
    // More noise never means less error, since clamping keeps what is clamped where it is.
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if error(truth, &noisy(middle)) < wanted_error {
            low = middle;
        } else {
            high = middle;
        }
    }
    let estimate = noisy(high);
    let reached = 1.0 - error(truth, &estimate) / spread;
    (estimate, reached)
}

/// R² of `estimate` against `truth`: 1 less the squared error over the squared deviation of the
/// truth from its mean; 1 if the truth does not vary and is met, and minus infinity if it is not.
pub(crate) fn r_squared(truth: &[u32], estimate: &[u32]) -> f64 {
    let error = error(truth, estimate);
    if error == 0.0 { 1.0 } else { 1.0 - error / spread(truth) }
}

fn spread(truth: &[u32]) -> f64 {
    let mean = truth.iter().map(|&t| f64::from(t)).sum::<f64>() / truth.len().max(1) as f64;
    truth.iter().map(|&t| (f64::from(t) - mean) * (f64::from(t) - mean)).sum()
}

fn error(truth: &[u32], estimate: &[u32]) -> f64 {
    let difference = |(&t, &e): (&u32, &u32)| f64::from(t) - f64::from(e);
    truth.iter().zip(estimate).map(difference).map(|d| d * d).sum()
}
