//! SJF-BSBF and SJF-FFS: shortest job first, and who finds too few free GPUs shares.
//!
//! Source: "Scheduling deep learning jobs in multi-tenant GPU clusters via wise resource sharing",
//! IWQoS '24 (arXiv 2407.13088): Theorem 1, and the greedy extension to many jobs (Algorithm 1), which
//! a co-author's scheduler shows too; restated.
//! Objective: mean completion time, without preemption. Waiting jobs go in the order of their run
//! time. Each takes free GPUs; else the free ones and those of jobs that run alone on theirs, and
//! nobody blocks those behind. BSBF (best sharing, batch fit) only joins a job if both of the pair
//! end sooner on the mean than one after the other ([`sharing_pays`](crate::sharing_pays)), those
//! first where they end soonest; FFS (first fit sharing) joins whoever comes first in node order. If
//! memory does not hold both, the newcomer does its iterations in more steps on smaller batches
//! until it is alone.
//!
//! Readings: B1 (waiting is reckoned with the unsplit job), B2 (ranked by the pair's mean completion
//! time, or by what sharing gains, in all or for each GPU: `order`), B3 (a gang with several
//! partners is tested with each, runs at the worst retention and in the most steps that any of
//! them needs), B4 (a job may share some of its GPUs), B5 (run times are what the estimates say:
//! an oracle's by default), B6 (two jobs a GPU), B7 (a refused job is tested again at every event).
//! Deviations, ours: devices have the shape that the placer gives jobs that do not share
//! (`placement=node-order` is the source's: one node if enough is there, else any); a job whose memory
//! or profile is not known shares with nobody. B8 (contention on networks) is not modelled.
//! Cost: O(devices + kinds of waiting jobs · jobs that run alone) a round.

mod offers;

use crate::pairing::{Split, best_split, sharing_pays, t_apart, t_together, t_together_split};
use crate::whole_pairs::refuse_pair;
use deepshare_engine::{Draft, PairBound, PairRefusal, PairTest, Policy, Rank, Reason, State};
use deepshare_model::{JobId, Span};
use offers::{Field, Offer};
use serde::{Deserialize, Serialize};

/// In which order jobs to share with are tried (reading B2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairOrder {
    /// Soonest mean completion of the pair first.
    #[default]
    Completion,
    /// Most gained over waiting first.
    Benefit,
    /// Most gained for each GPU of the one that is there first.
    BenefitPerGpu,
}

/// What SJF-BSBF can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BsbfSettings {
    /// In which order jobs to share with are tried.
    pub order: PairOrder,
    /// Iterations may be done in several steps where memory does not hold both jobs.
    pub split: bool,
}

impl Default for BsbfSettings {
    fn default() -> BsbfSettings {
        BsbfSettings { order: PairOrder::Completion, split: true }
    }
}

/// SJF with sharing: wise, or wherever it fits.
#[derive(Clone, Copy, Debug)]
pub struct SjfSharing {
    /// Who may be joined, and in which order; `None`: anybody, in node order (SJF-FFS).
    pub wise: Option<PairOrder>,
    /// Iterations may be done in several steps.
    pub split: bool,
}

impl Policy for SjfSharing {
    fn name(&self) -> &'static str {
        match self.wise {
            Some(_) => "sjf-bsbf",
            None => "sjf-ffs",
        }
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        let left = state.job(job).left_at_start();
        Rank([left.map_or(u64::MAX, |left| left.0), 0, 0])
    }

    fn shares(&self) -> bool {
        true
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        let mut field = Field::of(draft.state(), draft.pool());
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            if draft.free_gpus() == 0 && field.is_empty() {
                break;
            }
            let Err(reason) = draft.place(job) else { continue };
            if let Err(reason) = self.join(draft, &mut field, job, reason) {
                draft.refuse(job, reason.clone());
                draft.refuse_key_of(job, reason);
                // Who is like it and takes longer is refused by the same test.
                walk.skip_key();
            }
        }
        draft.refuse_rest(Reason::NotEnoughFree { need: 1, free: draft.free_gpus() });
    }
}

