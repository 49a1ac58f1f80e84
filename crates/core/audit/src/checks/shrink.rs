//! Who may be shrunk in place, and to what.

use crate::books::Books;
use crate::violation::Violation;
use deepshare_model::{AttemptId, Class, Epoch, Resources};

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
            && attempt.shrinks_from.is_none()
            && !attempt.rigid;
        if !free || !smaller || least != Some(to) {
            return Err(Violation::BadShrink { attempt: id, to });
        }
        Ok(())
    }
}
