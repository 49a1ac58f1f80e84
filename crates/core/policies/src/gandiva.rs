//! Gandiva: packing at random, given up where it does not pay.
//!
//! Source: Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI '18, §3
//! (packing), as Gavel's simulator has it (OSDI '20); restated.
//! Objective: throughput under overload. Jobs are served first come, first served. Only when there
//! are too few free GPUs, a waiting job joins one that runs alone on as many, picked at random; if
//! both together then do less than one alone, the later one is stopped, and pairs of such profiles
//! are not tried again. Nothing is predicted.
//!
//! Deviations: chance is a hash of the two jobs, so that the same state gives the same pairs; a pair
//! is given up after as many bad samples as any ([`EngineSettings`](deepshare_engine::EngineSettings)).
//! Left out: time slices of a minute, migration and growing jobs, the other mechanisms of the paper.
//! Cost: O(kinds of waiting jobs · jobs that run alone on as many GPUs) a round.

use crate::whole_pairs::{hosts_for, part_degraded, predicted, refuse_pair};
use deepshare_engine::{
    Draft, PairBar, PairBound, PairRefusal, PairTerms, PairTest, Policy, Rank, Reason, State,
};
use deepshare_model::{AttemptId, JobId, Retention};

/// What one job does alone, parts per million.
const ALONE: u32 = 1_000_000;
/// What a pair is held to.
const BAR: PairBar = PairBar { each: [Retention::LEAST; 2], together_ppm: ALONE };

/// Gandiva's packing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gandiva;

impl Policy for Gandiva {
    fn name(&self) -> &'static str {
        "gandiva"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).queue_seq, 0, 0])
    }

    fn shares(&self) -> bool {
        true
    }

    fn bar_of_found(&self, _: &State, _: [JobId; 2]) -> PairBar {
        BAR
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        part_degraded(draft);
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            let Err(reason) = draft.place(job) else { continue };
            let (partner, refusal) = pick(draft.state(), job);
            if let Some((host, terms)) = partner.filter(|_| !reason.is_quota()) {
                let class = draft.state().job(job).spec.class;
                if draft.share(job, class, host, terms).is_ok() {
                    continue;
                }
            }
            let reason = refuse_pair(draft, refusal, reason);
            draft.refuse_key_of(job, reason);
            walk.skip_key();
        }
        draft.refuse_rest(Reason::NotEnoughFree { need: 1, free: draft.free_gpus() });
    }
}

/// A partner at random among those that are not known to be bad ones, or why one of those is none.
fn pick(state: &State, job: JobId) -> (Option<(AttemptId, PairTerms)>, Option<PairRefusal>) {
    let mut refusal = None;
    let mut best: Option<(u64, AttemptId, PairTerms)> = None;
    for host in hosts_for(state, job) {
        let jobs = [job, host.job];
        let Some(keeps) = predicted(state, jobs) else { continue };
        if !BAR.is_met(keeps, 0) {
            refusal.get_or_insert(PairRefusal {
                test: PairTest::Throughput,
                partner: host.job,
                retentions: keeps,
                bound: PairBound::Throughput,
            });
            continue;
        }
        let terms = PairTerms { bar: BAR, own: keeps[0], theirs: keeps[1] };
        let drawn = lot(job, host.id);
        if best.is_none_or(|(lowest, id, _)| (drawn, host.id) < (lowest, id)) {
            best = Some((drawn, host.id, terms));
        }
    }
    (best.map(|(_, host, terms)| (host, terms)), refusal)
}

/// A number that looks drawn (the finaliser of `SplitMix64`).
fn lot(job: JobId, host: AttemptId) -> u64 {
    let mut bits = (u64::from(job.0) << 32 | u64::from(host.0)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
