//! The guard: a pair is parted when one of the two has been slowed down as much as it accepts.

use super::TensorShare;
use super::chosen::past;
use crate::pairing::{Member, Past, SlowdownCheck, is_within, ratio};
use crate::whole_pairs::{may_be_asked, profiles};
use deepshare_engine::{Attempt, Draft, EvictReason, State};
use deepshare_model::{AttemptId, JobId, ProfileClassId, Span, Time};

/// What a stop costs a job: what is reckoned with, as nobody says before.
const RESTART_S: f64 = 60.0;
/// A pair that goes on beyond a limit, because that is best for both, is looked at again after this.
const AGAIN: Span = Span::from_secs(60);

/// What can become of a pair, the gentlest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    GoesOn,
    /// The one at this place is stopped.
    Stops(usize),
}

impl TensorShare {
    /// Looks at every pair, parts those that have to, and asks to be called when the next may. The
    /// kinds of pairs that were parted.
    pub(super) fn guard(&self, draft: &mut Draft<'_>) -> Vec<[ProfileClassId; 2]> {
        let mut parted = Vec::new();
        let state = draft.state();
        let joined = state.live(draft.pool()).filter(|attempt| attempt.running_since.is_some());
        let pairs: Vec<[AttemptId; 2]> = joined
            .filter_map(|attempt| {
                let host = attempt.beside.first()?.partner;
                (host < attempt.id).then_some([attempt.id, host])
            })
            .collect();
        for pair in pairs {
            if !pair.iter().all(|&id| draft.state().attempt(id).is_evictable()) {
                continue;
            }
            let Some(at) = self.limit_reached(draft.state(), pair) else { continue };
            if at > draft.now() {
                draft.look_at_pairs(at);
                continue;
            }
            match self.verdict(draft, pair) {
                Verdict::GoesOn => draft.look_at_pairs(draft.now() + AGAIN),
                Verdict::Stops(of) => {
                    let jobs = pair.map(|id| draft.state().attempt(id).job);
                    parted.extend(profiles(draft.state(), jobs));
                    draft.revoke(pair[of], EvictReason::SlowdownLimit);
                    // The world may refuse.
                    draft.look_at_pairs(draft.now() + AGAIN);
                }
            }
        }
        parted
    }

    /// When the running time of one of the two so far is at its limit, if they go on; `None` if
    /// never.
    fn limit_reached(&self, state: &State, pair: [AttemptId; 2]) -> Option<Time> {
        let jobs = pair.map(|id| state.attempt(id).job);
        let limits = self.limits(state, jobs);
        let reached = |of: usize| {
            let kept = state.attempt(pair[of]).rate().as_f64();
            // At a speed within the limit it only comes away from it.
            if is_within(kept.recip(), limits[of]) {
                return None;
            }
            let Past { ran_s, worked_s } = past(state, jobs[of]);
            let left = (limits[of] * worked_s - ran_s) / (1.0 - limits[of] * kept);
            // Rounded up, so that it is reached then.
            Some(state.now() + Span((left.max(0.0) * 1e6).ceil() as u64))
        };
        [reached(0), reached(1)].into_iter().flatten().min()
    }

    /// What leaves the fewest beyond their limits.
    fn verdict(&self, draft: &Draft<'_>, pair: [AttemptId; 2]) -> Verdict {
        let state = draft.state();
        let jobs = pair.map(|id| state.attempt(id).job);
        let limits = self.limits(state, jobs);
        let (Some(first), Some(second)) = (state.remaining(jobs[0]), state.remaining(jobs[1]))
        else {
            // Nobody knows how long they take: the later one goes.
            return match may_be_asked(draft, pair[0]) {
                true => Verdict::Stops(0),
                false => Verdict::GoesOn,
            };
        };
        let left = [first, second];
        let beyond = |verdict: Verdict| {
            let ends =
                |of: usize| self.ends_within(state, (jobs, pair, left), (of, verdict), limits);
            u32::from(!ends(0)) + u32::from(!ends(1))
        };
        let possible = [Verdict::GoesOn, Verdict::Stops(0), Verdict::Stops(1)];
        let can = |verdict: &Verdict| match *verdict {
            Verdict::GoesOn => true,
            Verdict::Stops(of) => may_be_asked(draft, pair[of]),
        };
        let best = possible.into_iter().filter(can).min_by_key(|&verdict| beyond(verdict));
        best.unwrap_or(Verdict::GoesOn)
    }

    /// Whether one of a pair ends within its limit, as far as can be told.
    fn ends_within(
        &self,
        state: &State,
        (jobs, pair, left): ([JobId; 2], [AttemptId; 2], [Span; 2]),
        (of, verdict): (usize, Verdict),
        limits: [f64; 2],
    ) -> bool {
        let member = |of: usize| {
            let attempt: &Attempt = state.attempt(pair[of]);
            Member::new(left[of], attempt.rate())
        };
        let past = past(state, jobs[of]);
        let alone = Member { slowdown: 1.0, ..member(of) };
        let (past, own) = match verdict {
            Verdict::GoesOn => (past, member(of)),
            Verdict::Stops(stopped) if stopped == of => {
                (Past { ran_s: past.ran_s + RESTART_S, ..past }, alone)
            }
            Verdict::Stops(_) => (past, alone),
        };
        is_within(ratio(SlowdownCheck::TimeAware, past, own, member(1 - of)), limits[of])
    }
}
