//! The index: watched objects in, events and writes out.

use crate::action::Action;
use crate::adopt::Foundling;
use crate::devices::NodeEntry;
use crate::gangs::{GroupSource, PodGroups};
use crate::interner::Interner;
use crate::jobs::{GroupKey, Jobs, Lineage, Patience, Uid};
use crate::places::Places;
use crate::pods::PodFacts;
use crate::provision::Provision;
use crate::tenants::Tenants;
use crate::watched::{
    CsiNode, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PodGroup, StorageClass,
};
use crate::why::Why;
use deepshare_engine::{BindFailure, Event, RetentionTable, State};
use deepshare_kube_api::{GpuNode, TenantQuota};
use deepshare_model::{AttemptId, JobId, NodeId, ProfileClassId, Span, TenantId, Time, UserId};
use deepshare_predict::RunningMean;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What an operator chooses about the index.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `spec.schedulerName` of the pods to schedule.
    pub scheduler: String,
    /// How long things may take.
    pub patience: Patience,
    /// Most seconds that an evicted best-effort pod may take to stop, whatever it asks for.
    pub most_grace_s: u32,
    /// Names of the profile classes of the retention file, and its table.
    pub profiles: Vec<String>,
    /// What pairs are predicted to keep.
    pub retentions: RetentionTable,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            scheduler: deepshare_kube_api::names::SCHEDULER.to_owned(),
            patience: Patience::default(),
            most_grace_s: 120,
            profiles: Vec::new(),
            retentions: RetentionTable::default(),
        }
    }
}

/// What a watch tells.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is an object that was set, or the key of one that is gone")]
pub enum Change {
    Pod(Box<Pod>),
    PodGone {
        uid: Box<str>,
    },
    Node(Box<Node>),
    NodeGone {
        name: Box<str>,
    },
    Gpus(Box<GpuNode>),
    GpusGone {
        name: Box<str>,
    },
    Quota(Box<TenantQuota>),
    QuotaGone {
        name: Box<str>,
    },
    Namespace(Namespace),
    NamespaceGone {
        name: Box<str>,
    },
    Group(GroupSource, PodGroup),
    GroupGone {
        source: GroupSource,
        namespace: Box<str>,
        name: Box<str>,
    },
    Budget(PodDisruptionBudget),
    BudgetGone {
        namespace: Box<str>,
        name: Box<str>,
    },
    Claim(PersistentVolumeClaim),
    ClaimGone {
        namespace: Box<str>,
        name: Box<str>,
    },
    Volume(PersistentVolume),
    VolumeGone {
        name: Box<str>,
    },
    StorageClass(StorageClass),
    StorageClassGone {
        name: Box<str>,
    },
    CsiNode(CsiNode),
    CsiNodeGone {
        name: Box<str>,
    },
    /// Every list has been delivered once: from here on the engine is told.
    Synced,
}

/// Something that has a number in events, and its name, for whoever reads a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A tenant: its TenantQuota.
    Tenant(TenantId, String),
    /// A node.
    Node(NodeId, String),
    /// A job: `namespace/name#uid`. The UID is that of its pod, or of the controller of a gang: another
    /// one of the same name is another job.
    Job(JobId, String),
    /// A user: a namespace.
    User(UserId, String),
    /// A GPU type, by number.
    GpuType(u32, String),
    /// A profile class.
    Profile(ProfileClassId, String),
}

/// What happened to a job under earlier attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) preempted: Vec<Time>,
    pub(crate) served: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Job(JobId),
    Node(NodeOrder),
    Orphans(Foundling),
    Claims,
}

/// Position of a node's name in `timed_nodes`.
pub(crate) type NodeOrder = u32;

