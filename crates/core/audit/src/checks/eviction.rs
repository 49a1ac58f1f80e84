//! Who may be evicted, and which reservations may be given up.

use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::violation::Violation;
use deepshare_engine::{CapacityMode, EvictReason, NodeCondition};
use deepshare_model::{AttemptId, Class, Epoch, NodeId};

impl Books {
    pub fn check_evict(
        &self,
        id: AttemptId,
        epoch: Epoch,
        reason: EvictReason,
        preempts_guaranteed: bool,
    ) -> Result<(), Violation> {
        let attempt = self.check_asked(id, epoch)?;
        let job = self.job(attempt.job)?;
        let lost = |node: NodeId| self.nodes[node.index()].condition == NodeCondition::Lost;
        let caused = match reason {
            EvictReason::Preempted => true,
            EvictReason::Broken => attempt.broken,
            EvictReason::Degraded => return self.check_revoked(id),
            EvictReason::SlowdownLimit => {
                let by_limit = self.shares.is_some_and(|rules| rules.by_limit);
                by_limit && self.pairs_of(id).next().is_some()
            }
            EvictReason::Cancelled => job.cancelled,
            EvictReason::NodeLost => attempt.placement.iter().any(|slice| lost(slice.node)),
            EvictReason::StartOverdue => self.step.overdue.contains(&id),
        };
        if !caused {
            return Err(Violation::EvictedWithoutCause { attempt: id, reason });
        }
        let preempted = reason == EvictReason::Preempted;
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        let protected = attempt.charged == Class::Guaranteed;
        if preempted && protected && (elastic || !preempts_guaranteed) {
            return Err(Violation::GuaranteedPreempted { attempt: id, job: attempt.job });
        }
        Ok(())
    }

    /// Whoever is asked to give something back runs, and is asked in the current term.
    pub fn check_asked(&self, id: AttemptId, epoch: Epoch) -> Result<&Attempt, Violation> {
        let attempt = self.attempt(id)?;
        if !attempt.is_evictable() {
            return Err(Violation::NotEvictable { attempt: id, state: attempt.state() });
        }
        if epoch != self.epoch {
            return Err(Violation::WrongEpoch { attempt: id, given: epoch, current: self.epoch });
        }
        Ok(attempt)
    }

    pub fn check_release_reservation(&self, id: AttemptId) -> Result<(), Violation> {
        let attempt = self.attempt(id)?;
        if !attempt.is_reserved() {
            return Err(Violation::NotAReservation { attempt: id, state: attempt.state() });
        }
        Ok(())
    }
}
