//! Attempts that this scheduler did not decide: of an earlier one, or of one that has just lost its
//! lease. What runs is taken up as it is; a gang that was bound in part starts again as a whole.

use crate::action::Action;
use crate::attempts::class_of;
use crate::index::{History, Index, Timer};
use crate::jobs::{Place, Run, Stage, Terms, Uid};
use crate::resize::sum;
use crate::submit::{decided, parse_time};
use deepshare_engine::{Degree, Event, Slice};
use deepshare_kube_api::Decision;
use deepshare_model::{AttemptId, Epoch, GpuTypeId, JobId, Resources, Span, Time};

/// How long the rest of a gang may take to show, that somebody else was binding.
const GANG_SHOWS: Span = Span::from_secs(5);

/// An attempt of some scheduler: its epoch and number.
pub(crate) type Foundling = (u32, u32);

impl Index {
    /// Everything is known: takes up what runs, then what waits, oldest first.
    pub(crate) fn resync(&mut self, now: Time) {
        self.restore_assurance();
        let mut pods: Vec<Uid> = self.pods.keys().cloned().collect();
        // What is bound first; the attempts in the order in which they were decided.
        pods.sort_by_key(|uid| {
            let pod = &self.pods[uid];
            let decided = pod.decision.as_ref().map(|decision| (decision.epoch, decision.attempt));
            (pod.node.is_none(), decided, pod.created, pod.name.clone(), uid.clone())
        });
        for uid in pods {
            self.place_pod(now, &uid);
        }
    }

    /// Tells the engine how every tenant's assurance was smoothed so far.
    fn restore_assurance(&mut self) {
        let mut events = Vec::new();
        for (tenant, quota) in self.tenants.current() {
            let smoothed = quota.status.iter().flat_map(|status| &status.smoothed);
            for (name, text) in smoothed {
                let hundredths = text.parse::<f64>().ok().filter(|q| (0.0..=1.0).contains(q));
                let Some((hundredths, id)) = hundredths.zip(self.types.get(name)) else { continue };
                let gpu_type = GpuTypeId(u16::try_from(id).unwrap_or(u16::MAX));
                let smoothed = Degree::ratio((hundredths * 100.0).round() as u32, 100);
                events.push(Event::AssuranceRestored { tenant, gpu_type, smoothed });
            }
        }
        self.events.extend(events);
    }

    /// A pod of ours turns out to be bound, and this scheduler did not decide it.
    pub(crate) fn orphan(&mut self, now: Time, uid: &Uid, decision: &Decision) {
        let key = (decision.epoch, decision.attempt);
        let until = now + GANG_SHOWS;
        let (_, pods) = self.orphans.entry(key).or_insert_with(|| (until, Vec::new()));
        if !pods.contains(uid) {
            pods.push(uid.clone());
        }
        if pods.len() >= decision.members as usize {
            let (_, pods) = self.orphans.remove(&key).unwrap_or((now, Vec::new()));
            return self.adopt(now, pods, decision);
        }
        self.timers.insert((until, Timer::Orphans(key)));
    }

    pub(crate) fn forget_orphan(&mut self, uid: &str) {
        for (_, pods) in self.orphans.values_mut() {
            pods.retain(|other| **other != *uid);
        }
        self.orphans.retain(|_, (_, pods)| !pods.is_empty());
    }

    /// A gang was bound in part, and nobody goes on with it.
    pub(crate) fn orphans_timer(&mut self, now: Time, key: Foundling) {
        if self.orphans.get(&key).is_none_or(|(until, _)| *until > now) {
            return;
        }
        let Some((_, pods)) = self.orphans.remove(&key) else { return };
        for uid in pods {
            let Some(pod) = self.pods.get(&uid).filter(|pod| !pod.deleting) else { continue };
            let message = "its gang was bound in part when the scheduler changed: it starts again as \
                           a whole";
            let (grace_s, message) = (self.grace_of(pod), message.to_owned());
            self.actions.push(Action::Delete {
                pod: pod.pod_ref(),
                orphaned: false,
                grace_s,
                message,
            });
        }
    }

    /// Takes up an attempt of another scheduler.
    fn adopt(&mut self, now: Time, pods: Vec<Uid>, decision: &Decision) {
        let first = &self.pods[&pods[0]];
        if first.wish.is_none() || self.admission(first).is_err() {
            // Nobody's pods: they run on, and their devices are withheld.
            return;
        }
        let group = first.wish.as_ref().and_then(|wish| wish.group.as_ref());
        let group =
            group.and_then(|group| self.groups.resolve(group, &first.namespace).ok().flatten());
        let group = group.filter(|_| pods.len() > 1);
        let mut key = group.map(|group| (first.namespace.clone(), group.name));
        if let Some(&other) = key.as_ref().and_then(|key| self.jobs.by_group.get(key)) {
            let entry = self.jobs.get(other);
            let waits = entry.run.is_none() && entry.members.iter().all(|m| m.pod.is_none());
            match waits {
                // The job that they were, until they turned out to be bound.
                true => {
                    self.events.push(Event::Cancelled { job: other });
                    self.close(now, other);
                }
                false => key = None,
            }
        }
        if let Some(job) = self.enter(pods, key) {
            self.found(now, job, decision);
        }
    }

