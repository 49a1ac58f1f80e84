//! Proposals to shrink running attempts in place.

use super::{Draft, Proposal};
use deepshare_model::AttemptId;

impl Draft<'_> {
    /// Shrinks an attempt's CPU and memory to the least it may keep, and says whether that frees any.
    /// What it frees counts as free from here on in this draft; who is placed on the strength of it
    /// starts when the shrink is visible.
    pub fn shrink(&mut self, attempt: AttemptId) -> bool {
        let Some(per_gpu) = self.state.shrinks_to(attempt) else { return false };
        let before = self.state.begin_resize(attempt, per_gpu);
        self.journal.push(Proposal::Shrink(attempt, before));
        true
    }

    /// Takes back the shrink of an attempt if nobody was placed on what it frees, and says whether it
    /// did.
    pub fn unshrink(&mut self, attempt: AttemptId) -> bool {
        let shrunk = |p: &Proposal| matches!(p, Proposal::Shrink(id, _) if *id == attempt);
        let Some(at) = self.journal.iter().position(shrunk) else { return false };
        let Proposal::Shrink(_, before) = self.journal[at] else {
            unreachable!("the proposal found is a shrink");
        };
        if !self.state.fits_grown(attempt, before) {
            return false;
        }
        self.undone += 1;
        self.journal.remove(at);
        self.state.undo_resize(attempt, before);
        true
    }
}
