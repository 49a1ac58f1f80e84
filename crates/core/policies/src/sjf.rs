//! SJF: shortest job first.
//!
//! Source: textbook; as a baseline in Lucid and DeepShare (Table VI), there with true durations.
//! Objective: mean completion time, without preemption. Length is run time, not GPU time.
//! Deviations: none; the first job that cannot be placed blocks all behind it, as in the artifact.
//! What it takes for the length is the estimate it is given: an oracle's only if the driver says
//! so. A job without an estimate goes last.
//! Cost: O(placed + 1) placements a round.

use crate::in_order::{serve_in_order, serve_with_skip};
use deepshare_engine::{Draft, Policy, Rank, State};
use deepshare_model::JobId;

/// Shortest job first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sjf {
    /// Pass over a job that does not fit instead of blocking those behind it.
    pub skip: bool,
}

impl Policy for Sjf {
    fn name(&self) -> &'static str {
        "sjf"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let estimate = state.job(job).estimate;
        Rank([estimate.map_or(u64::MAX, |estimate| estimate.0), 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        if self.skip {
            serve_with_skip(draft);
        } else {
            serve_in_order(draft);
        }
    }
}
