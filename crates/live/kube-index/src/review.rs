//! What the members of a job are, held against what the engine was told: the difference is told.

use crate::action::{Action, PodRef};
use crate::index::Index;
use crate::jobs::{Member, Stage, Uid};
use crate::pods::PodFacts;
use deepshare_engine::{BindFailure, Event};
use deepshare_model::{JobId, NodeId, Outcome, Time};
use std::collections::BTreeMap;

impl Index {
    /// Holds a job's members against what the engine was told, and tells the difference.
    pub(crate) fn review(&mut self, now: Time, job: JobId) {
        if self.jobs.get(job).over {
            return;
        }
        self.review_volumes(now, job);
        let entry = self.jobs.get(job);
        let Some(run) = entry.run.clone() else { return self.review_waiting(now, job) };
        if run.ending.is_some() {
            return self.review_ending(now, job);
        }
        let attempt = run.attempt;
        let members = &entry.members;
        let deciding = members.iter().any(|member| {
            matches!(member.stage, Stage::Binding | Stage::BindAgain(_) | Stage::Unsure(_))
        });
        if let Some(&failure) = self.bind_verdict.get(&job) {
            // In flight as long as any Binding is: what it comes to decides what has to be undone.
            if !deciding {
                self.bind_verdict.remove(&job);
                self.run_failed(now, job, failure);
            }
            return;
        }
        let bound = members.iter().all(Member::is_bound);
        let runs = |member: &Member| matches!(member.stage, Stage::Running | Stage::Done(_));
        let runs = members.iter().all(|member| member.pod.is_some() && runs(member));
        let ran = members.iter().any(|member| matches!(member.stage, Stage::Running));
        if bound && !run.bound {
            self.run_mut(job).bound = true;
            self.events.push(Event::Bound { attempt });
        }
        if runs && !run.running && (ran || self.rejected_by(job).is_empty()) {
            let run = self.run_mut(job);
            (run.running, run.started) = (true, Some(now));
            self.events.push(Event::Running { attempt });
            self.forgive_nodes(job);
        }
        self.review_ends(now, job);
    }

    /// Members that are over, gone or rejected.
    pub(crate) fn review_ends(&mut self, now: Time, job: JobId) {
        let entry = self.jobs.get(job);
        let Some(run) = &entry.run else { return };
        let (attempt, gang) = (run.attempt, entry.is_gang());
        let (rejected, given_up) = (self.rejected_by(job), run.given_up);
        if !rejected.is_empty() && !given_up && !run.running {
            for node in rejected {
                self.punish_node(now, node);
            }
            if !gang {
                return self.release(now, job, Some(Event::Rejected { attempt }));
            }
            self.run_mut(job).given_up = true;
            self.events.push(Event::StartOverdue { attempt });
            return;
        }
        let Some(run) = &self.jobs.get(job).run else { return };
        let entry = self.jobs.get(job);
        if !run.running && run.overdue_at <= now && !run.given_up {
            self.run_mut(job).given_up = true;
            self.events.push(Event::StartOverdue { attempt });
            return;
        }
        let outcomes = entry.members.iter().map(|member| match (&member.pod, &member.stage) {
            (Some(_), Stage::Done(outcome)) => Some(*outcome),
            _ => None,
        });
        if let Some(outcomes) = outcomes.collect::<Option<Vec<_>>>()
            && !outcomes.is_empty()
        {
            let failed = outcomes.iter().copied().find(|outcome| *outcome != Outcome::Succeeded);
            let outcome = failed.unwrap_or(Outcome::Succeeded);
            return self.finish(now, job, outcome);
        }
        let failed = |member: &Member| {
            member.pod.is_none()
                || matches!(member.stage, Stage::Done(outcome) if outcome != Outcome::Succeeded)
        };
        let lacking = entry.members.iter().any(failed);
        let leaves = |member: &Member| {
            let pod = member.pod.as_deref().and_then(|uid| self.pods.get(uid));
            pod.is_some_and(|pod| pod.deleting)
        };
        // Its owner, a drain or the cluster deletes it, not this scheduler: final, unless another
        // scheduler has preempted it and its controller makes it anew.
        let all_gone = entry.members.iter().all(|member| member.pod.is_none() || leaves(member));
        if all_gone && !given_up {
            let preempted = |uid: &Uid| self.pods.get(uid).is_some_and(|pod| pod.preempted);
            let preempted = entry.members.iter().filter_map(|m| m.pod.as_ref()).any(preempted);
            if !preempted {
                return self.cancel_active(job);
            }
            self.run_mut(job).given_up = true;
            self.history.entry(job).or_default().preempted.push(now);
            self.events.push(Event::Broken { attempt });
            return;
        }
        if !gang {
            return;
        }
        match (lacking, run.broken_at) {
            (false, Some(_)) => self.run_mut(job).broken_at = None,
            (true, None) => {
                let at = now + self.config.patience.gang;
                self.run_mut(job).broken_at = Some(at);
                self.jobs.await_successor(job);
                self.set_timer(at, job);
            }
            (true, Some(at)) if at <= now && !run.given_up => {
                self.run_mut(job).given_up = true;
                self.events.push(Event::Broken { attempt });
            }
            _ => {}
        }
    }

