//! Two jobs on the same devices: who could take a partner, on what terms pairs were formed, and
//! how fast their jobs are believed to run.
//!
//! A pair is two attempts on exactly the same devices. Residency itself is kept device by device
//! (see `books.rs`); here are the links between attempts and what was agreed.

use crate::attempt::{Attempt, AttemptState, Slice};
use crate::command::{Command, EvictReason};
use crate::queue::KeyId;
use crate::state::State;
use deepshare_model::{
    AttemptId, Class, Demand, GpuTypeId, Layout, PoolId, ProfileClassId, Retention, Sharing, Span,
    TenantId, Time, TrustDomainId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
}

impl RetentionTable {
    /// What a job of class `own` is predicted to keep beside one of class `other`; `None` if the
    /// table does not know them.
    #[inline]
    pub fn get(&self, own: ProfileClassId, other: ProfileClassId) -> Option<Retention> {
        self.rows.get(own.index())?.get(other.index()).copied()
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

/// What makes hosts interchangeable: attempts that run alone and could take a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostKind {
    /// GPUs of the job; a partner has as many.
    pub gpus: u32,
    /// Of which type.
    pub gpu_type: GpuTypeId,
    /// Shape over nodes.
    pub layout: Layout,
    /// The job's profile.
    pub profile: ProfileClassId,
    /// As it was submitted.
    pub class: Class,
    /// Only jobs of the same domain may share with it.
    pub trust_domain: TrustDomainId,
    /// GPU memory it leaves on each of its devices, MiB; the most there is where nodes do not say.
    pub memory_left_mib: u32,
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

/// Hosts of one kind, by expected end.
type OfKind = (HostKind, BTreeSet<(Time, AttemptId)>);

/// A pool's hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hosts {
    /// In order of kind; none is empty.
    kinds: Vec<OfKind>,
    /// Kinds that gained a host since the last round.
    fresh: BTreeSet<HostKind>,
    /// Pairs to be broken up, by the attempt that joined.
    pub(crate) degraded: BTreeSet<AttemptId>,
    /// Who looks for a partner.
    pub(crate) asks: Asks,
}

impl Hosts {
    fn insert(&mut self, kind: HostKind, end: Time, attempt: AttemptId) {
        match self.kinds.binary_search_by(|(known, _)| known.cmp(&kind)) {
            Ok(at) => _ = self.kinds[at].1.insert((end, attempt)),
            Err(at) => self.kinds.insert(at, (kind, BTreeSet::from([(end, attempt)]))),
        }
        self.fresh.insert(kind);
    }

    fn remove(&mut self, kind: &HostKind, end: Time, attempt: AttemptId) {
        if let Ok(at) = self.kinds.binary_search_by(|(known, _)| known.cmp(kind)) {
            self.kinds[at].1.remove(&(end, attempt));
            if self.kinds[at].1.is_empty() {
                self.kinds.remove(at);
            }
        }
    }

    pub(crate) fn take_fresh(&mut self) -> BTreeSet<HostKind> {
        std::mem::take(&mut self.fresh)
    }
}

/// What makes waiting jobs that look for a partner interchangeable, whatever their tenants: a
/// scheduling key without its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AskKind {
    /// As submitted.
    pub class: Class,
    /// What it asks for.
    pub demand: Demand,
    /// What it allows.
    pub sharing: Sharing,
    /// Its profile.
    pub profile: ProfileClassId,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ask {
    kind: AskKind,
    /// The most that both of a pair with a host of today would keep; may be out of date upwards, and
    /// means nothing while nobody is hungry.
    hope: Option<Retention>,
    /// Keys of this kind that wait for a partner, among other things.
    hungry: u32,
}

/// How often a key was refused every partner in a row, and when it is worth asking again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Patience {
    refusals: u32,
    until: Time,
    hope: Option<Retention>,
    refused_at: Retention,
}

/// Refusals in a row that cost nothing.
const FREE_REFUSALS: u32 = 8;
/// Longest time for which a key that was refused is left alone.
const LONGEST_WAIT: Span = Span::from_secs(60);

impl Patience {
    /// Every partner was refused at `refused_at`, of which the best allowed `hope`.
    pub(crate) fn refused(&mut self, now: Time, hope: Option<Retention>, refused_at: Retention) {
        if self.is_news(hope, refused_at) {
            self.refusals = 0;
        }
        self.refusals = self.refusals.saturating_add(1);
        let doublings = self.refusals.saturating_sub(FREE_REFUSALS + 1).min(16);
        let wait = match self.refusals > FREE_REFUSALS {
            true => LONGEST_WAIT.min(Span(Span::SECOND.0 << doublings)),
            false => Span::ZERO,
        };
        (self.until, self.hope, self.refused_at) = (now + wait, hope, refused_at);
    }