impl SjfSharing {
    /// Starts a job that finds too few free GPUs beside others.
    fn join(
        &self,
        draft: &mut Draft<'_>,
        field: &mut Field,
        job: JobId,
        reason: Reason,
    ) -> Result<(), Reason> {
        if reason.is_quota() {
            return Err(reason);
        }
        let (offers, nearest) = self.offers(draft.state(), field, job);
        let Some(choice) = offers::choose(draft.state(), draft.pool(), job, &offers) else {
            return Err(refuse_pair(draft, nearest, reason));
        };
        let class = draft.state().job(job).spec.class;
        draft.share_on(job, class, choice.placement, &choice.partners, choice.steps)?;
        field.take(&choice.devices);
        Ok(())
    }

    /// The devices on which a job could start beside others, the best first, and why the partner that
    /// came nearest is none.
    fn offers(
        &self,
        state: &State,
        field: &Field,
        job: JobId,
    ) -> (Vec<Offer>, Option<PairRefusal>) {
        let (mut offers, mut nearest): (Vec<Offer>, Option<PairRefusal>) = (Vec::new(), None);
        for lone in field.lone() {
            let Some(pair) = lone.beside(state, job) else { continue };
            match self.passes(state, &pair) {
                Ok((key, steps)) => offers.extend(lone.offers(&pair, key, steps)),
                Err((test, bound)) => {
                    let refusal = pair.refusal(state, test, bound);
                    if nearest.is_none_or(|nearest| further(&refusal, &nearest)) {
                        nearest = Some(refusal);
                    }
                }
            }
        }
        offers.sort_by_key(|offer| (offer.key, offer.node, offer.device));
        (offers, nearest)
    }

    /// The place of a pair among those that pass, the least first, and in how many steps the newcomer
    /// does its iterations.
    fn passes(
        &self,
        state: &State,
        pair: &offers::Pair,
    ) -> Result<(u64, u32), (PairTest, PairBound)> {
        let [newcomer, resident] = pair.members;
        let (together, apart) = (t_together(newcomer, resident), t_apart(newcomer, resident));
        let bound =
            PairBound::MeanCompletion { together: seconds(together), apart: seconds(apart) };
        let spec = &state.job(pair.job).spec;
        let training = spec.training.filter(|_| self.split);
        let left = pair.memory_left_mib;
        let fewest = match training {
            Some(training) => training.steps().find(|&steps| training.memory_mib(steps) <= left),
            None => (spec.demand.gpu_memory_mib <= left).then_some(1),
        };
        let Some(fewest) = fewest else { return Err((PairTest::Memory, bound)) };
        let Some(order) = self.wise else { return Ok((0, fewest)) };
        let best = match training {
            Some(training) => best_split(newcomer, &training, left, resident),
            None => sharing_pays(newcomer, resident).then_some(Split {
                steps: 1,
                together_s: together,
                apart_s: apart,
            }),
        };
        let Some(best) = best else {
            // In the fewest steps that memory allows: more only take longer.
            let together = seconds(t_together_split(newcomer, spec.pace(fewest), resident));
            let bound = PairBound::MeanCompletion { together, apart: seconds(apart) };
            return Err((PairTest::Benefit, bound));
        };
        let gained = |shared_by: u32| {
            let gained = (best.apart_s - best.together_s) / f64::from(shared_by.max(1));
            // What gains most counts least.
            u64::MAX - seconds(gained).0
        };
        let key = match order {
            PairOrder::Completion => seconds(best.together_s).0,
            PairOrder::Benefit => gained(1),
            PairOrder::BenefitPerGpu => gained(pair.host_gpus),
        };
        Ok((key, best.steps))
    }
}

/// Whether a refusal tells more than another: a later test, or a pair that would end sooner.
fn further(one: &PairRefusal, other: &PairRefusal) -> bool {
    let together = |refusal: &PairRefusal| match refusal.bound {
        PairBound::MeanCompletion { together, .. } => together,
        _ => Span(u64::MAX),
    };
    (one.test, std::cmp::Reverse(together(one))) > (other.test, std::cmp::Reverse(together(other)))
}

/// Seconds to the microsecond, rounded.
fn seconds(time: f64) -> Span {
    Span((time.max(0.0) * 1e6).round() as u64)
}