    /// Looks at attempts that were ending already when their node was lost: nobody else tells of them.
    pub(crate) fn review_ending_on(&mut self, now: Time, node: NodeId) {
        let concerned = |job: &JobId| {
            let entry = self.jobs.get(*job);
            let there = |member: &Member| member.place.as_ref().is_some_and(|p| p.node == node);
            entry.run.as_ref().is_some_and(|run| run.ending.is_some())
                && entry.members.iter().any(there)
        };
        let ending: Vec<JobId> = self.jobs.by_attempt.values().copied().filter(concerned).collect();
        for job in ending {
            self.review(now, job);
        }
    }

    /// Deletes pods that were asked to stop on a node that is no part of the cluster any more: nobody
    /// will stop them, and some controllers make no others before they are gone.
    pub(crate) fn delete_orphans(&mut self, node: &str) {
        let asked = |pod: &PodFacts| match self.jobs.by_pod.get(&pod.uid) {
            Some(job) => {
                let mut members = self.jobs.get(*job).members.iter();
                members.any(|member| member.pod.as_ref() == Some(&pod.uid) && member.leaving)
            }
            // Its attempt was over when the node fell silent.
            None => pod.deleting && self.strangers.contains(&pod.uid),
        };
        let there = |pod: &PodFacts| pod.node.as_deref() == Some(node) && !pod.is_terminal();
        let left = self.pods.values().filter(|pod| there(pod) && asked(pod));
        let left: BTreeMap<&Uid, PodRef> = left.map(|pod| (&pod.uid, pod.pod_ref())).collect();
        let deletions = left.into_values().map(|pod| {
            let message = format!("its node {node} is no part of the cluster any more");
            Action::Delete { pod, orphaned: true, grace_s: 0, message }
        });
        self.actions.extend(deletions);
    }

    /// An attempt on its way out: over once none of its pods can run any more.
    fn review_ending(&mut self, now: Time, job: JobId) {
        let entry = self.jobs.get(job);
        let done = |member: &Member| member.stage == Stage::Done(Outcome::Succeeded);
        if entry.members.iter().all(done) {
            // It was quicker.
            return self.finish(now, job, Outcome::Succeeded);
        }
        let asked = |member: &Member| {
            let pod = member.pod.as_ref().and_then(|uid| self.pods.get(uid));
            member.leaving && member.holds() && pod.is_some_and(|pod| !pod.deleting)
        };
        let waits = entry.members.iter().any(asked);
        let Some(run) = self.jobs.get_mut(job).run.as_mut() else { return };
        let attempt = run.attempt;
        if let Some(ending) = &mut run.ending {
            // Whoever was asked may have gone by another's doing.
            ending.asking &= waits;
            if !ending.asking {
                // Also what was on its way to be bound when the end came.
                self.dismiss(job);
            }
        }
        let holds = |member: &Member| {
            let there = matches!(member.stage, Stage::Bound | Stage::Running);
            let lost = |node| there && self.is_lost(node);
            member.holds() && !member.place.as_ref().is_some_and(|place| lost(place.node))
        };
        if self.jobs.get(job).members.iter().any(holds) {
            return;
        }
        self.release(now, job, Some(Event::DevicesReleased { attempt }));
    }

    /// The Binding failed for good: undo what was bound, or say so at once.
    pub(crate) fn run_failed(&mut self, now: Time, job: JobId, failure: BindFailure) {
        let entry = self.jobs.get(job);
        let Some(run) = &entry.run else { return };
        let attempt = run.attempt;
        // The others may have done their part already.
        if run.running || entry.members.iter().any(Member::holds) {
            // A member that came late leaves its gang as broken as one that did not come.
            self.events.push(match run.running {
                true => Event::Broken { attempt },
                false => Event::StartOverdue { attempt },
            });
            self.run_mut(job).given_up = true;
            return;
        }
        let event = Event::BindFailed { attempt, failure };
        self.release(now, job, Some(event));
        if failure == BindFailure::Permanent && !self.jobs.get(job).over {
            self.close(now, job);
        }
    }

