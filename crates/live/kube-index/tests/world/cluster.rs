//! The world: objects, kubelets, controllers and schedulers, on one clock and one seed.

use crate::audit::Audit;
use crate::chance::Chance;
use crate::kubelet::{Controller, Kubelet};
use crate::objects;
use deepshare_engine::Engine;
use deepshare_kube_index::{Action, Change, Config, Driver, GroupSource, Outcome, Patience};
use deepshare_model::{Epoch, Span, Time};
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// 2026-01-01T00:00:00Z.
pub const BEGIN: Time = Time(1_767_225_600_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Namespace,
    Quota,
    Node,
    Gpus,
    Budget,
    Group,
    Class,
    Claim,
    Volume,
    Pod,
}

/// An object: pods by UID, others by name, namespaced ones by `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: Kind,
    pub name: String,
}

/// Something that is to happen.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A watch tells; without an object: whatever it is by then.
    Watch {
        process: usize,
        key: Key,
        object: Option<Option<Value>>,
    },
    Write {
        process: usize,
        action: Action,
        asked: Time,
    },
    Answer {
        process: usize,
        outcome: Outcome,
    },
    Admit {
        uid: String,
    },
    Start {
        uid: String,
    },
    End {
        uid: String,
    },
    Stopped {
        uid: String,
    },
    ResizeShown {
        uid: String,
    },
    Recreate {
        controller: String,
    },
    Provision {
        claim: String,
        node: String,
    },
}

/// What goes wrong, per cent, and how long things take, milliseconds at most.
#[derive(Clone, Debug)]
pub struct Faults {
    pub watch_ms: u64,
    pub write_ms: u64,
    pub answer_ms: u64,
    pub resize_ms: u64,
    pub lost_watch: u32,
    pub doubled_watch: u32,
    pub bind_transient: u32,
    pub bind_unknown: u32,
    pub evict_refused: u32,
    pub resize_refused: u32,
    pub rejected: u32,
    pub provision_ms: u64,
    /// The provisioner gives the node back.
    pub provision_refused: u32,
    /// The provisioner does nothing.
    pub provision_lost: u32,
    /// Writes that were on their way when their scheduler died, and arrive all the same.
    pub lands: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            watch_ms: 20,
            write_ms: 20,
            answer_ms: 20,
            resize_ms: 500,
            lost_watch: 0,
            doubled_watch: 0,
            bind_transient: 0,
            bind_unknown: 0,
            evict_refused: 0,
            resize_refused: 0,
            rejected: 0,
            provision_ms: 500,
            provision_refused: 0,
            provision_lost: 0,
            lands: 100,
        }
    }
}

/// A scheduler.
pub struct Process {
    pub driver: Driver,
    pub audit: Audit,
    pub alive: bool,
    watched: BTreeMap<Kind, Time>,
    wrote: BTreeMap<String, Time>,
}

impl Process {
    pub fn watched(&self, kind: Kind) -> Time {
        self.watched.get(&kind).copied().unwrap_or(Time::ZERO)
    }

    pub fn set_watched(&mut self, kind: Kind, at: Time) {
        self.watched.insert(kind, at);
    }
}

pub struct World {
    pub now: Time,
    pub chance: Chance,
    pub faults: Faults,
    pub objects: BTreeMap<Key, Value>,
    pub version: u64,
    pub kubelets: BTreeMap<String, Kubelet>,
    pub controllers: BTreeMap<String, Controller>,
    pub replaced: BTreeSet<String>,
    pub processes: Vec<Process>,
    /// Every write that a scheduler asked for.
    pub written: Vec<(Time, Action)>,
    /// Pods that kubelets refused.
    pub rejections: Vec<String>,
    /// Rules that did not hold.
    pub wrongs: Vec<String>,
    /// Gangs that have some of their pods and not all, since when.
    pub partial: BTreeMap<String, Time>,
    /// Old decisions may meet new ones: two schedulers were at work at once.
    pub contested: bool,
    pub config: Config,
    queue: BTreeMap<(Time, u64), Happening>,
    serial: u64,
}

impl World {
    pub fn new(seed: u64) -> World {
        let patience = Patience {
            volumes: Span::from_secs(60),
            start: Span::from_secs(60),
            gang: Span::from_secs(10),
            recreate: Span::from_secs(60),
            resize: Span::from_secs(10),
            node: Span::from_secs(10),
            rejecting_node: Span::from_secs(10),
        };
        World {
            now: BEGIN,
            chance: Chance::new(seed),
            faults: Faults::default(),
            objects: BTreeMap::new(),
            version: 0,
            kubelets: BTreeMap::new(),
            controllers: BTreeMap::new(),
            replaced: BTreeSet::new(),
            processes: Vec::new(),
            written: Vec::new(),
            rejections: Vec::new(),
            wrongs: Vec::new(),
            partial: BTreeMap::new(),
            contested: false,
            config: Config { patience, most_grace_s: 30, ..Config::default() },
            queue: BTreeMap::new(),
            serial: 0,
        }
    }

