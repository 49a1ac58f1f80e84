//! Preemptive service by a budget of GPUs, as SRTF and Tiresias share it.
//!
//! Running and waiting jobs are walked in one order. Whoever fits what is left of the budget is
//! selected; a running job that does not fit is evicted, a waiting one that does not fit is passed
//! over, and the walk goes on: smaller jobs further down still fit. The budget counts GPUs and is
//! blind to node shapes, as in the artifacts (research/lucid-simulator.md §7); so a selected job
//! may find no place, and its victim may have been evicted in vain. `spare_unneeded` takes such
//! evictions back.

use crate::srtf::TieOrder;
use deepshare_engine::{CapacityMode, Draft, Reason, State};
use deepshare_model::{AttemptId, GpuTypeId, JobId, TenantId};

/// A running attempt in the common order. Its rank compares with the first two parts of a waiting
/// job's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Running {
    pub(crate) rank: [u64; 2],
    pub(crate) attempt: AttemptId,
    gpus: u32,
    tenant: TenantId,
}

impl Running {
    /// The attempts of the draft's pool that can be evicted, ranked by `rank`.
    pub(crate) fn all(draft: &Draft<'_>, mut rank: impl FnMut(JobId) -> [u64; 2]) -> Vec<Running> {
        let state = draft.state();
        let running = state.evictable(draft.pool()).map(|attempt| {
            let spec = &state.job(attempt.job).spec;
            Running {
                rank: rank(attempt.job),
                attempt: attempt.id,
                gpus: attempt.gpus(),
                tenant: spec.tenant,
            }
        });
        running.collect()
    }
}

/// GPUs still to be given out, in the pool and to each tenant.
struct Budget {
    pool: u32,
    /// Only where quotas bind.
    tenants: Vec<u32>,
}

impl Budget {
    /// What this round can give out: everything free, and everything that could be freed.
    fn of(draft: &Draft<'_>, running: &[Running]) -> Budget {
        let state = draft.state();
        let pool = draft.free_gpus() + running.iter().map(|entry| entry.gpus).sum::<u32>();
        let mut tenants = Vec::new();
        if state.settings().capacity == CapacityMode::Hard {
            let all = (0..state.tenant_count()).map(TenantId::from_index);
            tenants = all.map(|tenant| spare_quota(state, tenant)).collect();
            for entry in running {
                tenants[entry.tenant.index()] += entry.gpus;
            }
        }
        Budget { pool, tenants }
    }

    fn left(&self, tenant: TenantId) -> u32 {
        self.tenants.get(tenant.index()).map_or(self.pool, |&left| left.min(self.pool))
    }

    fn take(&mut self, tenant: TenantId, gpus: u32) -> bool {
        if gpus > self.left(tenant) {
            return false;
        }
        self.pool -= gpus;
        if let Some(left) = self.tenants.get_mut(tenant.index()) {
            *left -= gpus;
        }
        true
    }
}

/// Quota that a tenant does not use, over all GPU types.
fn spare_quota(state: &State, tenant: TenantId) -> u32 {
    let types = state.nodes().iter().map(|node| node.spec.gpu_type).max();
    (0..types.map_or(0, |last| last.index() + 1))
        .map(GpuTypeId::from_index)
        .map(|gpu_type| {
            let quota = state.tenant(tenant).quota.of(gpu_type);
            quota.saturating_sub(state.used(tenant, gpu_type))
        })
        .sum()
}

