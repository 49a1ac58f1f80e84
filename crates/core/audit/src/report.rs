//! What an audit covered, for results and for the people who read them.

use deepshare_model::GpuTime;

/// What was checked, and the totals that were found to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Events watched.
    pub steps: u64,
    /// Commands checked.
    pub commands: u64,
    /// Times the engine's view was held against the auditor's, where something had changed.
    pub comparisons: u64,
    /// Times it was in full.
    pub full_comparisons: u64,
    /// Work ledgers checked.
    pub ledgers: u64,
    /// Attempts seen.
    pub attempts: u64,
    /// Attempts that still held, or were promised, devices at the end.
    pub live_attempts: u64,
    /// Where the jobs stood at the end; their sum is every job submitted.
    pub jobs: JobCounts,
    /// Where GPU time went.
    pub gpu_time: GpuTimeShares,
}

/// Jobs by where they stood at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Over.
    pub ended: u64,
    /// With an attempt: reserved, starting, running or terminating.
    pub active: u64,
    /// In a queue, or on their way back to it.
    pub waiting: u64,
    /// Held by their owners.
    pub held: u64,
    /// Refused as too large, and not started since.
    pub refused: u64,
}

/// GPU time of every device from when its node was added, in GPU-microseconds. `held + promised +
/// free + closed == installed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuTimeShares {
    /// All of it.
    pub installed: GpuTime,
    /// Held by attempts, from start command to release, each device once; with what two held at the
    /// same time counted again, the sum over attempts.
    pub held: GpuTime,
    /// Of it, held by two attempts at the same time.
    pub shared: GpuTime,
    /// Empty, and promised to a reserved attempt.
    pub promised: GpuTime,
    /// Usable and neither held nor promised.
    pub free: GpuTime,
    /// Empty and unusable: failed, cordoned or lost.
    pub closed: GpuTime,
}
