//! Two jobs on the same devices: on what terms pairs were formed, and how fast their jobs are
//! believed to run. Who could take a partner is in `hosts.rs`, who looks for one in `asks.rs`.
//!
//! A pair is two attempts that have devices in common: all of them, or, where the policy pairs gangs
//! with several partners, some. Residency itself is kept device by device (see `books.rs`); here are
//! the links between attempts and what was agreed.

pub(crate) mod asks;
pub(crate) mod hosts;

use crate::attempt::{Attempt, AttemptState};
use crate::command::{Command, EvictReason};
use crate::reason::PairTest;
use crate::state::State;
use deepshare_model::{AttemptId, PoolId, ProfileClassId, Retention, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

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

    /// The table of somebody who knows nothing of pairs: everybody keeps all.
    pub fn unknowing(&self) -> RetentionTable {
        let rows = self.rows.iter().map(|row| vec![Retention::WHOLE; row.len()]).collect();
        RetentionTable { rows, errors_ppm: Vec::new(), ..self.clone() }
    }

    /// The slowdown (1/ρ, 1 or more) of a job of class `own` beside one of class `other` that is not
    /// exceeded with this chance, in per cent, and never less than predicted; `None` if the table does
    /// not know them.
    pub fn slowdown(&self, own: ProfileClassId, other: ProfileClassId, chance: u32) -> Option<f64> {
        let predicted = 1.0 / self.get(own, other)?.as_f64();
        let last = self.errors_ppm.len().saturating_sub(1);
        let error = self.errors_ppm.get((chance as usize).min(last)).copied().unwrap_or(0);
        Some(predicted + f64::from(error.max(0)) * 1e-6)
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

/// What two jobs have to keep of their solo speed for their pair to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairBar {
    /// The least that each may keep: the job that joins, the one that is there.
    pub each: [Retention; 2],
    /// The least that both together may keep, parts per million: 1,000,000 is what one job alone does.
    pub together_ppm: u32,
}

impl PairBar {
    /// Whatever they keep will do.
    pub const NONE: PairBar = PairBar::both(Retention::LEAST);

    /// Both keep at least so much (ρ_tol).
    pub const fn both(tolerance: Retention) -> PairBar {
        PairBar { each: [tolerance; 2], together_ppm: 0 }
    }

    /// Whether a sample of both is good enough, if it may be off by so much.
    pub fn is_met(&self, seen: [Retention; 2], slack_ppm: u32) -> bool {
        let [own, theirs] = seen.map(Retention::ppm);
        let enough = |kept: u32, least: u32| kept.saturating_add(slack_ppm) >= least;
        enough(own, self.each[0].ppm())
            && enough(theirs, self.each[1].ppm())
            && enough(own + theirs, self.together_ppm)
    }
}

impl fmt::Display for PairBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [own, theirs] = self.each;
        match own == theirs {
            true => write!(f, "{own}")?,
            false => write!(f, "{own}, {theirs}")?,
        }
        match self.together_ppm {
            0 => Ok(()),
            together => write!(f, " ({:.3} together)", f64::from(together) / 1e6),
        }
    }
}

/// On what terms a job joins another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTerms {
    /// What both have to keep, as of admission.
    pub bar: PairBar,
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

