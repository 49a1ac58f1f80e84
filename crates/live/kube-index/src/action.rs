//! What the index asks of the API server, and what came of it.
//!
//! The index decides nothing and does no I/O: the control loop carries actions out, a bounded number
//! at once, and tells how each ended. Actions on one pod are carried out in order.

use std::collections::BTreeMap;

/// Which pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a precondition of every write.
    pub uid: String,
}

/// Which volume claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a precondition of every write.
    pub uid: String,
}

/// A write to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Tell the provisioner of a claim for which node to make its volume: annotation
    /// [`SELECTED_NODE`](deepshare_kube_api::names::SELECTED_NODE) of the claim.
    SelectNode {
        /// Which claim.
        claim: ClaimRef,
        /// The node; `None`: none any more.
        node: Option<String>,
    },
    /// Bind the pod: one POST to `pods/NAME/binding`, with the UID as a precondition and these
    /// annotations.
    Bind {
        /// Which pod.
        pod: PodRef,
        /// To which node.
        node: String,
        /// The decision.
        annotations: BTreeMap<String, String>,
    },
    /// Evict the pod: condition `DisruptionTarget`, then `pods/NAME/eviction`; where a budget refuses
    /// that and `force_after_s` is set, a plain delete after so many seconds of asking again.
    Evict {
        /// Which pod.
        pod: PodRef,
        /// How long it may take to stop.
        grace_s: u32,
        /// A sentence for the condition and the event: why, and for whom.
        message: String,
        /// Seconds after which a disruption budget is overridden; `None`: never.
        force_after_s: Option<u32>,
    },
    /// Delete the pod without asking any budget: its gang or its node is gone.
    Delete {
        /// Which pod.
        pod: PodRef,
        /// Its node is no part of the cluster any more, so nobody will stop it: its phase becomes
        /// `Failed`, as pod garbage collection would have it, and it is deleted at once.
        orphaned: bool,
        /// How long it may take to stop.
        grace_s: u32,
        /// A sentence for the condition and the event.
        message: String,
    },
    /// Change CPU and memory requests in place: a PATCH of `pods/NAME/resize`.
    Resize {
        /// Which pod.
        pod: PodRef,
        /// Requests by container: quantities by resource name.
        requests: BTreeMap<String, BTreeMap<String, String>>,
        /// Annotations to set before the resize; an empty text removes one.
        annotations: BTreeMap<String, String>,
    },
    /// Set annotations of the pod; an empty text removes one.
    Annotate {
        /// Which pod.
        pod: PodRef,
        /// What to set.
        annotations: BTreeMap<String, String>,
    },
    /// Say why the pod waits: condition `PodScheduled=False`.
    Explain {
        /// Which pod.
        pod: PodRef,
        /// `Unschedulable` only where more nodes would help, else the engine's own word.
        reason: String,
        /// The same in a sentence.
        message: String,
    },
    /// Set or clear `status.nominatedNodeName`.
    Nominate {
        /// Which pod.
        pod: PodRef,
        /// The node; `None`: none any more.
        node: Option<String>,
    },
    /// Post an event about the pod.
    Announce {
        /// Which pod.
        pod: PodRef,
        /// A word: `Scheduled`, `Colocated`, `Preempting`, `Preempted`, `Shrunk`, `Refused`, ….
        reason: String,
        /// A sentence.
        message: String,
        /// Something is wrong.
        warning: bool,
    },
    /// Write a tenant's status, as a merge patch of `tenantquotas/NAME/status`.
    TenantStatus {
        /// The TenantQuota.
        name: String,
        /// The status.
        status: Box<deepshare_kube_api::TenantQuotaStatus>,
    },
}

/// How an action ended. Nothing is told of actions that only inform, or whose success the watch shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The node of a claim could not be written.
    SelectionFailed {
        /// Which claim.
        claim: ClaimRef,
        /// How badly, as for a Binding.
        failure: deepshare_engine::BindFailure,
        /// What the API server said.
        message: String,
    },
    /// The Binding was accepted.
    Bound {
        /// Which pod.
        pod: PodRef,
    },
    /// The Binding was refused.
    BindFailed {
        /// Which pod.
        pod: PodRef,
        /// How badly: 409 and 404 are conflicts, 400, 403 and 422 permanent, the rest transient.
        failure: deepshare_engine::BindFailure,
        /// What the API server said.
        message: String,
    },
    /// The eviction was accepted.
    Evicting {
        /// Which pod.
        pod: PodRef,
    },
    /// The eviction was refused for good: a budget, or whatever the server said after retries.
    EvictionRefused {
        /// Which pod.
        pod: PodRef,
        /// What the API server said.
        message: String,
    },
    /// The resize was refused.
    ResizeRefused {
        /// Which pod.
        pod: PodRef,
        /// What the API server said.
        message: String,
    },
}
