//! Two jobs on the same devices: on what terms pairs were formed, and how fast their jobs are
//! believed to run. Who could take a partner is in `hosts.rs`, who looks for one in `asks.rs`.
//!
//! A pair is two attempts on exactly the same devices. Residency itself is kept device by device
//! (see `books.rs`); here are the links between attempts and what was agreed.

pub(crate) mod asks;
pub(crate) mod hosts;

use crate::attempt::{Attempt, AttemptState};
use crate::command::{Command, EvictReason};
use crate::state::State;
use deepshare_model::{AttemptId, PoolId, ProfileClassId, Retention, Span, Time};
use serde::{Deserialize, Serialize};

/// Predicted retention by profile class: what a job of one class keeps beside one of another.
/// Versioned, and sent whole, so that a replay needs no model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionTable {
    /// Raised with every new table; an older one that arrives late is ignored.
    pub version: u64,
    /// Row: own class; column: the partner's. Rows may differ in length.
    pub rows: Vec<Vec<Retention>>,
    /// Sharing score by class, for policies that pack by it: 0 light, 1 medium, 2 heavy. May be
    /// shorter.
    pub scores: Vec<u8>,
    /// How far predicted slowdowns (1/ρ) are from true ones, as held-out pairs show: the percentiles 0
    /// to 100 of true less predicted, millionths. Empty: predictions are taken as exact.
    #[serde(default)]
    pub errors_ppm: Vec<i32>,
}

impl RetentionTable {
    /// What a job of class `own` is predicted to keep beside one of class `other`; `None` if the
    /// table does not know them.
    #[inline]
    pub fn get(&self, own: ProfileClassId, other: ProfileClassId) -> Option<Retention> {
        self.rows.get(own.index())?.get(other.index()).copied()
    }

    /// The slowdown (1/ρ, 1 or more) of a job of class `own` beside one of class `other` that is not
    /// exceeded with this chance, in per cent; `None` if the table does not know them.
    pub fn slowdown(&self, own: ProfileClassId, other: ProfileClassId, chance: u32) -> Option<f64> {
        let predicted = 1.0 / self.get(own, other)?.as_f64();
        let last = self.errors_ppm.len().saturating_sub(1);
        let error = self.errors_ppm.get((chance as usize).min(last)).copied().unwrap_or(0);
        Some((predicted + f64::from(error) * 1e-6).max(1.0))
    }

    /// The sharing score of a class, if it has one.
    pub fn score(&self, class: ProfileClassId) -> Option<u8> {
        self.scores.get(class.index()).copied()
    }

    /// Lowers an entry to what was observed.
    fn lower(&mut self, own: ProfileClassId, other: ProfileClassId, observed: Retention) {
        let entry = self.rows.get_mut(own.index()).and_then(|row| row.get_mut(other.index()));
        if let Some(entry) = entry {
            *entry = observed.min(*entry);
        }
    }
}

/// On what terms a job joins another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTerms {
    /// The least retention either may have (ρ_tol), as of admission.
    pub tolerance: Retention,
    /// Predicted retention of the job that joins (ρ̂).
    pub own: Retention,
    /// Predicted retention of the one that is there.
    pub theirs: Retention,
}

/// One partner of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Who shares its devices.
    pub partner: AttemptId,
    /// What the attempt is believed to keep beside it: as predicted until observed.
    pub retention: Retention,
}

/// A pair, kept with the attempt that joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Company {
    pub(crate) host: AttemptId,
    pub(crate) terms: PairTerms,
    /// When the last sample was taken.
    pub(crate) sampled_at: Option<Time>,
    /// Samples below tolerance in a row.
    pub(crate) bad_samples: u32,
    /// Sum of both retentions over those.
    pub(crate) observed: [u64; 2],
}

/// What became of proposals to share, over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// Pairs formed.
    pub formed: u64,
    /// Pairs broken up because samples stayed below tolerance.
    pub revoked: u64,
    /// Jobs, round by round in which they were asked, that found no partner, by the test that their
    /// best one failed: in the order of [`PairTest::ALL`](crate::PairTest::ALL).
    pub refused: [u64; 5],
}

impl State {
    /// Predicted retentions, lowered where revoked pairs showed less.
    pub fn retentions(&self) -> &RetentionTable {
        &self.retentions
    }

    /// Pairs formed and broken up so far.
    pub fn pair_counts(&self) -> PairCounts {
        self.pair_counts
    }

    /// Pairs whose samples have stayed below tolerance, as (the one that joined, the one that was
    /// there), to be broken up.
    pub fn degraded(&self, pool: PoolId) -> impl Iterator<Item = (AttemptId, AttemptId)> {
        let newer = self.pools[pool.index()].hosts.degraded.iter();
        newer.filter_map(|&id| Some((id, self.attempt(id).company.as_ref()?.host)))
    }

    /// Solo work that an attempt is believed to have done, the restart it owed included, up to now.
    pub fn worked(&self, attempt: &Attempt) -> Span {
        match attempt.running_since {
            None => Span::ZERO,
            Some(since) => {
                let elapsed = self.now.saturating_since(attempt.rate_since.max(since));
                // Alone at full speed, as most run.
                match attempt.beside.is_empty() {
                    true => attempt.worked + elapsed,
                    false => attempt.worked + attempt.rate().work_in(elapsed),
                }
            }
        }
    }

