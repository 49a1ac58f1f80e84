//! What becomes of the engine's commands: pods bound, evicted, resized, and what the engine hears.
//!
//! Level-triggered: whatever happens to a pod, [`Index::review`] holds what its job's members are against
//! what the engine was told of the attempt, and tells the difference. So news may come twice, late or
//! in any order.

use crate::action::Action;
use crate::index::Index;
use crate::jobs::{Ending, Place, Run, Stage, Terms, Uid};
use crate::pods::PodFacts;
use deepshare_engine::{BindFailure, Command, EvictReason, Placement, Preemption};
use deepshare_kube_api::{ContainerDevices, Decision, DeviceSlot, names};
use deepshare_model::{AttemptId, Class, Devices, JobId, NodeId, Time};
use std::collections::BTreeMap;

impl Index {
    /// Takes up a command of the engine.
    pub fn command(&mut self, now: Time, command: &Command) {
        match command {
            Command::Start { attempt, epoch, job, charged, placement, steps } => {
                let (epoch, charged, steps) = (*epoch, *charged, *steps);
                let terms = Terms { epoch, number: attempt.0, charged, steps };
                self.start(now, (*job, *attempt), terms, placement);
            }
            Command::Reserve { attempt, job, placement, .. } => {
                self.reserved.insert(*attempt, *job);
                self.why.unblock(*job);
                self.nominate(*job, Some(placement));
                self.why.look_at_once(*job);
            }
            Command::ReleaseReservation { attempt } => {
                if let Some(job) = self.reserved.remove(attempt) {
                    self.nominate(job, None);
                    self.why.look_at(job);
                }
            }
            Command::Evict { attempt, reason, preemption, .. } => {
                self.evict(now, *attempt, *reason, *preemption);
            }
            Command::Shrink { attempt, per_gpu, .. } => self.resize(now, *attempt, *per_gpu, false),
            Command::Grow { attempt, per_gpu, .. } => self.resize(now, *attempt, *per_gpu, true),
            Command::Promote { attempt } => self.amend(*attempt, |terms| {
                terms.charged = Class::Guaranteed;
            }),
            Command::Accumulate { attempt, steps, .. } => {
                self.amend(*attempt, |terms| terms.steps = *steps);
            }
            Command::Watch { attempt, partner, .. } => self.watch_pair(*attempt, *partner),
            Command::Refuse { job, .. } => self.why.look_at_once(*job),
        }
    }

    /// Says on which nodes devices are held for a job's pods, or that none are any more.
    fn nominate(&mut self, job: JobId, placement: Option<&Placement>) {
        let entry = self.jobs.get(job);
        let gpus = entry.gpus;
        let mut nodes = placement.into_iter().flatten().flat_map(|slice| {
            let members = slice.devices.count() / gpus.max(1);
            (0..members).map(move |_| slice.node)
        });
        for member in &entry.members {
            let Some(pod) = member.pod.as_deref().and_then(|uid| self.pods.get(uid)) else {
                continue;
            };
            let node = nodes.next().map(|node| self.node_name(node).to_owned());
            if node.is_some() || pod.nominated {
                self.actions.push(Action::Nominate { pod: pod.pod_ref(), node });
            }
        }
    }

    fn start(
        &mut self,
        now: Time,
        (job, attempt): (JobId, AttemptId),
        terms: Terms,
        placement: &Placement,
    ) {
        self.reserved.remove(&attempt);
        self.why.unblock(job);
        let patience = self.config.patience;
        self.jobs.by_attempt.insert(attempt, job);
        self.set_timer(now + patience.start, job);
        let entry = self.jobs.get_mut(job);
        entry.run = Some(Run::new(attempt, terms, now + patience.start));
        let gpus = entry.gpus;
        let places = places(placement, gpus);
        let whole = entry.is_complete() && places.len() == entry.members.len();
        let entry = self.jobs.get(job);
        let pods: Vec<_> = entry.members.iter().filter_map(|member| member.pod.clone()).collect();
        let mut fits = whole;
        for (at, (pod, (node, devices))) in pods.iter().zip(&places).enumerate() {
            if !fits {
                break;
            }
            let (node, devices) = (*node, *devices);
            let place = Place { node, devices, slots: Vec::new() };
            self.jobs.get_mut(job).members[at].place = Some(place);
            let slots = self.take_place(job, pod, node, devices);
            fits = slots.is_some();
            if let Some(place) = &mut self.jobs.get_mut(job).members[at].place {
                place.slots = slots.unwrap_or_default();
            }
        }
        if !fits {
            for pod in &pods {
                self.leave_place(pod);
            }
            self.run_failed(now, job, BindFailure::Conflict);
            return;
        }
        for at in 0..pods.len() {
            self.await_volumes(now, job, at);
        }
        self.review(now, job);
    }

