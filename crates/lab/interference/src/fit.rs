//! The fit: coefficients, one gain for each source, and each job type's demand together.
//!
//! Minimised is the squared error of retention over `2 · ERROR²`, plus squared distances of all
//! that is fitted from what is likely beforehand, over twice their variance (a posterior mode).
//! Adam with exact gradients, a fixed number of steps and no randomness.

use crate::measurements::{Measurements, Observation};
use deepshare_interference::Coefficients;

/// Standard deviation of a measured retention.
const ERROR: f64 = 0.1;
/// Likely demand without counters, as logits: compute 60 %, bandwidth 30 %.
const LIKELY: (f64, f64) = (0.405_465, -0.847_298);
/// Standard deviation of demand in logits, without counters and with.
const SPREAD: f64 = 1.0;
const SPREAD_WITH_COUNTERS: f64 = 0.15;
/// Standard deviations of the logit of compute's part, and of the logarithms of the sum of both
/// coefficients, of an exponent and of a source's gain. Demand and coefficients could make up for
/// each other: the sum is held near 1, where two jobs that ask for all of a device halve it.
const SPREAD_SPLIT: f64 = 1.0;
const SPREAD_TOTAL: f64 = 0.02;
const SPREAD_EXPONENT: f64 = 0.3;
const SPREAD_GAIN: f64 = 0.03;
/// Steps of the minimiser.
const STEPS: u32 = 800;
/// Position of the exponent of a job's own compute, which stays 1.
const OWN: usize = 2;

/// Everything that is fitted, as one vector: the logit of compute's part of the coefficients, the
/// logarithms of their sum, of both exponents and of the gains of sources, then logits of compute
/// and bandwidth of every job.
#[derive(Clone, Debug)]
pub struct Fit {
    values: Vec<f64>,
    likely: Vec<(f64, f64)>,
    sources: usize,
}

/// Which of the values may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free<'a> {
    /// All.
    All,
    /// Only the demand of these jobs.
    Demand(&'a [bool]),
}

impl Fit {
    /// Before any measurement: all is as likely beforehand.
    pub fn new(measurements: &Measurements) -> Fit {
        let sources = measurements.sources.len();
        let mut likely = vec![(0.0, SPREAD_SPLIT), (0.0, SPREAD_TOTAL)];
        likely.extend([(0.0, SPREAD_EXPONENT); 2]);
        likely.extend(vec![(0.0, SPREAD_GAIN); sources]);
        for job in &measurements.jobs {
            match job.counters {
                Some((compute, bandwidth)) => {
                    likely.push((logit(compute), SPREAD_WITH_COUNTERS));
                    likely.push((logit(bandwidth), SPREAD_WITH_COUNTERS));
                }
                None => likely.extend([(LIKELY.0, SPREAD), (LIKELY.1, SPREAD)]),
            }
        }
        let values = likely.iter().map(|(mean, _)| *mean).collect();
        Fit { values, likely, sources }
    }

    /// The coefficients for a source of middling gain.
    pub fn coefficients(&self) -> Coefficients {
        let of = |at: usize| libm::exp(self.values[at]);
        let split = logistic(self.values[0]);
        let total = of(1);
        Coefficients {
            compute: total * split,
            bandwidth: total * (1.0 - split),
            own: of(2),
            other: of(3),
        }
    }

    /// How much more than the coefficients say two jobs hurt each other in a source.
    pub fn gain(&self, source: usize) -> f64 {
        libm::exp(self.values[4 + source])
    }

    /// A job's compute and bandwidth.
    pub fn demand(&self, job: usize) -> (f64, f64) {
        let at = 4 + self.sources + 2 * job;
        (logistic(self.values[at]), logistic(self.values[at + 1]))
    }

    /// What is predicted of an observation; with the source's gain, or without.
    pub fn predict(&self, seen: &Observation, with_gain: bool) -> f64 {
        let (own, other) = (self.demand(seen.own), self.demand(seen.other));
        let gain = if with_gain { self.gain(seen.source) } else { 1.0 };
        1.0 / (1.0 + gain * self.coefficients().slowdown(own, other))
    }

    /// Fits what is `free` to `seen`.
    pub fn minimise(&mut self, seen: &[Observation], free: Free<'_>) {
        let first_job = 4 + self.sources;
        let may_change: Vec<bool> = (0..self.values.len())
            .map(|at| match free {
                Free::All => at != OWN,
                Free::Demand(jobs) => at >= first_job && jobs[(at - first_job) / 2],
            })
            .collect();
        let (mut mean, mut square) = (vec![0.0; self.values.len()], vec![0.0; self.values.len()]);
        let (mut mean_left, mut square_left) = (1.0, 1.0);
        for step in 0..STEPS {
            let gradient = self.gradient(seen);
            mean_left *= 0.9;
            square_left *= 0.999;
            let rate = 0.05 * (1.0 - f64::from(step) / f64::from(STEPS));
            for at in 0..self.values.len() {
                if !may_change[at] {
                    continue;
                }
                mean[at] = 0.9 * mean[at] + 0.1 * gradient[at];
                square[at] = 0.999 * square[at] + 0.001 * gradient[at] * gradient[at];
                let scaled = libm::sqrt(square[at] / (1.0 - square_left)) + 1e-9;
                self.values[at] -= rate * mean[at] / (1.0 - mean_left) / scaled;
            }
        }
    }