    pub(crate) fn finish(&mut self, now: Time, job: JobId, outcome: Outcome) {
        let Some(run) = self.jobs.get(job).run.clone() else { return };
        if let Some(started) = run.started {
            self.learn_run_time(job, now.saturating_since(started));
        }
        let attempt = run.attempt;
        self.events.push(Event::Finished { attempt, outcome });
        self.events.push(Event::DevicesReleased { attempt });
        self.vacate(job);
        self.close(now, job);
    }

    /// The attempt is over and its job is not: it waits again, if it has its pods, or for new ones.
    pub(crate) fn release(&mut self, now: Time, job: JobId, last: Option<Event>) {
        if let Some(run) = self.jobs.get(job).run.clone()
            && let Some(started) = run.started
        {
            let served = now.saturating_since(started);
            let history = self.history.entry(job).or_default();
            history.served = history.served.saturating_add(served);
        }
        self.vacate(job);
        let entry = self.jobs.get_mut(job);
        if let Some(run) = entry.run.take() {
            self.jobs.by_attempt.remove(&run.attempt);
        }
        // Pods that were bound, or are over, are of no use any more.
        let mut spent = Vec::new();
        for member in &mut self.jobs.get_mut(job).members {
            let used = !matches!(member.stage, Stage::Idle) || member.leaving;
            if used {
                spent.extend(member.pod.take());
            }
            (member.stage, member.place, member.leaving, member.tries) =
                (Stage::Idle, None, false, 0);
        }
        for uid in &spent {
            self.jobs.by_pod.remove(uid);
            // Its decision is over, even while it stops, or its node is silent.
            self.strangers.insert(uid.clone());
        }
        self.bind_verdict.remove(&job);
        self.seat_heirs(now, job);
        self.why.look_at(job);
        let entry = self.jobs.get(job);
        if entry.is_complete() && !entry.cancelled {
            self.events.extend(last);
            return;
        }
        let comes_back = (entry.lineage.is_some() || entry.is_gang()) && !entry.cancelled;
        if comes_back {
            // Before its devices are, so that it does not queue without its pods.
            self.events.push(Event::Held { job });
            self.hold(now, job);
        } else if !entry.cancelled {
            self.events.push(Event::Cancelled { job });
        }
        self.events.extend(last);
        if !comes_back {
            self.close(now, job);
        }
        for uid in spent {
            self.place_pod(now, &uid);
        }
    }

    /// Frees the places of a job's members. A pod that is still on its node holds them all the same,
    /// as somebody whom the engine does not know.
    pub(crate) fn vacate(&mut self, job: JobId) {
        let pods: Vec<_> = {
            let members = self.jobs.get(job).members.iter();
            members
                .filter_map(|member| {
                    Some((member.pod.clone()?, member.place.clone()?, member.is_bound()))
                })
                .collect()
        };
        for (uid, place, bound) in pods {
            self.leave_place(&uid);
            // Its binding may be accepted and not seen yet.
            let there = |pod: &PodFacts| !pod.is_terminal() && (bound || pod.node.is_some());
            if self.pods.get(&uid).is_some_and(there) {
                let gpus = place.devices.count();
                let name = self.nodes_by_id[place.node.index()].clone();
                if let Some(node) = self.nodes.get_mut(&name) {
                    node.set_foreign(&uid, gpus, &place.slots);
                }
                self.touched.insert(name);
            }
        }
    }

    pub(crate) fn cancel_active(&mut self, job: JobId) {
        self.run_mut(job).given_up = true;
        self.jobs.get_mut(job).cancelled = true;
        self.events.push(Event::Cancelled { job });
    }

    /// Nodes that refused to run members of a job.
    fn rejected_by(&self, job: JobId) -> Vec<NodeId> {
        let rejected = |uid: &Uid| self.pods.get(uid).is_some_and(PodFacts::was_rejected);
        let members = self.jobs.get(job).members.iter();
        let members = members.filter(|member| member.pod.as_ref().is_some_and(rejected));
        members.filter_map(|member| member.place.as_ref()).map(|place| place.node).collect()
    }
}
