//! Elastic quota: in or out of quota, as a binary signal. The contrast to DeepShare.
//!
//! Source: the ElasticQuota design of the Kubernetes scheduler plugins (KEP 9, capacity scheduling)
//! and Volcano's capacity plugin, restated.
//! Objective: a tenant may use up to its minimum (here: its quota) at any time, and idle capacity
//! beyond it up to a maximum. What a tenant uses beyond its minimum can be reclaimed, by priority
//! and age, for a tenant below its own.
//! Deviations: a best-effort job is always out of quota, a guaranteed one while its tenant's quota
//! has no room for it when it starts, after which it moves into quota as room comes; the maximum is
//! quota plus the best-effort cap. Queues are in the order (priority, submission), and a job that
//! does not fit is passed over. The originals look for victims on one node at a time; a gang wider
//! than a node takes them from all nodes, or it could never reclaim.
//! Cost: O(keys + placed) a round; a search for victims looks at all reclaimable attempts.

use crate::deepshare::order::{Order, Sleeping, Starter, serve};
use deepshare_engine::{Attempt, Draft, Policy, Preemption, Rank, Reason, State};
use deepshare_model::{AttemptId, Class, GpuTypeId, JobId};
use std::cmp::Reverse;

/// In or out of quota, as a binary signal.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElasticQuota;

/// Tenants are equal: only being in or out of quota counts.
const ORDER: Order = Order { qad_bucket_milli: 0, by_qad: false };

impl Policy for ElasticQuota {
    fn name(&self) -> &'static str {
        "elastic-quota"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let spec = &state.job(job).spec;
        let priority = i64::from(i32::MAX) - i64::from(spec.priority);
        Rank([priority as u64, 0, spec.submit.0])
    }

    fn spills(&self) -> bool {
        true
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        crate::deepshare::promote_spilled(draft);
        serve(draft, ORDER, Class::Guaranteed, Sleeping::default(), &mut InQuota);
        serve(draft, ORDER, Class::BestEffort, Sleeping::default(), &mut OverQuota);
    }
}

/// Starts jobs charged to quota.
struct InQuota;

impl Starter for InQuota {
    fn start(&mut self, draft: &mut Draft<'_>, job: JobId) -> Result<(), Reason> {
        start_in_quota(draft, job)
    }
}

/// Starts jobs beyond quota.
struct OverQuota;

impl Starter for OverQuota {
    fn start(&mut self, draft: &mut Draft<'_>, job: JobId) -> Result<(), Reason> {
        draft.place_as(job, Class::BestEffort)
    }
}

/// Places a job charged to quota, reclaiming if need be.
fn start_in_quota(draft: &mut Draft<'_>, job: JobId) -> Result<(), Reason> {
    match draft.place_as(job, Class::Guaranteed) {
        Err(reason) if !reason.is_quota() && reclaim(draft, job) => Ok(()),
        other => other,
    }
}

/// Evicts jobs beyond quota, those that are not shielded first, lowest priority and youngest first among
/// these, until the job fits; then takes back the evictions it does not need.
fn reclaim(draft: &mut Draft<'_>, job: JobId) -> bool {
    let state = draft.state();
    let demand = state.job(job).spec.demand;
    let pool = state.pool(draft.pool());
    let types = (0..state.gpu_types()).map(GpuTypeId::from_index);
    let most = types.filter_map(|gpu_type| pool.obtainable(gpu_type)).map(|i| i.total()).max();
    if most.unwrap_or(0) < demand.gpus {
        return false;
    }
    let age = |attempt: &Attempt| {
        let spec = &state.job(attempt.job).spec;
        let shielded = state.job(attempt.job).shielded;
        (shielded, spec.priority, Reverse(spec.submit), Reverse(attempt.id))
    };
    let allowed = |attempt: &&Attempt| state.evictable_from(attempt) <= state.now();
    let banned =
        state.reclaimable(draft.pool()).map(|(_, a)| a).filter(|attempt| !allowed(attempt));
    let retry_at = banned.map(|attempt| state.evictable_from(attempt)).min();
    let mut victims: Vec<_> = state
        .reclaimable(draft.pool())
        .map(|(_, attempt)| attempt)
        .filter(allowed)
        .map(|attempt| (age(attempt), attempt.id))
        .collect();
    victims.sort_unstable();
    let mark = draft.mark();
    let mut evicted: Vec<AttemptId> = Vec::new();
    for (_, victim) in victims {
        draft.evict_for(victim, Some(Preemption { beneficiary: job, phi_nano: None }));
        evicted.push(victim);
        if draft.place_as(job, Class::Guaranteed).is_ok() {
            // Whoever is shielded is the first to stay.
            evicted.sort_by_key(|&id| !draft.state().job(draft.state().attempt(id).job).shielded);
            for victim in evicted {
                draft.spare(victim);
            }
            return true;
        }
    }
    draft.undo_to(mark);
    if let Some(at) = retry_at {
        draft.wake_sleepers_at(at);
    }
    false
}
