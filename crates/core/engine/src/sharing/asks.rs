//! Who looks for a partner, and what they may hope for.
//!
//! Kinds of jobs that look for partners are listed whatever their tenants. Of each is known, once
//! somebody has looked, what both of a pair would keep at best, by the tenant and GPU type of the
//! host: never too little, and too much only if a host has left or its node has filled up since.

use super::hosts::HostKind;
use crate::policy::Rank;
use crate::queue::KeyId;
use crate::reason::PairTest;
use crate::state::State;
use deepshare_model::{
    Class, Demand, GpuTypeId, JobId, PoolId, ProfileClassId, Retention, Sharing, TenantId, Time,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What makes waiting jobs that look for a partner interchangeable, whatever their tenants: a
/// scheduling key without its tenant, and with a profile.
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

/// Number of an [`AskKind`] in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskId(u32);

impl AskId {
    /// The position of this kind among those of its pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The best that a kind of job may have of one tenant's hosts of one GPU type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hope {
    /// Whose hosts.
    pub tenant: TenantId,
    /// On which GPUs.
    pub gpu_type: GpuTypeId,
    /// What both of a pair would keep, the one who keeps less.
    pub keeps: Retention,
    /// The tenant's losses of hosts when this was so; 0 if nobody has looked.
    as_of: u32,
}

impl Hope {
    /// True if it is so, not only may be, after so many losses of tenants' hosts.
    pub fn is_settled(&self, losses: &[u32]) -> bool {
        self.as_of == losses_of(losses, self.tenant)
    }
}

/// How often a tenant has lost a host, counted from 1.
pub(crate) fn losses_of(losses: &[u32], tenant: TenantId) -> u32 {
    losses.get(tenant.index()).copied().unwrap_or(1)
}

/// The pair that came furthest when somebody last looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// The test it failed.
    pub test: PairTest,
    /// The host's kind.
    pub kind: HostKind,
    /// The host's tenant.
    pub tenant: TenantId,
    /// Predicted retention: the job's own, the host's.
    pub keeps: [Retention; 2],
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ask {
    kind: AskKind,
    /// The best first; `None`: nobody has looked.
    hopes: Option<Vec<Hope>>,
    /// Keys with waiting jobs of this kind, in order of the key.
    waiting: Vec<Waiting>,
}

/// A look at all hosts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Look {
    nearest: Option<Nearest>,
    at: Time,
}

/// A kind among those of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its number.
    pub ask: AskId,
    /// What it is; here once more, as all of a size are looked at for every new host.
    pub kind: AskKind,
}

/// Waiting jobs of one key that ask the same of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Their key.
    pub key: KeyId,
    /// Its tenant.
    pub tenant: TenantId,
    /// The first of them and its rank.
    pub first: (Rank, JobId),
}

/// A pool's keys that look for partners, by kind, and what they may hope for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Asks {
    asks: Vec<Ask>,
    /// At least the best that each may have: the most there is if nobody has looked yet. Apart, as
    /// many are scanned.
    most: Vec<Option<Retention>>,
    /// What was found when somebody last looked for each.
    looks: Vec<Look>,
    /// By GPUs.
    by_size: BTreeMap<u32, Vec<Listed>>,
    /// Keys that have come to have waiting jobs of a kind since the last round.
    new: BTreeSet<(KeyId, AskId)>,
    /// The policy's terms under which hopes were reckoned.
    terms: u64,
    /// Derived from `asks`; rebuilt on restore.
    #[serde(skip)]
    by_kind: BTreeMap<AskKind, AskId>,
}

impl Asks {
    pub(crate) fn rebuild(&mut self) {
        let ids = self.asks.iter().enumerate();
        self.by_kind = ids.map(|(index, ask)| (ask.kind, AskId(index as u32))).collect();
    }

    /// The number of a kind.
    pub(crate) fn list(&mut self, kind: AskKind) -> AskId {
        let next = AskId(self.asks.len() as u32);
        let id = *self.by_kind.entry(kind).or_insert(next);
        if id == next {
            let of_size = self.by_size.entry(kind.demand.gpus).or_default();
            of_size.push(Listed { ask: id, kind });
            self.most.push(Some(Retention::WHOLE));
            self.looks.push(Look::default());
            self.asks.push(Ask { kind, hopes: None, waiting: Vec::new() });
        }
        id
    }

    fn get(&self, id: AskId) -> &Ask {
        &self.asks[id.index()]
    }

    fn get_mut(&mut self, id: AskId) -> &mut Ask {
        &mut self.asks[id.index()]
    }

    /// Every kind that asks for so many GPUs.
    pub(crate) fn of_size(&self, gpus: u32) -> &[Listed] {
        self.by_size.get(&gpus).map_or(&[], Vec::as_slice)
    }

    /// A tenant has come to have a host beside which both would keep so much.
    pub(crate) fn raise(
        &mut self,
        id: AskId,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        keeps: Retention,
    ) {
        let Some(hopes) = &self.get(id).hopes else { return };
        let hopes = hopes.iter();
        let mut theirs = hopes.filter(|hope| (hope.tenant, hope.gpu_type) == (tenant, gpu_type));
        if theirs.next().is_none_or(|hope| keeps > hope.keeps) {
            let hope = Hope { tenant, gpu_type, keeps, as_of: 0 };
            self.replace(id, (tenant, gpu_type), Some(hope));
        }
    }

    /// The best that a tenant's hosts have for a kind, as of so many losses.
    pub(crate) fn settle(
        &mut self,
        id: AskId,
        (tenant, gpu_type): (TenantId, GpuTypeId),
        keeps: Option<Retention>,
        losses: u32,
    ) {
        let hope = keeps.map(|keeps| Hope { tenant, gpu_type, keeps, as_of: losses });
        self.replace(id, (tenant, gpu_type), hope);
    }