    fn gradient(&self, seen: &[Observation]) -> Vec<f64> {
        let first_job = 4 + self.sources;
        let k = self.coefficients();
        let mut gradient: Vec<f64> = (self.values.iter().zip(&self.likely))
            .map(|(value, (mean, spread))| (value - mean) / (spread * spread))
            .collect();
        let split = k.compute / (k.compute + k.bandwidth);
        // Powers of demand: own and other, of compute and bandwidth.
        let jobs = (self.values.len() - first_job) / 2;
        let demand: Vec<Powers> = (0..jobs)
            .map(|job| {
                let (compute, bandwidth) = self.demand(job);
                Powers { compute: Power::new(compute, &k), bandwidth: Power::new(bandwidth, &k) }
            })
            .collect();
        for at in seen {
            let (own, other) = (&demand[at.own], &demand[at.other]);
            let gain = self.gain(at.source);
            let compute = gain * k.compute * own.compute.own * other.compute.other;
            let bandwidth = gain * k.bandwidth * own.compute.own * other.bandwidth.other;
            let retention = 1.0 / (1.0 + compute + bandwidth);
            // Derivative by the slowdown.
            let slope = -(retention - at.retention) * retention * retention / (ERROR * ERROR);
            let mut add = |to: usize, derivative: f64| gradient[to] += slope * derivative;
            add(0, compute * (1.0 - split) - bandwidth * split);
            add(1, compute + bandwidth);
            let logs = |c: f64, b: f64| compute * c + bandwidth * b;
            add(2, k.own * logs(own.compute.log, own.compute.log));
            add(3, k.other * logs(other.compute.log, other.bandwidth.log));
            add(4 + at.source, compute + bandwidth);
            let (own_at, other_at) = (first_job + 2 * at.own, first_job + 2 * at.other);
            add(own_at, (compute + bandwidth) * k.own * own.compute.rest);
            add(other_at, compute * k.other * other.compute.rest);
            add(other_at + 1, bandwidth * k.other * other.bandwidth.rest);
        }
        gradient
    }
}

struct Powers {
    compute: Power,
    bandwidth: Power,
}

/// A share, to both exponents, its logarithm, and what it lacks to 1.
struct Power {
    own: f64,
    other: f64,
    log: f64,
    rest: f64,
}

impl Power {
    fn new(share: f64, k: &Coefficients) -> Power {
        let log = libm::log(share);
        Power {
            own: libm::exp(k.own * log),
            other: libm::exp(k.other * log),
            log,
            rest: 1.0 - share,
        }
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// The logit of a share, kept off 0 and 1.
fn logit(share: f64) -> f64 {
    let share = share.clamp(0.01, 0.99);
    libm::log(share / (1.0 - share))
}

/// How well predictions fit what was measured.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// How many were compared.
    pub count: usize,
    /// Mean of what was measured.
    pub mean: f64,
    /// 1 less squared error over squared deviation from the mean.
    pub r_squared: f64,
    /// Mean absolute error.
    pub error: f64,
    /// Mean of predicted less measured.
    pub bias: f64,
}

impl Quality {
    /// Of pairs of measured and predicted.
    pub fn of(pairs: &[(f64, f64)]) -> Quality {
        let count = pairs.len();
        let over = |value: &dyn Fn(f64, f64) -> f64| {
            pairs.iter().map(|&(seen, said)| value(seen, said)).sum::<f64>() / count.max(1) as f64
        };
        let mean = over(&|seen, _| seen);
        let spread = over(&|seen, _| (seen - mean) * (seen - mean));
        Quality {
            count,
            mean,
            r_squared: 1.0 - over(&|seen, said| (seen - said) * (seen - said)) / spread,
            error: over(&|seen, said| (seen - said).abs()),
            bias: over(&|seen, said| said - seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::Job;

    #[test]
    fn the_gradient_is_the_slope_of_what_is_minimised() {
        let job = |counters| Job { model: String::new(), counters };
        let measurements = Measurements {
            sources: vec![String::new(); 2],
            jobs: vec![job(None), job(Some((0.9, 0.7))), job(None)],
            observations: Vec::new(),
        };
        let mut fit = Fit::new(&measurements);
        for (at, value) in fit.values.iter_mut().enumerate() {
            *value += 0.1 * (at as f64 - 4.0);
        }
        let seen: Vec<Observation> = [(0, 1, 0, 0.3), (1, 2, 1, 0.8), (2, 2, 0, 0.5)]
            .map(|(own, other, source, retention)| Observation { own, other, source, retention })
            .to_vec();
        let loss = |fit: &Fit| {
            let errors = seen.iter().map(|s| fit.predict(s, true) - s.retention);
            let data: f64 = errors.map(|e| e * e / (2.0 * ERROR * ERROR)).sum();
            let likely = fit.values.iter().zip(&fit.likely);
            data + likely.map(|(v, (m, s))| (v - m) * (v - m) / (2.0 * s * s)).sum::<f64>()
        };
        let gradient = fit.gradient(&seen);
        for (at, slope) in gradient.iter().enumerate() {
            let (mut up, mut down) = (fit.clone(), fit.clone());
            up.values[at] += 1e-5;
            down.values[at] -= 1e-5;
            let numeric = (loss(&up) - loss(&down)) / 2e-5;
            assert!(
                (numeric - slope).abs() < 1e-4 * (1.0 + slope.abs()),
                "{at}: {numeric} {slope}"
            );
        }
    }
}
