//! Who was preempted for whom.

use deepshare_engine::{Command, Event, EvictReason, State};
use deepshare_metrics::{PreemptionDecision, PreemptionRecord};
use deepshare_model::{AttemptId, Class, JobId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps a record of preemptions as they are decided and carried out.
pub(super) struct PreemptionLog {
    cap: u32,
    record: PreemptionRecord,
    /// The last decision: when, and for whom.
    last: Option<(Time, JobId)>,
    /// Jobs that victims were made for and that have not started since.
    awaited: BTreeMap<JobId, Time>,
    over_cap: BTreeSet<JobId>,
}

impl PreemptionLog {
    pub(super) fn new(cap: u32) -> PreemptionLog {
        PreemptionLog {
            cap,
            record: PreemptionRecord::default(),
            last: None,
            awaited: BTreeMap::new(),
            over_cap: BTreeSet::new(),
        }
    }

    /// The engine has heard an event.
    pub(super) fn heard(&mut self, state: &State, event: &Event) {
        let Event::DevicesReleased { attempt } = *event else { return };
        let Some(attempt) = state.attempts().get(attempt.index()) else { return };
        let recent = state.job(attempt.job).preempted_within_hour(state.now());
        if recent > self.cap as usize {
            self.over_cap.insert(attempt.job);
        }
    }

    /// The engine has issued a command.
    pub(super) fn obeyed(&mut self, state: &State, command: &Command) {
        match *command {
            Command::Evict { attempt, reason: EvictReason::Preempted, preemption, .. } => {
                let victim = preemption.map(|p| (p.beneficiary, p.phi_nano));
                self.evicted(state, attempt, victim);
            }
            Command::Start { job, charged, .. } => {
                if let Some(decided) = self.awaited.remove(&job) {
                    self.record.latencies.push(state.now().saturating_since(decided));
                }
                let guaranteed = state.job(job).spec.class == Class::Guaranteed;
                let spilled = guaranteed && charged == Class::BestEffort;
                self.record.spilled_starts += u64::from(spilled);
            }
            Command::Promote { .. } => self.record.promotions += 1,
            _ => {}
        }
    }

    fn evicted(
        &mut self,
        state: &State,
        attempt: AttemptId,
        beneficiary: Option<(JobId, Option<u64>)>,
    ) {
        let (now, victim) = (state.now(), state.attempt(attempt));
        let stint = victim.running_since.map_or(Span::ZERO, |since| now.saturating_since(since));
        self.record.victims_gpu += stint.on(state.job(victim.job).gpus());
        let Some((job, phi_nano)) = beneficiary else { return };
        // Commands for one job follow each other.
        if self.last.replace((now, job)) == Some((now, job)) {
            let decision = self.record.decisions.last_mut().expect("there was a last one");
            decision.victims += 1;
        } else {
            self.record.decisions.push(PreemptionDecision { victims: 1, phi_nano });
        }
        self.awaited.entry(job).or_insert(now);
    }

    pub(super) fn finish(self) -> PreemptionRecord {
        PreemptionRecord { jobs_over_cap: self.over_cap.len() as u64, ..self.record }
    }
}
