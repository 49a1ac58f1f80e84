//! EASY backfill: FIFO with a reservation for the first blocked job.
//!
//! Source: Lifka, "The ANL/IBM SP Scheduling System", JSSPP '95.
//! Objective: keep FIFO's order for the job at the head, use what idles meanwhile. A later job
//! starts now if it is expected to end before the head's reserved start, or if the head could
//! start then beside it.
//! Deviations: the reservation is of a node shape, not of a number of GPUs, found by the same
//! placer. Where quotas bind, the first job that a tenant's quota holds back is that tenant's
//! head, with a reservation of quota: jobs of the tenant may pass it by the same rule, jobs of
//! others are none of its business. Jobs without an estimate are never expected to end. The rank
//! is the submission, also after a lost node.
//! Cost: O(running + waiting) a round in which something blocks; one placement for each key that
//! does not fit.

use crate::backfill::expected_end;
use deepshare_engine::{
    Attempt, CapacityMode, Draft, Forecast, KeyId, Policy, Rank, Reason, State,
};
use deepshare_model::{Class, GpuTypeId, JobId, PoolId, Span, TenantId, Time};
use std::collections::BTreeSet;

/// FIFO with a reservation for the first blocked job.
#[derive(Clone, Copy, Debug, Default)]
pub struct EasyBackfill;

impl Policy for EasyBackfill {
    fn name(&self) -> &'static str {
        "easy-backfill"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).spec.submit.0, 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut reservations = Reservations::default();
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            if draft.free_gpus() == 0 && reservations.machines.is_some() {
                break;
            }
            if reservations.holds_back(draft, job) {
                continue;
            }
            let mark = draft.mark();
            match draft.place(job) {
                Ok(()) => {
                    if let Err(reason) = reservations.admit(draft.state(), job) {
                        draft.undo_to(mark);
                        reservations.only_short.insert(draft.state().job(job).key);
                        draft.refuse_key_of(job, reason);
                    }
                }
                Err(reason) => {
                    reservations.reserve(draft.state(), draft.pool(), job, &reason);
                    draft.refuse_key_of(job, reason);
                    // What refused it refuses all of its kind: they ask for the same.
                    walk.skip_key();
                }
            }
        }
        if let Some(machines) = &reservations.machines {
            draft.refuse_rest(machines.would_delay());
        }
    }
}

/// What the heads were promised in this round.
#[derive(Default)]
struct Reservations {
    machines: Option<Machines>,
    quotas: Vec<QuotaShare>,
    /// Kinds of which only jobs that end in time may start.
    only_short: BTreeSet<KeyId>,
}

impl Reservations {
    /// Whether a job of a kind that had to give way is too long to be worth asking again.
    fn holds_back(&self, draft: &Draft<'_>, job: JobId) -> bool {
        let key = draft.state().job(job).key;
        self.only_short.contains(&key) && !self.ends_in_time(draft.state(), job)
    }

    /// Whether the job is expected to end before any reservation that concerns it begins.
    fn ends_in_time(&self, state: &State, job: JobId) -> bool {
        let end = expected_end_of_start(state, job);
        let quotas = self.quotas.iter().filter(|share| share.concerns(state, job));
        let starts = self.machines.iter().map(|m| m.at).chain(quotas.map(|share| share.at));
        starts.min().is_none_or(|at| end <= at)
    }

    /// Whether no head is delayed by the job just placed; if so, it is counted in.
    fn admit(&mut self, state: &State, job: JobId) -> Result<(), Reason> {
        let end = expected_end_of_start(state, job);
        let spec = &state.job(job).spec;
        let gpus = spec.demand.gpus;
        let late = |share: &&QuotaShare| share.concerns(state, job) && end > share.at;
        if let Some(share) = self.quotas.iter().filter(late).find(|share| share.spare < gpus) {
            return Err(Reason::WouldDelay { head: share.head, at: share.at });
        }
        if let Some(machines) = &mut self.machines
            && end > machines.at
            && !machines.admits(state, job)
        {
            return Err(machines.would_delay());
        }
        for share in self.quotas.iter_mut().filter(|share| late(&&**share)) {
            share.spare -= gpus;
        }
        Ok(())
    }

