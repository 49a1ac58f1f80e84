//! A job as the stream describes it.

use crate::violation::{Standing, Unstartable};
use deepshare_model::{AttemptId, JobSpec, Outcome, PoolId, Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub spec: JobSpec,
    /// Its tenant's pool when it was submitted.
    pub pool: PoolId,
    pub held: bool,
    pub cancelled: bool,
    pub ended: Option<Outcome>,
    /// The attempt that is not released yet.
    pub live: Option<AttemptId>,
    pub last: Option<AttemptId>,
    /// Refused as too large, and not started since.
    pub refused: bool,
    pub backing_off: Option<Time>,
    /// To be evicted only where nobody else will do.
    pub shielded: bool,
    /// Failed starts in a row.
    pub failed_starts: u32,
    /// When its devices were released after preemptions, oldest first.
    pub preempted_at: Vec<Time>,
    /// Time that past attempts held devices.
    pub held_time: Span,
    /// Running time by its work ledger.
    pub ran: Option<Span>,
}

impl Job {
    pub fn new(spec: JobSpec, pool: PoolId) -> Job {
        Job {
            spec,
            pool,
            held: false,
            cancelled: false,
            ended: None,
            live: None,
            last: None,
            refused: false,
            backing_off: None,
            shielded: false,
            failed_starts: 0,
            preempted_at: Vec::new(),
            held_time: Span::ZERO,
            ran: None,
        }
    }

    pub fn gpus(&self) -> u32 {
        self.spec.demand.gpus
    }

    /// Ends it, unless it has ended: the first word counts.
    pub fn end(&mut self, outcome: Outcome) {
        self.ended.get_or_insert(outcome);
    }

    /// Preemptions within the hour before `now`.
    pub fn preempted_within_hour(&self, now: Time) -> usize {
        let recent = |at: &&Time| now.saturating_since(**at) < Span::from_secs(3_600);
        self.preempted_at.iter().filter(recent).count()
    }

    pub fn standing(&self) -> Standing {
        match (self.ended, self.live) {
            (Some(outcome), _) => Standing::Ended(outcome),
            (None, Some(attempt)) => Standing::Active(attempt),
            (None, None) if self.held => Standing::Held,
            (None, None) if self.refused => Standing::Refused,
            (None, None) => Standing::Waiting,
        }
    }

    /// True if it is in a queue now.
    pub fn waits(&self, now: Time) -> bool {
        self.standing() == Standing::Waiting && self.unstartable(now).is_none()
    }

    /// What forbids it to start now.
    pub fn unstartable(&self, now: Time) -> Option<Unstartable> {
        if let Some(outcome) = self.ended {
            return Some(Unstartable::Ended(outcome));
        }
        if self.cancelled {
            return Some(Unstartable::Cancelled);
        }
        if self.held {
            return Some(Unstartable::Held);
        }
        let until = self.backing_off.filter(|&until| until > now)?;
        Some(Unstartable::BackingOff { until })
    }
}
