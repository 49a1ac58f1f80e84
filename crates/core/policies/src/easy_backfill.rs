//! EASY backfill: FIFO with a reservation for the first blocked job.
//!
//! Source: Lifka, "The ANL/IBM SP Scheduling System", JSSPP '95.
//! Objective: keep FIFO's order for the job at the head, use what idles meanwhile. A later job
//! starts now if it is expected to end before the head's reserved start, or if the head could
//! start then beside it.
//! Deviations: the reservation is of a node shape, not of a number of GPUs, found by the same
//! placer. A job held back by its tenant's quota gets no reservation and blocks only its tenant.
//! Jobs without an estimate are never expected to end. The rank is the submission, also after a
//! lost node.
//! Cost: O(running + waiting) a round in which something blocks; one placement for each key that
//! does not fit.

use crate::backfill::expected_end;
use deepshare_engine::{Draft, Forecast, KeyId, Policy, Rank, Reason, State, Walk};
use deepshare_model::{Demand, JobId, Span, Time};
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
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            let Err(reason) = draft.place(job) else { continue };
            let over_quota = reason.is_quota();
            draft.refuse(job, reason);
            if !over_quota {
                let shadow = Shadow::of(draft, job);
                backfill(draft, walk, shadow);
                return;
            }
            let tenant = draft.state().job(job).spec.tenant;
            draft.refuse_tenant(tenant, Reason::BehindHead { head: job });
            walk.skip_tenant(draft.state(), tenant);
        }
    }
}

/// The head's reservation.
struct Shadow {
    head: JobId,
    demand: Demand,
    /// When enough is expected to be free for the head.
    at: Time,
    /// The pool at that instant, the head not placed.
    then: Forecast,
}

impl Shadow {
    fn of(draft: &Draft<'_>, head: JobId) -> Shadow {
        let state = draft.state();
        let demand = state.job(head).spec.demand;
        let mut then = Forecast::now(state, draft.pool());
        let mut ends: Vec<_> =
            state.live(draft.pool()).map(|a| (expected_end(state, a), a.id)).collect();
        ends.sort_unstable();
        let mut at = Time::MAX;
        let mut ends = ends.into_iter().peekable();
        while let Some((end, attempt)) = ends.next() {
            then.release(state, state.attempt(attempt));
            let more_at_once = ends.peek().is_some_and(|&(next, _)| next == end);
            if more_at_once || then.free_gpus() < demand.gpus {
                continue;
            }
            if then.find(state.settings(), &demand).is_some() {
                at = end;
                break;
            }
        }
        Shadow { head, demand, at, then }
    }

    /// Whether the head could still start on time beside a job that takes `placement` past then;
    /// if so, the job's devices are taken.
    fn admits(&mut self, state: &State, demand: &Demand, job: JobId) -> bool {
        let Some(attempt) = state.job(job).active() else { return false };
        let mut beside = self.then.clone();
        beside.take(demand, &state.attempt(attempt).placement);
        let fits = beside.find(state.settings(), &self.demand).is_some();
        if fits {
            self.then = beside;
        }
        fits
    }
}

fn backfill(draft: &mut Draft<'_>, mut walk: Walk, mut shadow: Shadow) {
    let now = draft.now();
    let behind = Reason::WouldDelay { head: shadow.head, at: shadow.at };
    // The head's own kind does not fit either.
    walk.skip_key();
    let mut only_short: BTreeSet<KeyId> = BTreeSet::new();
    while let Some(job) = walk.next(draft.state()) {
        if draft.free_gpus() == 0 {
            break;
        }
        let entry = draft.state().job(job);
        let (key, demand) = (entry.key, entry.spec.demand);
        let run_time = entry.left_at_start().unwrap_or(Span::MAX);
        let in_time = now + run_time <= shadow.at;
        if !in_time && only_short.contains(&key) {
            continue;
        }
        let mark = draft.mark();
        if let Err(reason) = draft.place(job) {
            draft.refuse_key_of(job, reason);
            walk.skip_key();
        } else if !in_time && !shadow.admits(draft.state(), &demand, job) {
            draft.undo_to(mark);
            draft.refuse_key_of(job, behind.clone());
            only_short.insert(key);
        }
    }
    draft.refuse_rest(behind);
}
