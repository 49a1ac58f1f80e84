//! What both backfilling policies assume about running jobs.

use deepshare_engine::{Attempt, State};
use deepshare_model::{Span, Time};

/// When an attempt is expected to end. A job that outlived its estimate is expected to run on for
/// half of what it has run so far, at least a second: a guess that grows with each miss, so that
/// plans are not remade every second. Never, without an estimate.
pub(crate) fn expected_end(state: &State, attempt: &Attempt) -> Time {
    match state.remaining(attempt.job) {
        None => Time::MAX,
        Some(left) if left.is_zero() => {
            let half = Span(state.served(attempt.job).0 / 2);
            state.now() + half.max(Span::SECOND)
        }
        Some(left) => state.now() + left,
    }
}
