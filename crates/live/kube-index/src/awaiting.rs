//! Pods whose volumes are made once they have a node: they have their place, and are bound when their
//! volumes are there.
//!
//! The place that the engine gave is kept all the while, and the members of a gang wait for the last
//! volume of any. Where a volume cannot be had, the attempt is over, and its job is decided anew. See
//! `docs/decisions/0019-volumes-before-the-binding.md`.

use crate::action::ClaimRef;
use crate::index::Index;
use crate::jobs::{Member, Stage, Uid};
use crate::provision::ClaimKey;
use crate::requirements::{claim_key, claims_of};
use deepshare_engine::BindFailure;
use deepshare_model::{JobId, Time};

/// How far the volumes of a pod are.
enum Standing {
    Ready,
    Waits,
    /// What is wrong, and the claims that are to leave the node alone.
    Failed(String, Vec<ClaimKey>),
}

impl Index {
    /// Has a member that was given a place wait for its volumes, and chooses the node of those that are to
    /// be made. [`Index::review`] binds it.
    pub(crate) fn await_volumes(&mut self, now: Time, job: JobId, at: usize) {
        let until = now + self.config.patience.volumes;
        let member = &mut self.jobs.get_mut(job).members[at];
        (member.stage, member.tries) = (Stage::Volumes(until), 0);
        let (Some(uid), Some(place)) = (member.pod.clone(), &member.place) else { return };
        let node = self.nodes_by_id[place.node.index()].clone();
        let Some(pod) = self.pods.get(&uid).and_then(|pod| pod.whole.clone()) else { return };
        let unbound = self.places.sites().claims_to_provision(&pod);
        if unbound.is_empty() {
            return;
        }
        let message = format!(
            "has its place on {node}, and is bound once its volumes are there: {}",
            unbound.join(", ")
        );
        self.provision(&uid, &node, unbound);
        if let Some(pod) = self.pods.get_mut(&uid) {
            // No Binding is on its way, so no decision can be amended.
            pod.asked = None;
        }
        self.say(&uid, "AwaitingVolumes", &message);
        let start = self.config.patience.start;
        let run = self.run_mut(job);
        run.overdue_at = run.overdue_at.max(until + start);
        self.set_timer(until, job);
    }

    /// Binds the members that wait for their volumes if all of these are there, or gives the attempt up.
    pub(crate) fn review_volumes(&mut self, now: Time, job: JobId) {
        let entry = self.jobs.get(job);
        let waits = |(_, member): &(usize, &Member)| member.stage.awaits_volumes();
        let members = entry.members.iter().enumerate().filter(waits);
        let waiting: Vec<usize> = members.map(|(at, _)| at).collect();
        if waiting.is_empty() {
            return;
        }
        if self.is_doomed(job) {
            return self.leave_volumes(job);
        }
        let still = |member: &Member| member.stage.is_before_binding();
        // A gang of which a pod has gone meanwhile waits for its successor.
        let mut ready = entry.is_complete() || !entry.members.iter().all(still);
        for &at in &waiting {
            match self.standing(now, job, at) {
                Standing::Ready => {}
                Standing::Waits => ready = false,
                Standing::Failed(message, shut) => {
                    return self.volumes_failed(now, job, at, &message, &shut);
                }
            }
        }
        if !ready {
            return;
        }
        let mut waited = false;
        for at in waiting {
            let member = &mut self.jobs.get_mut(job).members[at];
            member.stage = Stage::Binding;
            if let Some(uid) = member.pod.clone() {
                waited |= self.withdraw(&uid);
            }
            self.bind(job, at);
        }
        if waited {
            // From now on it is up to its nodes.
            let until = now + self.config.patience.start;
            self.run_mut(job).overdue_at = until;
            self.set_timer(until, job);
        }
    }

    /// How far the volumes of a member that waits for them are.
    fn standing(&self, now: Time, job: JobId, at: usize) -> Standing {
        let member = &self.jobs.get(job).members[at];
        let (Stage::Volumes(until), Some(place)) = (&member.stage, &member.place) else {
            return Standing::Ready;
        };
        let pod = member.pod.as_deref().and_then(|uid| self.pods.get(uid)?.whole.clone());
        let Some(pod) = pod.filter(|pod| !pod.spec.volumes.is_empty()) else {
            return Standing::Ready;
        };
        let node = self.node_name(place.node);
        let mut unbound = Vec::new();
        for key in claims_of(&pod) {
            let sites = self.places.sites();
            let claim = sites.claim(&key);
            let Some(claim) = claim.filter(|at| at.metadata.deletion_timestamp.is_none()) else {
                let message = format!("volume claim {key} is gone, or being deleted");
                return Standing::Failed(message, Vec::new());
            };
            if claim.volume.as_ref().is_some_and(|volume| sites.has_volume(volume)) {
                continue;
            }
            if let Some(message) = self.lost_node(&key) {
                let shut = Vec::from_iter(self.shown_node(&key).is_none().then_some(key));
                return Standing::Failed(message, shut);
            }
            unbound.push(key);
        }
        if unbound.is_empty() {
            return match self.places.recheck(node, &pod) {
                Ok(()) => Standing::Ready,
                Err(why) => {
                    let message =
                        format!("{node} cannot take it now that its volumes are there: {why}");
                    Standing::Failed(message, Vec::new())
                }
            };
        }
        if *until > now {
            return Standing::Waits;
        }
        let message = format!(
            "volumes were not made for {node} within {} s: {}",
            self.config.patience.volumes.0 / 1_000_000,
            unbound.join(", ")
        );
        Standing::Failed(message, unbound)
    }

    /// The attempt is over: a volume cannot be had where its pod was to be.
    fn volumes_failed(
        &mut self,
        now: Time,
        job: JobId,
        at: usize,
        message: &str,
        shut: &[ClaimKey],
    ) {
        for key in shut {
            self.shun(now, key);
        }
        if let Some(uid) = self.jobs.get(job).members[at].pod.clone() {
            self.announce(&uid, "FailedProvisioning", message, true);
        }
        for uid in self.awaiting(job) {
            self.give_up_binding(job, &uid, BindFailure::Conflict);
        }
    }

    /// Pods of a job that wait for their volumes.
    fn awaiting(&self, job: JobId) -> Vec<Uid> {
        let members = self.jobs.get(job).members.iter();
        let waits = members.filter(|member| member.stage.awaits_volumes());
        waits.filter_map(|member| member.pod.clone()).collect()
    }

    /// The places of those who wait for their volumes are not theirs any more.
    pub(crate) fn leave_volumes(&mut self, job: JobId) {
        for uid in self.awaiting(job) {
            self.unseat(job, &uid);
        }
    }

    /// The node of a claim could not be written.
    pub(crate) fn selection_failed(
        &mut self,
        now: Time,
        claim: &ClaimRef,
        failure: BindFailure,
        message: &str,
    ) {
        let key = claim_key(&claim.namespace, &claim.name);
        let message = format!("no node could be written on volume claim {key}: {message}");
        for uid in self.who_awaits(&key) {
            let Some(&job) = self.jobs.by_pod.get(&uid) else { continue };
            self.give_up_binding(job, &uid, failure);
            self.announce(&uid, "FailedProvisioning", &message, true);
            if failure == BindFailure::Permanent {
                self.say(&uid, "BindingRefused", &message);
            }
            self.review(now, job);
        }
    }
}
