//! Jobs as pods: a job is one pod, or a gang of equal ones, and outlives the pods that it is made of.
//!
//! An evicted pod is gone for good, and its controller makes another one. The job stays: it is held
//! until the new pod is there, and goes on with its place in the queue, its history of preemptions and
//! its estimate. That is what keeps recreated pods from looping.

use crate::devices::GpuKind;
use deepshare_kube_api::DeviceSlot;
use deepshare_model::{
    AttemptId, Class, Devices, Epoch, JobId, NodeId, Outcome, Resources, SiteId, Span, TenantId,
    Time,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A pod's UID.
pub(crate) type Uid = Arc<str>;

/// What makes pods members of one gang; local to a namespace.
pub(crate) type GroupKey = (Arc<str>, String);

/// What makes a pod the successor of another: its controller, and alike demands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lineage {
    pub(crate) owner: Arc<str>,
    pub(crate) gpus: u32,
    pub(crate) site: SiteId,
}

/// Where one member runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    pub(crate) devices: Devices,
    pub(crate) slots: Vec<DeviceSlot>,
}

/// How far a member's pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits, or there is none.
    Idle,
    /// It has its place, and its volumes are to be there before it is bound: until then.
    Volumes(Time),
    /// A Binding is on its way.
    Binding,
    /// To be bound again then.
    BindAgain(Time),
    /// The API server said that it has changed: the watch will say how, until then.
    Unsure(Time),
    /// Bound, not running.
    Bound,
    /// Running.
    Running,
    /// Over.
    Done(Outcome),
}

/// One pod of a job.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) pod: Option<Uid>,
    pub(crate) stage: Stage,
    pub(crate) place: Option<Place>,
    /// Bindings tried for this place.
    pub(crate) tries: u32,
    /// It was asked to go.
    pub(crate) leaving: bool,
}

impl Stage {
    pub(crate) fn awaits_volumes(&self) -> bool {
        matches!(self, Stage::Volumes(_))
    }

    /// Nobody has been asked to bind it.
    pub(crate) fn is_before_binding(&self) -> bool {
        matches!(self, Stage::Idle | Stage::Volumes(_))
    }
}

impl Member {
    pub(crate) fn new(pod: Uid) -> Member {
        Member { pod: Some(pod), stage: Stage::Idle, place: None, tries: 0, leaving: false }
    }

    /// True while its pod holds devices, or may come to.
    pub(crate) fn holds(&self) -> bool {
        self.pod.is_some() && !matches!(self.stage, Stage::Idle | Stage::Done(_))
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.pod.is_some() && matches!(self.stage, Stage::Bound | Stage::Running | Stage::Done(_))
    }
}

/// Why an attempt is ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The API server may refuse, and has not said yet.
    pub(crate) asking: bool,
    pub(crate) message: String,
    /// For whom.
    pub(crate) beneficiary: Option<JobId>,
    /// Overrides a disruption budget after so many seconds.
    pub(crate) force_after_s: Option<u32>,
}

/// A shrink, or growing back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resizing {
    /// What each GPU of it is to have beside it.
    pub(crate) per_gpu: Resources,
    pub(crate) grows: bool,
    pub(crate) until: Time,
}

/// The attempt under way, and what the engine was told of it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) attempt: AttemptId,
    pub(crate) terms: Terms,
    pub(crate) bound: bool,
    pub(crate) running: bool,
    pub(crate) started: Option<Time>,
    pub(crate) overdue_at: Time,
    pub(crate) ending: Option<Ending>,
    pub(crate) resizing: Option<Resizing>,
    /// When a missing member makes it broken.
    pub(crate) broken_at: Option<Time>,
    /// The engine was told that it cannot go on.
    pub(crate) given_up: bool,
}

/// What the engine decided beyond the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Whoever decided it, and its number there: what all its pods have in common.
    pub(crate) epoch: Epoch,
    pub(crate) number: u32,
    pub(crate) charged: Class,
    pub(crate) steps: u32,
}

impl Run {
    pub(crate) fn new(attempt: AttemptId, terms: Terms, overdue_at: Time) -> Run {
        Run {
            attempt,
            terms,
            bound: false,
            running: false,
            started: None,
            overdue_at,
            ending: None,
            resizing: None,
            broken_at: None,
            given_up: false,
        }
    }
}

/// A job and its pods.
#[derive(Clone, Debug)]
pub(crate) struct JobEntry {
    pub(crate) namespace: Arc<str>,
    /// What people call it: a pod's name, or a gang's.
    pub(crate) name: String,
    pub(crate) tenant: TenantId,
    pub(crate) submitted: Time,
    pub(crate) kind: GpuKind,
    /// Which nodes take its pods.
    pub(crate) site: SiteId,
    /// GPUs of each member.
    pub(crate) gpus: u32,
    pub(crate) group: Option<GroupKey>,
    pub(crate) lineage: Option<Lineage>,
    pub(crate) members: Vec<Member>,
    /// Pods that its controller made before their predecessors were gone.
    pub(crate) heirs: Vec<Uid>,
    pub(crate) run: Option<Run>,
    /// It waits for pods to be recreated, until then.
    pub(crate) held_until: Option<Time>,
    pub(crate) shielded: bool,
    /// Its pods were deleted by somebody else: it does not come back.
    pub(crate) cancelled: bool,
    pub(crate) over: bool,
}