/// The first waiting job of each kind, with what running jobs ahead of it leave.
///
/// If none of these fits, no waiting job does: those of the same kind further back have more ahead
/// of them. Then nothing changes, since all running jobs fit together. Most rounds end here, at
/// the price of one unsorted pass.
fn nobody_moves(
    draft: &mut Draft<'_>,
    budget: &Budget,
    running: &[Running],
    ties: TieOrder,
) -> bool {
    let state = draft.state();
    let by_tenant = !budget.tenants.is_empty();
    let mut heads: Vec<([u64; 2], JobId, u32)> = state
        .active_keys(draft.pool())
        .filter_map(|key| state.first_waiting(key))
        .map(|(rank, job)| ([rank.0[0], rank.0[1]], job, 0))
        .collect();
    heads.sort_unstable();
    // GPUs of running jobs ahead of each head: of everybody, or of its tenant where quotas bind.
    for entry in running {
        let behind = heads.partition_point(|&(rank, _, _)| match ties {
            TieOrder::RunningFirst => rank < entry.rank,
            TieOrder::WaitingFirst => rank <= entry.rank,
        });
        if by_tenant {
            for (_, job, ahead) in &mut heads[behind..] {
                if state.job(*job).spec.tenant == entry.tenant {
                    *ahead += entry.gpus;
                }
            }
        } else if let Some((_, _, ahead)) = heads.get_mut(behind) {
            *ahead += entry.gpus;
        }
    }
    let mut refused = Vec::new();
    let mut ahead_of_all = 0;
    for (_, job, ahead) in heads {
        ahead_of_all += ahead;
        let ahead = if by_tenant { ahead } else { ahead_of_all };
        let spec = &state.job(job).spec;
        let total = if by_tenant { budget.tenants[spec.tenant.index()] } else { budget.pool };
        let (need, left) = (spec.demand.gpus, total.saturating_sub(ahead));
        if need <= left {
            return false;
        }
        refused.push((job, Reason::Outranked { need, left }));
    }
    for (job, reason) in refused {
        draft.refuse_key_of(job, reason);
    }
    true
}

/// One round: selects by budget, evicts whom it passed over, and starts the selected in order.
pub(crate) fn serve_by_budget(
    draft: &mut Draft<'_>,
    running: Vec<Running>,
    ties: TieOrder,
    spare_unneeded: bool,
) {
    let budget = Budget::of(draft, &running);
    if nobody_moves(draft, &budget, &running, ties) {
        return;
    }
    let (victims, selected) = select(draft, budget, running, ties);
    for &victim in &victims {
        draft.evict(victim);
    }
    for job in selected {
        if let Err(reason) = draft.place(job) {
            draft.refuse(job, reason);
        }
    }
    if spare_unneeded {
        for &victim in &victims {
            draft.spare(victim);
        }
    }
}

/// Walks running and waiting jobs in one order: who loses devices, and who gets some.
fn select(
    draft: &mut Draft<'_>,
    mut budget: Budget,
    mut running: Vec<Running>,
    ties: TieOrder,
) -> (Vec<AttemptId>, Vec<JobId>) {
    running.sort_unstable();
    let (mut victims, mut selected) = (Vec::new(), Vec::new());
    let mut walk = draft.state().walk(draft.pool());
    let mut running = running.into_iter().peekable();
    loop {
        let waiting = walk.peek(draft.state()).map(|(rank, _)| [rank.0[0], rank.0[1]]);
        let running_first = match (running.peek(), waiting) {
            (None, None) => return (victims, selected),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(entry), Some(waiting)) => match ties {
                TieOrder::RunningFirst => entry.rank <= waiting,
                TieOrder::WaitingFirst => entry.rank < waiting,
            },
        };
        if running_first {
            let entry = running.next().expect("peeked above");
            if !budget.take(entry.tenant, entry.gpus) {
                victims.push(entry.attempt);
            }
            continue;
        }
        let job = walk.next(draft.state()).expect("peeked above");
        let spec = &draft.state().job(job).spec;
        let (tenant, need) = (spec.tenant, spec.demand.gpus);
        if budget.take(tenant, need) {
            selected.push(job);
        } else {
            // What is left only shrinks: no job like this one fits any more.
            let left = budget.left(tenant);
            draft.refuse_key_of(job, Reason::Outranked { need, left });
            walk.skip_key();
        }
    }
}
