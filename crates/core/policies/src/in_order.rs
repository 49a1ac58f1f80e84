//! Service in rank order: the first job that does not fit blocks those behind it, or is passed
//! over.

use deepshare_engine::{Draft, Reason};
use deepshare_model::JobId;

/// Places waiting jobs in rank order, passing over those that do not fit.
pub(crate) fn serve_with_skip(draft: &mut Draft<'_>) {
    let mut walk = draft.state().walk(draft.pool());
    while draft.free_gpus() > 0
        && let Some(job) = walk.next(draft.state())
    {
        if let Err(reason) = draft.place(job) {
            draft.refuse_key_of(job, reason);
            walk.skip_key();
        }
    }
    draft.refuse_rest(Reason::NotEnoughFree { need: 1, free: draft.free_gpus() });
}

/// Places waiting jobs in rank order until one does not fit, and returns that one.
///
/// A job that only its tenant's quota holds back blocks its tenant, not the pool: the machines it
/// would need are not what is missing.
pub(crate) fn serve_in_order(draft: &mut Draft<'_>) -> Option<JobId> {
    let mut walk = draft.state().walk(draft.pool());
    while let Some(job) = walk.next(draft.state()) {
        let Err(reason) = draft.place(job) else { continue };
        let over_quota = reason.is_quota();
        draft.refuse(job, reason);
        if !over_quota {
            draft.refuse_rest(Reason::BehindHead { head: job });
            return Some(job);
        }
        let tenant = draft.state().job(job).spec.tenant;
        draft.refuse_tenant(tenant, Reason::BehindHead { head: job });
        walk.skip_tenant(draft.state(), tenant);
    }
    None
}