    /// True if it is worth asking again: time has passed, or things have become better.
    fn has_run_out(&self, now: Time, hope: Option<Retention>, enough: Retention) -> bool {
        now >= self.until || self.is_news(hope, enough)
    }

    fn is_news(&self, hope: Option<Retention>, enough: Retention) -> bool {
        hope > self.hope || enough.ppm() + 5_000 < self.refused_at.ppm()
    }
}

/// A pool's keys that look for partners, by kind, and what they may hope for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Asks {
    asks: Vec<Ask>,
    /// Kinds with hungry keys, by GPUs.
    by_size: BTreeMap<u32, BTreeSet<u32>>,
    /// Keys that sleep for want of devices and have waiting jobs, by the class charged and tenant.
    hungry: [BTreeSet<(TenantId, KeyId)>; 2],
}

impl Asks {
    /// The number of a kind.
    pub(crate) fn list(&mut self, kind: AskKind) -> u32 {
        let known = self.asks.iter().position(|ask| ask.kind == kind);
        let at = known.unwrap_or_else(|| {
            self.asks.push(Ask { kind, hope: None, hungry: 0 });
            self.asks.len() - 1
        });
        at as u32
    }

    pub(crate) fn hope(&self, ask: u32) -> Option<Retention> {
        self.asks[ask as usize].hope
    }

    pub(crate) fn set_hope(&mut self, ask: u32, hope: Option<Retention>) {
        self.asks[ask as usize].hope = hope;
    }

    /// Every kind with hungry keys that asks for so many GPUs.
    pub(crate) fn of_size(&self, gpus: u32) -> Vec<(u32, AskKind)> {
        let asks = self.by_size.get(&gpus).into_iter().flatten();
        asks.map(|&ask| (ask, self.asks[ask as usize].kind)).collect()
    }

    /// Notes that a key waits for a partner, or no longer does.
    pub(crate) fn set_hungry(
        &mut self,
        ask: u32,
        key: (TenantId, KeyId),
        charge: Class,
        hungry: bool,
    ) {
        let keys = &mut self.hungry[charge as usize];
        let changed = if hungry { keys.insert(key) } else { keys.remove(&key) };
        if !changed {
            return;
        }
        let entry = &mut self.asks[ask as usize];
        let same_size = self.by_size.entry(entry.kind.demand.gpus).or_default();
        entry.hungry = if hungry { entry.hungry + 1 } else { entry.hungry - 1 };
        if entry.hungry == 0 {
            same_size.remove(&ask);
        } else {
            same_size.insert(ask);
        }
    }
}

impl State {
    /// Keys of a pool that sleep for want of devices and whose hope of a partner is at least what is
    /// enough for their tenant and size; and whether there are others for which time alone may bring
    /// it down to that. `enough` says what is enough now, and what will be.
    pub(crate) fn hopeful_keys(
        &self,
        pool: PoolId,
        charge: Class,
        mut enough: impl FnMut(TenantId, u32) -> [Retention; 2],
    ) -> (Vec<KeyId>, bool) {
        let asks = &self.pools[pool.index()].hosts.asks;
        let (mut keys, mut later) = (Vec::new(), false);
        let mut room = None;
        for &(tenant, key) in &asks.hungry[charge as usize] {
            // Most tenants have no quota left: of theirs nobody is woken.
            let room = match room {
                Some((of, room)) if of == tenant => room,
                _ => room.insert((tenant, self.most_room(tenant, charge))).1,
            };
            let gpus = self.queues.key(key).demand.gpus;
            let hope = self.queues.ask(key).and_then(|ask| asks.hope(ask));
            if room < gpus || hope.is_none() {
                continue;
            }
            let [enough, soon] = enough(tenant, gpus);
            later |= hope < Some(enough) && hope >= Some(soon);
            let patient = !self.queues.patience(key).has_run_out(self.now, hope, enough);
            if hope >= Some(enough) && !patient {
                keys.push(key);
            }
        }
        (keys, later)
    }

    /// The most GPUs of one type that a tenant may still be given in one class.
    fn most_room(&self, tenant: TenantId, charge: Class) -> u32 {
        let types = (0..self.gpu_types()).map(GpuTypeId::from_index);
        types.map(|gpu_type| self.allowance(tenant, charge, gpu_type)).max().unwrap_or(0)
    }
}

