//! Why a node cannot take a pod.

use crate::quantity::format_amount;
use std::fmt;

/// The first thing that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no such node, or no more.
    NoNode,
    /// The pod is on a node already, or assumed there.
    Placed {
        /// Which.
        on: Box<str>,
    },
    /// The node is not ready.
    NotReady,
    /// The node is cordoned.
    Cordoned,
    /// The node has a taint that the pod does not tolerate.
    Taint {
        /// Its key.
        key: Box<str>,
    },
    /// The pod's node selector or node affinity excludes the node.
    Selector,
    /// Not enough of a resource is free.
    Resource {
        /// Which, `pods` included.
        name: Box<str>,
        /// Asked for, in the unit of [`base_units`](deepshare_kube_api::quantity::base_units).
        asked: u64,
        /// Free, likewise.
        free: u64,
    },
    /// A port of the node is taken.
    Port {
        /// Its number.
        port: u16,
    },
    /// No pod is near that the pod must be beside.
    Affinity {
        /// The label that says what near is.
        topology_key: Box<str>,
    },
    /// A pod is near that the pod must not be beside.
    AntiAffinity {
        /// The label that says what near is.
        topology_key: Box<str>,
    },
    /// A pod is near that must not be beside this one.
    AntiAffinityOfOthers {
        /// The label that says what near is.
        topology_key: Box<str>,
    },
    /// The place has as many pods of the kind as it may have above the emptiest one.
    Spread {
        /// The label that says what a place is.
        topology_key: Box<str>,
    },
    /// The node does not reach a volume.
    Volume {
        /// Its claim, as `namespace/name`.
        claim: Box<str>,
    },
    /// Another pod has a claim that only one pod may have.
    ClaimInUse {
        /// The claim, as `namespace/name`.
        claim: Box<str>,
    },
    /// The node can attach no more volumes of a driver.
    AttachLimit {
        /// The driver.
        driver: Box<str>,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NoNode => f.write_str("there is no such node any more"),
            Why::Placed { on } => write!(f, "the pod is already placed on {on}"),
            Why::NotReady => f.write_str("the node is not ready"),
            Why::Cordoned => f.write_str("the node is cordoned"),
            Why::Taint { key } => write!(f, "the pod does not tolerate the node's taint `{key}`"),
            Why::Selector => f.write_str("the pod's node selector or affinity excludes the node"),
            Why::Resource { name, asked, free } => write!(
                f,
                "the pod asks for {} of `{name}`, and {} are free",
                format_amount(name, *asked),
                format_amount(name, *free)
            ),
            Why::Port { port } => write!(f, "host port {port} is taken"),
            Why::Affinity { topology_key } => {
                write!(f, "no pod that it must be beside is in the node's `{topology_key}`")
            }
            Why::AntiAffinity { topology_key } => {
                write!(f, "a pod that it must not be beside is in the node's `{topology_key}`")
            }
            Why::AntiAffinityOfOthers { topology_key } => {
                write!(f, "a pod that must not be beside it is in the node's `{topology_key}`")
            }
            Why::Spread { topology_key } => {
                write!(f, "its spread over `{topology_key}` would become too uneven")
            }
            Why::Volume { claim } => write!(f, "the node does not reach the volume of `{claim}`"),
            Why::ClaimInUse { claim } => {
                write!(f, "another pod has the claim `{claim}`, which one pod at a time may have")
            }
            Why::AttachLimit { driver } => {
                write!(f, "the node can attach no more volumes of driver `{driver}`")
            }
        }
    }
}