    /// A world with a scheduler, `nodes` nodes of `gpus` GPUs, and tenants by quota.
    pub fn with(nodes: u32, gpus: u32, tenants: &[(&str, u32)]) -> World {
        let mut world = World::new(1);
        for index in 0..nodes {
            world.add_node(&format!("n{index}"), "A100", gpus);
        }
        for (name, quota) in tenants {
            world.set(Kind::Quota, name, objects::quota(name, *quota));
            world.namespace(name, json!({}));
        }
        world.lead();
        world
    }

    pub fn namespace(&mut self, name: &str, labels: Value) {
        self.set(Kind::Namespace, name, json!({"metadata": {"name": name, "labels": labels}}));
    }

    pub fn add_node(&mut self, name: &str, gpu_type: &str, gpus: u32) {
        let ids = (0..gpus).map(|index| (format!("GPU-{name}-{index}"), [None, None]));
        let kubelet = Kubelet { slots: ids.collect(), silent: false };
        self.kubelets.insert(name.to_owned(), kubelet);
        self.set(Kind::Node, name, objects::node(name, 64));
        self.set(Kind::Gpus, name, objects::gpu_node(name, gpu_type, gpus));
    }

    /// Creates a pod; returns its UID.
    pub fn create(&mut self, mut pod: Value) -> String {
        self.serial += 1;
        let uid = format!("uid-{}", self.serial);
        pod["metadata"]["uid"] = json!(uid);
        pod["metadata"]["creationTimestamp"] = json!(rfc3339(self.now));
        self.set(Kind::Pod, &uid, pod);
        uid
    }

    /// A new scheduler takes over: it reads what there is, and leads.
    pub fn lead(&mut self) {
        let grows = DeepShareSettings { grow: true, ..DeepShareSettings::default() };
        let policy = PolicyConfig::DeepShare(grows);
        let settings = deepshare_engine::EngineSettings {
            capacity: deepshare_engine::CapacityMode::Elastic,
            ..policy.engine_settings()
        };
        let engine = Engine::new(settings, policy.build());
        let mut driver = Driver::new(engine, self.config.clone());
        let mut audit = Audit::new(&settings);
        let epoch = Epoch(self.processes.len() as u32 + 1);
        driver.lead(self.now, epoch, &mut audit);
        for (key, object) in &self.objects {
            if let Some(change) = change_of(key, Some(object)) {
                driver.change(self.now, change, &mut audit);
            }
        }
        driver.change(self.now, Change::Synced, &mut audit);
        let (watched, wrote) = (BTreeMap::new(), BTreeMap::new());
        self.contested |= self.processes.iter().any(|process| process.alive);
        self.processes.push(Process { driver, audit, alive: true, watched, wrote });
        self.decide(self.processes.len() - 1);
    }

    /// The scheduler dies. What it has sent may arrive or not.
    pub fn crash(&mut self, process: usize) {
        self.processes[process].alive = false;
        let sent: Vec<_> = self
            .queue
            .iter()
            .filter(|(_, h)| matches!(h, Happening::Write { process: p, .. } if *p == process))
            .map(|(&key, _)| key)
            .collect();
        for key in sent {
            match self.chance.percent(self.faults.lands) {
                true => self.contested = true,
                false => _ = self.queue.remove(&key),
            }
        }
    }

    /// The scheduler that leads.
    pub fn leader(&self) -> &Driver {
        &self.processes.iter().rev().find(|process| process.alive).expect("somebody leads").driver
    }

    pub fn push(&mut self, at: Time, happening: Happening) {
        self.serial += 1;
        self.queue.insert((at, self.serial), happening);
    }

    /// A delay of at most so many milliseconds.
    pub fn delay(&mut self, most_ms: u64) -> Span {
        Span(self.chance.below(most_ms.max(1)) * 1_000 + 1_000)
    }

    /// Lets so many seconds pass.
    pub fn run(&mut self, seconds: u64) {
        let end = self.now + Span::from_secs(seconds);
        let mut here = 0;
        while let Some(next) = self.next().filter(|next| *next <= end) {
            here = if next > self.now { 0 } else { here + 1 };
            assert!(here < 1_000, "a scheduler wakes for ever\n{}", self.report());
            self.step();
        }
        self.now = end;
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let happens = self.queue.first_key_value().map(|(&(at, _), _)| at);
        let wakes = self.processes.iter().filter(|process| process.alive);
        let wakes = wakes.filter_map(|process| process.driver.next_wakeup());
        happens.into_iter().chain(wakes).min()
    }

