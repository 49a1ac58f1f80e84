//! TensorShare: two jobs share GPUs if neither is slowed down more than its owner accepts.
//!
//! Source: "TensorShare", FGCS 181 (2026) 108413, of which the abstract and the authors' project page
//! are known; restated, and completed as said below.
//! Objective: GPU time, under a limit for each job (its *GPU SLA*): the most that its running time
//! may be over its running time alone. Pairs have equal worker counts, fit the GPU memory, and are
//! predicted to keep both limits; of those, the ones that save most are chosen (maximum-weight
//! matching), among the first waiting jobs and with jobs that run alone. Who has no partner runs
//! alone.
//!
//! ```text
//! gain(i, j) = GPUs · (W_i + W_j − time until both are done) − μ · (extra_i + extra_j)
//! ```
//!
//! Its rivals in the source are modes of it: *ordinary* sharing fills the GPUs of jobs that run alone,
//! first come, first served; *reactive* sharing does too, stops the later of a pair whose samples show
//! one of the two beyond its limit, and remembers such pairs by their profiles. `never` and `always`
//! (whatever is predicted) are the two ends.
//!
//! Readings: T2 (waiting is no part of the ratio), T3 (limit 1.3 unless a job has its own), T4 (μ = 0:
//! only GPU time counts), T5 (pairs of waiting jobs and with running ones: `partners`), T6 (two jobs a
//! GPU), T7 (reactive sharing: six samples, a minute).
//! Deviations, ours: predictions are admitted at a quantile of their error (`chance`); the *guard*
//! parts a pair when the running time of one of the two so far reaches its limit, unless the limit is
//! kept all the same, and remembers what was seen; only so many waiting jobs, and for each so many
//! running ones, are matched at a time (`window`); a job without an estimate counts as an hour.
//! Cost: O(window · (window + jobs that run alone)) a round, and the matching.

mod chosen;
mod guard;

use crate::in_order::serve_with_skip;
use crate::pairing::SlowdownCheck;
use crate::whole_pairs::{hosts_for, part_degraded, predicted, refuse_pair};
use deepshare_engine::{
    Draft, PairBar, PairBound, PairRefusal, PairTerms, PairTest, Policy, Rank, State,
};
use deepshare_model::{AttemptId, JobId, Retention};
use serde::{Deserialize, Serialize};

/// Which pairs are formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingMode {
    /// Those predicted to keep both limits.
    #[default]
    Predicted,
    /// Whatever comes first and fits.
    Ordinary,
    /// The same, and those that turn out to break a limit are parted.
    Reactive,
    /// None.
    Never,
    /// Those that save most, whatever the limits.
    Always,
}

/// Between whom pairs are formed (reading T5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partners {
    /// Waiting jobs with each other and with running ones.
    #[default]
    Both,
    /// Waiting jobs with each other.
    Waiting,
    /// Waiting jobs with running ones.
    Running,
}

/// What the policy can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorShareSettings {
    /// Which pairs are formed.
    pub mode: SharingMode,
    /// The limit of jobs that have none of their own, thousandths.
    pub limit_milli: u32,
    /// How a prediction is held against a limit.
    pub check: SlowdownCheck,
    /// The chance with which a slowdown is not above what is reckoned with, per cent.
    pub chance: u32,
    /// Pairs are parted when one of the two has been slowed down as much as it accepts.
    pub guard: bool,
    /// μ, thousandths of a GPU: what a second of slowdown weighs against a second of a GPU.
    pub mu_milli: u32,
    /// Between whom pairs are formed.
    pub partners: Partners,
    /// Waiting jobs matched at a time, and running jobs tried for each.
    pub window: u32,
}

impl Default for TensorShareSettings {
    fn default() -> TensorShareSettings {
        TensorShareSettings {
            mode: SharingMode::Predicted,
            limit_milli: 1_300,
            check: SlowdownCheck::Steady,
            chance: 50,
            guard: true,
            mu_milli: 0,
            partners: Partners::Both,
            window: 24,
        }
    }
}

/// TensorShare and its rivals.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorShare {
    /// What it was told.
    pub settings: TensorShareSettings,
}

