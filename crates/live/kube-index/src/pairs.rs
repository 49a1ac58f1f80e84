//! Pairs that share a GPU: samples of their speed, and budgets that shield pods from eviction.

use crate::index::Index;
use crate::jobs::Stage;
use crate::selector;
use crate::submit::parse_time;
use deepshare_engine::Event;
use deepshare_kube_api::PairSample;
use deepshare_model::{AttemptId, JobId, Retention, Time};

impl Index {
    pub(crate) fn watch_pair(&mut self, attempt: AttemptId, partner: AttemptId) {
        let jobs = [attempt, partner].map(|attempt| self.jobs.of_attempt(attempt));
        let [Some(joins), Some(host)] = jobs else { return };
        if self.run_mut(joins).bound {
            // They were found so.
            return;
        }
        for (job, other) in [(joins, host), (host, joins)] {
            let message = format!("shares its GPU with {}", self.job_name(other));
            for uid in self.pods_of(job) {
                self.announce(&uid, "Colocated", &message, false);
            }
        }
    }

    /// Takes up what a node's agent measured.
    pub(crate) fn sampled(&mut self, now: Time, sample: &PairSample) {
        let [one, other] = sample.pod_uids.as_slice() else { return };
        let [kept, kept_other] = sample.retentions_ppm.as_slice() else { return };
        let attempt = |uid: &String| {
            let job = self.jobs.by_pod.get(uid.as_str())?;
            Some(self.jobs.get(*job).run.as_ref()?.attempt)
        };
        let (Some(first), Some(second)) = (attempt(one), attempt(other)) else { return };
        let Some(taken) = parse_time(&sample.taken).filter(|taken| *taken <= now) else { return };
        let retentions = [Retention::from_ppm(*kept), Retention::from_ppm(*kept_other)];
        self.events.push(Event::PairSampled { attempts: [first, second], retentions, taken });
    }

    /// Looks which running jobs of a namespace a disruption budget shields.
    pub(crate) fn recheck_shields(&mut self, namespace: &str) {
        let theirs: Vec<JobId> = {
            let running = self.jobs.by_attempt.values().copied();
            running.filter(|&job| *self.jobs.get(job).namespace == *namespace).collect()
        };
        for job in theirs {
            self.check_shield(job);
        }
    }

    /// Tells the engine if a job's shield came or went.
    pub(crate) fn check_shield(&mut self, job: JobId) {
        let entry = self.jobs.get(job);
        if entry.over || entry.run.is_none() {
            return;
        }
        let namespace = &*entry.namespace;
        let spent = self.budgets.iter().filter(|((of, _), budget)| {
            **of == *namespace && budget.status.disruptions_allowed == 0
        });
        let shielded =
            spent.filter_map(|(_, budget)| budget.spec.selector.as_ref()).any(|selector| {
                let pods = entry.members.iter().filter(|member| member.stage != Stage::Idle);
                let mut labels =
                    pods.filter_map(|m| Some(&self.pods.get(m.pod.as_deref()?)?.labels));
                labels.any(|labels| selector::labels_match(selector, labels))
            });
        if shielded != entry.shielded {
            self.jobs.get_mut(job).shielded = shielded;
            self.events.push(Event::Shielded { job, shielded });
        }
    }
}
