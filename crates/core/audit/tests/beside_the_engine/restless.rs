//! A policy made to stir: it starts what fits, and evicts for what does not.

use deepshare_engine::{Draft, Policy, Rank, State};
use deepshare_model::JobId;

/// Serves by priority; for each job that does not fit, evicts jobs of lower priority, oldest first,
/// until it fits, and takes the evictions back if it never does. Leaves every fourth round alone,
/// so that nodes also empty.
pub struct Restless;

impl Policy for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([u64::MAX / 2 - state.job(job).spec.priority as u64, 0, 0])
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            if draft.place(job).is_ok() {
                continue;
            }
            if draft.state().rounds() % 4 == 0 {
                continue;
            }
            let priority = draft.state().job(job).spec.priority;
            let victims: Vec<_> = draft
                .state()
                .evictable(draft.pool())
                .filter(|victim| draft.state().job(victim.job).spec.priority < priority)
                .map(|victim| victim.id)
                .collect();
            let mark = draft.mark();
            let mut placed = false;
            for victim in victims {
                draft.evict(victim);
                placed = draft.place(job).is_ok();
                if placed {
                    break;
                }
            }
            if !placed {
                draft.undo_to(mark);
            }
        }
    }
}
