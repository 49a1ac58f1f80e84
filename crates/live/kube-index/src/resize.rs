//! Best-effort pods give CPU and memory that they do not need, in place, and get it back.
//!
//! Requests only: a lower limit can kill, and a lower request only changes weights and accounting.
//! Room is there when `status.containerStatuses[].resources` shows it, and no sooner.

use crate::action::Action;
use crate::index::Index;
use crate::jobs::{Resizing, Uid};
use crate::quantity::format_amount;
use deepshare_engine::Event;
use deepshare_kube_api::names;
use deepshare_model::{AttemptId, JobId, Resources, Time};
use std::collections::BTreeMap;

/// A container and what it requests.
type Share = (Box<str>, Resources);

/// Requests by container and resource, as the API writes them.
pub(crate) type Amounts = BTreeMap<String, BTreeMap<String, String>>;

impl Index {
    pub(crate) fn resize(
        &mut self,
        now: Time,
        attempt: AttemptId,
        per_gpu: Resources,
        grows: bool,
    ) {
        let Some(job) = self.jobs.of_attempt(attempt) else { return };
        let until = now + self.config.patience.resize;
        self.run_mut(job).resizing = Some(Resizing { per_gpu, grows, until });
        self.set_timer(until, job);
        self.ask_for(job, per_gpu, grows);
        self.observe_resize(job);
    }

    /// What each container of a pod is to request so that the pod has `per_gpu` beside each of its GPUs;
    /// `grows`: what it had before it was shrunk.
    fn share_out(&self, job: JobId, uid: &Uid, per_gpu: Resources, grows: bool) -> Vec<Share> {
        let goal = per_gpu.times(self.jobs.get(job).gpus);
        let Some(pod) = self.pods.get(uid) else { return Vec::new() };
        let own = pod.wish.as_ref().map_or(&[][..], |wish| &wish.resizable);
        let all = sum(own);
        let share = |own: u64, all: u64, goal: u64| match grows || goal >= all {
            true => own,
            false => (u128::from(own) * u128::from(goal) / u128::from(all.max(1))) as u64,
        };
        let shares = own.iter().map(|(name, own)| {
            let cpu_milli = share(own.cpu_milli, all.cpu_milli, goal.cpu_milli);
            let memory_mib = share(own.memory_mib, all.memory_mib, goal.memory_mib);
            (name.clone(), Resources { cpu_milli, memory_mib })
        });
        shares.collect()
    }

    /// Asks for `per_gpu` beside each GPU of a job's pods.
    fn ask_for(&mut self, job: JobId, per_gpu: Resources, grows: bool) {
        for uid in self.pods_of(job) {
            let requests = amounts(&self.share_out(job, &uid, per_gpu, grows));
            let Some(pod) = self.pods.get(&uid) else { continue };
            let Some(wish) = &pod.wish else { continue };
            let text = match grows {
                true => String::new(),
                false => serde_json::to_string(&amounts(&wish.resizable)).unwrap_or_default(),
            };
            let annotations = BTreeMap::from([(names::ORIGINAL_REQUESTS.to_owned(), text)]);
            self.actions.push(Action::Resize { pod: pod.pod_ref(), requests, annotations });
        }
    }

    /// Tells the engine once every pod of a resized job shows what was asked for.
    pub(crate) fn observe_resize(&mut self, job: JobId) {
        let Some(run) = &self.jobs.get(job).run else { return };
        let Some(resizing) = run.resizing.clone() else { return };
        let attempt = run.attempt;
        let shows = |uid: &Uid| {
            let goal = sum(&self.share_out(job, uid, resizing.per_gpu, resizing.grows));
            let shown = self.pods.get(uid).and_then(|pod| pod.visible);
            shown.is_some_and(|shown| match resizing.grows {
                false => shown.fits(goal),
                true => goal.fits(shown),
            })
        };
        let pods = self.pods_of(job);
        if !pods.iter().all(shows) {
            return;
        }
        self.run_mut(job).resizing = None;
        self.events.push(Event::Resized { attempt });
        if !resizing.grows {
            for uid in &pods {
                let message = "runs with the CPU and memory that it is recommended, in place";
                self.announce(uid, "Shrunk", message, false);
            }
        }
    }

    /// A resize was refused, or takes too long: it is taken back.
    pub(crate) fn resize_refused(&mut self, job: JobId, message: &str) {
        let Some(run) = self.jobs.get_mut(job).run.as_mut() else { return };
        let Some(resizing) = run.resizing.take() else { return };
        let attempt = run.attempt;
        if !resizing.grows {
            self.ask_for(job, resizing.per_gpu, true);
        }
        self.events.push(Event::ResizeRefused { attempt });
        if let Some(uid) = self.pods_of(job).first().cloned() {
            self.announce(&uid, "ResizeRefused", message, true);
        }
    }

    pub(crate) fn resize_timer(&mut self, now: Time, job: JobId) {
        let run = self.jobs.get(job).run.as_ref();
        let late = run.and_then(|run| run.resizing.as_ref()).is_some_and(|r| r.until <= now);
        if late {
            self.resize_refused(job, "the new requests did not show in time");
        }
    }

    pub(crate) fn pods_of(&self, job: JobId) -> Vec<Uid> {
        self.jobs.get(job).members.iter().filter_map(|member| member.pod.clone()).collect()
    }
}

pub(crate) fn sum(shares: &[Share]) -> Resources {
    shares.iter().fold(Resources::default(), |mut sum, (_, own)| {
        sum.add(*own);
        sum
    })
}

fn amounts(shares: &[Share]) -> Amounts {
    let amounts = shares.iter().map(|(name, own)| {
        let cpu = format_amount("cpu", own.cpu_milli);
        let memory = format_amount("memory", own.memory_mib << 20);
        let both = [("cpu".to_owned(), cpu), ("memory".to_owned(), memory)];
        (name.to_string(), BTreeMap::from(both))
    });
    amounts.collect()
}