    /// Takes the slots of a place for a pod, if the node still takes it.
    fn take_place(
        &mut self,
        job: JobId,
        pod: &Uid,
        node: NodeId,
        devices: Devices,
    ) -> Option<Vec<DeviceSlot>> {
        let kind = self.jobs.get(job).kind;
        let name = self.nodes_by_id.get(node.index())?.clone();
        let waiting = self.pods.get(pod)?.whole.clone()?;
        if let Err(why) = self.places.assume(&name, &waiting) {
            let message = format!("{name} cannot take it any more: {why}");
            self.announce(pod, "NodeChanged", &message, true);
            return None;
        }
        let entry = self.nodes.get_mut(&name).filter(|entry| entry.id() == Some(node))?;
        devices.iter().map(|device| entry.take(device, kind, pod)).collect()
    }

    /// Frees the slots that a pod has, or was to get.
    pub(crate) fn leave_place(&mut self, uid: &str) {
        self.withdraw(uid);
        // Whoever is on its node holds CPU, memory and the like there all the same.
        if self.pods.get(uid).is_none_or(|pod| pod.node.is_none() || pod.is_terminal()) {
            self.places.drop_pod(uid);
        }
        let Some(&job) = self.jobs.by_pod.get(uid) else { return };
        let mut members = self.jobs.get(job).members.iter();
        let member = members.find(|member| member.pod.as_deref() == Some(uid));
        let Some(place) = member.and_then(|member| member.place.as_ref()) else { return };
        let name = self.nodes_by_id[place.node.index()].clone();
        if let Some(entry) = self.nodes.get_mut(&name) {
            entry.give_back(uid);
        }
    }

    /// Asks for one member's Binding.
    pub(crate) fn bind(&mut self, job: JobId, at: usize) {
        let entry = self.jobs.get(job);
        let member = &entry.members[at];
        let (Some(place), Some(run)) = (&member.place, &entry.run) else { return };
        let Some(pod) = member.pod.as_deref().and_then(|uid| self.pods.get(uid)) else { return };
        let history = self.history.get(&job);
        let decision = Decision {
            version: Decision::VERSION,
            pod_uid: pod.uid.to_string(),
            attempt: run.terms.number,
            epoch: run.terms.epoch.0,
            charged: run.terms.charged.name().to_owned(),
            containers: by_container(pod, &place.slots),
            members: entry.members.len() as u32,
            submitted: self.text_of(entry.submitted),
            preempted: history
                .map(|history| history.preempted.iter().map(|&at| self.text_of(at)).collect())
                .unwrap_or_default(),
            served_seconds: history.map_or(0, |history| history.served.0 / 1_000_000),
            steps: run.terms.steps,
        };
        let annotations = BTreeMap::from([(names::DECISION.to_owned(), decision.to_text())]);
        let node = self.node_name(place.node).to_owned();
        self.actions.push(Action::Bind { pod: pod.pod_ref(), node, annotations });
        let uid = pod.uid.clone();
        if let Some(pod) = self.pods.get_mut(&uid) {
            pod.asked = Some(Box::new(decision));
        }
    }

    /// Gives the successor of a member the place that its predecessor had.
    pub(crate) fn rebind(&mut self, now: Time, job: JobId, at: usize, place: Place) {
        let Some(uid) = self.jobs.get(job).members[at].pod.clone() else { return };
        let name = self.nodes_by_id[place.node.index()].clone();
        let Some(waiting) = self.pods.get(&uid).and_then(|pod| pod.whole.clone()) else { return };
        if let Err(why) = self.places.assume(&name, &waiting) {
            let message = format!("{name} cannot take it any more: {why}");
            self.announce(&uid, "NodeChanged", &message, true);
            self.bind_verdict.insert(job, BindFailure::Conflict);
            return;
        }
        if let Some(entry) = self.nodes.get_mut(&name) {
            entry.take_as_decided(&place.slots, &uid);
        }
        self.await_volumes(now, job, at);
    }

    /// Changes the decision of a bound pod, as the engine has changed its mind.
    fn amend(&mut self, attempt: AttemptId, change: impl Fn(&mut Terms)) {
        let Some(job) = self.jobs.of_attempt(attempt) else { return };
        change(&mut self.run_mut(job).terms);
        let terms = self.run_mut(job).terms;
        let pods: Vec<_> =
            self.jobs.get(job).members.iter().filter_map(|m| m.pod.clone()).collect();
        for uid in pods {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let known = pod.decision.as_mut().or(pod.asked.as_mut());
            let Some(decision) = known else { continue };
            (decision.charged, decision.steps) = (terms.charged.name().to_owned(), terms.steps);
            let annotations = BTreeMap::from([(names::DECISION.to_owned(), decision.to_text())]);
            self.actions.push(Action::Annotate { pod: pod.pod_ref(), annotations });
        }
    }

