//! What an operator chooses about the engine itself.

use crate::placement::Placer;
use deepshare_model::Span;
use serde::{Deserialize, Serialize};

/// How quotas bind (spec §3, "capacity mode"; named in every result).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityMode {
    /// Each tenant has its own nodes and queue.
    #[default]
    Partition,
    /// One pool; each tenant uses at most its quota.
    Hard,
    /// One pool, no quotas: a reference, not an offer.
    Pool,
    /// One pool; guaranteed jobs up to their tenant's quota, best-effort jobs borrow what idles.
    Elastic,
}

impl CapacityMode {
    /// The word used in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            CapacityMode::Partition => "partition",
            CapacityMode::Hard => "hard",
            CapacityMode::Pool => "pool",
            CapacityMode::Elastic => "elastic",
        }
    }
}

/// What an operator chooses about the engine itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSettings {
    /// How quotas bind.
    pub capacity: CapacityMode,
    /// How devices are chosen.
    pub placer: Placer,
    /// Slot length: at most one decision round a slot, at once if the slot had none yet, else at
    /// the next slot's start (spec §2, "cycle"). Zero: a round at every instant with an event.
    pub cycle: Span,
    /// Grace given to evicted jobs.
    pub grace: Span,
    /// First pause after a failed start; doubles with each failure in a row.
    pub backoff_first: Span,
    /// Longest pause after failed starts.
    pub backoff_max: Span,
    /// Weight of the newest sample in a tenant's smoothed quota assurance degree, thousandths
    /// (spec §1, λ).
    pub qad_lambda_milli: u32,
    /// Samples below tolerance in a row that end a pair (spec §5, w); 0: none do, but the policy is
    /// asked to look at its pairs after each.
    pub pair_samples: u32,
    /// How far below tolerance a sample may be before it counts as bad, parts per million.
    pub pair_slack_ppm: u32,
    /// First pause of a preempted job before it may start again; doubles with each preemption of
    /// the last hour, up to `backoff_max` times ten. The first preemption of an hour has none. Zero:
    /// nobody pauses.
    pub preempted_pause: Span,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            capacity: CapacityMode::Partition,
            placer: Placer::Consolidate,
            cycle: Span::ZERO,
            grace: Span::from_secs(30),
            backoff_first: Span::SECOND,
            backoff_max: Span::from_secs(60),
            qad_lambda_milli: 300,
            pair_samples: 3,
            pair_slack_ppm: 60_000,
            preempted_pause: Span::ZERO,
        }
    }
}
