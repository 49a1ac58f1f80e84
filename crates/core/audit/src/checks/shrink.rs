//! Who may be shrunk in place, and to what; and who may grow back.

use crate::books::Books;
use crate::books::attempt::Attempt;
use crate::violation::Violation;
use deepshare_model::{AttemptId, Class, Epoch, Resources, Span};

/// How long an attempt stays shrunk at least.
const COOL_DOWN: Span = Span::from_secs(60);

impl Books {
    /// A best-effort attempt is shrunk to the least that its job can do with, once.
    pub fn check_shrink(
        &self,
        id: AttemptId,
        epoch: Epoch,
        to: Resources,
    ) -> Result<(), Violation> {
        let attempt = self.check_asked(id, epoch)?;
        let least = self.job(attempt.job)?.spec.least_per_gpu();
        let smaller = to.fits(attempt.per_gpu) && to != attempt.per_gpu;
        let free = attempt.charged == Class::BestEffort
            && attempt.resizes_from.is_none()
            && !attempt.rigid;
        if !free || !smaller || least != Some(to) {
            return Err(Violation::BadShrink { attempt: id, to });
        }
        Ok(())
    }

    /// An attempt that was shrunk a while ago gets back what its job asks for, where its nodes have it
    /// beside all that is used and promised there.
    pub fn check_grow(&self, id: AttemptId, epoch: Epoch, to: Resources) -> Result<(), Violation> {
        let attempt = self.check_asked(id, epoch)?;
        let larger = attempt.per_gpu.fits(to) && to != attempt.per_gpu;
        let asked = self.job(attempt.job)?.spec.demand.per_gpu;
        let rested = attempt.shrunk_at.is_some_and(|at| at + COOL_DOWN <= self.now);
        let free = rested && attempt.resizes_from.is_none() && !attempt.rigid;
        if !free || !larger || asked != to {
            return Err(Violation::BadGrow { attempt: id, to });
        }
        for slice in &attempt.placement {
            let capacity = self.node(slice.node)?.spec.capacity;
            for counted in [Attempt::uses, Attempt::stays] {
                let others = |other: &Attempt| {
                    let own = std::ptr::eq(attempt, other);
                    if own { Some(to) } else { counted(other) }
                };
                let used = self.host_use(slice.node, others);
                if !used.fits(capacity) {
                    let (attempt, node) = (id, slice.node);
                    return Err(Violation::HostShort { attempt, node, used, capacity });
                }
            }
        }
        Ok(())
    }
}
