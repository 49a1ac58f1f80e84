//! How a training job's batch, memory and speed hang together.
//!
//! A job of `batch` samples a GPU and iteration can run each iteration in `s` steps of `batch / s`
//! samples, adding up their gradients: the same result with less memory, at some cost in time. That
//! is what lets two jobs onto one device whose memory does not hold both as they are (SJF-BSBF,
//! IWQoS '24).
//!
//! Iteration time, by number of steps, in the form of Pollux (OSDI '21, §3):
//!
//! ```text
//! t_comp(b) = fixed + per_sample · b
//! t(s)      = (s − 1) · t_comp(B/s) + ( t_comp(B/s)^δ + t_comm^δ )^(1/δ)
//! memory(s) = fixed + per_sample · B/s
//! ```
//!
//! Deviation: communication is a figure of the job, not of where its GPUs happen to be.

use crate::Retention;
use serde::{Deserialize, Serialize};

/// Time of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IterationTime {
    /// Of a forward and backward pass whatever its samples, µs.
    pub compute_fixed_us: u32,
    /// Of each sample, ns.
    pub compute_per_sample_ns: u64,
    /// Of adding up gradients between GPUs, µs; 0 for one GPU.
    pub communication_us: u32,
    /// How computing and communicating overlap (δ), thousandths: 1,000 = not at all, 10,000 = nearly
    /// all of the shorter is hidden.
    pub overlap_milli: u32,
}

/// GPU memory of a job on each of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingMemory {
    /// Weights, optimiser and the framework, MiB.
    pub fixed_mib: u32,
    /// Activations of each sample, KiB.
    pub per_sample_kib: u32,
}

/// A training job's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Samples a GPU works off in one iteration.
    pub batch: u32,
    /// Iterations in all.
    pub iterations: u64,
    /// What an iteration takes.
    pub time: IterationTime,
    /// What it needs on each device.
    pub memory: TrainingMemory,
}

impl Training {
    /// In how many steps an iteration can be done: 1, 2, 4 … as long as the batch divides by it.
    pub fn steps(&self) -> impl Iterator<Item = u32> + use<> {
        let batch = self.batch;
        (0..u32::BITS)
            .map(|power| 1u32 << power)
            .take_while(move |s| *s <= batch.max(1) && (*s == 1 || batch.is_multiple_of(*s)))
    }

    /// GPU memory on each device, MiB, with each iteration done in so many steps; rounded up.
    pub fn memory_mib(&self, steps: u32) -> u32 {
        let samples = u64::from(self.batch).div_ceil(u64::from(steps.max(1)));
        let activations = (samples * u64::from(self.memory.per_sample_kib)).div_ceil(1_024);
        self.memory.fixed_mib.saturating_add(u32::try_from(activations).unwrap_or(u32::MAX))
    }

    /// Time of an iteration done in so many steps, alone on its devices, s.
    pub fn iteration_s(&self, steps: u32) -> f64 {
        let steps = steps.max(1);
        let IterationTime { compute_fixed_us, compute_per_sample_ns, communication_us, .. } =
            self.time;
        let samples = f64::from(self.batch) / f64::from(steps);
        let compute =
            f64::from(compute_fixed_us) * 1e-6 + compute_per_sample_ns as f64 * 1e-9 * samples;
        let communication = f64::from(communication_us) * 1e-6;
        let last = if communication_us == 0 {
            compute
        } else {
            let overlap = f64::from(self.time.overlap_milli.clamp(1_000, 10_000)) / 1_000.0;
            let sum = libm::pow(compute, overlap) + libm::pow(communication, overlap);
            libm::pow(sum, 1.0 / overlap)
        };
        f64::from(steps - 1) * compute + last
    }

    /// What is left of its speed with each iteration done in so many steps.
    pub fn pace(&self, steps: u32) -> Retention {
        match steps {
            0 | 1 => Retention::WHOLE,
            _ => Retention::from_ratio(self.iteration_s(1) / self.iteration_s(steps)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// YOLOv3 on a T4, one GPU: 0.2164 s + 0.0243 s a sample (Pollux' profiles).
    fn yolo(communication_us: u32, overlap_milli: u32) -> Training {
        Training {
            batch: 12,
            iterations: 1_000,
            time: IterationTime {
                compute_fixed_us: 216_400,
                compute_per_sample_ns: 24_300_000,
                communication_us,
                overlap_milli,
            },
            memory: TrainingMemory { fixed_mib: 2_000, per_sample_kib: 600 * 1_024 },
        }
    }

    #[test]
    fn steps_divide_the_batch() {
        assert_eq!(yolo(0, 1_000).steps().collect::<Vec<_>>(), [1, 2, 4]);
        let odd = Training { batch: 7, ..yolo(0, 1_000) };
        assert_eq!(odd.steps().collect::<Vec<_>>(), [1]);
        let power = Training { batch: 1 << 31, ..yolo(0, 1_000) };
        assert_eq!(power.steps().count(), 32);
    }

    #[test]
    fn more_steps_take_less_memory_and_a_fixed_cost_each() {
        let alone = yolo(0, 1_000);
        assert_eq!([1, 2, 4].map(|s| alone.memory_mib(s)), [9_200, 5_600, 3_800]);
        // 0.2164 + 12 · 0.0243 = 0.508; each further step costs 0.2164.
        for (steps, time) in [(1, 0.508), (2, 0.7244), (4, 1.1572)] {
            assert!((alone.iteration_s(steps) - time).abs() < 1e-9, "{steps}");
        }
        assert_eq!(alone.pace(2), Retention::from_ratio(0.508 / 0.7244));
        assert_eq!(alone.pace(1), Retention::WHOLE);
    }

    #[test]
    fn communication_adds_up_or_hides() {
        let apart = yolo(300_000, 1_000);
        assert!((apart.iteration_s(1) - 0.808).abs() < 1e-9);
        let hidden = yolo(300_000, 10_000).iteration_s(1);
        assert!(hidden > 0.508 && hidden < 0.509, "{hidden}");
    }
}
