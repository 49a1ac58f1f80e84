//! All that the engine can ask of the world.

use crate::attempt::Placement;
use crate::reason::Reason;
use crate::sharing::PairBar;
use deepshare_model::{AttemptId, Class, Epoch, JobId, Resources, Span};
use serde::{Deserialize, Serialize};

/// Something the driver must do, in the order given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Hold these devices for the job until their present holders are gone.
    Reserve {
        /// The attempt that will start there.
        attempt: AttemptId,
        /// Whose.
        job: JobId,
        /// To which class of its tenant its devices are charged.
        charged: Class,
        /// Where.
        placement: Placement,
    },
    /// Start the job there now: every device is free, or shared by agreement.
    Start {
        /// The attempt.
        attempt: AttemptId,
        /// The term of leadership that decided it.
        epoch: Epoch,
        /// Whose.
        job: JobId,
        /// To which class of its tenant its devices are charged.
        charged: Class,
        /// Where.
        placement: Placement,
        /// In how many steps to do each iteration (gradient accumulation): 1 = as configured.
        steps: u32,
    },
    /// Do each iteration in so many steps from the next one on.
    Accumulate {
        /// Which attempt.
        attempt: AttemptId,
        /// The term of leadership that decided it.
        epoch: Epoch,
        /// 1 = as configured.
        steps: u32,
    },
    /// Sample what both attempts of a pair keep of their solo speed, and tell
    /// ([`Event::PairSampled`](crate::Event::PairSampled)) until either ends.
    Watch {
        /// The attempt that joined.
        attempt: AttemptId,
        /// The one that was there.
        partner: AttemptId,
        /// What they have to keep, the one that joined first.
        bar: PairBar,
    },
    /// Charge a guaranteed job's devices to its tenant's quota from now on: it cannot be preempted
    /// any more.
    Promote {
        /// The attempt that was charged as best-effort.
        attempt: AttemptId,
    },
    /// Forget a reservation: its job gave up or lost it.
    ReleaseReservation {
        /// The attempt that will not start.
        attempt: AttemptId,
    },
    /// End this attempt; its job goes back to its queue unless it was cancelled.
    Evict {
        /// The attempt to end.
        attempt: AttemptId,
        /// The term of leadership that decided it.
        epoch: Epoch,
        /// Why.
        reason: EvictReason,
        /// How long it may take to stop.
        grace: Span,
        /// For whom, if it was chosen for one job.
        preemption: Option<Preemption>,
    },
    /// Shrink the attempt's CPU and memory in place, and tell when that is visible
    /// ([`Event::Resized`](crate::Event::Resized)).
    Shrink {
        /// Which attempt.
        attempt: AttemptId,
        /// The term of leadership that decided it.
        epoch: Epoch,
        /// What it keeps beside each GPU.
        per_gpu: Resources,
    },
    /// Give a shrunk attempt back what its job asks for, and tell when that is visible
    /// ([`Event::Resized`](crate::Event::Resized)).
    Grow {
        /// Which attempt.
        attempt: AttemptId,
        /// The term of leadership that decided it.
        epoch: Epoch,
        /// What it gets beside each GPU.
        per_gpu: Resources,
    },
    /// Tell the job's owner that it cannot run here as things stand.
    Refuse {
        /// Which job.
        job: JobId,
        /// Why.
        reason: Reason,
    },
}

/// For whom an attempt is preempted, and what the whole set of victims costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemption {
    /// The job that gets the devices.
    pub beneficiary: JobId,
    /// Φ of all its victims together, in 10⁻⁹ per second (spec §4); `None` where the policy knows
    /// no Φ.
    pub phi_nano: Option<u64>,
}

/// Why an attempt was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictReason {
    /// Another job goes first.
    Preempted,
    /// Its owner withdrew it.
    Cancelled,
    /// One of its nodes is gone.
    NodeLost,
    /// It was bound and did not start in time.
    StartOverdue,
    /// A member of it is gone for good, and the others cannot do without.
    Broken,
    /// It shares devices, and the pair runs slower than it may.
    Degraded,
    /// It shares devices, and one of the pair has been slowed down as much as it accepts.
    SlowdownLimit,
}

impl EvictReason {
    /// The reason in the words of scenario scripts: `evict a for preemption`.
    pub fn in_words(self) -> &'static str {
        match self {
            EvictReason::Preempted => "preemption",
            EvictReason::Cancelled => "cancellation",
            EvictReason::NodeLost => "node loss",
            EvictReason::StartOverdue => "late start",
            EvictReason::Broken => "a lost member",
            EvictReason::Degraded => "degradation",
            EvictReason::SlowdownLimit => "slowdown-limit",
        }
    }

    /// True if the policy chose to: the world may refuse, and it counts as a preemption.
    pub fn is_chosen(self) -> bool {
        matches!(self, EvictReason::Preempted | EvictReason::Degraded | EvictReason::SlowdownLimit)
    }
}