    fn replace(&mut self, id: AskId, whose: (TenantId, GpuTypeId), hope: Option<Hope>) {
        let ask = &mut self.asks[id.index()];
        let Some(hopes) = &mut ask.hopes else { return };
        if let Some(at) = hopes.iter().position(|hope| (hope.tenant, hope.gpu_type) == whose) {
            hopes.remove(at);
        }
        if let Some(hope) = hope {
            let order = |hope: &Hope| (Reverse(hope.keeps), hope.tenant, hope.gpu_type);
            let at = hopes.partition_point(|other| order(other) < order(&hope));
            hopes.insert(at, hope);
        }
        self.most[id.index()] = hopes.first().map(|hope| hope.keeps);
    }

    /// Somebody has looked at all hosts; what they have for the kind is to be settled.
    pub(crate) fn note_look(&mut self, id: AskId, nearest: Option<Nearest>, now: Time) {
        self.get_mut(id).hopes = Some(Vec::new());
        self.most[id.index()] = None;
        self.looks[id.index()] = Look { nearest, at: now };
    }

    /// Nothing is known under other terms.
    pub(crate) fn set_terms(&mut self, terms: u64) {
        if std::mem::replace(&mut self.terms, terms) != terms {
            self.forget();
        }
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.asks.iter_mut().for_each(|ask| ask.hopes = None);
        self.looks.fill(Look::default());
        self.most.fill(Some(Retention::WHOLE));
    }

    /// Notes the first waiting job of a key that is of a kind, or that there is none any more.
    pub(crate) fn set_first(
        &mut self,
        id: AskId,
        (tenant, key): (TenantId, KeyId),
        first: Option<(Rank, JobId)>,
    ) {
        let keys = &mut self.get_mut(id).waiting;
        let place = keys.binary_search_by_key(&key, |waiting| waiting.key);
        match (place, first) {
            (Ok(at), Some(first)) => keys[at].first = first,
            (Ok(at), None) => _ = keys.remove(at),
            (Err(at), Some(first)) => {
                keys.insert(at, Waiting { key, tenant, first });
                self.new.insert((key, id));
            }
            (Err(_), None) => {}
        }
    }

    /// True if a key has come to have waiting jobs of a kind since the last round.
    pub(crate) fn is_new(&self, id: AskId, key: KeyId) -> bool {
        self.new.contains(&(key, id))
    }

    pub(crate) fn take_new(&mut self) -> BTreeSet<(KeyId, AskId)> {
        std::mem::take(&mut self.new)
    }
}

impl State {
    /// True if any job of a pool so far looks for partners.
    pub fn looks_for_partners(&self, pool: PoolId) -> bool {
        !self.asks(pool).asks.is_empty()
    }

    /// What the waiting jobs of a key ask of partners, and whether such jobs have looked for one,
    /// charged to a class.
    pub fn asks_of(&self, key: KeyId, charge: Class) -> impl Iterator<Item = (AskId, bool)> {
        self.queues.asks(key, charge)
    }

    /// The first waiting job of a key that asks this of a partner, and its rank.
    pub fn first_asking(&self, key: KeyId, ask: AskId) -> Option<(Rank, JobId)> {
        self.queues.first_asking(key, ask)
    }

    /// The next waiting job of a key that asks this of a partner after a given one, in rank order.
    pub fn next_asking(
        &self,
        key: KeyId,
        ask: AskId,
        after: (Rank, JobId),
    ) -> Option<(Rank, JobId)> {
        self.queues.next_asking(key, ask, after)
    }

    /// Whether jobs of a key that ask this of a partner have looked for one, charged to a class.
    pub fn has_asked(&self, key: KeyId, ask: AskId, charge: Class) -> bool {
        self.queues.has_asked(key, ask, charge)
    }

    /// A kind of ask.
    pub fn ask_kind(&self, pool: PoolId, ask: AskId) -> &AskKind {
        &self.asks(pool).get(ask).kind
    }

    /// Kinds of a pool that ask for so many GPUs.
    pub fn asks_of_size(&self, pool: PoolId, gpus: u32) -> &[Listed] {
        self.asks(pool).of_size(gpus)
    }

    /// Waiting jobs of a kind, by key.
    pub fn waiting_for(&self, pool: PoolId, ask: AskId) -> &[Waiting] {
        &self.asks(pool).get(ask).waiting
    }

    /// The best that a kind may have of each tenant's hosts of each GPU type, the best first; `None` if
    /// nobody has looked yet.
    pub fn hopes(&self, pool: PoolId, ask: AskId) -> Option<&[Hope]> {
        self.asks(pool).get(ask).hopes.as_deref()
    }

    /// At least the best that each kind may have, by its number; the most there is if nobody has looked
    /// yet.
    pub fn most_hoped(&self, pool: PoolId) -> &[Option<Retention>] {
        &self.asks(pool).most
    }

    /// The pair that came furthest when somebody last looked.
    pub fn nearest(&self, pool: PoolId, ask: AskId) -> Option<&Nearest> {
        self.asks(pool).looks[ask.index()].nearest.as_ref()
    }

    /// When somebody last looked at all hosts for a kind.
    pub fn looked_at(&self, pool: PoolId, ask: AskId) -> Time {
        self.asks(pool).looks[ask.index()].at
    }

    pub(crate) fn asks(&self, pool: PoolId) -> &Asks {
        &self.pools[pool.index()].hosts.asks
    }
}