    /// Links a started attempt with whoever is on its devices, and has the pair watched.
    pub(crate) fn join(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let attempt = self.attempt(id);
        let Some(company) = attempt.company else { return };
        let (host, terms) = (company.host, company.terms);
        let there = attempt.placement.first().is_some_and(|slice| {
            let node = &self.nodes[slice.node.index()];
            slice.devices.iter().any(|device| node.residents(device).contains(&host))
        });
        if !there {
            // It left before the start: nobody to share with.
            self.attempts[id.index()].company = None;
            return;
        }
        self.pair_counts.formed += 1;
        self.change_rate(id, |beside| {
            beside.push(Beside { partner: host, retention: terms.own });
        });
        self.change_rate(host, |beside| {
            beside.push(Beside { partner: id, retention: terms.theirs });
        });
        self.sync_attempt(host);
        out.push(Command::Watch { attempt: id, partner: host, tolerance: terms.tolerance });
    }

    /// Who shares an attempt's devices.
    pub(crate) fn partners(&self, id: AttemptId) -> Vec<AttemptId> {
        self.attempt(id).beside.iter().map(|beside| beside.partner).collect()
    }

    /// Parts an ending attempt from its partners, who go on alone.
    pub(crate) fn part(&mut self, id: AttemptId) {
        let pool = self.pool_of(self.attempt(id).job).index();
        self.pools[pool].hosts.degraded.remove(&id);
        for partner in self.partners(id) {
            self.pools[pool].hosts.degraded.remove(&partner);
            self.change_rate(partner, |beside| beside.retain(|b| b.partner != id));
            let entry = &mut self.attempts[partner.index()];
            if entry.company.is_some_and(|company| company.host == id) {
                entry.company = None;
            }
            self.sync_attempt(partner);
        }
        let entry = &mut self.attempts[id.index()];
        entry.company = None;
        entry.beside.clear();
    }

    /// Books what an attempt has done so far, then changes who is beside it.
    fn change_rate(&mut self, id: AttemptId, change: impl FnOnce(&mut Vec<Beside>)) {
        let now = self.now;
        let worked = self.worked(self.attempt(id));
        let attempt = &mut self.attempts[id.index()];
        attempt.worked = worked;
        attempt.rate_since = now;
        change(&mut attempt.beside);
    }

    /// What telemetry saw of a pair. Enough bad samples in a row mark it for breaking up.
    pub(crate) fn sampled(&mut self, pair: [AttemptId; 2], seen: [Retention; 2], taken: Time) {
        // A reservation beside a running job is no pair yet.
        let started = |id: AttemptId| {
            let attempt = self.attempts.get(id.index());
            attempt.is_some_and(|a| a.is_live() && a.state != AttemptState::Reserved)
        };
        if !started(pair[0]) || !started(pair[1]) {
            return;
        }
        let joined = |id: AttemptId, host: AttemptId| {
            self.attempt(id).company.is_some_and(|company| company.host == host)
        };
        let (newer, seen) = if joined(pair[0], pair[1]) {
            (pair, seen)
        } else if joined(pair[1], pair[0]) {
            ([pair[1], pair[0]], [seen[1], seen[0]])
        } else {
            return;
        };
        let Some(company) = &mut self.attempts[newer[0].index()].company else { return };
        if company.sampled_at.is_some_and(|last| taken <= last) {
            return;
        }
        company.sampled_at = Some(taken);
        for (index, other) in [(0, 1), (1, 0)] {
            let partner = newer[other];
            self.change_rate(newer[index], |beside| {
                for beside in beside.iter_mut().filter(|b| b.partner == partner) {
                    beside.retention = seen[index];
                }
            });
            self.sync_attempt(newer[index]);
        }
        let (slack, patience) = (self.settings.pair_slack_ppm, self.settings.pair_samples);
        let Some(company) = &mut self.attempts[newer[0].index()].company else { return };
        if seen[0].min(seen[1]).ppm() + slack >= company.terms.tolerance.ppm() {
            company.bad_samples = 0;
            company.observed = [0; 2];
            return;
        }
        company.bad_samples += 1;
        for (sum, seen) in company.observed.iter_mut().zip(seen) {
            *sum += u64::from(seen.ppm());
        }
        if patience > 0 && company.bad_samples == patience {
            let mean =
                company.observed.map(|sum| Retention::from_ppm((sum / u64::from(patience)) as u32));
            self.degrade(newer, mean);
        }
    }

    /// Marks a pair for breaking up, and lowers what is predicted of its like to what was seen.
    fn degrade(&mut self, pair: [AttemptId; 2], seen: [Retention; 2]) {
        let profile = |id: AttemptId| self.job(self.attempt(id).job).spec.profile;
        if let (Some(own), Some(other)) = (profile(pair[0]), profile(pair[1])) {
            self.retentions.lower(own, other, seen[0]);
            self.retentions.lower(other, own, seen[1]);
        }
        let pool = self.pool_of(self.attempt(pair[0]).job).index();
        self.pools[pool].hosts.degraded.insert(pair[0]);
        self.pools[pool].dirty = true;
    }

    /// Asks the world to end one of a pair that was not what it promised to be.
    pub(crate) fn revoke(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        self.pair_counts.revoked += 1;
        self.begin_eviction(id, EvictReason::Degraded, out);
    }

    /// Goes on under a policy that may let jobs share where the one before did not. Jobs submitted
    /// before keep to themselves if it did not.
    pub(crate) fn set_shares(&mut self, shares: bool) {
        if std::mem::replace(&mut self.shares, shares) == shares {
            return;
        }
        let live = self.pools.iter().flat_map(|pool| pool.live.iter().copied());
        for attempt in live.collect::<Vec<_>>() {
            self.sync_attempt(attempt);
        }
    }
}