    /// Tells the engine of an attempt that it did not decide.
    fn found(&mut self, now: Time, job: JobId, decision: &Decision) {
        let pods = self.pods_of(job);
        let mut placement: Vec<Slice> = Vec::new();
        let mut since: Option<Time> = None;
        let mut all_run = true;
        for (at, uid) in pods.iter().enumerate() {
            let pod = &self.pods[uid];
            let slots = decided(pod);
            let (started, node) = (pod.started, pod.node.clone());
            let Some(entry) = node.and_then(|name| self.nodes.get_mut(&name)) else { continue };
            let Some(node) = entry.id() else { continue };
            entry.set_foreign(uid, 0, &[]);
            entry.take_as_decided(&slots, uid);
            let devices = entry.devices_of(&slots);
            self.touched.insert((*entry.name).into());
            let member = &mut self.jobs.get_mut(job).members[at];
            member.place = Some(Place { node, devices, slots });
            member.stage = if started.is_some() { Stage::Running } else { Stage::Bound };
            all_run &= started.is_some();
            since = since.max(started);
            match placement.iter_mut().find(|slice| slice.node == node) {
                Some(slice) => slice.devices = slice.devices.union(devices),
                None => placement.push(Slice { node, devices }),
            }
        }
        let given: u32 = placement.iter().map(|slice| slice.devices.count()).sum();
        if given != self.jobs.get(job).gpus * pods.len() as u32 {
            return self.disown(now, job);
        }
        let preempted: Vec<Time> =
            decision.preempted.iter().filter_map(|t| parse_time(t)).collect();
        let served = Span::from_secs(decision.served_seconds);
        if !preempted.is_empty() || !served.is_zero() {
            let preempted_at = preempted.clone();
            self.events.push(Event::Carried { job, preempted_at, served });
            self.history.insert(job, History { preempted, served });
        }
        let per_gpu = self.held_per_gpu(job, &pods[0]);
        let running_since = since.filter(|_| all_run).map(|since| since.min(now));
        // The number of the attempt is the engine's to give; see `Index::stepped`.
        let unknown = AttemptId(u32::MAX);
        let charged = class_of(&decision.charged);
        let (epoch, number) = (Epoch(decision.epoch), decision.attempt);
        let terms = Terms { epoch, number, charged, steps: decision.steps };
        let mut run = Run::new(unknown, terms, now + self.config.patience.start);
        (run.bound, run.running, run.started) = (true, all_run, running_since);
        self.set_timer(run.overdue_at, job);
        self.jobs.get_mut(job).run = Some(run);
        self.events.push(Event::Found { job, charged, placement, per_gpu, running_since });
    }

    /// CPU and memory that a found pod holds beside each of its GPUs: it may have been shrunk.
    fn held_per_gpu(&self, job: JobId, uid: &Uid) -> Resources {
        let pod = &self.pods[uid];
        let gpus = u64::from(self.jobs.get(job).gpus.max(1));
        let own = pod.wish.as_ref().map_or(Resources::default(), |wish| sum(&wish.resizable));
        let shown = pod.visible.filter(|_| own != Resources::default()).unwrap_or(own);
        // What is not its resizable containers' stays.
        let asked = pod.asked_host();
        let held = |host: u64, own: u64, shown: u64| {
            (host.saturating_sub(own.saturating_sub(shown))).div_ceil(gpus)
        };
        Resources {
            cpu_milli: held(asked.cpu_milli, own.cpu_milli, shown.cpu_milli),
            memory_mib: held(asked.memory_mib, own.memory_mib, shown.memory_mib),
        }
    }

    /// The devices that its decision names are not there any more, or are named twice: its pods run on as
    /// somebody else's, for people to look at.
    pub(crate) fn disown(&mut self, now: Time, job: JobId) {
        self.events.push(Event::Cancelled { job });
        let pods = self.pods_of(job);
        for uid in &pods {
            self.leave_place(uid);
            self.strangers.insert(uid.clone());
        }
        self.close(now, job);
        for uid in pods {
            let message = "its decision names devices that its node does not have";
            self.announce(&uid, "WrongDevices", message, true);
            self.place_pod(now, &uid);
        }
    }
}
