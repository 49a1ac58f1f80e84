//! FIFO: first come, first served.
//!
//! Source: the scheduling default everywhere; as a baseline in Lucid (ASPLOS '23) and DeepShare
//! (arXiv 2609.16682, Table VI).
//! Objective: none but order of submission. The first job that cannot be placed blocks all behind
//! it; nothing is backfilled.
//! Deviations: a job held back by its tenant's quota blocks only its tenant. A job that lost its
//! node returns to its place, not to the end.
//! Cost: O(placed + 1) placements a round.

use crate::in_order::{serve_in_order, serve_with_skip};
use deepshare_engine::{Draft, Policy, Rank, State};
use deepshare_model::JobId;

/// First come, first served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo {
    /// Pass over a job that does not fit instead of blocking those behind it.
    pub skip: bool,
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).spec.submit.0, 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        if self.skip {
            serve_with_skip(draft);
        } else {
            serve_in_order(draft);
        }
    }
}
