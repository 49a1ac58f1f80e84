//! SRTF: shortest remaining time first, preemptive.
//!
//! Source: textbook; as the Lucid artifact runs it (research/lucid-simulator.md §7).
//! Objective: mean completion time. Remaining time is estimate − work done + restart owed.
//! Deviations from the artifact, all off under its compatibility setting: a running job is not
//! preempted for one with equal remaining time, a victim nobody could replace runs on, and time is
//! not cut into seconds.
//! Decisions can only change at events: as a running job's remaining time falls past a waiting
//! one's, neither gains or loses its place in the budget, since the running job was selected
//! behind it already and stays selected ahead of it.
//! Cost: O(running · log keys) a round in which nobody moves, else O(running · log running).

use crate::budget::{Running, serve_by_budget};
use deepshare_engine::{Draft, Policy, Rank, State};
use deepshare_model::JobId;
use serde::{Deserialize, Serialize};

/// Who goes first at equal rank, a running job or a waiting one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieOrder {
    /// Nobody is preempted by an equal.
    #[default]
    RunningFirst,
    /// As in the Lucid artifact's SRTF.
    WaitingFirst,
}

/// Shortest remaining time first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Srtf {
    /// Who goes first at equal remaining time.
    pub ties: TieOrder,
    /// Let a victim run on if nobody could use its devices.
    pub spare_unneeded: bool,
}

impl Policy for Srtf {
    fn name(&self) -> &'static str {
        "srtf"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let entry = state.job(job);
        let left = entry.left_at_start().map_or(u64::MAX, |left| left.0);
        Rank([left, 0, entry.queue_seq])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let state = draft.state();
        let remaining = |job| [state.remaining(job).map_or(u64::MAX, |left| left.0), 0];
        let running = Running::all(draft, remaining);
        serve_by_budget(draft, running, self.ties, self.spare_unneeded);
    }
}
