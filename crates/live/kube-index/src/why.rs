//! Waiting pods are told why, and tenants how they do: few writes, and only what has changed.

use crate::action::Action;
use crate::index::Index;
use crate::jobs::Uid;
use deepshare_engine::{Degree, JobState, Names, Reason, State};
use deepshare_kube_api::{Condition, TenantQuotaStatus};
use deepshare_model::{GpuTypeId, JobId, Span, TenantId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Between two looks at all waiting jobs and all tenants.
const PERIOD: Span = Span::SECOND;
/// Conditions written in one look at most: status writes must not crowd out Bindings.
const MOST_WRITES: usize = 100;
/// A sentence whose quantities alone have changed is written again after this.
const STALE: Span = Span::from_secs(120);

/// What was said last.
#[derive(Debug, Default)]
pub(crate) struct Why {
    /// Jobs that wait, or did at the last look.
    waiting: BTreeSet<JobId>,
    /// Jobs to look at in this step, whatever the time.
    urgent: Vec<JobId>,
    /// Where the last look stopped.
    resume_at: JobId,
    said_at: BTreeMap<Uid, Time>,
    /// Jobs for whom the eviction of another was refused, and the sentence about it.
    blocked: BTreeMap<JobId, String>,
    next: Time,
    /// Something has happened since the last look, or it was not finished.
    pending: bool,
    tenants: BTreeMap<String, TenantQuotaStatus>,
}

impl Why {
    pub(crate) fn look_at(&mut self, job: JobId) {
        self.waiting.insert(job);
    }

    /// Jobs that wait, or did at the last look.
    pub(crate) fn waiting(&self) -> Vec<JobId> {
        self.waiting.iter().copied().collect()
    }

    pub(crate) fn look_at_once(&mut self, job: JobId) {
        self.waiting.insert(job);
        self.urgent.push(job);
    }

    /// Whoever was to go for this job stays.
    pub(crate) fn block(&mut self, job: JobId, why: String) {
        self.blocked.insert(job, why);
        self.look_at(job);
    }

    /// Other devices were found for it, or it is over.
    pub(crate) fn unblock(&mut self, job: JobId) {
        self.blocked.remove(&job);
    }

    pub(crate) fn forget_pod(&mut self, uid: &str) {
        self.said_at.remove(uid);
    }

    pub(crate) fn forget_tenant(&mut self, name: &str) {
        self.tenants.remove(name);
    }

    /// When the next look is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.pending.then_some(self.next)
    }

    /// Something has happened that a tenant or a waiting pod may have to be told of.
    pub(crate) fn note_change(&mut self) {
        self.pending = true;
    }
}

impl Index {
    /// Says what is to be said by now.
    pub fn report(&mut self, now: Time, state: &State) {
        if !self.is_synced() {
            return;
        }
        for job in std::mem::take(&mut self.why.urgent) {
            let there = !self.jobs.get(job).over;
            if let Some(reason) = state.explain(job).filter(|_| there) {
                self.explain(now, job, &reason);
            }
        }
        if now < self.why.next || !self.why.pending {
            return;
        }
        self.why.next = now + PERIOD;
        self.why.pending = false;
        let counts = self.look_at_waiting(now, state);
        self.look_at_tenants(now, state, &counts);
    }