    /// Makes a blocked job a head, if there is none yet for what blocks it.
    fn reserve(&mut self, state: &State, pool: PoolId, job: JobId, reason: &Reason) {
        match *reason {
            Reason::OverQuota { tenant, gpu_type, .. } => {
                let class = class_of_quota(state, state.job(job).spec.class);
                let taken =
                    |s: &QuotaShare| (s.tenant, s.class, s.gpu_type) == (tenant, class, gpu_type);
                if !self.quotas.iter().any(taken) {
                    self.quotas.push(QuotaShare::of(state, pool, job, tenant, gpu_type));
                }
            }
            _ if self.machines.is_none() => {
                self.machines = Some(Machines::of(state, pool, job));
            }
            _ => {}
        }
    }
}

/// When a job that starts now is expected to end.
fn expected_end_of_start(state: &State, job: JobId) -> Time {
    state.now() + state.job(job).left_at_start().unwrap_or(Span::MAX)
}

/// Attempts of a pool by expected end.
fn by_end(state: &State, pool: PoolId) -> Vec<(Time, &Attempt)> {
    let mut ends: Vec<_> = state.live(pool).map(|a| (expected_end(state, a), a)).collect();
    ends.sort_unstable_by_key(|&(end, attempt)| (end, attempt.id));
    ends
}

/// The head's reservation of machines.
struct Machines {
    head: JobId,
    /// When enough is expected to be free for the head.
    at: Time,
    /// The pool at that instant, the head not placed.
    then: Forecast,
}

impl Machines {
    fn of(state: &State, pool: PoolId, head: JobId) -> Machines {
        let need = state.job(head).gpus();
        let mut then = Forecast::now(state, pool);
        let mut at = Time::MAX;
        let mut ends = by_end(state, pool).into_iter().peekable();
        while let Some((end, attempt)) = ends.next() {
            then.release(state, attempt);
            let more_at_once = ends.peek().is_some_and(|&(next, _)| next == end);
            if more_at_once || then.contents().free_gpus() < need {
                continue;
            }
            if then.find(state, head).is_some() {
                at = end;
                break;
            }
        }
        Machines { head, at, then }
    }

    /// Whether the head could still start on time beside the job just placed, if that runs past
    /// then; if so, the job's devices are taken.
    fn admits(&mut self, state: &State, job: JobId) -> bool {
        let Some(attempt) = state.job(job).active() else { return false };
        let mut beside = self.then.clone();
        beside.take(state, job, &state.attempt(attempt).placement);
        let fits = beside.find(state, self.head).is_some();
        if fits {
            self.then = beside;
        }
        fits
    }

    fn would_delay(&self) -> Reason {
        Reason::WouldDelay { head: self.head, at: self.at }
    }
}

/// The reservation of quota for the first job that a tenant's quota holds back.
struct QuotaShare {
    head: JobId,
    /// The tenant whose quota binds: the head's own, or an ancestor.
    tenant: TenantId,
    /// Whose quota, where it tells classes apart.
    class: Option<Class>,
    gpu_type: GpuTypeId,
    /// When enough quota is expected to be unused for the head.
    at: Time,
    /// What then is left beside the head.
    spare: u32,
}

impl QuotaShare {
    fn of(
        state: &State,
        pool: PoolId,
        head: JobId,
        tenant: TenantId,
        gpu_type: GpuTypeId,
    ) -> QuotaShare {
        let need = state.job(head).gpus();
        let class = state.job(head).spec.class;
        let (quota, mut used) = state.limit(tenant, class, gpu_type).unwrap_or((u32::MAX, 0));
        let class = class_of_quota(state, class);
        let mut at = Time::MAX;
        for (end, attempt) in by_end(state, pool) {
            if used + need <= quota {
                break;
            }
            let spec = &state.job(attempt.job).spec;
            let of_type = attempt
                .placement
                .first()
                .is_some_and(|slice| state.nodes()[slice.node.index()].spec.gpu_type == gpu_type);
            let of_type = of_type && class.is_none_or(|class| class == attempt.charged);
            if of_type && state.lineage(spec.tenant).any(|theirs| theirs == tenant) {
                used -= attempt.gpus();
                at = end;
            }
        }
        let spare = quota.saturating_sub(used).saturating_sub(need);
        QuotaShare { head, tenant, class, gpu_type, at, spare }
    }

    fn concerns(&self, state: &State, job: JobId) -> bool {
        let spec = &state.job(job).spec;
        let same_class = self.class.is_none_or(|class| class == spec.class);
        same_class && state.lineage(spec.tenant).any(|theirs| theirs == self.tenant)
    }
}

/// The class whose quota binds a job; `None` where quotas are for both together.
fn class_of_quota(state: &State, class: Class) -> Option<Class> {
    (state.settings().capacity == CapacityMode::Elastic).then_some(class)
}
