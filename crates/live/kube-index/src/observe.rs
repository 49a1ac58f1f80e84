//! How pods come, change and go, as the watch shows it.

use crate::index::Index;
use crate::jobs::{Member, Stage, Uid};
use crate::pods::PodFacts;
use crate::watched::{Phase, Pod};
use deepshare_engine::BindFailure;
use deepshare_model::{JobId, NodeId, Outcome, Time};
use std::sync::Arc;

impl Index {
    pub(crate) fn set_pod(&mut self, now: Time, pod: &Arc<Pod>) {
        let facts = self.read_pod(pod);
        // The engine counts what its own take; a pod whose attempt is over is not its own any more.
        let known = |facts: &PodFacts| facts.is_known() && !self.strangers.contains(&facts.uid);
        self.places.set_pod(pod, facts.as_ref().is_some_and(known));
        let Some(mut facts) = facts else {
            let uid = &*pod.metadata.uid;
            if pod.status.phase.is_terminal() && self.pods.contains_key(uid) {
                // Another scheduler's, listed for a while yet: its GPUs are free.
                self.drop_pod(now, uid);
            }
            return;
        };
        let uid = facts.uid.clone();
        facts.site().into_iter().for_each(|site| self.places.use_site(site));
        if let Some(before) = self.pods.remove(&uid) {
            before.site().into_iter().for_each(|site| self.places.leave_site(site));
            // What was refused is looked at again if it is another now: what is written about a refusal is
            // no news.
            let same = facts.is_asking() && before.is_asking() && facts.wish == before.wish;
            facts.asked = before.asked;
            if self.refused.contains(&uid) && same {
                self.pods.insert(uid, facts);
                return;
            }
            self.refused.remove(&uid);
        }
        self.pods.insert(uid.clone(), facts);
        if self.is_synced() {
            self.place_pod(now, &uid);
        }
    }

    pub(crate) fn drop_pod(&mut self, now: Time, uid: &str) {
        self.places.drop_pod(uid);
        let Some(facts) = self.pods.remove(uid) else { return };
        facts.site().into_iter().for_each(|site| self.places.leave_site(site));
        self.refused.remove(uid);
        self.strangers.remove(uid);
        self.why.forget_pod(uid);
        for pods in self.gathering.values_mut() {
            pods.retain(|other| **other != *uid);
        }
        self.gathering.retain(|_, pods| !pods.is_empty());
        self.forget_orphan(uid);
        if let Some(node) = facts.node.as_deref().and_then(|name| self.nodes.get_mut(name)) {
            node.set_foreign(&facts.uid, 0, &[]);
            self.touched.insert((*node.name).into());
        }
        self.leave_place(uid);
        let Some(job) = self.jobs.by_pod.remove(uid) else { return };
        let entry = self.jobs.get_mut(job);
        entry.heirs.retain(|heir| **heir != *uid);
        if let Some(member) = entry.member_of(uid) {
            // A member that has done its part is not missed.
            if !matches!(member.stage, Stage::Done(Outcome::Succeeded)) {
                member.pod = None;
                member.stage = Stage::Idle;
            }
            member.leaving = false;
        }
        self.seat_heirs(now, job);
        self.review(now, job);
    }

    /// How far a member's pod is, by what the API server shows.
    pub(crate) fn observe(&mut self, now: Time, job: JobId, uid: &str) {
        let Some(pod) = self.pods.get(uid) else { return };
        let (phase, on) = (pod.phase, pod.node.clone());
        let outcome = match phase {
            Phase::Succeeded => Some(Outcome::Succeeded),
            Phase::Failed if pod.out_of_memory => Some(Outcome::OutOfMemory),
            Phase::Failed => Some(Outcome::Failed),
            Phase::Pending | Phase::Running | Phase::Unknown => None,
        };
        let named = |id: NodeId| self.nodes_by_id[id.index()].clone();
        let mut members = self.jobs.get(job).members.iter();
        let Some(member) = members.find(|member| member.pod.as_deref() == Some(uid)) else {
            // Waits for the place of another.
            return self.review(now, job);
        };
        let place = member.place.as_ref().filter(|_| !member.stage.is_before_binding());
        if on.is_some() && place.map(|place| named(place.node)) != on {
            return self.bound_by_another(now, job, uid);
        }
        if on.is_some() {
            self.note_bound(job, uid);
            if let Some(member) = self.jobs.get_mut(job).member_of(uid) {
                match outcome {
                    Some(outcome) => member.stage = Stage::Done(outcome),
                    None if phase == Phase::Running => member.stage = Stage::Running,
                    None => {}
                }
            }
        }
        self.observe_resize(job);
        self.review(now, job);
    }

