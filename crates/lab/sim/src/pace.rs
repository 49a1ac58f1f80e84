//! How far a running attempt is, at speeds that change with its company.

use deepshare_model::{Retention, Span, Time};

/// Work is counted in millionths of a microsecond, so that no change of speed rounds any away.
const UNIT: u128 = 1_000_000;

/// The work of one stint: restart first, then progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// When it began.
    pub(crate) since: Time,
    /// When the speed last changed.
    at: Time,
    pub(crate) rate: Retention,
    /// Done as of then.
    done: u128,
    /// To do in all.
    goal: u128,
    /// Time beside another job as of then.
    shared: Span,
    pub(crate) in_company: bool,
    /// Told apart from ends announced at another speed.
    pub(crate) token: u32,
}

impl Pace {
    pub(crate) fn new(now: Time, work: Span) -> Pace {
        Pace {
            since: now,
            at: now,
            rate: Retention::WHOLE,
            done: 0,
            goal: u128::from(work.0) * UNIT,
            shared: Span::ZERO,
            in_company: false,
            token: 0,
        }
    }

    /// Books what was done at the old speed and goes on at another.
    pub(crate) fn change(&mut self, now: Time, rate: Retention, in_company: bool) {
        // What follows the end of the work (the lag of its news) is neither work nor company.
        let until = now.min(self.ends_at());
        let elapsed = until.saturating_since(self.at);
        self.done += u128::from(elapsed.0) * u128::from(self.rate.ppm());
        self.done = self.done.min(self.goal);
        if self.in_company {
            self.shared += elapsed;
        }
        (self.at, self.rate, self.in_company) = (now.max(self.at), rate, in_company);
        self.token += 1;
    }

    /// When the work is done at this speed; in the past once it is.
    pub(crate) fn ends_at(&self) -> Time {
        let left = (self.goal - self.done).div_ceil(u128::from(self.rate.ppm()));
        self.at + Span(u64::try_from(left).unwrap_or(u64::MAX))
    }

    /// Time run up to `now`, work done in it, and time of it beside another job.
    pub(crate) fn stint(mut self, now: Time) -> Stint {
        let end = now.min(self.ends_at());
        self.change(now, self.rate, self.in_company);
        let worked = Span((self.done / UNIT) as u64);
        Stint { ran: end.saturating_since(self.since), worked, shared: self.shared }
    }
}

/// One stretch of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stint {
    pub(crate) ran: Span,
    pub(crate) worked: Span,
    pub(crate) shared: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_exact_however_often_the_speed_changes() {
        let third = Retention::from_ppm(333_333);
        let mut pace = Pace::new(Time(0), Span(1_000_000));
        for at in 1..=600_000u64 {
            let alone = at % 2 == 0;
            pace.change(Time(at), if alone { Retention::WHOLE } else { third }, !alone);
        }
        // Half the time at a third of the speed: 300,000 + 300,000 · 0.333333 done.
        let stint = pace.stint(Time(600_000));
        assert_eq!(stint.worked, Span(399_999), "399,999.9 rounded down");
        assert_eq!((stint.ran, stint.shared), (Span(600_000), Span(300_000)));
        assert_eq!(pace.ends_at(), Time(1_200_001), "600,000.1 to go");
    }

    #[test]
    fn nothing_is_done_after_the_end() {
        let mut pace = Pace::new(Time(10), Span(5));
        pace.change(Time(12), Retention::from_ratio(0.5), true);
        assert_eq!(pace.ends_at(), Time(18));
        let stint = pace.stint(Time(40));
        assert_eq!(stint, Stint { ran: Span(8), worked: Span(5), shared: Span(6) });
        pace.change(Time(40), Retention::WHOLE, false);
        assert_eq!(pace.ends_at(), Time(40));
    }
}
