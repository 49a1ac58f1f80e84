//! Time as integers: equal instants compare equal on every machine, and sums conserve.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Microseconds in one second.
const MICROS: u64 = 1_000_000;

/// A point on the engine's clock, in whole microseconds since the run's epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time, in whole microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Devices multiplied by time, in GPU-microseconds. 128 bits: a year of 10,000 GPUs overflows 64
/// only after thirty centuries, but sums over sweeps should not need that argument.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct GpuTime(pub u128);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// Later than every event.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `s` seconds after the epoch.
    pub const fn from_secs(s: u64) -> Time {
        Time(s * MICROS)
    }

    /// Seconds since the epoch, for people and for scores.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// `None` if `earlier` is in fact later: a caller must decide what that means.
    #[inline]
    pub fn since(self, earlier: Time) -> Option<Span> {
        self.0.checked_sub(earlier.0).map(Span)
    }

    /// Time since `earlier`, or zero if that lies ahead.
    #[inline]
    pub fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The first multiple of `period` that is not before `self`; `self` if the period is zero.
    pub fn round_up(self, period: Span) -> Time {
        if period.0 == 0 {
            return self;
        }
        Time(self.0.div_ceil(period.0).saturating_mul(period.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);
    /// One second.
    pub const SECOND: Span = Span(MICROS);

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * MICROS)
    }

    /// A span of `s` seconds, rounded to the microsecond. `None` if negative, not finite or
    /// beyond the range of a span.
    pub fn from_secs_f64(s: f64) -> Option<Span> {
        let micros = (s * MICROS as f64).round();
        // Half the range leaves room for sums; 292,000 years is enough.
        (s >= 0.0 && micros < (u64::MAX / 2) as f64).then_some(Span(micros as u64))
    }

    /// Seconds, for people and for scores.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// `self - other`, or zero.
    #[inline]
    pub fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or the longest span.
    #[inline]
    pub fn saturating_add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// True for the empty span.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The GPU time that `gpus` devices spend in this span.
    #[inline]
    pub fn on(self, gpus: u32) -> GpuTime {
        GpuTime(u128::from(self.0) * u128::from(gpus))
    }
}

impl GpuTime {
    /// GPU-seconds, for people and for scores.
    pub fn as_gpu_secs(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates: the end of time is as late as anything gets.
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, n: u64) -> Span {
        Span(self.0 * n)
    }
}

impl AddAssign for GpuTime {
    #[inline]
    fn add_assign(&mut self, other: GpuTime) {
        self.0 += other.0;
    }
}

impl Add for GpuTime {
    type Output = GpuTime;
    #[inline]
    fn add(self, other: GpuTime) -> GpuTime {
        GpuTime(self.0 + other.0)
    }
}

impl Sub for GpuTime {
    type Output = GpuTime;
    #[inline]
    fn sub(self, other: GpuTime) -> GpuTime {
        GpuTime(self.0 - other.0)
    }
}

fn write_seconds(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let (s, rest) = (micros / MICROS, micros % MICROS);
    if rest == 0 {
        write!(f, "{s}s")
    } else {
        let fraction = format!("{rest:06}");
        write!(f, "{s}.{}s", fraction.trim_end_matches('0'))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_survive_the_round_trip_to_the_microsecond() {
        assert_eq!(Span::from_secs_f64(0.000_001), Some(Span(1)));
        assert_eq!(Span::from_secs_f64(97.0), Some(Span::from_secs(97)));
        assert_eq!(Span::from_secs_f64(-1.0), None);
        assert_eq!(Span::from_secs_f64(f64::NAN), None);
        assert_eq!(Span::from_secs_f64(1e300), None);
    }

    #[test]
    fn rounding_up_keeps_multiples_and_lifts_the_rest() {
        let minute = Span::from_secs(60);
        assert_eq!(Time::from_secs(120).round_up(minute), Time::from_secs(120));
        assert_eq!(Time::from_secs(121).round_up(minute), Time::from_secs(180));
        assert_eq!(Time(7).round_up(Span::ZERO), Time(7));
    }

    #[test]
    fn times_print_as_seconds_without_trailing_zeros() {
        assert_eq!(Time(1_500_000).to_string(), "1.5s");
        assert_eq!(Span::from_secs(40).to_string(), "40s");
    }
}