/// Watched objects into events, commands into writes.
#[derive(Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) events: Vec<Event>,
    pub(crate) actions: Vec<Action>,
    pub(crate) named: Vec<Named>,
    synced: bool,
    pub(crate) types: Interner,
    pub(crate) users: Interner,
    pub(crate) domains: Interner,
    pub(crate) tenants: Tenants,
    pub(crate) places: Places,
    pub(crate) nodes: BTreeMap<Arc<str>, NodeEntry>,
    pub(crate) nodes_by_id: Vec<Arc<str>>,
    pub(crate) timed_nodes: Interner,
    pub(crate) unready: BTreeMap<Arc<str>, Time>,
    pub(crate) rejecting: BTreeMap<Arc<str>, (Option<Time>, u32)>,
    pub(crate) touched: BTreeSet<Arc<str>>,
    pub(crate) pods: HashMap<Uid, PodFacts>,
    pub(crate) groups: PodGroups,
    pub(crate) jobs: Jobs,
    pub(crate) gathering: BTreeMap<GroupKey, Vec<Uid>>,
    pub(crate) refused: BTreeSet<Uid>,
    pub(crate) reserved: BTreeMap<AttemptId, JobId>,
    pub(crate) bind_verdict: BTreeMap<JobId, BindFailure>,
    pub(crate) history: BTreeMap<JobId, History>,
    pub(crate) provision: Provision,
    /// Bound pods of gangs that another scheduler decided, and how long the others may take to show.
    pub(crate) orphans: BTreeMap<Foundling, (Time, Vec<Uid>)>,
    /// Bound pods of ours whose decisions do not hold, or not any more.
    pub(crate) strangers: BTreeSet<Uid>,
    pub(crate) timers: BTreeSet<(Time, Timer)>,
    pub(crate) means: RunningMean,
    pub(crate) budgets: BTreeMap<(Box<str>, Box<str>), PodDisruptionBudget>,
    pub(crate) why: Why,
    pub(crate) rejections: u64,
    pub(crate) quotas_changed: bool,
}

impl Index {
    /// An index that has seen nothing yet.
    pub fn new(config: Config) -> Index {
        let profiles = (0..).map(ProfileClassId).zip(&config.profiles);
        let profiles = profiles.map(|(id, name)| Named::Profile(id, name.clone()));
        let named = profiles.collect();
        let mut index = Index {
            places: Places::default(),
            config,
            events: Vec::new(),
            actions: Vec::new(),
            named,
            synced: false,
            types: Interner::default(),
            users: Interner::default(),
            domains: Interner::default(),
            tenants: Tenants::default(),
            nodes: BTreeMap::new(),
            nodes_by_id: Vec::new(),
            timed_nodes: Interner::default(),
            unready: BTreeMap::new(),
            rejecting: BTreeMap::new(),
            touched: BTreeSet::new(),
            pods: HashMap::new(),
            groups: PodGroups::default(),
            jobs: Jobs::default(),
            gathering: BTreeMap::new(),
            refused: BTreeSet::new(),
            reserved: BTreeMap::new(),
            bind_verdict: BTreeMap::new(),
            history: BTreeMap::new(),
            provision: Provision::default(),
            orphans: BTreeMap::new(),
            strangers: BTreeSet::new(),
            timers: BTreeSet::new(),
            means: RunningMean::default(),
            budgets: BTreeMap::new(),
            why: Why::default(),
            rejections: 0,
            quotas_changed: false,
        };
        if !index.config.retentions.rows.is_empty() {
            let table = index.config.retentions.clone();
            index.events.push(Event::Retentions { table });
        }
        index
    }

    /// True once every list has been delivered.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// What the engine has to hear next, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn push_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The engine has taken up an event.
    pub fn stepped(&mut self, now: Time, event: &Event, state: &State) {
        self.why.note_change();
        if let Event::NodeLost { node } = event {
            self.review_ending_on(now, *node);
        }
        let Event::Found { job, .. } = event else { return };
        match state.job(*job).active() {
            Some(attempt) => {
                self.jobs.by_attempt.insert(attempt, *job);
                self.run_mut(*job).attempt = attempt;
                self.check_shield(*job);
                self.review(now, *job);
            }
            // The engine does not know such devices.
            None if !self.jobs.get(*job).over => self.disown(now, *job),
            None => {}
        }
    }

    /// What is to be written, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Names of what events number, as far as they are new.
    pub fn take_names(&mut self) -> Vec<Named> {
        std::mem::take(&mut self.named)
    }

    /// Pods that their nodes refused after they had been bound.
    pub fn rejections(&self) -> u64 {
        self.rejections
    }