impl Policy for TensorShare {
    fn name(&self) -> &'static str {
        "tensorshare"
    }

    fn rank(&self, state: &State, job: JobId) -> Rank {
        Rank([state.job(job).queue_seq, 0, 0])
    }

    fn shares(&self) -> bool {
        self.settings.mode != SharingMode::Never
    }

    fn bar_of_found(&self, state: &State, jobs: [JobId; 2]) -> PairBar {
        self.bar(state, jobs)
    }

    fn round(&mut self, draft: &mut Draft<'_>) {
        part_degraded(draft);
        let parted = if self.guards() { self.guard(draft) } else { Vec::new() };
        match self.settings.mode {
            SharingMode::Never => serve_with_skip(draft),
            SharingMode::Ordinary | SharingMode::Reactive => self.fill(draft),
            SharingMode::Predicted | SharingMode::Always => self.serve_chosen(draft, &parted),
        }
    }
}

impl TensorShare {
    fn guards(&self) -> bool {
        self.settings.guard && self.settings.mode == SharingMode::Predicted
    }

    /// The most that a job's running time may be over that alone.
    fn limit(&self, own_milli: u32) -> f64 {
        let milli = if own_milli == 0 { self.settings.limit_milli } else { own_milli };
        f64::from(milli) / 1_000.0
    }

    fn limits(&self, state: &State, jobs: [JobId; 2]) -> [f64; 2] {
        jobs.map(|job| self.limit(state.job(job).spec.sharing.slowdown_limit_milli))
    }

    /// On what terms a job joins another: both within their limits, where the mode knows of any.
    fn terms(&self, state: &State, jobs: [JobId; 2], keeps: [Retention; 2]) -> PairTerms {
        PairTerms { bar: self.bar(state, jobs), own: keeps[0], theirs: keeps[1] }
    }

    fn bar(&self, state: &State, jobs: [JobId; 2]) -> PairBar {
        match self.settings.mode {
            SharingMode::Predicted if self.settings.check == SlowdownCheck::TimeAware => {
                PairBar::NONE
            }
            SharingMode::Predicted | SharingMode::Reactive => {
                PairBar { each: self.limits(state, jobs).map(least_within), together_ppm: 0 }
            }
            _ => PairBar::NONE,
        }
    }

    /// Serves waiting jobs in order: beside the first job that runs alone on as many GPUs, else on
    /// free ones.
    fn fill(&self, draft: &mut Draft<'_>) {
        let mut walk = draft.state().walk(draft.pool());
        while let Some(job) = walk.next(draft.state()) {
            let (host, refusal) = self.first_host(draft.state(), job);
            if let Some((host, terms)) = host {
                let class = draft.state().job(job).spec.class;
                if draft.share(job, class, host, terms).is_ok() {
                    continue;
                }
            }
            if let Err(reason) = draft.place(job) {
                let reason = refuse_pair(draft, refusal, reason);
                draft.refuse_key_of(job, reason);
                walk.skip_key();
            }
        }
    }

    /// The job that a waiting one joins, first come, first served, or why the first that it could
    /// have joined is none.
    fn first_host(
        &self,
        state: &State,
        job: JobId,
    ) -> (Option<(AttemptId, PairTerms)>, Option<PairRefusal>) {
        let mut refusal = None;
        let mut hosts: Vec<AttemptId> = hosts_for(state, job).map(|attempt| attempt.id).collect();
        hosts.sort_unstable();
        for host in hosts {
            let jobs = [job, state.attempt(host).job];
            let Some(keeps) = predicted(state, jobs) else { continue };
            let terms = self.terms(state, jobs, keeps);
            // What reactive sharing has seen of such pairs; nothing is predicted.
            if self.settings.mode == SharingMode::Ordinary || terms.bar.is_met(keeps, 0) {
                return (Some((host, terms)), refusal);
            }
            refusal = refusal.or_else(|| Some(self.refusal(state, jobs, keeps)));
        }
        (None, refusal)
    }

    /// Why the two are no pair: one would be slowed down too much.
    fn refusal(&self, state: &State, jobs: [JobId; 2], keeps: [Retention; 2]) -> PairRefusal {
        let limits_milli = self.limits(state, jobs).map(|limit| (limit * 1_000.0).round() as u32);
        PairRefusal {
            test: PairTest::SlowdownLimit,
            partner: jobs[1],
            retentions: keeps,
            bound: PairBound::Slowdown { limits_milli },
        }
    }
}

/// The least retention at which a slowdown is within a limit.
fn least_within(limit: f64) -> Retention {
    // Rounded down: a slowdown just at the limit is within it.
    Retention::from_ppm((1e6 / limit.max(1.0)).floor() as u32)
}