/// What became of proposals to share, over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// Pairs formed.
    pub formed: u64,
    /// Pairs broken up because samples stayed below tolerance.
    pub revoked: u64,
    /// Jobs, round by round, that found no partner, by the test that their best one failed: in the
    /// order of [`PairTest::ALL`](crate::PairTest::ALL).
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

    /// Attempts that run alone and could take a partner with `gpus` GPUs, by kind, those expected to
    /// end first leading.
    pub fn hosts(
        &self,
        pool: PoolId,
        gpus: u32,
    ) -> impl Iterator<Item = (&HostKind, &BTreeSet<(Time, AttemptId)>)> {
        let kinds = &self.pools[pool.index()].hosts.kinds;
        let from = kinds.partition_point(|(kind, _)| kind.gpus < gpus);
        let same = kinds[from..].iter().take_while(move |(kind, _)| kind.gpus == gpus);
        same.map(|(kind, hosts)| (kind, hosts))
    }

    /// True if any job of a pool so far looks for partners.
    pub fn looks_for_partners(&self, pool: PoolId) -> bool {
        !self.pools[pool.index()].hosts.asks.asks.is_empty()
    }

    /// True if some job of a pool, charged to a class, waits for devices or a partner and was refused
    /// both before.
    pub fn is_anybody_hungry(&self, pool: PoolId, charge: Class) -> bool {
        !self.pools[pool.index()].hosts.asks.hungry[charge as usize].is_empty()
    }

    /// Hosts of one kind, those expected to end first leading.
    pub fn hosts_of_kind(
        &self,
        pool: PoolId,
        kind: &HostKind,
    ) -> Option<&BTreeSet<(Time, AttemptId)>> {
        let kinds = &self.pools[pool.index()].hosts.kinds;
        let at = kinds.binary_search_by(|(known, _)| known.cmp(kind)).ok()?;
        Some(&kinds[at].1)
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

    /// The kind of host an attempt is; `None` if it cannot take a partner.
    pub(crate) fn host_kind(&self, attempt: &Attempt) -> Option<HostKind> {
        if !self.shares || !attempt.is_evictable() || !attempt.beside.is_empty() {
            return None;
        }
        let spec = &self.job(attempt.job).spec;
        let profile = spec.profile.filter(|_| spec.sharing.consent)?;
        let first = attempt.placement.first()?;
        let needs = spec.demand.gpu_memory_mib;
        let mut memory_left_mib = u32::MAX;
        for slice in &attempt.placement {
            let memory = self.nodes[slice.node.index()].spec.gpu_memory_mib;
            // Where memory counts, a job that does not say what it needs shares with nobody.
            if memory > 0 {
                let left = memory.checked_sub(needs).filter(|_| needs > 0)?;
                memory_left_mib = memory_left_mib.min(left);
            }
        }
        Some(HostKind {
            gpus: spec.demand.gpus,
            gpu_type: self.nodes[first.node.index()].spec.gpu_type,
            layout: spec.demand.layout,
            profile,
            class: spec.class,
            trust_domain: spec.sharing.trust_domain,
            memory_left_mib,
        })
    }

    /// Keeps the index of hosts in step with an attempt.
    pub(crate) fn sync_host(
        &mut self,
        id: AttemptId,
        before: Option<(HostKind, Time)>,
        wanted: Option<(HostKind, Time)>,
    ) {
        let pool = self.pool_of(self.attempt(id).job).index();
        let pool = &mut self.pools[pool];
        if let Some((kind, end)) = before {
            pool.hosts.remove(&kind, end, id);
        }
        if let Some((kind, end)) = wanted {
            pool.hosts.insert(kind, end, id);
            // Somebody who waits may join it.
            pool.dirty |= pool.waiting > 0;
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

    /// Parts an ending attempt from its partners, who go on alone.
    pub(crate) fn part(&mut self, id: AttemptId) {
        let partners: Vec<AttemptId> =
            self.attempt(id).beside.iter().map(|beside| beside.partner).collect();
        let pool = self.pool_of(self.attempt(id).job).index();
        self.pools[pool].hosts.degraded.remove(&id);
        for partner in partners {
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

    /// True if a partner could be started on the devices of an attempt: they work, they are of its
    /// pool still, nobody else is promised them, and whoever is there stays.
    pub fn takes_partner(&self, host: &Attempt) -> bool {
        let pool = self.pool_of(host.job);
        let open = |slice: &Slice| {
            let node = &self.nodes[slice.node.index()];
            let free = node.usable().minus(node.claimed);
            let ours = node.spec.pool == pool && !node.is_held_back();
            ours && slice.devices.minus(free).is_empty()
        };
        host.is_evictable() && host.beside.is_empty() && host.placement.iter().all(open)
    }
}
