//! QSSF: quasi-shortest-service first.
//!
//! Source: Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale
//! GPU Datacenters" (Helios), SC '21.
//! Objective: mean completion time, without preemption, by predicted GPU time (duration × GPUs).
//! Deviations: the prediction is whatever estimate the driver supplies; the paper's is a blend of
//! a rolling mean and LightGBM. With `first_second_by_gpus`, a batch that arrives to an empty queue
//! is served by GPU count until the next second, as the artifacts do
//! (research/lucid-simulator.md §6); off by default.
//! Cost: O(placed + 1) placements a round.

use crate::in_order::serve_in_order;
use deepshare_engine::{Draft, Policy, Rank, Reason, State};
use deepshare_model::{JobId, Span};

/// Quasi-shortest-service first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Qssf {
    /// Serve a batch that arrives to an empty queue by GPU count in its first second.
    pub first_second_by_gpus: bool,
}

impl Policy for Qssf {
    fn name(&self) -> &'static str {
        "qssf"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let entry = state.job(job);
        let gpus = u64::from(entry.gpus());
        let service = entry.estimate.map_or(u64::MAX, |run_time| run_time.0.saturating_mul(gpus));
        Rank([service, gpus, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        if self.first_second_by_gpus
            && let Some(batch) = fresh_batch(draft)
        {
            serve_by_gpus(draft, batch);
        } else {
            serve_in_order(draft);
        }
    }
}

/// The waiting jobs, if all of them arrived at this very instant.
fn fresh_batch(draft: &Draft<'_>) -> Option<Vec<JobId>> {
    let (state, now) = (draft.state(), draft.now());
    let mut batch = Vec::new();
    for key in state.active_keys(draft.pool()) {
        for job in state.waiting_of(key) {
            if state.job(job).queued_at < now {
                return None;
            }
            batch.push(job);
        }
    }
    Some(batch)
}

fn serve_by_gpus(draft: &mut Draft<'_>, mut batch: Vec<JobId>) {
    batch.sort_by_key(|&job| (draft.state().job(job).gpus(), job));
    for job in batch {
        if let Err(reason) = draft.place(job) {
            draft.refuse(job, reason);
            draft.refuse_rest(Reason::BehindHead { head: job });
            draft.wake_at(draft.now() + Span::SECOND);
            return;
        }
    }
}
