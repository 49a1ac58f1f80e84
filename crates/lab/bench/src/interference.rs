//! What jobs that share GPUs do to each other, where nobody measured it.

use deepshare_interference::{Assignment, ContentionModel, Mechanism, RetentionMatrix};
use deepshare_sim::{Interference, SharedInterference};
use deepshare_trace::Trace;
use std::sync::Arc;

/// Profiles drawn from the built-in catalogue, the contention model for MPS, and a predictor of the
/// usual quality.
pub(crate) fn drawn_interference(trace: &Trace, seed: u64) -> SharedInterference {
    let assignment = Assignment::drawn(trace, seed);
    let (catalogue, model) = (&assignment.catalogue, ContentionModel::default());
    let (truth, _) = RetentionMatrix::truth(catalogue, None, &model, Mechanism::Mps);
    let (predicted, _) = truth.estimated(0.902, seed);
    Arc::new(Interference::new(&assignment, &truth, &predicted))
}
