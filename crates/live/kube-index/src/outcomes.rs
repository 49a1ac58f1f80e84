//! How writes ended, and trying again.

use crate::action::Outcome as Write;
use crate::index::Index;
use crate::jobs::{Run, Stage};
use deepshare_engine::{BindFailure, Event};
use deepshare_model::{JobId, Span, Time};

/// Tries of one Binding that fails for no reason of its own.
const BIND_TRIES: u32 = 5;
/// First pause between them; doubles.
const BIND_PAUSE: Span = Span(100_000);
/// How long the watch may take to show what a conflict was about.
const CONFLICT_CLEARS: Span = Span::from_secs(2);

impl Index {
    /// Takes up how a write ended.
    pub fn outcome(&mut self, now: Time, outcome: &Write) {
        let pod = match outcome {
            Write::SelectionFailed { claim, failure, message } => {
                return self.selection_failed(now, claim, *failure, message);
            }
            Write::Bound { pod }
            | Write::BindFailed { pod, .. }
            | Write::Evicting { pod }
            | Write::EvictionRefused { pod, .. }
            | Write::ResizeRefused { pod, .. } => pod,
        };
        let Some(&job) = self.jobs.by_pod.get(pod.uid.as_str()) else { return };
        match outcome {
            Write::Bound { .. } => self.note_bound(job, &pod.uid),
            Write::BindFailed { failure, message, .. } => {
                self.bind_failed(now, job, &pod.uid, *failure, message);
            }
            Write::Evicting { .. } => {
                if let Some(Run { ending: Some(ending), .. }) = &mut self.jobs.get_mut(job).run {
                    ending.asking = false;
                }
            }
            Write::EvictionRefused { message, .. } => {
                self.eviction_refused(job, &pod.uid, message);
            }
            Write::ResizeRefused { message, .. } => self.resize_refused(job, message),
            // It is about a claim.
            Write::SelectionFailed { .. } => {}
        }
        self.review(now, job);
    }

    fn eviction_refused(&mut self, job: JobId, uid: &str, message: &str) {
        let entry = self.jobs.get_mut(job);
        let Some(member) = entry.member_of(uid) else { return };
        member.leaving = false;
        let asking = |run: &&mut Run| run.ending.as_ref().is_some_and(|ending| ending.asking);
        let Some(run) = entry.run.as_mut().filter(asking) else { return };
        let beneficiary = run.ending.take().and_then(|ending| ending.beneficiary);
        let attempt = run.attempt;
        if let Some(history) = self.history.get_mut(&job) {
            history.preempted.pop();
        }
        self.events.push(Event::EvictionRefused { attempt });
        if let Some(beneficiary) = beneficiary.filter(|job| !self.jobs.get(*job).over) {
            self.why.block(beneficiary, format!("{} stays: {message}", self.job_name(job)));
        }
        self.announce(uid, "EvictionRefused", message, true);
    }

    fn bind_failed(
        &mut self,
        now: Time,
        job: JobId,
        uid: &str,
        failure: BindFailure,
        message: &str,
    ) {
        // Nobody tries again for an attempt that is over.
        let doomed = self.is_doomed(job);
        let Some(member) = self.jobs.get_mut(job).member_of(uid) else { return };
        if member.stage != Stage::Binding {
            return;
        }
        match failure {
            BindFailure::Transient if member.tries + 1 < BIND_TRIES && !doomed => {
                let again = now + BIND_PAUSE * (1 << member.tries);
                member.tries += 1;
                member.stage = Stage::BindAgain(again);
                self.set_timer(again, job);
            }
            // It may have been accepted, and the answer lost: the watch will tell.
            BindFailure::Conflict | BindFailure::Transient => {
                let until = now + CONFLICT_CLEARS;
                member.stage = Stage::Unsure(until);
                self.set_timer(until, job);
            }
            BindFailure::Permanent => {
                self.give_up_binding(job, uid, failure);
                self.announce(uid, "FailedBinding", message, true);
                let message = format!("its binding was refused for good: {message}");
                self.say(&uid.into(), "BindingRefused", &message);
            }
        }
    }

    /// True if the attempt under way will not run, so that nothing more is to be bound for it.
    pub(crate) fn is_doomed(&self, job: JobId) -> bool {
        let run = self.jobs.get(job).run.as_ref();
        self.bind_verdict.contains_key(&job)
            || run.is_none_or(|run| run.ending.is_some() || run.given_up)
    }

    /// The place of a pod that is not bound is not its any more.
    pub(crate) fn unseat(&mut self, job: JobId, uid: &str) {
        self.leave_place(uid);
        if let Some(member) = self.jobs.get_mut(job).member_of(uid) {
            member.stage = Stage::Idle;
        }
    }

    pub(crate) fn give_up_binding(&mut self, job: JobId, uid: &str, failure: BindFailure) {
        self.unseat(job, uid);
        let verdict = self.bind_verdict.entry(job).or_insert(failure);
        if failure == BindFailure::Permanent {
            *verdict = failure;
        }
    }

    /// Time has passed for a job: bind again, give up waiting.
    pub(crate) fn job_timer(&mut self, now: Time, job: JobId) {
        if self.jobs.get(job).over {
            return;
        }
        let doomed = self.is_doomed(job);
        for at in 0..self.jobs.get(job).members.len() {
            let member = &mut self.jobs.get_mut(job).members[at];
            match member.stage {
                Stage::BindAgain(again) if again <= now && !doomed => {
                    member.stage = Stage::Binding;
                    self.bind(job, at);
                }
                Stage::BindAgain(until) | Stage::Unsure(until) if until <= now => {
                    if let Some(uid) = member.pod.clone() {
                        self.give_up_binding(job, &uid, BindFailure::Conflict);
                    }
                }
                _ => {}
            }
        }
        self.review(now, job);
    }
}
