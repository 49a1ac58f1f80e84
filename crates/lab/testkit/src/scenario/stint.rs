//! How far a running job is, at a speed that changes with its company.

use deepshare_model::{Retention, Span, Time};

/// Work is counted in millionths of a microsecond, so that no change of speed rounds any away.
const UNIT: u128 = 1_000_000;

/// One stretch of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stint {
    /// When the speed last changed.
    at: Time,
    rate: Retention,
    done: u128,
    /// Which announcement of its end holds.
    pub(crate) round: u32,
}

impl Stint {
    pub(crate) fn new(now: Time) -> Stint {
        Stint { at: now, rate: Retention::WHOLE, done: 0, round: 0 }
    }

    fn done_by(&self, now: Time) -> u128 {
        let elapsed = now.saturating_since(self.at);
        self.done + u128::from(elapsed.0) * u128::from(self.rate.ppm())
    }

    /// Solo work done by now, rounded down.
    pub(crate) fn worked(&self, now: Time) -> Span {
        Span((self.done_by(now) / UNIT) as u64)
    }

    /// Goes on at another speed; false if it is the same.
    pub(crate) fn change(&mut self, now: Time, rate: Retention) -> bool {
        if rate == self.rate {
            return false;
        }
        let done = self.done_by(now);
        *self = Stint { at: now, rate, done, round: self.round + 1 };
        true
    }

    /// Time until so much work of the stint is done, rounded up.
    pub(crate) fn time_to(&self, now: Time, goal: Span) -> Span {
        let left = (u128::from(goal.0) * UNIT).saturating_sub(self.done_by(now));
        Span(left.div_ceil(u128::from(self.rate.ppm())) as u64)
    }
}
