//! Tiresias: discretised two-dimensional least attained service, preemptive.
//!
//! Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI '19
//! (Discretized 2D-LAS; the Gittins variant is not built).
//! Objective: mean completion time without knowing durations. Attained service is GPUs × running
//! time; a job drops to the next queue as it passes a threshold; inside a queue order is by
//! submission. Defaults are those of the Lucid artifact (two queues, 18,000 GPU-s, no promotion),
//! but decided at every event and threshold crossing; `interval` 60 s is the artifact's.
//! Deviations: a victim nobody could replace runs on (off under the compatibility setting).
//! Cost: O(running · log keys) a round in which nobody moves, else O(running · log running); with
//! promotion, O(waiting) too.

use crate::budget::{Running, serve_by_budget};
use crate::srtf::TieOrder;
use deepshare_engine::{Draft, Policy, Rank, Reason, State};
use deepshare_model::{GpuTime, JobId, Span, Time};
use serde::{Deserialize, Serialize};

/// Whether attaining exactly the threshold demotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demotion {
    /// As in the paper's implementation.
    #[default]
    AtThreshold,
    /// As in the Lucid artifact.
    AboveThreshold,
}

/// Discretised two-dimensional least attained service.
#[derive(Clone, Debug, Default)]
pub struct Tiresias {
    /// Attained service at which a job drops to the next queue; ascending.
    pub thresholds: Vec<GpuTime>,
    /// Decide only at multiples of this; zero: at every event.
    pub interval: Span,
    /// Back to the first queue after waiting this many thousandths of its running time.
    pub promote_after_milli: Option<u64>,
    /// Whether attaining exactly the threshold demotes.
    pub demotion: Demotion,
    /// Let a victim run on if nobody could use its devices.
    pub spare_unneeded: bool,
}

impl Policy for Tiresias {
    fn name(&self) -> &'static str {
        "tiresias"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let entry = state.job(job);
        Rank([self.queue_of(entry.attained()), entry.spec.submit.0, entry.queue_seq])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let now = draft.now();
        let mark = now.round_up(self.interval);
        if mark > now {
            draft.refuse_rest(Reason::BetweenRounds { next: mark });
            draft.wake_at(mark);
            return;
        }
        if let Some(milli) = self.promote_after_milli {
            self.promote(draft, milli);
        }
        let state = draft.state();
        let running = Running::all(draft, |job| {
            [self.queue_of(state.attained(job)), state.job(job).spec.submit.0]
        });
        serve_by_budget(draft, running, TieOrder::RunningFirst, self.spare_unneeded);
        let state = draft.state();
        let crossings = state.live(draft.pool()).filter_map(|attempt| {
            let attained = state.attained(attempt.job);
            let gpus = state.job(attempt.job).gpus();
            self.crossing(now, self.queue_of(attained), attained, gpus)
        });
        if let Some(at) = crossings.min() {
            draft.wake_at(at.round_up(self.interval));
        }
    }
}

impl Tiresias {
    fn queue_of(&self, attained: GpuTime) -> u64 {
        let passed = |threshold: &&GpuTime| match self.demotion {
            Demotion::AtThreshold => attained >= **threshold,
            Demotion::AboveThreshold => attained > **threshold,
        };
        self.thresholds.iter().filter(passed).count() as u64
    }

    /// When a running job drops out of `queue`, if it ever does.
    fn crossing(&self, now: Time, queue: u64, attained: GpuTime, gpus: u32) -> Option<Time> {
        let threshold = self.thresholds.get(queue as usize)?;
        let missing = threshold.0.saturating_sub(attained.0);
        let micros = match self.demotion {
            Demotion::AtThreshold => missing.div_ceil(u128::from(gpus)),
            Demotion::AboveThreshold => missing / u128::from(gpus) + 1,
        };
        Some(now + Span(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    /// Returns long-waiting jobs to the first queue, and asks to be woken for the next one.
    fn promote(&self, draft: &mut Draft<'_>, milli: u64) {
        let now = draft.now();
        let mut due = Vec::new();
        let mut next: Option<Time> = None;
        for key in draft.state().active_keys(draft.pool()) {
            for job in draft.state().waiting_of(key) {
                let entry = draft.state().job(job);
                if self.queue_of(entry.attained()) == 0 {
                    continue;
                }
                let ran = entry.served.saturating_sub(entry.served_baseline);
                let patience = u128::from(ran.0) * u128::from(milli) / 1_000;
                let at = entry.queued_at + Span(u64::try_from(patience).unwrap_or(u64::MAX));
                if at <= now {
                    due.push(job);
                } else {
                    next = next.into_iter().chain([at]).min();
                }
            }
        }
        for job in due {
            draft.forget_service(job);
            let rank = self.rank(draft.state(), job);
            draft.rerank(job, rank);
        }
        if let Some(at) = next {
            draft.wake_at(at.round_up(self.interval));
        }
    }
}
