//! Samples of pairs, as a node's telemetry takes them.
//!
//! Every period both jobs' retention is read with some noise. All readings are drawn; those that
//! say nothing new (as good as the one before) are not told, which keeps a month of pairs from
//! costing millions of events. What is told: the first, every bad one, and the first good one
//! after that.

use crate::interference::Interference;
use crate::world::stream;
use deepshare_engine::PairBar;
use deepshare_model::{AttemptId, JobId, Retention, Span, Time};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

/// Readings looked through at once before time moves on.
const AHEAD: u32 = 3_600;

/// One pair under watch.
pub(crate) struct Pair {
    pub(crate) attempts: [AttemptId; 2],
    true_retention: [Retention; 2],
    /// What readings have to meet, and by how much they may miss it.
    bar: (PairBar, u32),
    rng: Pcg64Mcg,
    /// When both have run together since.
    since: Time,
    readings: u64,
    was_bad: bool,
}

/// A reading, or none worth telling up to that instant.
pub(crate) struct Reading {
    pub(crate) at: Time,
    pub(crate) seen: Option<[Retention; 2]>,
}

impl Pair {
    /// The `nth` pair of the attempt that joined, from 0, both of which run since then.
    pub(crate) fn new(
        interference: &Interference,
        attempts: [AttemptId; 2],
        jobs: [JobId; 2],
        bar: (PairBar, u32),
        (seed, nth): (u64, u64),
        since: Time,
    ) -> Pair {
        let kept = |own: usize| interference.retention(jobs[own], jobs[1 - own]);
        // A stream of its own, so that pairs do not disturb each other.
        let purpose = (nth << 41) | (1 << 40) | u64::from(attempts[0].0);
        Pair {
            attempts,
            true_retention: [kept(0), kept(1)],
            bar,
            rng: stream(seed, purpose),
            since,
            readings: 0,
            was_bad: false,
        }
    }

    /// The next reading worth telling.
    pub(crate) fn next(&mut self, period: Span, noise: f64) -> Reading {
        let at = |readings: u64| self.since + Span(period.0.saturating_mul(readings));
        for _ in 0..AHEAD {
            let first = self.readings == 0;
            self.readings += 1;
            let mut seen = self.true_retention;
            if noise > 0.0 {
                for kept in &mut seen {
                    let error: f64 = StandardNormal.sample(&mut self.rng);
                    *kept = Retention::from_ratio(kept.as_f64() * (1.0 + noise * error));
                }
            }
            let bad = !self.bar.0.is_met(seen, self.bar.1);
            let news = first || bad || self.was_bad;
            self.was_bad = bad;
            if news {
                return Reading { at: at(self.readings), seen: Some(seen) };
            }
        }
        Reading { at: at(self.readings), seen: None }
    }
}