    fn evict(
        &mut self,
        now: Time,
        attempt: AttemptId,
        reason: EvictReason,
        preemption: Option<Preemption>,
    ) {
        let Some(job) = self.jobs.of_attempt(attempt) else { return };
        // Nobody has to be asked about a pod that is not bound.
        self.leave_volumes(job);
        let message = self.eviction_message(job, reason, preemption);
        let beneficiary = preemption.map(|preemption| preemption.beneficiary);
        let force_after_s = beneficiary.and_then(|job| self.pdb_patience(job));
        if reason.is_chosen() {
            for uid in self.pods_of(job) {
                self.announce(&uid, "Preempted", &message, true);
            }
            self.history.entry(job).or_default().preempted.push(now);
        }
        let asking = reason.is_chosen();
        let entry = self.jobs.get_mut(job);
        let Some(run) = &mut entry.run else { return };
        run.ending = Some(Ending { asking, message, beneficiary, force_after_s });
        run.broken_at = None;
        if !entry.cancelled {
            // Its controller may make another pod before this one is gone.
            self.jobs.await_successor(job);
        }
        if asking {
            // The first pod is asked about alone: if its budget refuses, nobody else has to go back.
            let mut members = self.jobs.get_mut(job).members.iter_mut();
            let first = members.find(|member| member.holds() && !member.leaving);
            if let Some(uid) = first.map(|member| {
                member.leaving = true;
                member.pod.clone()
            }) {
                self.ask_to_leave(job, uid.as_deref());
            }
        }
        self.review(now, job);
    }

    fn ask_to_leave(&mut self, job: JobId, uid: Option<&str>) {
        let Some(pod) = uid.and_then(|uid| self.pods.get(uid)) else { return };
        let Some(ending) = self.jobs.get(job).run.as_ref().and_then(|run| run.ending.as_ref())
        else {
            return;
        };
        let (pod, grace_s) = (pod.pod_ref(), self.grace_of(pod));
        let (message, force_after_s) = (ending.message.clone(), ending.force_after_s);
        self.actions.push(Action::Evict { pod, grace_s, message, force_after_s });
    }

    /// Seconds that a pod gets to stop: what it asks for, and of what is borrowed no more than the
    /// operator's limit.
    pub(crate) fn grace_of(&self, pod: &PodFacts) -> u32 {
        let most = self.config.most_grace_s;
        let asked = pod.wish.as_ref().map_or(most, |wish| wish.grace_s);
        let decision = pod.decision.as_ref().or(pod.asked.as_ref());
        let guaranteed =
            decision.is_some_and(|decision| class_of(&decision.charged) == Class::Guaranteed);
        if guaranteed { asked } else { asked.min(most) }
    }

    /// Deletes every pod of an ending attempt that is still there and was not asked yet.
    pub(crate) fn dismiss(&mut self, job: JobId) {
        let entry = self.jobs.get_mut(job);
        let Some(Run { ending: Some(ending), .. }) = &entry.run else { return };
        let message = ending.message.clone();
        let mut gone = Vec::new();
        for member in &mut entry.members {
            let bound = matches!(member.stage, Stage::Bound | Stage::Running);
            if bound && !member.leaving {
                member.leaving = true;
                gone.extend(member.pod.clone());
            }
        }
        for uid in gone {
            let Some(pod) = self.pods.get(&uid) else { continue };
            // Nobody is there any more to stop it gracefully.
            let on = pod.node.as_ref().map(|name| self.nodes.get(name));
            let gone = on.is_some_and(|node| node.is_none_or(|node| node.facts.is_none()));
            if pod.deleting && !gone {
                continue;
            }
            let grace_s = if gone { 0 } else { self.grace_of(pod) };
            let (pod, message) = (pod.pod_ref(), message.clone());
            self.actions.push(Action::Delete { pod, orphaned: gone, grace_s, message });
        }
    }

    pub(crate) fn run_mut(&mut self, job: JobId) -> &mut Run {
        self.jobs.get_mut(job).run.as_mut().expect("the job has an attempt")
    }
}

/// One place for each member, in the order of the placement.
fn places(placement: &Placement, gpus: u32) -> Vec<(NodeId, Devices)> {
    let mut places = Vec::new();
    for slice in placement {
        let mut left = slice.devices;
        while !left.is_empty() {
            let devices = left.lowest(gpus.max(1));
            places.push((slice.node, devices));
            left = left.minus(devices);
        }
    }
    places
}

fn by_container(pod: &PodFacts, slots: &[DeviceSlot]) -> Vec<ContainerDevices> {
    let mut left = slots.iter().cloned();
    let containers = pod.wish.as_ref().map_or(&[][..], |wish| &wish.containers);
    let shares = containers.iter().map(|(name, gpus)| ContainerDevices {
        name: name.to_string(),
        devices: left.by_ref().take(*gpus as usize).collect(),
    });
    shares.collect()
}

pub(crate) fn class_of(word: &str) -> Class {
    match word {
        "best-effort" => Class::BestEffort,
        _ => Class::Guaranteed,
    }
}
