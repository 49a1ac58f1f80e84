//! What jobs do to each other on one device: the truth, which no policy sees, and what is told of it.

use deepshare_engine::RetentionTable;
use deepshare_interference::{Assignment, RetentionMatrix};
use deepshare_model::{JobId, ProfileClassId, Retention, Span, Training};
use std::sync::Arc;

/// A profile class as the meters see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassUse {
    /// Share of a device's compute that a job uses alone, 0 to 1.
    pub compute: f64,
    /// GPU memory that it uses on each device, MiB.
    pub memory_mib: u32,
}

/// What jobs do to each other on one device.
#[derive(Clone, Debug)]
pub struct Interference {
    /// The profile class of each job of the trace.
    pub class_of: Vec<ProfileClassId>,
    /// What each job of the trace trains, where that is known; may be shorter.
    pub training_of: Vec<Option<Training>>,
    /// What each class uses alone.
    pub classes: Vec<ClassUse>,
    /// True retention: row own class, column the partner's.
    pub truth: Vec<Vec<Retention>>,
    /// What policies are told.
    pub predicted: RetentionTable,
    /// Memory of devices whose node does not say, MiB.
    pub device_memory_mib: u32,
    /// Time between two samples of a pair.
    pub sample_period: Span,
    /// Standard deviation of a sample's error, as a share of the true retention.
    pub sample_noise: f64,
    /// What people should know about where it comes from.
    pub notes: Vec<String>,
}

impl Interference {
    /// Jobs with these profiles, the truth about them and what is predicted of it; samples every
    /// 10 s with 3 % noise, on devices of 24 GiB where nodes do not say (the GPUs on which the
    /// published profiles were taken).
    pub fn new(
        assignment: &Assignment,
        truth: &RetentionMatrix,
        predicted: &RetentionMatrix,
    ) -> Interference {
        let rows = |matrix: &RetentionMatrix| -> Vec<Vec<Retention>> {
            let row = |row: &[u32]| row.iter().map(|&ppm| Retention::from_ppm(ppm)).collect();
            matrix.as_rows().map(row).collect()
        };
        let compute = assignment.catalogue.profiles().iter().map(|profile| profile.compute);
        let scores = compute.map(score).collect();
        let classes = assignment.catalogue.profiles().iter();
        let classes = classes
            .map(|profile| ClassUse { compute: profile.compute, memory_mib: profile.memory_mib });
        Interference {
            class_of: assignment.of_job.clone(),
            training_of: assignment.training.clone(),
            classes: classes.collect(),
            truth: rows(truth),
            predicted: RetentionTable {
                version: 1,
                rows: rows(predicted),
                scores,
                errors_ppm: Vec::new(),
            },
            device_memory_mib: 24_576,
            sample_period: Span::from_secs(10),
            sample_noise: 0.03,
            notes: Vec::new(),
        }
    }

    /// What a job keeps of its solo speed beside another.
    pub(crate) fn retention(&self, own: JobId, other: JobId) -> Retention {
        let class = |job: JobId| self.class_of[job.index()].index();
        self.truth[class(own)][class(other)]
    }

    pub(crate) fn use_of(&self, job: JobId) -> ClassUse {
        self.classes[self.class_of[job.index()].index()]
    }
}

/// Lucid's sharing score by the compute that a job uses alone, where nobody has given scores. Ours:
/// the published scores rise with compute, and these two steps tell most of them apart.
fn score(compute: f64) -> u8 {
    match compute {
        _ if compute < 0.45 => 0,
        _ if compute < 0.60 => 1,
        _ => 2,
    }
}

/// Shared by all runs of a sweep.
pub type SharedInterference = Arc<Interference>;