    /// A Binding was accepted.
    pub(crate) fn note_bound(&mut self, job: JobId, uid: &str) {
        let Some(member) = self.jobs.get_mut(job).member_of(uid) else { return };
        if !matches!(member.stage, Stage::Binding | Stage::BindAgain(_) | Stage::Unsure(_)) {
            return;
        }
        member.stage = Stage::Bound;
        if let Some(node) = member.place.as_ref().map(|place| place.node) {
            let message = format!("assigned to {}", self.node_name(node));
            self.announce(uid, "Scheduled", &message, false);
        }
    }

    /// A job's pod turns out to be bound where this scheduler has not decided: by somebody else, or by
    /// one that has just lost its lease.
    fn bound_by_another(&mut self, now: Time, job: JobId, uid: &str) {
        self.leave_place(uid);
        self.jobs.by_pod.remove(uid);
        if let Some(member) = self.jobs.get_mut(job).member_of(uid) {
            (member.pod, member.stage, member.leaving) = (None, Stage::Idle, false);
        }
        if self.jobs.get(job).run.is_some() {
            self.bind_verdict.insert(job, BindFailure::Conflict);
        }
        self.seat_heirs(now, job);
        self.review(now, job);
        let uid: Uid = uid.into();
        self.place_pod(now, &uid);
    }

    /// True if a member has no pod that could still do its part.
    pub(crate) fn is_vacant(&self, member: &Member) -> bool {
        let Some(uid) = &member.pod else { return true };
        let done = member.stage == Stage::Done(Outcome::Succeeded);
        !done && self.pods.get(uid).is_none_or(PodFacts::is_terminal)
    }

    /// True if a member's pod is on its way out, so that its controller may make another one.
    fn is_replaceable(&self, member: &Member) -> bool {
        let deleting = |uid: &Uid| self.pods.get(uid).is_some_and(|pod| pod.deleting);
        self.is_vacant(member) || member.leaving || member.pod.as_ref().is_some_and(deleting)
    }

    /// True if a job can do with another pod.
    pub(crate) fn wants_heir(&self, job: JobId) -> bool {
        let entry = self.jobs.get(job);
        let replaceable = entry.members.iter().filter(|member| self.is_replaceable(member));
        replaceable.count() > entry.heirs.len()
    }

    /// A new pod is to take the place of one that is gone, or will be.
    pub(crate) fn succeed(&mut self, now: Time, job: JobId, uid: &Uid) {
        self.jobs.get_mut(job).heirs.push(uid.clone());
        self.jobs.by_pod.insert(uid.clone(), job);
        self.seat_heirs(now, job);
        self.review(now, job);
    }

    /// Gives vacant places to pods that wait for one.
    pub(crate) fn seat_heirs(&mut self, now: Time, job: JobId) {
        while !self.jobs.get(job).heirs.is_empty() {
            let entry = self.jobs.get(job);
            let Some(at) = entry.members.iter().position(|member| self.is_vacant(member)) else {
                return;
            };
            if let Some(before) = entry.members[at].pod.clone() {
                self.leave_place(&before);
                self.jobs.by_pod.remove(&before);
            }
            let entry = self.jobs.get_mut(job);
            let heir = entry.heirs.remove(0);
            let member = &mut entry.members[at];
            (member.pod, member.stage, member.leaving) = (Some(heir), Stage::Idle, false);
            let place = member.place.clone();
            let runs = entry.run.as_ref().is_some_and(|run| run.ending.is_none() && !run.given_up);
            if runs && let Some(place) = place {
                // Its gang runs: it gets the devices that its predecessor had.
                self.rebind(now, job, at, place);
            }
        }
    }
}