impl JobEntry {
    /// What is kept of every job that is over.
    fn of_the_past() -> JobEntry {
        JobEntry {
            namespace: "".into(),
            name: String::new(),
            tenant: TenantId(0),
            submitted: Time::ZERO,
            kind: GpuKind::Whole,
            site: SiteId(0),
            gpus: 0,
            group: None,
            lineage: None,
            members: Vec::new(),
            heirs: Vec::new(),
            run: None,
            held_until: None,
            shielded: false,
            cancelled: false,
            over: true,
        }
    }

    pub(crate) fn is_gang(&self) -> bool {
        self.members.len() > 1
    }

    /// Every member has a pod that has not gone anywhere.
    pub(crate) fn is_complete(&self) -> bool {
        self.members.iter().all(|member| member.pod.is_some() && !member.leaving)
    }

    pub(crate) fn member_of(&mut self, pod: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.pod.as_deref() == Some(pod))
    }
}

/// All jobs, by engine id, and how to find them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Ids are dense, and a scheduler sees many jobs: those that are over share one entry.
    all: Vec<Arc<JobEntry>>,
    past: Option<Arc<JobEntry>>,
    pub(crate) by_pod: HashMap<Uid, JobId>,
    pub(crate) by_group: BTreeMap<GroupKey, JobId>,
    /// Jobs that wait for a successor of one of their pods.
    pub(crate) by_lineage: BTreeMap<Lineage, Vec<JobId>>,
    pub(crate) by_attempt: BTreeMap<AttemptId, JobId>,
}

impl Jobs {
    /// The id of the next job.
    pub(crate) fn next_id(&self) -> JobId {
        JobId::from_index(self.all.len())
    }

    pub(crate) fn push(&mut self, entry: JobEntry) {
        self.all.push(Arc::new(entry));
    }

    pub(crate) fn get(&self, id: JobId) -> &JobEntry {
        &self.all[id.index()]
    }

    pub(crate) fn get_mut(&mut self, id: JobId) -> &mut JobEntry {
        Arc::make_mut(&mut self.all[id.index()])
    }

    pub(crate) fn of_attempt(&self, attempt: AttemptId) -> Option<JobId> {
        self.by_attempt.get(&attempt).copied()
    }

    pub(crate) fn await_successor(&mut self, id: JobId) {
        if let Some(lineage) = self.get(id).lineage.clone() {
            let waiting = self.by_lineage.entry(lineage).or_default();
            if !waiting.contains(&id) {
                waiting.push(id);
            }
        }
    }

    pub(crate) fn forget_successor(&mut self, id: JobId) {
        if let Some(lineage) = self.get(id).lineage.clone()
            && let Some(waiting) = self.by_lineage.get_mut(&lineage)
        {
            waiting.retain(|&other| other != id);
            if waiting.is_empty() {
                self.by_lineage.remove(&lineage);
            }
        }
    }

    /// Forgets a job that is over.
    pub(crate) fn close(&mut self, id: JobId) {
        self.forget_successor(id);
        let past = self.past.get_or_insert_with(|| Arc::new(JobEntry::of_the_past()));
        let entry = std::mem::replace(&mut self.all[id.index()], past.clone());
        for pod in entry.members.iter().filter_map(|member| member.pod.as_ref()) {
            self.by_pod.remove(pod);
        }
        if let Some(group) = &entry.group {
            self.by_group.remove(group);
        }
        if let Some(run) = &entry.run {
            self.by_attempt.remove(&run.attempt);
        }
    }
}

/// How long things may take before somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Volumes that are made for a pod once it has a node are given up after this.
    pub volumes: Span,
    /// A bound pod that does not run (image pulls included) is given up after this.
    pub start: Span,
    /// A gang that lacks a member is ended after this.
    pub gang: Span,
    /// An evicted pod's job waits so long for its controller to make another one.
    pub recreate: Span,
    /// A shrink that is not visible is given up after this.
    pub resize: Span,
    /// A node that is not ready is lost after this.
    pub node: Span,
    /// A node that rejected a pod gets no more for this long, doubled with each in a row; so does one
    /// for which a claim's volume could not be made, of that claim.
    pub rejecting_node: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            volumes: Span::from_secs(600),
            start: Span::from_secs(600),
            gang: Span::from_secs(60),
            recreate: Span::from_secs(600),
            resize: Span::from_secs(30),
            node: Span::from_secs(60),
            rejecting_node: Span::from_secs(30),
        }
    }
}