    /// Goes on to the next instant at which something happens.
    pub fn step(&mut self) {
        let next = self.next().expect("something is to happen");
        self.now = self.now.max(next);
        while let Some((&(at, serial), _)) = self.queue.first_key_value() {
            if at > self.now {
                break;
            }
            if let Some(happening) = self.queue.remove(&(at, serial)) {
                self.happen(happening);
            }
        }
        for process in 0..self.processes.len() {
            self.decide(process);
        }
        self.check();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Watch { process, key, object } => {
                let latest = object.unwrap_or_else(|| self.objects.get(&key).cloned());
                let process = &mut self.processes[process];
                if let (true, Some(change)) = (process.alive, change_of(&key, latest.as_ref())) {
                    process.driver.change(self.now, change, &mut process.audit);
                }
            }
            Happening::Write { process, action, asked } => self.write(process, &action, asked),
            Happening::Answer { process, outcome } => {
                let process = &mut self.processes[process];
                if process.alive {
                    process.driver.outcome(self.now, &outcome, &mut process.audit);
                }
            }
            Happening::Admit { uid } => self.admit(&uid),
            Happening::Start { uid } => self.begin(&uid),
            Happening::End { uid } => self.end(&uid),
            Happening::Stopped { uid } => self.stopped(&uid),
            Happening::ResizeShown { uid } => self.show_resize(&uid),
            Happening::Recreate { controller } => self.make(&controller),
            Happening::Provision { claim, node } => self.provision(&claim, &node),
        }
    }

    fn decide(&mut self, at: usize) {
        let now = self.now;
        let process = &mut self.processes[at];
        if !process.alive {
            return;
        }
        process.driver.decide(now, &mut process.audit);
        let actions = process.driver.take_actions();
        for action in actions {
            self.judge(&action);
            let pod = subject(&action);
            let mut when = now + self.delay(self.faults.write_ms);
            let wrote = &mut self.processes[at].wrote;
            if let Some(before) = wrote.get(&pod) {
                when = when.max(*before);
            }
            wrote.insert(pod, when);
            self.written.push((now, action.clone()));
            self.push(when, Happening::Write { process: at, action, asked: when });
        }
    }
}

/// What a write is about: such writes stay in order.
fn subject(action: &Action) -> String {
    match action {
        Action::Bind { pod, .. }
        | Action::Evict { pod, .. }
        | Action::Delete { pod, .. }
        | Action::Resize { pod, .. }
        | Action::Annotate { pod, .. }
        | Action::Explain { pod, .. }
        | Action::Nominate { pod, .. }
        | Action::Announce { pod, .. } => pod.uid.clone(),
        Action::SelectNode { claim, .. } => claim.uid.clone(),
        Action::TenantStatus { name, .. } => name.clone(),
    }
}

/// What a watch tells of an object, or of its end.
fn change_of(key: &Key, object: Option<&Value>) -> Option<Change> {
    let name: Box<str> = key.name.as_str().into();
    let Some(object) = object else {
        return Some(match key.kind {
            Kind::Namespace => Change::NamespaceGone { name },
            Kind::Quota => Change::QuotaGone { name },
            Kind::Node => Change::NodeGone { name },
            Kind::Gpus => Change::GpusGone { name },
            Kind::Pod => Change::PodGone { uid: name },
            Kind::Class => Change::StorageClassGone { name },
            Kind::Volume => Change::VolumeGone { name },
            Kind::Budget | Kind::Group | Kind::Claim => {
                let (namespace, name) = key.name.split_once('/').unwrap();
                let (namespace, name) = (namespace.into(), name.into());
                match key.kind {
                    Kind::Budget => Change::BudgetGone { namespace, name },
                    Kind::Claim => Change::ClaimGone { namespace, name },
                    _ => {
                        let source = GroupSource::Coscheduling;
                        Change::GroupGone { source, namespace, name }
                    }
                }
            }
        });
    };
    Some(match key.kind {
        Kind::Namespace => Change::Namespace(read(object)),
        Kind::Quota => Change::Quota(Box::new(read(object))),
        Kind::Node => Change::Node(Box::new(read(object))),
        Kind::Gpus => Change::Gpus(Box::new(read(object))),
        Kind::Pod => Change::Pod(Box::new(read(object))),
        Kind::Budget => Change::Budget(read(object)),
        Kind::Group => Change::Group(GroupSource::Coscheduling, read(object)),
        Kind::Class => Change::StorageClass(read(object)),
        Kind::Claim => Change::Claim(read(object)),
        Kind::Volume => Change::Volume(read(object)),
    })
}

fn read<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).expect("the API server serves what can be read")
}

/// A number of seconds that an annotation of a pod gives.
pub fn seconds(pod: &Value, annotation: &str) -> Option<u64> {
    pod["metadata"]["annotations"][annotation].as_str().map(|text| text.parse().unwrap())
}

pub fn rfc3339(at: Time) -> String {
    jiff::Timestamp::from_microsecond(at.0 as i64).unwrap().to_string()
}
