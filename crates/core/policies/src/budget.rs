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
use deepshare_model::{AttemptId, JobId, TenantId};

/// A running attempt's place in the common order; compares with the first two parts of a waiting
/// job's rank.
pub(crate) type RunningRank = ([u64; 2], AttemptId);

/// GPUs still to be given out, in the pool and to each tenant.
struct Budget {
    pool: u32,
    tenants: Option<Vec<u32>>,
}

impl Budget {
    /// What this round can give out: everything free, and everything that could be freed.
    fn of(draft: &Draft<'_>, running: &[RunningRank]) -> Budget {
        let state = draft.state();
        let gpus = |attempt: AttemptId| state.attempt(attempt).gpus();
        let pool = draft.free_gpus() + running.iter().map(|&(_, id)| gpus(id)).sum::<u32>();
        let quotas = state.settings().capacity == CapacityMode::Hard;
        let tenants = quotas.then(|| {
            let mut left: Vec<u32> = (0..state.tenant_count())
                .map(|tenant| spare_quota(state, TenantId::from_index(tenant)))
                .collect();
            for &(_, id) in running {
                left[state.job(state.attempt(id).job).spec.tenant.index()] += gpus(id);
            }
            left
        });
        Budget { pool, tenants }
    }

    fn take(&mut self, state: &State, job: JobId) -> Result<(), Reason> {
        let spec = &state.job(job).spec;
        let need = spec.demand.gpus;
        let of_tenant = self.tenants.as_mut().map(|left| &mut left[spec.tenant.index()]);
        let left = of_tenant.as_ref().map_or(self.pool, |left| self.pool.min(**left));
        if need > left {
            return Err(Reason::Outranked { need, left });
        }
        self.pool -= need;
        if let Some(left) = of_tenant {
            *left -= need;
        }
        Ok(())
    }
}

/// Quota that a tenant does not use, over all GPU types.
fn spare_quota(state: &State, tenant: TenantId) -> u32 {
    let types = state.nodes().iter().map(|node| node.spec.gpu_type).max();
    let types = types.map_or(0, |last| last.index() + 1);
    (0..types)
        .map(deepshare_model::GpuTypeId::from_index)
        .map(|gpu_type| {
            state.tenant(tenant).quota.of(gpu_type).saturating_sub(state.used(tenant, gpu_type))
        })
        .sum()
}

/// One round: selects by budget, evicts whom it passed over, and starts the selected in order.
pub(crate) fn serve_by_budget(
    draft: &mut Draft<'_>,
    mut running: Vec<RunningRank>,
    ties: TieOrder,
    spare_unneeded: bool,
) {
    running.sort_unstable();
    let mut budget = Budget::of(draft, &running);
    let mut victims = Vec::new();
    let mut selected = Vec::new();
    let mut walk = draft.state().walk(draft.pool());
    let mut next_running = running.into_iter().peekable();
    loop {
        let waiting = walk.peek(draft.state()).map(|(rank, _)| [rank.0[0], rank.0[1]]);
        let running = next_running.peek().map(|&(rank, _)| rank);
        let take_running = match (running, waiting) {
            (None, None) => break,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(running), Some(waiting)) => match ties {
                TieOrder::RunningFirst => running <= waiting,
                TieOrder::WaitingFirst => running < waiting,
            },
        };
        if take_running {
            let (_, attempt) = next_running.next().expect("peeked above");
            if budget.take(draft.state(), draft.state().attempt(attempt).job).is_err() {
                victims.push(attempt);
            }
        } else {
            let job = walk.next(draft.state()).expect("peeked above");
            match budget.take(draft.state(), job) {
                Ok(()) => selected.push(job),
                Err(reason) => {
                    // What is left only shrinks: no job like this one fits any more.
                    draft.refuse_key_of(job, reason);
                    walk.skip_key();
                }
            }
        }
    }
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
