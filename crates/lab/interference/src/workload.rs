//! What a job runs, and what that asks of a device.

use crate::configurations::TrainingProfile;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a job runs. Two jobs that run the same are one class of interference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// Name of the model, as the file has it.
    pub model: String,
    /// Name of the data set; may be empty.
    pub dataset: String,
    /// Samples in a batch; 0 = not known.
    pub batch: u32,
    /// Whether it computes in mixed precision.
    pub mixed_precision: bool,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.model)?;
        if !self.dataset.is_empty() {
            write!(f, " on {}", self.dataset)?;
        }
        if self.batch > 0 {
            write!(f, ", batch {}", self.batch)?;
        }
        f.write_str(if self.mixed_precision { ", mixed precision" } else { "" })
    }
}

/// A workload alone on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What runs.
    pub workload: Workload,
    /// Share of time in which the device computes for it, 0 to 1 (a GPU utilisation of 100 % is 1).
    pub compute: f64,
    /// Share of time in which device memory is read or written for it, 0 to 1.
    pub bandwidth: f64,
    /// Device memory it holds, MiB.
    pub memory_mib: u32,
    /// Samples a second, if known.
    pub throughput: Option<f64>,
    /// How its batch, memory and speed hang together, if known.
    pub training: Option<TrainingProfile>,
}
