//! How much of its solo speed a job keeps beside another one.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Throughput retention ρ: throughput beside another job over throughput alone (spec §1; reading
/// D16: of throughput, not of time), in parts per million. More than all of it, which noisy
/// measurements show, counts as all; nothing at all would never end, so the least is one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Retention(u32);

const WHOLE: u32 = 1_000_000;

impl Retention {
    /// Solo speed.
    pub const WHOLE: Retention = Retention(WHOLE);

    /// As good as standing still.
    pub const LEAST: Retention = Retention(1);

    /// From parts per million, clamped to 1 ..= 1,000,000.
    pub fn from_ppm(ppm: u32) -> Retention {
        Retention(ppm.clamp(1, WHOLE))
    }

    /// From a ratio, rounded and clamped; not a number counts as solo speed.
    pub fn from_ratio(ratio: f64) -> Retention {
        if ratio.is_nan() {
            return Retention::WHOLE;
        }
        Retention::from_ppm((ratio.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32)
    }

    /// Parts per million.
    #[inline]
    pub fn ppm(self) -> u32 {
        self.0
    }

    /// The ratio, above 0 and at most 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// What is left of both: a share of a share.
    #[inline]
    #[must_use]
    pub fn times(self, other: Retention) -> Retention {
        if self == Retention::WHOLE {
            return other;
        }
        Retention::from_ppm((u64::from(self.0) * u64::from(other.0) / u64::from(WHOLE)) as u32)
    }

    /// Solo work done in `time` at this speed, rounded down.
    #[inline]
    pub fn work_in(self, time: Span) -> Span {
        if self == Retention::WHOLE {
            return time;
        }
        Span((u128::from(time.0) * u128::from(self.0) / u128::from(WHOLE)) as u64)
    }

    /// Time that `work` takes at this speed, rounded up; never ends later than time itself does.
    #[inline]
    pub fn time_for(self, work: Span) -> Span {
        if self == Retention::WHOLE {
            return work;
        }
        let time = (u128::from(work.0) * u128::from(WHOLE)).div_ceil(u128::from(self.0));
        Span(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

impl Default for Retention {
    fn default() -> Retention {
        Retention::WHOLE
    }
}

impl From<Retention> for u32 {
    fn from(retention: Retention) -> u32 {
        retention.0
    }
}

impl TryFrom<u32> for Retention {
    type Error = String;

    fn try_from(ppm: u32) -> Result<Retention, String> {
        match ppm {
            1..=WHOLE => Ok(Retention(ppm)),
            _ => Err(format!("a retention is 1 to 1000000 parts per million, not {ppm}")),
        }
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_time_are_inverse_up_to_rounding_in_the_jobs_disfavour() {
        let half = Retention::from_ratio(0.5);
        assert_eq!(half.work_in(Span(7)), Span(3));
        assert_eq!(half.time_for(Span(3)), Span(6));
        let third = Retention::from_ppm(333_333);
        for work in [1, 2, 3, 1_000_003] {
            let time = third.time_for(Span(work));
            assert!(
                third.work_in(time) >= Span(work) && third.work_in(Span(time.0 - 1)) < Span(work)
            );
        }
        assert_eq!(Retention::WHOLE.time_for(Span(u64::MAX)), Span(u64::MAX));
        assert_eq!(Retention::from_ppm(1).time_for(Span(u64::MAX)), Span(u64::MAX));
    }

    #[test]
    fn measurements_above_solo_speed_count_as_solo_speed() {
        assert_eq!(Retention::from_ratio(1.498), Retention::WHOLE);
        assert_eq!(Retention::from_ratio(0.0).ppm(), 1);
        assert_eq!(Retention::from_ratio(f64::NAN), Retention::WHOLE);
        assert!(Retention::try_from(0).is_err());
    }
}