impl Company {
    /// A pair of which nothing has been seen yet.
    pub(crate) fn new(host: AttemptId, terms: PairTerms) -> Company {
        Company { host, terms, sampled_at: None, bad_samples: 0, observed: [0; 2] }
    }
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
    pub refused: [u64; PairTest::ALL.len()],
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
        self.pools[pool.index()].hosts.degraded.iter().copied()
    }

    /// GPU memory that an attempt uses on each of its devices, MiB; 0 = unknown.
    pub fn gpu_memory_of(&self, attempt: &Attempt) -> u32 {
        self.job(attempt.job).spec.gpu_memory_mib(attempt.steps)
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

    /// Links a started attempt with whoever is on its devices, and has the pairs watched.
    pub(crate) fn join(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        if self.attempt(id).company.is_empty() {
            return;
        }
        // Who left before the start is nobody to share with.
        let attempt = self.attempt(id);
        let there = |company: &Company| {
            attempt.placement.iter().any(|slice| {
                let node = &self.nodes[slice.node.index()];
                slice.devices.iter().any(|device| node.residents(device).contains(&company.host))
            })
        };
        let company: Vec<Company> = attempt.company.iter().copied().filter(there).collect();
        if company.is_empty() {
            self.set_steps(id, 1);
        }
        self.attempts[id.index()].company.clear();
        for company in company {
            self.link(id, company.host, Some(company), out);
        }
    }

    /// Links an attempt with one on its devices, and has the two watched if they are a pair. Who share
    /// otherwise are taken to keep their speed.
    pub(crate) fn link(
        &mut self,
        id: AttemptId,
        host: AttemptId,
        company: Option<Company>,
        out: &mut Vec<Command>,
    ) {
        let keeps = company.map_or([Retention::WHOLE; 2], |c| [c.terms.own, c.terms.theirs]);
        for (of, partner, retention) in [(id, host, keeps[0]), (host, id, keeps[1])] {
            self.change_rate(of, |beside| beside.push(Beside { partner, retention }));
        }
        self.sync_attempt(host);
        if let Some(company) = company {
            self.pair_counts.formed += 1;
            self.attempts[id.index()].company.push(company);
            out.push(Command::Watch { attempt: id, partner: host, bar: company.terms.bar });
        }
    }

    /// In how many steps an attempt does its iterations from now on.
    pub(crate) fn set_steps(&mut self, id: AttemptId, steps: u32) {
        let pace = self.job(self.attempt(id).job).spec.pace(steps);
        let attempt = &mut self.attempts[id.index()];
        (attempt.steps, attempt.pace) = (steps, pace);
    }

    /// Who shares an attempt's devices.
    pub(crate) fn partners(&self, id: AttemptId) -> Vec<AttemptId> {
        self.attempt(id).beside.iter().map(|beside| beside.partner).collect()
    }

    /// Parts an ending attempt from its partners. Who is alone then trains as configured again.
    pub(crate) fn part(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let pool = self.pool_of(self.attempt(id).job).index();
        for partner in self.partners(id) {
            let degraded = &mut self.pools[pool].hosts.degraded;
            degraded.remove(&(id, partner));
            degraded.remove(&(partner, id));
            self.change_rate(partner, |beside| beside.retain(|b| b.partner != id));
            let entry = &mut self.attempts[partner.index()];
            entry.company.retain(|company| company.host != id);
            if entry.beside.is_empty() && entry.steps > 1 {
                let goes_on = entry.is_evictable();
                self.set_steps(partner, 1);
                if goes_on {
                    let epoch = self.epoch;
                    out.push(Command::Accumulate { attempt: partner, epoch, steps: 1 });
                }
            }
            self.sync_attempt(partner);
        }
        let entry = &mut self.attempts[id.index()];
        entry.company.clear();
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
        let (newer, seen) = if self.attempt(pair[0]).joined(pair[1]) {
            (pair, seen)
        } else if self.attempt(pair[1]).joined(pair[0]) {
            ([pair[1], pair[0]], [seen[1], seen[0]])
        } else {
            return;
        };
        let Some(company) = self.company_mut(newer) else { return };
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
        let Some(company) = self.company_mut(newer) else { return };
        if company.terms.bar.is_met(seen, slack) {
            company.bad_samples = 0;
            company.observed = [0; 2];
            return;
        }
        if patience == 0 {
            let (pool, now) = (self.pool_of(self.attempt(newer[0]).job).index(), self.now);
            self.pools[pool].hosts.look_at(now);
            return;
        }
        company.bad_samples += 1;
        for (sum, seen) in company.observed.iter_mut().zip(seen) {
            *sum += u64::from(seen.ppm());
        }
        if company.bad_samples == patience {
            let mean =
                company.observed.map(|sum| Retention::from_ppm((sum / u64::from(patience)) as u32));
            self.degrade(newer, mean);
        }
    }

    /// The pair of an attempt and the one that it joined.
    fn company_mut(&mut self, [newer, host]: [AttemptId; 2]) -> Option<&mut Company> {
        let company = &mut self.attempts[newer.index()].company;
        company.iter_mut().find(|company| company.host == host)
    }

    /// Lowers what is predicted of the likes of an attempt and its partners to what was seen of them.
    fn remember(&mut self, id: AttemptId) {
        for Beside { partner, retention } in self.attempt(id).beside.clone() {
            let theirs = self.attempt(partner).beside.iter().find(|b| b.partner == id);
            let Some(theirs) = theirs.map(|beside| beside.retention) else { continue };
            self.lower([id, partner], [retention, theirs]);
        }
    }

    /// Marks a pair for breaking up, and lowers what is predicted of its like to what was seen.
    fn degrade(&mut self, pair: [AttemptId; 2], seen: [Retention; 2]) {
        self.lower(pair, seen);
        let pool = self.pool_of(self.attempt(pair[0]).job).index();
        self.pools[pool].hosts.degraded.insert((pair[0], pair[1]));
        self.pools[pool].dirty = true;
    }

    fn lower(&mut self, pair: [AttemptId; 2], seen: [Retention; 2]) {
        let profile = |id: AttemptId| self.job(self.attempt(id).job).spec.profile;
        if let (Some(own), Some(other)) = (profile(pair[0]), profile(pair[1])) {
            self.retentions.lower(own, other, seen[0]);
            self.retentions.lower(other, own, seen[1]);
        }
    }

    /// Asks the world to end one of a pair that was not what it promised to be.
    pub(crate) fn revoke(&mut self, id: AttemptId, reason: EvictReason, out: &mut Vec<Command>) {
        self.pair_counts.revoked += 1;
        if reason == EvictReason::SlowdownLimit {
            self.remember(id);
        }
        self.begin_eviction(id, reason, out);
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
