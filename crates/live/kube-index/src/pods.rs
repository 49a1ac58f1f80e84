//! What the index keeps of a pod.

use crate::action::PodRef;
use crate::devices::GpuKind;
use crate::gangs::GroupRef;
use crate::jobs::Uid;
use crate::resize::sum;
use crate::watched::{Labels, Phase, Pod};
use deepshare_kube_api::Decision;
use deepshare_model::{Resources, SiteId, Span, Time};
use std::sync::Arc;

/// A pod that asks for GPUs, or is ours without asking for any.
#[derive(Clone, Debug)]
pub(crate) struct PodFacts {
    pub(crate) uid: Uid,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Box<str>,
    /// Creation, seconds of the Unix epoch.
    pub(crate) created: i64,
    pub(crate) ours: bool,
    pub(crate) node: Option<Arc<str>>,
    pub(crate) deleting: bool,
    /// A scheduler evicts it, or did: condition `DisruptionTarget`.
    pub(crate) preempted: bool,
    pub(crate) phase: Phase,
    /// The status' reason, as in `OutOfcpu`.
    pub(crate) status_reason: Option<Box<str>>,
    pub(crate) out_of_memory: bool,
    pub(crate) started: Option<Time>,
    pub(crate) gated: bool,
    pub(crate) labels: Labels,
    /// All that node checks need of it, until it is bound.
    pub(crate) whole: Option<Arc<Pod>>,
    pub(crate) decision: Option<Box<Decision>>,
    /// The decision of the Binding on its way.
    pub(crate) asked: Option<Box<Decision>>,
    pub(crate) kind: Option<GpuKind>,
    pub(crate) gpus: u32,
    /// CPU and memory that it holds, by the accounting of Kubernetes.
    pub(crate) host: Resources,
    /// CPU and memory requests that its containers are known to run with.
    pub(crate) visible: Option<Resources>,
    /// Condition `PodScheduled`: reason and message, where it is false.
    pub(crate) said: Option<(Box<str>, Box<str>)>,
    pub(crate) nominated: bool,
    /// What it wishes, while it is to be scheduled or runs; dropped with terminal pods.
    pub(crate) wish: Option<Arc<Wish>>,
}

/// What a pod of ours asks for beyond GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// It cannot be served, and why.
    pub(crate) refusal: Option<(String, String)>,
    pub(crate) site: SiteId,
    pub(crate) class: Option<Box<str>>,
    pub(crate) group: Option<GroupRef>,
    /// UID of its controller.
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) priority: i32,
    pub(crate) never_preempts: bool,
    pub(crate) run_time: Option<Span>,
    pub(crate) profile: Option<Box<str>>,
    pub(crate) gpu_memory_mib: u32,
    pub(crate) gpu_type: Option<Box<str>>,
    pub(crate) colocation: bool,
    pub(crate) run_as: Option<i64>,
    pub(crate) slowdown_limit_milli: u32,
    pub(crate) recommended: Option<Resources>,
    pub(crate) grace_s: u32,
    /// The container that gets the devices, and how many each.
    pub(crate) containers: Vec<(Box<str>, u32)>,
    /// CPU and memory requests by container, where they can be resized in place.
    pub(crate) resizable: Vec<(Box<str>, Resources)>,
}

/// A gang as its pods name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Unique in the namespace.
    pub(crate) name: String,
    pub(crate) size: u32,
}

impl PodFacts {
    pub(crate) fn pod_ref(&self) -> PodRef {
        PodRef {
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
            uid: self.uid.to_string(),
        }
    }

    /// True if the engine is told of the pod, bound or not: its CPU and memory are in the engine's books.
    pub(crate) fn is_known(&self) -> bool {
        self.ours && self.kind.is_some()
    }

    /// CPU and memory that it asked for at first: a pod that has been shrunk holds less, and gets that back
    /// when there is room.
    pub(crate) fn asked_host(&self) -> Resources {
        let first = self.wish.as_ref().map_or(Resources::default(), |wish| sum(&wish.resizable));
        Resources {
            cpu_milli: self.host.cpu_milli.max(first.cpu_milli),
            memory_mib: self.host.memory_mib.max(first.memory_mib),
        }
    }

    /// True while it waits to be scheduled.
    pub(crate) fn is_asking(&self) -> bool {
        self.node.is_none() && !self.gated && !self.deleting && !self.is_terminal()
    }

    /// True once no container of it can run any more.
    pub(crate) fn is_terminal(&self) -> bool {
        self.phase.is_terminal()
    }

    /// Which nodes take it; `None`: nobody needs to know, as it is over or refused.
    pub(crate) fn site(&self) -> Option<SiteId> {
        self.wish.as_ref().filter(|wish| wish.refusal.is_none()).map(|wish| wish.site)
    }

    /// True if its node refused to run it at all.
    pub(crate) fn was_rejected(&self) -> bool {
        const REASONS: [&str; 3] =
            ["UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity"];
        let rejects = |reason: &str| reason.starts_with("OutOf") || REASONS.contains(&reason);
        self.phase == Phase::Failed
            && self.started.is_none()
            && self.status_reason.as_deref().is_some_and(rejects)
    }
}
