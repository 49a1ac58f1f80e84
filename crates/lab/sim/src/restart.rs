//! What stopping and starting again costs a job.

use deepshare_model::Span;

/// Checkpoints and restart overhead.
///
/// Source of the defaults: the Lucid and GFS simulators (40 s up to 8 GPUs, 60 s above; a
/// checkpoint on demand when preempted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Time a restarted job spends before it makes progress.
    pub overhead: Span,
    /// The same for wide jobs.
    pub overhead_wide: Span,
    /// Jobs with more GPUs than this are wide.
    pub wide_above: u32,
    /// Progress between checkpoints. Zero: a preempted job writes one on demand and loses nothing;
    /// a job that loses its node still loses all progress since it last started.
    pub checkpoint_interval: Span,
    /// A job stopped before its restart was over owes the rest of that beside the next one, as in
    /// the Lucid artifact. Otherwise the next restart is all it owes.
    pub overhead_accumulates: bool,
}

impl Default for Restart {
    fn default() -> Restart {
        Restart {
            overhead: Span::from_secs(40),
            overhead_wide: Span::from_secs(60),
            wide_above: 8,
            checkpoint_interval: Span::ZERO,
            overhead_accumulates: false,
        }
    }
}

impl Restart {
    /// What the next start of a job of `gpus` GPUs costs, when it still owed `unpaid` of its last.
    pub(crate) fn owed(&self, gpus: u32, unpaid: Span) -> Span {
        let next = if gpus > self.wide_above { self.overhead_wide } else { self.overhead };
        if self.overhead_accumulates { next + unpaid } else { next }
    }

    /// Of `progress` made since the start, how much survives a stop.
    pub(crate) fn kept(&self, progress: Span, lost_node: bool) -> Span {
        match (self.checkpoint_interval, lost_node) {
            (Span::ZERO, false) => progress,
            (Span::ZERO, true) => Span::ZERO,
            (interval, _) => Span(progress.0 / interval.0 * interval.0),
        }
    }
}
