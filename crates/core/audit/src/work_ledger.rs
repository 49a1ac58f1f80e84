//! What a job truly did, as only its driver knows.

use crate::violation::Violation;
use deepshare_model::{JobId, Span};

/// Where a job's running time went, all attempts together. A driver that knows the truth (a
/// simulator) fills it in; without sharing a job progresses one second a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLedger {
    /// Solo run time that the job demands.
    pub work: Span,
    /// Progress made over all attempts, redone progress included.
    pub progressed: Span,
    /// Progress that a stop threw away.
    pub lost: Span,
    /// Time spent restarting before progress was made.
    pub restarts: Span,
    /// Time running over all attempts.
    pub ran: Span,
    /// Time of it lost to company on the same devices.
    pub slowed: Span,
    /// The job did all its work.
    pub completed: bool,
}

impl WorkLedger {
    pub(crate) fn check(&self, job: JobId) -> Result<(), Violation> {
        let WorkLedger { work, progressed, lost, restarts, ran, slowed, completed } = *self;
        // Wider sums: a ledger gone wrong must be reported, not overflow.
        let wide = |span: Span| u128::from(span.0);
        let kept = wide(progressed).checked_sub(wide(lost));
        let conserved = match kept {
            Some(kept) if completed => kept == wide(work),
            Some(kept) => kept <= wide(work),
            None => false,
        };
        if !conserved {
            return Err(Violation::WorkNotConserved { job, work, progressed, lost, completed });
        }
        if wide(ran) != wide(progressed) + wide(restarts) + wide(slowed) {
            return Err(Violation::RunTimeNotConserved { job, ran, progressed, restarts });
        }
        Ok(())
    }
}
