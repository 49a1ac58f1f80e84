//! Predictions that are as good as asked for: the truth with seeded noise.
//!
//! Noise is normal and independent for each ordered pair. How good a prediction is is said by R² of
//! retentions, or by the mean absolute error of slowdowns (1/retention); the noise is on what the
//! quality is of.

use crate::random::{normal, stream};
use rand_pcg::Pcg64Mcg;

/// Purpose of the stream from which errors are drawn.
const PURPOSE: u64 = 0x4553_5449;
/// Purpose of the stream of errors on held-out pairs.
const HELD_OUT: u64 = 0x4845_4c44;
/// Errors of which percentiles are taken, at least.
const ERRORS: usize = 10_000;
/// Halvings of the range of noise: enough for the quality to be met to its last digits.
const HALVINGS: u32 = 60;

/// Millionths: all of its solo speed.
pub(crate) const WHOLE: u32 = 1_000_000;

/// How good a prediction is, over all ordered pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PredictionQuality {
    /// R² of retentions, at most 1.
    RSquared(f64),
    /// Mean absolute error of slowdowns (1/retention), 0 or more.
    SlowdownError(f64),
}

use PredictionQuality::{RSquared, SlowdownError};

impl PredictionQuality {
    /// `truth` with noise such that it is as good as this, and the quality that was reached. What is
    /// predicted stays a retention: 1 to a million. If clamping keeps errors below what was asked,
    /// they stay below.
    pub(crate) fn predict(self, truth: &[u32], seed: u64) -> (Vec<u32>, f64) {
        let noise = draw(truth.len(), &mut stream(seed, PURPOSE));
        let Some(scale) = self.scale(truth, &noise) else {
            return (truth.to_vec(), self.perfect());
        };
        let predicted = self.noisy(truth, &noise, scale);
        let reached = match self {
            RSquared(_) => 1.0 - error(truth, &predicted) / spread(truth),
            SlowdownError(_) => slowdown_error(truth, &predicted),
        };
        (predicted, reached)
    }

    /// The percentiles 0 to 100 (nearest rank) of true less predicted slowdown, millionths, of the
    /// predictor that [`PredictionQuality::predict`] makes of this seed: of errors with its noise, on
    /// the same pairs, but drawn anew.
    pub(crate) fn error_percentiles(self, truth: &[u32], seed: u64) -> Vec<i32> {
        if truth.is_empty() {
            return Vec::new();
        }
        let used = draw(truth.len(), &mut stream(seed, PURPOSE));
        let Some(scale) = self.scale(truth, &used) else { return vec![0; 101] };
        let mut rng = stream(seed, HELD_OUT);
        let mut errors: Vec<f64> = Vec::new();
        while errors.len() < ERRORS {
            let predicted = self.noisy(truth, &draw(truth.len(), &mut rng), scale);
            errors.extend(truth.iter().zip(&predicted).map(|(&t, &p)| slowdown(t) - slowdown(p)));
        }
        errors.sort_by(f64::total_cmp);
        let last = errors.len() - 1;
        (0..=100).map(|percent| millionths(errors[(percent * last).div_ceil(100)])).collect()
    }

    /// What a prediction without errors reaches.
    fn perfect(self) -> f64 {
        match self {
            RSquared(_) => 1.0,
            SlowdownError(_) => 0.0,
        }
    }

    /// The scale of noise that meets the quality; `None` if nothing may be wrong, or if nothing varies
    /// where that is what errors are measured by.
    fn scale(self, truth: &[u32], noise: &[f64]) -> Option<f64> {
        let wanted = match self {
            RSquared(wanted) => (1.0 - wanted) * spread(truth),
            SlowdownError(wanted) => wanted,
        };
        if wanted.is_nan() || wanted <= 0.0 {
            return None;
        }
        let found = |scale: f64| {
            let predicted = self.noisy(truth, noise, scale);
            match self {
                RSquared(_) => error(truth, &predicted),
                SlowdownError(_) => slowdown_error(truth, &predicted),
            }
        };
        // More noise never means less error, since clamping keeps what is clamped where it is.
        let (mut low, mut high) = (0.0, self.most());
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if found(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    /// Noise beyond which all is clamped, in millionths of a retention or in slowdown.
    fn most(self) -> f64 {
        match self {
            RSquared(_) => 1e9,
            SlowdownError(_) => 1e6,
        }
    }

    fn noisy(self, truth: &[u32], noise: &[f64], scale: f64) -> Vec<u32> {
        let whole = f64::from(WHOLE);
        let value = |(&t, z): (&u32, &f64)| match self {
            RSquared(_) => libm::round((f64::from(t) + scale * z).clamp(1.0, whole)) as u32,
            SlowdownError(_) => {
                libm::round(whole / (slowdown(t) + scale * z).clamp(1.0, whole)) as u32
            }
        };
        truth.iter().zip(noise).map(value).collect()
    }
}

fn draw(count: usize, rng: &mut Pcg64Mcg) -> Vec<f64> {
    (0..count).map(|_| normal(rng)).collect()
}

/// R² of `estimate` against `truth`: 1 less the squared error over the squared deviation of the
/// truth from its mean; 1 if the truth does not vary and is met, and minus infinity if it is not.
pub(crate) fn r_squared(truth: &[u32], estimate: &[u32]) -> f64 {
    let error = error(truth, estimate);
    if error == 0.0 { 1.0 } else { 1.0 - error / spread(truth) }
}

/// Mean absolute error of slowdowns; 0 if there are none.
pub(crate) fn slowdown_error(truth: &[u32], estimate: &[u32]) -> f64 {
    let errors = truth.iter().zip(estimate).map(|(&t, &e)| (slowdown(t) - slowdown(e)).abs());
    errors.sum::<f64>() / truth.len().max(1) as f64
}

fn slowdown(retention: u32) -> f64 {
    f64::from(WHOLE) / f64::from(retention)
}

fn spread(truth: &[u32]) -> f64 {
    let mean = truth.iter().map(|&t| f64::from(t)).sum::<f64>() / truth.len().max(1) as f64;
    truth.iter().map(|&t| (f64::from(t) - mean) * (f64::from(t) - mean)).sum()
}

fn error(truth: &[u32], estimate: &[u32]) -> f64 {
    let difference = |(&t, &e): (&u32, &u32)| f64::from(t) - f64::from(e);
    truth.iter().zip(estimate).map(difference).map(|d| d * d).sum()
}

/// A slowdown in millionths; errors beyond what fits are as large as fits.
fn millionths(slowdown: f64) -> i32 {
    libm::round(slowdown * 1e6).clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32
}
