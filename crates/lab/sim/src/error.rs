//! Why a run was not begun or not finished.

use deepshare_audit::Violation;
use deepshare_engine::Illegal;
use deepshare_model::Time;

/// Why a run was not begun or not finished. A run that ends in one leaves no figures.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Partitions were asked for, and some node belongs to no tenant.
    #[error(
        "capacity mode `partition` needs every node to name its tenant; \
         use `--set capacity=pool`, or give each [[node]] a `tenant`"
    )]
    NoPartitions,
    /// Quotas were asked for, and the cluster names no tenant.
    #[error(
        "capacity mode `{mode}` needs quotas; use `--set capacity=pool`, or add [[tenant]] entries"
    )]
    NoQuotas {
        /// The mode.
        mode: &'static str,
    },
    /// The load cannot drain: these jobs can never run.
    #[error(
        "{count} jobs can never run on this cluster, first {first} (line {line}): {reason}; \
         enlarge the cluster or the quota, or leave them out with `--set oversize=skip`"
    )]
    Oversize {
        /// How many.
        count: usize,
        /// The first one's name in the trace.
        first: String,
        /// Its line in the trace.
        line: u64,
        /// Why it never fits.
        reason: String,
    },
    /// The load cannot drain: nothing runs, nothing will happen, and jobs wait.
    #[error(
        "stuck at {at}: {waiting} jobs wait and nothing will ever free their way, \
         first {first}: {reason}"
    )]
    Stuck {
        /// When nothing was left to happen.
        at: Time,
        /// Jobs still waiting.
        waiting: u64,
        /// The first one's name in the trace.
        first: String,
        /// Why it waits.
        reason: String,
    },
    /// No job ended for too many steps.
    #[error(
        "livelock at {at}: no job ended in the last {steps} steps while {running} ran and \
         {waiting} waited; jobs may be restarted faster than they make progress (see \
         restart.overhead_s, restart.checkpoint_interval_s and the outage settings)"
    )]
    Livelock {
        /// When it was given up.
        at: Time,
        /// Steps since a job last ended.
        steps: u64,
        /// Attempts that held devices.
        running: usize,
        /// Jobs that waited.
        waiting: u64,
    },
    /// The policy broke a rule of the engine.
    #[error("at {at}: {illegal}; this is a defect of the policy, and the run has no result")]
    Illegal {
        /// When.
        at: Time,
        /// Which rule.
        illegal: Illegal,
    },
    /// The auditor found a broken invariant.
    #[error("audit failed at {at}: {violation}; this is a defect, and the run has no result")]
    Audit {
        /// When.
        at: Time,
        /// What.
        violation: Box<Violation>,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
    /// A file of outages could not be used.
    #[error("{file}{place}: {why}; {remedy}")]
    Outages {
        /// Which file.
        file: String,
        /// Where: `: line 2, column 1 (node)`, or nothing if it is about the whole file.
        place: String,
        /// What is wrong.
        why: String,
        /// What to do.
        remedy: String,
    },
}
