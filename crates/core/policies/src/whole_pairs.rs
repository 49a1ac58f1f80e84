//! What policies have in common that pair a waiting job with a running one on all of its GPUs.

use deepshare_engine::{Attempt, Draft, EvictReason, HostKind, PairRefusal, Reason, State};
use deepshare_model::{AttemptId, JobId, ProfileClassId, Retention};

/// Stops the later of each pair that its samples speak against; the other, if that cannot be.
pub(crate) fn part_degraded(draft: &mut Draft<'_>) {
    let degraded: Vec<_> = draft.state().degraded(draft.pool()).collect();
    for (newer, host) in degraded {
        let state = draft.state();
        let stays = |id: AttemptId| state.attempt(id).is_evictable();
        if !stays(newer) || !stays(host) {
            continue;
        }
        let mut victims = [newer, host].into_iter().filter(|&id| draft.can_revoke(id));
        let later = victims.next();
        match later.into_iter().chain(victims).find(|&id| may_be_asked(draft, id)) {
            Some(id) => draft.revoke(id, EvictReason::Degraded),
            None => {
                let again = later.map(|id| draft.state().attempt(id).no_eviction_before());
                again.into_iter().for_each(|at| draft.look_at_pairs(at));
            }
        }
    }
}

/// Whether one of a pair can be stopped, and the world has not refused that of late.
pub(crate) fn may_be_asked(draft: &Draft<'_>, id: AttemptId) -> bool {
    draft.can_revoke(id) && draft.state().attempt(id).no_eviction_before() <= draft.now()
}

/// Says why a job has no partner, where that is known, instead of why it has no devices.
pub(crate) fn refuse_pair(
    draft: &mut Draft<'_>,
    refusal: Option<PairRefusal>,
    reason: Reason,
) -> Reason {
    match refusal {
        Some(refusal) if !reason.is_quota() => {
            draft.count_refused_pair(refusal.test);
            Reason::NoPartner(refusal)
        }
        _ => reason,
    }
}

/// Running jobs that a waiting one could join as far as GPUs, their memory and what nodes admit go.
pub(crate) fn hosts_for(state: &State, job: JobId) -> impl Iterator<Item = &Attempt> {
    let pool = state.pool_of(job);
    let ask = state.job(job).ask.map(|ask| *state.ask_kind(pool, ask));
    let hosts = ask.into_iter().flat_map(move |ask| {
        let may = move |kind: &HostKind| {
            kind.layout == ask.demand.layout
                && kind.trust_domain == ask.sharing.trust_domain
                && ask.demand.gpu_type.is_none_or(|wanted| wanted == kind.gpu_type)
                && fits(ask.demand.gpu_memory_mib, kind.memory_left_mib)
        };
        state.hosts(pool, ask.demand.gpus).filter(move |(kind, _)| may(kind))
    });
    let attempts = hosts.flat_map(|(_, hosts)| hosts.iter().map(|&(_, id)| state.attempt(id)));
    let demand = state.job(job).spec.demand;
    attempts.filter(move |attempt| {
        state.takes_partner(attempt) && state.admits_on(&attempt.placement, &demand)
    })
}

/// Where nodes say what memory they have, a job has to say what it needs.
pub(crate) fn fits(need: u32, left: u32) -> bool {
    left == u32::MAX || need > 0 && need <= left
}

/// What two jobs are predicted to keep beside each other.
pub(crate) fn predicted(state: &State, jobs: [JobId; 2]) -> Option<[Retention; 2]> {
    let [own, other] = profiles(state, jobs)?;
    let table = state.retentions();
    Some([table.get(own, other)?, table.get(other, own)?])
}

pub(crate) fn profiles(state: &State, jobs: [JobId; 2]) -> Option<[ProfileClassId; 2]> {
    let [own, other] = jobs.map(|job| state.job(job).spec.profile);
    Some([own?, other?])
}
