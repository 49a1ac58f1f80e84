//! What the engine keeps of a job.

use crate::policy::Rank;
use crate::queue::KeyId;
use crate::reason::Reason;
use crate::sharing::asks::AskId;
use deepshare_model::{AttemptId, GpuTime, GpuTypeId, JobSpec, Outcome, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const HOUR: Span = Span::from_secs(3_600);

/// True if an instant is within the hour before `now`.
pub(crate) fn is_within_hour(at: Time, now: Time) -> bool {
    now.saturating_since(at) < HOUR
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// In its queue.
    Waiting,
    /// Kept out of its queue by its owner.
    Held,
    /// Kept out of its queue for a while after a failed start.
    BackingOff {
        /// When it returns to the queue.
        until: Time,
    },
    /// It cannot run here as inventory and quotas stand; looked at again when they change.
    Unrunnable(Reason),
    /// Reserved, starting, running or terminating.
    Active(AttemptId),
    /// Over.
    Ended(Outcome),
}

/// A job as the engine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// As submitted.
    pub spec: JobSpec,
    /// Where it stands.
    pub state: JobState,
    /// Its equivalence class among waiting jobs.
    pub key: KeyId,
    /// What it asks of a partner, where the policy lets jobs share; `None`: it shares with nobody.
    pub ask: Option<AskId>,
    /// Predicted total solo run time.
    pub estimate: Option<Span>,
    /// Solo run time done that need not be repeated, as of its last stop.
    pub work: Span,
    /// Time its next start spends before it makes progress.
    pub restart: Span,
    /// Running time of past attempts.
    pub served: Span,
    /// Running time since its attained service last counted from zero (Tiresias' promotion).
    pub served_baseline: Span,
    /// When it last entered its queue.
    pub queued_at: Time,
    /// Order in which jobs last entered their queues, over all jobs.
    pub queue_seq: u64,
    /// Times it was evicted for another job.
    pub preemptions: u32,
    /// Progress that had to be repeated and restarts paid so far: what preemption has cost it.
    pub lost: Span,
    /// When it was preempted within the last hour, oldest first.
    pub preempted_at: VecDeque<Time>,
    /// Its last attempt so far.
    pub last_attempt: Option<AttemptId>,
    /// What would survive a stop, as last reported: work done and restart owed.
    pub(crate) saved: Option<(Span, Span)>,
    /// Place in its queue, while waiting.
    pub(crate) rank: Rank,
    /// Failed starts in a row.
    pub(crate) failed_starts: u32,
    /// The GPU type for which it counts in its tenant's guaranteed demand, if it does.
    pub(crate) demands: Option<GpuTypeId>,
    /// Its owner withdrew it while it was active.
    pub(crate) cancelled: bool,
    /// Its owner holds it: do not queue it again when its attempt ends.
    pub(crate) held: bool,
    /// Evicted only where nobody else will do.
    pub shielded: bool,
}

impl Job {
    /// GPUs demanded.
    #[inline]
    pub fn gpus(&self) -> u32 {
        self.spec.demand.gpus
    }

    /// True if it is in its queue.
    pub fn is_waiting(&self) -> bool {
        self.state == JobState::Waiting
    }

    /// The attempt that holds or is promised devices.
    pub fn active(&self) -> Option<AttemptId> {
        match self.state {
            JobState::Active(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Predicted time from (re)start to end: work left plus the restart it owes. `None` without
    /// an estimate. Not reduced by the progress of a running attempt; see
    /// [`State::remaining`](crate::State::remaining).
    pub fn left_at_start(&self) -> Option<Span> {
        Some(self.estimate?.saturating_sub(self.work) + self.restart)
    }

    /// Times it was preempted in the hour before `now`.
    pub fn preempted_within_hour(&self, now: Time) -> usize {
        let recent = |at: &&Time| is_within_hour(**at, now);
        self.preempted_at.iter().rev().take_while(recent).count()
    }

    /// Attained service (2D-LAS: GPUs × time) of past attempts since the last promotion.
    pub fn attained(&self) -> GpuTime {
        self.served.saturating_sub(self.served_baseline).on(self.gpus())
    }
}
