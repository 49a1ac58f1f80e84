//! Where run-time estimates come from: named in every result.

use deepshare_model::{JobId, JobSpec, Span};
use deepshare_predict::RunningMean;
use std::sync::Arc;

/// A source of run-time estimates.
#[derive(Clone, Debug)]
pub enum Estimator {
    /// Nobody predicts anything.
    None,
    /// The true duration: what no real scheduler has.
    Oracle,
    /// The mean of the user's jobs that have ended.
    RunningMean,
    /// Given for each job, in trace order.
    Given {
        /// The source's name, for results.
        name: String,
        /// By job.
        values: Arc<[Span]>,
    },
}

impl Estimator {
    /// The word used in results.
    pub fn name(&self) -> &str {
        match self {
            Estimator::None => "none",
            Estimator::Oracle => "oracle",
            Estimator::RunningMean => "running-mean",
            Estimator::Given { name, .. } => name,
        }
    }
}

/// An estimator at work.
pub(crate) struct Predictor {
    source: Estimator,
    means: RunningMean,
}

impl Predictor {
    pub(crate) fn new(source: Estimator) -> Predictor {
        Predictor { source, means: RunningMean::default() }
    }

    pub(crate) fn estimate(&self, job: JobId, spec: &JobSpec, duration: Span) -> Option<Span> {
        match &self.source {
            Estimator::None => None,
            Estimator::Oracle => Some(duration),
            Estimator::RunningMean => self.means.estimate(spec.user, spec.tenant),
            Estimator::Given { values, .. } => values.get(job.index()).copied(),
        }
    }

    pub(crate) fn learn(&mut self, spec: &JobSpec, duration: Span) {
        if matches!(self.source, Estimator::RunningMean) {
            self.means.learn(spec.user, spec.tenant, duration);
        }
    }
}
