//! How much slowdown a pair means for each of two jobs, and what it saves.
//!
//! Source: TensorShare (FGCS 181, 108413): the GPU SLA is the largest ratio of running time beside
//! others to running time alone that a job accepts. Only the abstract is public; the formulae are
//! research/seed-systems.md §4.2. With W seconds of solo work left and s_ij the slowdown of i
//! beside j:
//!
//! ```text
//! overlap = min(s_ij W_i, s_ji W_j)          until one of them ends
//! extra_i = overlap · (1 − 1/s_ij)           by how much i ends later than alone
//! span    = max(W_i + extra_i, W_j + extra_j)
//! gain    = R · (W_i + W_j − span) − μ · (extra_i + extra_j)
//! ```
//!
//! Deviation: a job that has run before is judged by its whole life, so that it does not use up its
//! limit beside one partner and again beside the next. Waiting does not count (reading T2).

use super::theorem::Member;
use serde::{Deserialize, Serialize};

/// A ratio may exceed its limit by this share of itself: retentions are kept in millionths, which
/// turns a slowdown of 1.2 into 1.2000005.
const SLACK: f64 = 1e-6;

/// What is held against a job's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowdownCheck {
    /// Its slowdown beside the other, as if the other never ended.
    Steady,
    /// Its running time in the end, of which only the overlap is slowed.
    #[default]
    TimeAware,
}

/// What a job has been through; zeros for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Past {
    /// How long it has run, s.
    pub ran_s: f64,
    /// Solo work done in that time, s.
    pub worked_s: f64,
}

/// How long the two run side by side, s.
pub fn overlap_s(one: Member, other: Member) -> f64 {
    one.shared_s().min(other.shared_s())
}

/// By how much a job ends later than it would alone, s.
pub fn extra_s(own: Member, other: Member) -> f64 {
    overlap_s(own, other) * (1.0 - own.slowdown.recip())
}

/// Time until both are done, s.
pub fn span_s(one: Member, other: Member) -> f64 {
    (one.solo_s + extra_s(one, other)).max(other.solo_s + extra_s(other, one))
}

/// Running time over running time alone that a job comes to beside another; 1 if it has nothing to
/// do and never had.
pub fn ratio(check: SlowdownCheck, past: Past, own: Member, other: Member) -> f64 {
    if check == SlowdownCheck::Steady {
        return own.slowdown;
    }
    let alone = past.worked_s + own.solo_s;
    if alone > 0.0 { (past.ran_s + own.solo_s + extra_s(own, other)) / alone } else { 1.0 }
}

/// Whether a ratio keeps a limit, up to the rounding of retentions. Not if either is not a number.
pub fn is_within(ratio: f64, limit: f64) -> bool {
    ratio * (1.0 - SLACK) <= limit
}

/// What a pair on `gpus` devices saves against one after the other, GPU·s, less `mu` for each
/// second by which it delays one of the two. TensorShare's weighting is unknown; the default of μ
/// is the number of devices (reading T4).
pub fn gain(gpus: u32, mu: f64, one: Member, other: Member) -> f64 {
    let saved = one.solo_s + other.solo_s - span_s(one, other);
    f64::from(gpus) * saved - mu * (extra_s(one, other) + extra_s(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepshare_model::{Retention, Span};

    const LONG: Member = Member { solo_s: 300.0, slowdown: 1.25 };
    const SHORT: Member = Member { solo_s: 100.0, slowdown: 1.5 };
    const NEW: Past = Past { ran_s: 0.0, worked_s: 0.0 };

    #[track_caller]
    fn assert_close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn only_the_overlap_is_slowed() {
        // Side by side until the short one ends at 150; the long one has done 120 by then and takes
        // 180 more: 330 in all.
        assert_close(overlap_s(LONG, SHORT), 150.0);
        assert_close(extra_s(SHORT, LONG), 50.0);
        assert_close(extra_s(LONG, SHORT), 30.0);
        assert_close(span_s(LONG, SHORT), 330.0);
        assert_close(ratio(SlowdownCheck::TimeAware, NEW, LONG, SHORT), 1.1);
        assert_close(ratio(SlowdownCheck::TimeAware, NEW, SHORT, LONG), 1.5);
        assert_close(ratio(SlowdownCheck::Steady, NEW, LONG, SHORT), 1.25);
        // 400 one after the other.
        assert_close(gain(4, 1.0, LONG, SHORT), 4.0 * 70.0 - 80.0);
        assert_close(gain(4, 4.0, SHORT, LONG), 4.0 * (70.0 - 80.0));
    }

    #[test]
    fn what_a_job_has_suffered_counts() {
        // 130 s for 100 of work; 330 s for the 300 to come.
        let slowed = Past { ran_s: 130.0, worked_s: 100.0 };
        assert_close(ratio(SlowdownCheck::TimeAware, slowed, LONG, SHORT), 460.0 / 400.0);
        // Undisturbed work makes room.
        let alone = Past { ran_s: 900.0, worked_s: 900.0 };
        assert_close(ratio(SlowdownCheck::TimeAware, alone, LONG, SHORT), 1230.0 / 1200.0);
        assert_close(ratio(SlowdownCheck::Steady, slowed, LONG, SHORT), 1.25);
    }

    #[test]
    fn a_job_without_work_is_not_slowed() {
        let done = Member { solo_s: 0.0, slowdown: 3.0 };
        assert_close(ratio(SlowdownCheck::TimeAware, NEW, done, LONG), 1.0);
        assert_close(ratio(SlowdownCheck::TimeAware, NEW, LONG, done), 1.0);
    }

    #[test]
    fn a_limit_is_kept_by_a_slowdown_just_as_large_however_it_was_rounded() {
        for milli in 1_000_u32..2_000 {
            let limit = f64::from(milli) / 1_000.0;
            let job = Member::new(Span::from_secs(1), Retention::from_ratio(limit.recip()));
            let steady = ratio(SlowdownCheck::Steady, NEW, job, LONG);
            assert!(is_within(steady, limit), "{milli}: {steady}");
            assert!(!is_within(steady, limit - 0.001), "{milli}: {steady}");
        }
        assert!(!is_within(f64::NAN, 2.0) && !is_within(1.0, f64::NAN));
    }
}
