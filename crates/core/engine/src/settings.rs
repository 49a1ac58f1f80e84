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
}

impl CapacityMode {
    /// The word used in settings and results.
    pub fn name(self) -> &'static str {
        match self {
            CapacityMode::Partition => "partition",
            CapacityMode::Hard => "hard",
            CapacityMode::Pool => "pool",
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
        }
    }
}