    /// Goes through waiting jobs from where the last look stopped, and counts them by tenant and reason.
    fn look_at_waiting(
        &mut self,
        now: Time,
        state: &State,
    ) -> BTreeMap<TenantId, BTreeMap<&'static str, u32>> {
        let mut counts: BTreeMap<TenantId, BTreeMap<&str, u32>> = BTreeMap::new();
        let waiting = std::mem::take(&mut self.why.waiting);
        let mut budget = MOST_WRITES;
        let first = self.why.resume_at;
        self.why.resume_at = JobId(0);
        let (before, after): (Vec<JobId>, Vec<JobId>) =
            waiting.into_iter().partition(|&job| job < first);
        let mut still = BTreeSet::new();
        for job in after.into_iter().chain(before) {
            if self.jobs.get(job).over {
                continue;
            }
            let Some(reason) = state.explain(job) else {
                let active =
                    matches!(state.job(job).state, JobState::Active(_) | JobState::Ended(_));
                if !active {
                    still.insert(job);
                }
                continue;
            };
            still.insert(job);
            let tenant = self.jobs.get(job).tenant;
            *counts.entry(tenant).or_default().entry(reason.name()).or_default() += 1;
            // Whoever came within this period may be bound before the sentence is read.
            let fresh = now.saturating_since(self.jobs.get(job).submitted) < PERIOD;
            if fresh {
                self.why.pending = true;
                continue;
            }
            if budget == 0 {
                if self.why.resume_at == JobId(0) {
                    self.why.resume_at = job;
                }
                self.why.pending = true;
                continue;
            }
            budget = budget.saturating_sub(self.explain(now, job, &reason));
        }
        self.why.waiting = still;
        counts
    }

    /// Writes why a job waits to its pods, where that is news; returns the number of writes.
    fn explain(&mut self, now: Time, job: JobId, reason: &Reason) -> usize {
        let code = match helps(reason) {
            true => "Unschedulable".to_owned(),
            false => word(reason.name()),
        };
        let stale = |uid: &Uid| {
            let pod = self.pods.get(uid)?;
            let same_word = pod.said.as_ref().is_some_and(|(said, _)| **said == *code);
            let last = self.why.said_at.get(uid);
            let recent = last.is_some_and(|at| now.saturating_since(*at) < STALE);
            let asks = pod.node.is_none() && !pod.deleting;
            (asks && !(same_word && recent)).then(|| uid.clone())
        };
        let pods: Vec<Uid> = self.pods_of(job).iter().filter_map(stale).collect();
        if pods.is_empty() {
            return 0;
        }
        let mut message = self.sentence(reason);
        if let Some(blocked) = self.why.blocked.get(&job) {
            message = format!("{message}; {blocked}");
        }
        let mut writes = 0;
        for uid in pods {
            let Some(pod) = self.pods.get_mut(&uid) else { continue };
            let said = pod.said.as_ref().map(|(word, text)| (&**word, &**text));
            if said == Some((&*code, &*message)) {
                continue;
            }
            let another = said.is_none_or(|(word, _)| word != code);
            pod.said = Some((code.as_str().into(), message.as_str().into()));
            let pod = pod.pod_ref();
            if another {
                // Where people look first. Quantities that change are no event.
                self.announce(&uid, &code, &message, false);
                writes += 1;
            }
            self.why.said_at.insert(uid, now);
            let (reason, message) = (code.clone(), message.clone());
            self.actions.push(Action::Explain { pod, reason, message });
            writes += 1;
        }
        writes
    }

    /// A reason in the engine's words, with names where it has ids.
    fn sentence(&self, reason: &Reason) -> String {
        reason.in_words(&Called(self))
    }

    fn look_at_tenants(
        &mut self,
        now: Time,
        state: &State,
        counts: &BTreeMap<TenantId, BTreeMap<&str, u32>>,
    ) {
        let current: Vec<(TenantId, String, Option<i64>)> = {
            let all = self.tenants.current();
            all.map(|(id, quota)| {
                (id, quota.metadata.name.clone().unwrap_or_default(), quota.metadata.generation)
            })
            .collect()
        };
        for (id, name, generation) in current {
            if id.index() >= state.tenant_count() {
                continue;
            }
            let mut status = self.status_of(id, state, counts.get(&id));
            status.observed_generation = generation;
            let mut conditions = self.tenants.conditions(&name).to_vec();
            let told = self.why.tenants.get(&name);
            let told = told.or_else(|| self.tenants.quota(id).and_then(|q| q.status.as_ref()));
            let since = self.text_of(now);
            for condition in &mut conditions {
                condition.last_transition_time = Some(since_of(condition, told, &since));
            }
            status.conditions = conditions;
            if told == Some(&status) {
                continue;
            }
            self.why.tenants.insert(name.clone(), status.clone());
            self.actions.push(Action::TenantStatus { name, status: Box::new(status) });
        }
    }

    fn status_of(
        &self,
        id: TenantId,
        state: &State,
        waiting: Option<&BTreeMap<&str, u32>>,
    ) -> TenantQuotaStatus {
        let (assurance, _) = state.qad(id);
        let (demand, guaranteed) = state.guaranteed(id);
        let types = 0..state.gpu_types().min(self.types.len());
        let used: u32 = types.clone().map(|at| state.used(id, GpuTypeId::from_index(at))).sum();
        let smoothed = types.clone().filter_map(|at| {
            let gpu_type = GpuTypeId::from_index(at);
            let promised = state.tenant(id).quota.of(gpu_type) > 0;
            let degree = state.qad_of_type(id, gpu_type).1;
            promised.then(|| (self.types.name(at).to_owned(), hundredths(degree)))
        });
        let quota = types.map(|at| state.tenant(id).quota.of(GpuTypeId::from_index(at))).sum();
        TenantQuotaStatus {
            quota,
            guaranteed,
            best_effort: used.saturating_sub(guaranteed),
            demand,
            assurance: hundredths(assurance),
            smoothed: smoothed.collect(),
            waiting: waiting
                .into_iter()
                .flatten()
                .map(|(name, jobs)| (word(name), *jobs))
                .collect(),
            conditions: Vec::new(),
            observed_generation: None,
        }
    }
}

/// Names as the index knows them.
struct Called<'a>(&'a Index);

impl Names for Called<'_> {
    fn tenant(&self, id: TenantId) -> String {
        self.0.tenants.name(id).to_owned()
    }

    fn job(&self, id: JobId) -> String {
        self.0.job_name(id)
    }

    fn instant(&self, at: Time) -> String {
        self.0.text_of(at)
    }
}

/// When a condition came to be as it is.
fn since_of(condition: &Condition, told: Option<&TenantQuotaStatus>, now: &str) -> String {
    let before =
        told.and_then(|status| status.conditions.iter().find(|c| c.kind == condition.kind));
    let same = before.filter(|before| before.status == condition.status);
    same.and_then(|same| same.last_transition_time.clone()).unwrap_or_else(|| now.to_owned())
}

/// To the hundredth: what is written per 0.01 of change.
fn hundredths(degree: Degree) -> String {
    format!("{:.2}", degree.as_f64())
}

/// The engine's word for a reason, as conditions write it: `over-quota` is `OverQuota`.
fn word(name: &str) -> String {
    let mut word = String::new();
    for part in name.split('-') {
        let mut letters = part.chars();
        word.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        word.extend(letters);
    }
    word
}

/// True if more nodes would help: what cluster autoscalers act on.
fn helps(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NotEnoughFree { .. }
            | Reason::Fragmented { .. }
            | Reason::NotEnoughHost { .. }
            | Reason::NotEnoughGpuMemory { .. }
            | Reason::NotAdmitted { .. }
            | Reason::NoPartner(_)
            | Reason::LargerThanPool { .. }
    )
}
