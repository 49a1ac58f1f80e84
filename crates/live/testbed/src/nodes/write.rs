//! What a simulated node asks of the API server.

use deepshare_kube_api::GpuNodeStatus;
use serde_json::Value;

/// Which pod, for a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a precondition.
    pub uid: String,
}

/// One write. Those about one pod, and those about one node, are carried out in their order.
#[derive(Clone, Debug)]
pub enum Write {
    /// A strategic merge patch of `pods/NAME/status`.
    PodStatus {
        /// Which pod.
        pod: PodKey,
        /// The status.
        status: Value,
    },
    /// Removes a pod whose containers are gone.
    Remove {
        /// Which pod.
        pod: PodKey,
    },
    /// A strategic merge patch of `nodes/NAME/status`.
    NodeStatus {
        /// Which node.
        node: String,
        /// The status.
        status: Value,
    },
    /// A merge patch of `gpunodes/NAME/status`.
    GpuNodeStatus {
        /// Which node.
        node: String,
        /// The status.
        status: Box<GpuNodeStatus>,
    },
    /// Renews a node's lease.
    Heartbeat {
        /// Which node.
        node: String,
    },
}

impl Write {
    /// What it is about, as far as order goes.
    pub fn subject(&self) -> &str {
        match self {
            Write::PodStatus { pod, .. } | Write::Remove { pod } => &pod.uid,
            Write::NodeStatus { node, .. } | Write::Heartbeat { node } => node,
            Write::GpuNodeStatus { node, .. } => node,
        }
    }
}