    /// Takes up what a watch told.
    pub fn apply(&mut self, now: Time, change: Change) {
        match change {
            Change::Pod(pod) => self.set_pod(now, &pod.into()),
            Change::PodGone { uid } => self.drop_pod(now, &uid),
            Change::Node(node) => self.set_node(now, &node),
            Change::NodeGone { name } => {
                let entry = self.nodes.get_mut(&*name);
                if let Some(entry) = entry {
                    entry.facts = None;
                }
                self.unready.remove(&*name);
                self.places.drop_node(&name);
                self.delete_orphans(&name);
                self.expire_left(now);
                self.touched.insert((*name).into());
            }
            Change::Gpus(gpus) => self.set_gpus(now, *gpus),
            Change::GpusGone { name } => {
                if let Some(entry) = self.nodes.get_mut(&*name) {
                    entry.set_agent(None);
                    self.touched.insert((*name).into());
                }
            }
            Change::Quota(quota) => {
                self.quotas_changed |= self.tenants.set_quota(*quota);
            }
            Change::QuotaGone { name } => {
                self.tenants.drop_quota(&name);
                self.why.forget_tenant(&name);
                self.quotas_changed = true;
            }
            Change::Namespace(namespace) => {
                let labels = namespace.metadata.labels.clone();
                self.tenants.set_namespace(&namespace.metadata.name, labels);
                self.places.set_namespace(&namespace);
                self.quotas_changed = true;
            }
            Change::NamespaceGone { name } => {
                self.tenants.drop_namespace(&name);
                self.quotas_changed = true;
            }
            Change::Group(source, group) => {
                self.groups.set(source, &group);
                self.recheck_namespace(now, &group.metadata.namespace);
            }
            Change::GroupGone { source, namespace, name } => {
                self.groups.remove(source, &namespace, &name);
            }
            Change::Budget(budget) => {
                let key = (budget.metadata.namespace.clone(), budget.metadata.name.clone());
                let namespace = key.0.clone();
                self.budgets.insert(key, budget);
                self.recheck_shields(&namespace);
            }
            Change::BudgetGone { namespace, name } => {
                self.budgets.remove(&(namespace.clone(), name));
                self.recheck_shields(&namespace);
            }
            Change::Claim(claim) => {
                self.places.set_claim(&claim);
                self.claim_changed(now, &claim.metadata.namespace, &claim.metadata.name);
                self.recheck_namespace(now, &claim.metadata.namespace);
            }
            Change::ClaimGone { namespace, name } => {
                self.places.drop_claim(&namespace, &name);
                self.claim_changed(now, &namespace, &name);
            }
            Change::Volume(volume) => {
                self.places.set_volume(&volume);
                self.volume_came(now, &volume.metadata.name);
                self.recheck_refused(now);
            }
            Change::VolumeGone { name } => self.places.drop_volume(&name),
            Change::StorageClass(class) => {
                self.places.set_storage_class(&class);
                self.recheck_refused(now);
            }
            Change::CsiNode(node) => self.places.set_csi_node(&node),
            // A class or its drivers outlive whoever uses them.
            Change::StorageClassGone { .. } | Change::CsiNodeGone { .. } => {}
            Change::Synced => {
                self.synced = true;
                self.touched.extend(self.nodes.keys().cloned());
                self.quotas_changed = true;
                self.tell_cluster(now);
                self.expire_left(now);
                self.resync(now);
            }
        }
        self.tell_cluster(now);
    }

    /// When [`Index::tick`] has something to do next.
    pub fn next_tick(&self) -> Option<Time> {
        let timer = self.timers.first().map(|&(at, _)| at);
        [timer, self.why.due()].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        while let Some(&(at, timer)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Job(job) => {
                    self.resize_timer(now, job);
                    self.job_timer(now, job);
                }
                Timer::Node(order) => self.node_timer(now, order),
                Timer::Orphans(key) => self.orphans_timer(now, key),
                Timer::Claims => self.claims_timer(now),
            }
        }
        self.tell_cluster(now);
    }

    pub(crate) fn set_timer(&mut self, at: Time, job: JobId) {
        self.timers.insert((at, Timer::Job(job)));
    }

    /// Seconds after which a beneficiary's tenant overrides disruption budgets, if it may.
    pub(crate) fn pdb_patience(&self, beneficiary: JobId) -> Option<u32> {
        let quota = self.tenants.quota(self.jobs.get(beneficiary).tenant)?;
        let reclaim = &quota.spec.reclaim;
        reclaim.override_pdb.then(|| reclaim.pdb_wait_seconds.unwrap_or(60))
    }

    pub(crate) fn learn_run_time(&mut self, job: JobId, ran: Span) {
        let entry = self.jobs.get(job);
        let user = self.users.get(&entry.namespace).map_or(UserId(0), UserId);
        let before = self.history.get(&job).map_or(Span::ZERO, |history| history.served);
        self.means.learn(user, entry.tenant, before.saturating_add(ran));
    }

    /// Puts a job on hold until its pods are recreated.
    pub(crate) fn hold(&mut self, now: Time, job: JobId) {
        let until = now + self.config.patience.recreate;
        self.jobs.get_mut(job).held_until = Some(until);
        self.jobs.await_successor(job);
        self.set_timer(until, job);
    }

    pub(crate) fn lineage_of(&self, pod: &PodFacts) -> Option<Lineage> {
        let wish = pod.wish.as_ref()?;
        Some(Lineage { owner: wish.owner.clone()?, gpus: pod.gpus, site: wish.site })
    }
}
