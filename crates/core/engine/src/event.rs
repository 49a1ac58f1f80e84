//! All that can happen to the engine, estimates included.

use crate::attempt::Placement;
use crate::qad::Degree;
use crate::sharing::RetentionTable;
use deepshare_model::{
    AttemptId, Class, Epoch, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome, PoolId,
    Resources, Retention, SiteId, Span, TenantId, TenantSpec, Time,
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

    /// What happened to a job before this engine knew it: under an earlier engine, or as pods that
    /// its controller has replaced. Comes right after its submission.
    Carried {
        /// Which job.
        job: JobId,
        /// When it was preempted, oldest first.
        preempted_at: Vec<Time>,
        /// Time it has run.
        served: Span,
    },
    /// A job was found holding devices, as after a restart. The world is right: no quota, no room and
    /// no other holder is checked, whoever holds the same devices shares them from now on, and whoever
    /// was only promised them has to wait anew. Devices that are not known void the event; those of
    /// several GPU types count as the first one's.
    Found {
        /// Which job: submitted, and not active.
        job: JobId,
        /// To which class of its tenant its devices are charged.
        charged: Class,
        /// What it holds.
        placement: Placement,
        /// CPU and memory that it holds beside each GPU.
        per_gpu: Resources,
        /// Since when it makes progress; `None`: bound, and not running yet.
        running_since: Option<Time>,
    },
    /// While a running job's owner is to run on, or the world's budget for disrupting its owner is
    /// used up: evicted only where nobody else will do.
    Shielded {
        /// Which job.
        job: JobId,
        /// From now on, or no more.
        shielded: bool,
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

    /// A member of a running gang is gone and did not come back in time: the rest is evicted, and the
    /// gang starts again as a whole.
    Broken {
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
    /// A node's devices or host resources are others than when it was added.
    NodeChanged {
        /// Which.
        node: NodeId,
        /// Number of GPUs, never fewer than before: devices that are gone are failed ones.
        gpus: u32,
        /// Allocatable CPU and host memory, less what others use of it.
        capacity: Resources,
    },
    /// How many more members of a job with certain requirements the nodes can take (labels, taints,
    /// ports, anything that is not GPUs, CPU or memory). Nothing said of a node: none. A member is a
    /// pod of a gang of [members](deepshare_model::Layout::Members), or all that another job has on
    /// the node. From then on the engine counts what it starts there itself: said again when members
    /// have left, or could not be started.
    Admitted {
        /// The requirements.
        site: SiteId,
        /// Of which nodes.
        nodes: Vec<NodeId>,
        /// Members on each of them, beside whoever is there; `u32::MAX`: any number.
        members: u32,
    },
    /// A device failed or was repaired, or somebody else took or freed it. A job on a failed device
    /// runs on until it ends or is evicted; nothing new is placed there.
    DeviceHealth {
        /// Which node.
        node: NodeId,
        /// Which of its devices.
        device: u32,
        /// Usable or not.
        healthy: bool,
    },

    // Resizes.
    /// The attempt holds what it was shrunk or grown to, and no more.
    Resized {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The attempt cannot be shrunk or grown. It keeps what it had.
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
    /// A tenant's smoothed quota assurance degree, as an earlier engine left it.
    AssuranceRestored {
        /// Whose.
        tenant: TenantId,
        /// Of which GPU type.
        gpu_type: GpuTypeId,
        /// Q̃ as of now.
        smoothed: Degree,
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
