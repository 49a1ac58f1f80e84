//! What comes out of a run.

/// What became of one job. Times are seconds on the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LucidRecord {
    /// Its start: in the virtual cluster, or in the profiler if it ended there.
    pub start_s: u64,
    /// Its end.
    pub end_s: u64,
    /// Waiting as the artifact counts it: for the profiler and in the virtual cluster, though both
    /// began at submission.
    pub queue_s: u64,
    /// End less submission.
    pub jct_s: u64,
    /// Its profile, if it was profiled.
    pub profiled: Option<Profiled>,
    /// It was half of a pair at some time.
    pub shared: bool,
}

/// A job's time in the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiled {
    /// When it got GPUs there.
    pub start_s: u64,
    /// When it left them.
    pub end_s: u64,
    /// It was done by then, and never came to its virtual cluster.
    pub finished: bool,
}

/// The profiler got or gave back its extra node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// When, seconds on the trace's clock.
    pub at_s: u64,
    /// It got the node.
    pub grew: bool,
}

/// How full a virtual cluster or the profiler is from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The instant, seconds on the trace's clock.
    pub at_s: u64,
    /// Which: the index of the virtual cluster; the profiler is the one after the last.
    pub pool: usize,
    /// GPUs that it has.
    pub gpus: u32,
    /// GPUs with at least one job.
    pub allocated: u32,
    /// Jobs that wait for it.
    pub waiting: u32,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LucidOutcome {
    /// By job, in trace order; `None` for jobs that were left out because they fit nowhere.
    pub records: Vec<Option<LucidRecord>>,
    /// The profiler's steps, in order of time.
    pub scaling: Vec<Scaling>,
    /// Every change of every level, by pool, then by time.
    pub levels: Vec<Level>,
    /// Ticks that were looked at; a measure of effort that repeats exactly.
    pub ticks: u64,
}
