//! What a policy is: an order of waiting jobs, and proposals on a draft.

use crate::draft::Draft;
use crate::sharing::PairBar;
use crate::state::State;
use deepshare_model::JobId;
use serde::{Deserialize, Serialize};

/// A job's place in its queue: lexicographic, smaller first; equal ranks go by [`JobId`], that is
/// by submission. Integers only, so that the order is the same on every machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rank(pub [u64; 3]);

/// A scheduling policy.
///
/// 1. **A function of the state.** Whatever a value keeps between calls is a cache: a fresh value
///    must rank and propose the same. That is why a snapshot holds no policy.
/// 2. **Ranks are static while a job waits.** [`Policy::rank`] is asked when a job enters its queue
///    and when its estimate changes, not again as time passes. What moves with time belongs in
///    [`Policy::round`].
/// 3. **It proposes; the engine disposes.** Placing checks capacity, shape and quota and says why
///    not. Breaking a rule instead of asking is [`Illegal`](crate::Illegal).
/// 4. **One pool at a time.** A round may place, evict and refuse only in the draft's pool.
/// 5. **No truth.** A policy knows estimates. The true duration reaches it only where the driver
///    fed it as an estimate, which results then call an oracle.
pub trait Policy: Send {
    /// Its name in settings and results.
    fn name(&self) -> &'static str;

    /// The job's place in its queue.
    fn rank(&self, state: &State, job: JobId) -> Rank;

    /// Whether it starts guaranteed jobs charged as best-effort. Never changes.
    fn spills(&self) -> bool {
        false
    }

    /// Whether it lets jobs share devices. Never changes.
    fn shares(&self) -> bool {
        false
    }

    /// Whether shrunk attempts are given back what their jobs ask for once nobody lacks CPU or memory.
    /// Never changes.
    fn grows(&self) -> bool {
        false
    }

    /// What two jobs that were found on the same devices have to keep for their pair to go on: the one
    /// found last, the other. Nothing, for policies that part nobody.
    fn bar_of_found(&self, _: &State, _: [JobId; 2]) -> PairBar {
        PairBar::NONE
    }

    /// Proposes on the draft of one pool's round.
    fn round(&mut self, draft: &mut Draft<'_>);
}
