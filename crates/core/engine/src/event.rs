//! All that can happen to the engine, estimates included.

use crate::sharing::RetentionTable;
use deepshare_model::{
    AttemptId, Epoch, JobId, JobSpec, NodeId, NodeSpec, Outcome, PoolId, Retention, Span, TenantId,
    TenantSpec, Time,
};
use serde::{Deserialize, Serialize};

/// Something that happened, or was learnt, at the instant it is passed to
/// [`Engine::step`](crate::Engine::step).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    // Jobs.
    /// A job arrived. Ids are dense and issued in order of submission.
    Submitted {
        /// Its id, one above the last submitted job's.
        job: JobId,
        /// What it asks for.
        spec: JobSpec,
    },
    /// A prediction of the job's total solo run time. The last one counts.
    Estimated {
        /// Whose.
        job: JobId,
        /// From first start to end, alone on its devices, without waiting or restarts.
        run_time: Span,
    },
    /// The owner withdrew the job, waiting or running.
    Cancelled {
        /// Which.
        job: JobId,
    },
    /// The owner asked that a waiting job not start yet.
    Held {
        /// Which.
        job: JobId,
    },
    /// A held job may start again.
    Unheld {
        /// Which.
        job: JobId,
    },
    /// What would survive if the attempt stopped now. Supersedes the engine's own reckoning.
    Checkpoint {
        /// Which attempt.
        attempt: AttemptId,
        /// Solo run time that need not be repeated.
        work: Span,
        /// Time its next start spends before it makes progress.
        restart: Span,
    },
    /// The job ended by itself; its devices may take longer to come free.
    Finished {
        /// The attempt that ended.
        attempt: AttemptId,
        /// How.
        outcome: Outcome,
    },

    // Attempts to start.
    /// The world accepted the binding.
    Bound {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The world refused the binding.
    BindFailed {
        /// Which attempt.
        attempt: AttemptId,
        /// How badly.
        failure: BindFailure,
    },
    /// The job makes progress from now on.
    Running {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// Bound, but its node would not run it.
    Rejected {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// Bound long ago and still not running: give this attempt up.
    StartOverdue {
        /// Which attempt.
        attempt: AttemptId,
    },

    // Evictions.
    /// The world refused to evict (a disruption budget, throttling). The attempt runs on.
    EvictionRefused {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The attempt is ending and will be gone at `until` at the latest, if all goes well.
    Terminating {
        /// Which attempt.
        attempt: AttemptId,
        /// End of its grace period.
        until: Time,
    },
    /// The attempt holds no device any more.
    DevicesReleased {
        /// Which attempt.
        attempt: AttemptId,
    },

    // Inventory.
    /// A node joined. Ids are dense and issued in order.
    NodeAdded {
        /// Its id, one above the last added node's.
        node: NodeId,
        /// What it has.
        spec: NodeSpec,
    },
    /// The node takes no new work (true), or does again (false).
    NodeCordoned {
        /// Which.
        node: NodeId,
        /// Closed or open.
        cordoned: bool,
    },
    /// The node is gone, with everything that ran on it.
    NodeLost {
        /// Which.
        node: NodeId,
    },
    /// A lost node is back, empty.
    NodeRecovered {
        /// Which.
        node: NodeId,
    },
    /// The node serves another pool's queue from now on; what runs there stays.
    NodeMoved {
        /// Which.
        node: NodeId,
        /// Its new pool.
        pool: PoolId,
    },
    /// A device failed or was repaired. A job on a failed device runs on until it ends or is
    /// evicted; nothing new is placed there.
    DeviceHealth {
        /// Which node.
        node: NodeId,
        /// Which of its devices.
        device: u32,
        /// Usable or not.
        healthy: bool,
    },

    // Resizes.
    /// The attempt holds what it was shrunk to, and no more.
    Resized {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The attempt cannot be shrunk. It keeps what it had.
    ResizeRefused {
        /// Which attempt.
        attempt: AttemptId,
    },

    // Sharing.
    /// What jobs of each profile class are predicted to keep of their solo speed beside others.
    Retentions {
        /// Replaces the table before, unless that one has a higher version.
        table: RetentionTable,
    },
    /// What telemetry saw of a pair over one sampling period.
    PairSampled {
        /// The two attempts.
        attempts: [AttemptId; 2],
        /// What each kept of its solo speed, in the same order.
        retentions: [Retention; 2],
        /// When the period ended. A sample counts once, and not after a later one.
        taken: Time,
    },

    // Control.
    /// A tenant joined (ids dense, in order) or its terms changed.
    TenantSet {
        /// Which.
        tenant: TenantId,
        /// Its terms from now on.
        spec: TenantSpec,
    },
    /// This engine leads from now on, under a new epoch.
    Leadership {
        /// Larger than every earlier one.
        epoch: Epoch,
    },
    /// The instant is over: decide.
    Wake,
}

/// How a binding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindFailure {
    /// May well work next time.
    Transient,
    /// The job or node had changed meanwhile.
    Conflict,
    /// Will never work: the job fails.
    Permanent,
}
