//! What goes into a simulated node, and what comes out.

use super::observed::ObservedPod;
use super::write::Write;
use k8s_openapi::jiff::Timestamp;

/// What a timer is for. Those of a resize name the generation that they are of, and one of an
/// earlier generation does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The containers run.
    Start,
    /// The containers end by themselves.
    Complete,
    /// The containers have stopped.
    Stop,
    /// The resize is promised.
    Allocate(i64),
    /// The resize is in force.
    Resize(i64),
}

/// A timer of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When.
    pub at: Timestamp,
    /// UID of the pod.
    pub uid: String,
    /// What for.
    pub step: Step,
}

/// What comes out.
#[derive(Debug, Default)]
pub struct Output {
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// Timers to set.
    pub timers: Vec<Timer>,
}

/// What goes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// A pod of this node appeared or changed.
    Pod(Box<ObservedPod>),
    /// The pod of this UID is gone.
    Gone(String),
    /// A timer.
    Timer(Timer),
}
