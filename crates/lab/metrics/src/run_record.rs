//! Everything a run leaves behind for the figures to be computed from.

use crate::{JobRecord, QuotaRecord, Usage};
use serde::{Deserialize, Serialize};

/// One policy's run over one trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The policy's name, as given on the command line.
    pub policy: String,
    /// Where the policy's run-time estimates came from (`oracle`, `running-mean`, a file's name),
    /// or `none` if it uses none.
    pub estimates: String,
    /// Every job of the trace, in trace order.
    pub jobs: Vec<JobRecord>,
    /// GPU time by use.
    pub usage: Usage,
    /// What became of quotas.
    pub quota: QuotaRecord,
    /// By pool: the most GPUs it had at any time. What the bound takes as its speed.
    pub pool_gpus: Vec<u32>,
    /// Most jobs that may share one GPU; 1 = none may. The bound's speed is multiplied by it.
    pub residents_per_gpu: u32,
    /// What became of proposals to share devices.
    pub pairs: PairRecord,
    /// What the run cost to compute.
    pub counters: Counters,
}

/// What became of proposals to share devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairRecord {
    /// Pairs formed.
    pub formed: u64,
    /// Pairs broken up because their samples stayed below tolerance.
    pub revoked: u64,
    /// Times that a job asked for a partner in vain, by the test that its best one failed.
    pub refused: Vec<(String, u64)>,
}

/// Work done by the engine and the simulator; no clock is involved, so they repeat exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Events the simulator handled.
    pub events: u64,
    /// Scheduling rounds.
    pub rounds: u64,
    /// Commands the engine issued.
    pub commands: u64,
}
