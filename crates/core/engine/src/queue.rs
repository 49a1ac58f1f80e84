//! Waiting jobs, grouped by what makes them interchangeable.
//!
//! Two jobs with the same [`SchedulingKey`] have the same tenant, class and demand. If one cannot
//! be placed in a round, neither can the other: a round looks at keys, not at jobs. Where jobs share
//! devices, those of a key are kept apart by what they ask of a partner.

use crate::policy::Rank;
use crate::reason::Reason;
use crate::sharing::asks::{AskId, AskKind};
use crate::sleepers::Rest;
use crate::state::State;
use deepshare_model::{
    Class, Demand, JobId, JobSpec, PoolId, ProfileClassId, Sharing, TenantId, Time,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound;

/// Number of a [`SchedulingKey`] in its table.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct KeyId(pub u32);

/// What decides whether a job can be placed, apart from its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SchedulingKey {
    /// Whose nodes.
    pub pool: PoolId,
    /// Whose quota.
    pub tenant: TenantId,
    /// Charged to it or not.
    pub class: Class,
    /// What it asks for.
    pub demand: Demand,
    /// What it allows.
    pub sharing: Sharing,
}

impl SchedulingKey {
    pub(crate) fn of(pool: PoolId, spec: &JobSpec) -> SchedulingKey {
        SchedulingKey {
            pool,
            tenant: spec.tenant,
            class: spec.class,
            demand: spec.demand,
            sharing: spec.sharing,
        }
    }

    /// What its jobs of a profile ask of a partner.
    pub(crate) fn ask(&self, profile: ProfileClassId) -> AskKind {
        let SchedulingKey { class, demand, sharing, .. } = *self;
        AskKind { class, demand, sharing, profile }
    }
}

/// Jobs of a key that ask the same of a partner; those that share with nobody are one part as well.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Part {
    ask: Option<AskId>,
    jobs: BTreeSet<(Rank, JobId)>,
    /// The first of them.
    head: Option<(Rank, JobId)>,
    /// Whether they have looked for a partner, by the class charged.
    asked: [bool; 2],
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    key: SchedulingKey,
    /// In the order in which they came up.
    parts: Vec<Part>,
    /// Why each found no partner, if there was any to be refused, by the class charged; apart, as all
    /// parts are scanned.
    no_partner: Vec<[Option<Reason>; 2]>,
    /// The same by how long they wait; kept for gangs only.
    by_age: BTreeSet<(Time, JobId)>,
    /// The first of them.
    head: Option<(Rank, JobId)>,
    /// Whether such a job can ever run, as of an inventory generation.
    verdict: Option<(u64, Option<Reason>)>,
    /// Why it sleeps, by the class charged.
    refused: [Option<Reason>; 2],
    /// Where its pool lists keys with its demand.
    kind: u32,
}

impl Queue {
    fn part(&self, ask: Option<AskId>) -> Option<&Part> {
        self.parts.iter().find(|part| part.ask == ask)
    }

    fn part_mut(&mut self, ask: Option<AskId>) -> &mut Part {
        let at = self.place(ask);
        &mut self.parts[at]
    }

    fn place(&mut self, ask: Option<AskId>) -> usize {
        let known = self.parts.iter().position(|part| part.ask == ask);
        known.unwrap_or_else(|| {
            self.parts.push(Part { ask, ..Part::default() });
            self.no_partner.push([None, None]);
            self.parts.len() - 1
        })
    }

    fn heads(&self) -> impl Iterator<Item = (Rank, JobId)> {
        self.parts.iter().filter_map(|part| part.head)
    }
}

/// Every queue of waiting jobs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Queues {
    queues: Vec<Queue>,
    /// Whether each is worth asking for, by the class charged; apart, as whole lists are scanned.
    rests: Vec<[Rest; 2]>,
    /// Derived from `queues`; rebuilt on restore.
    #[serde(skip)]
    by_key: BTreeMap<SchedulingKey, KeyId>,
}

impl Queues {
    pub(crate) fn rebuild(&mut self) {
        self.by_key =
            self.queues.iter().enumerate().map(|(i, q)| (q.key, KeyId(i as u32))).collect();
    }

    /// The key's number, and whether it is new.
    pub(crate) fn intern(&mut self, key: SchedulingKey) -> (KeyId, bool) {
        let next = KeyId(self.queues.len() as u32);
        let id = *self.by_key.entry(key).or_insert_with(|| {
            self.rests.push(Default::default());
            self.queues.push(Queue {
                key,
                parts: Vec::new(),
                no_partner: Vec::new(),
                head: None,
                by_age: BTreeSet::new(),
                verdict: None,
                refused: [None, None],
                kind: 0,
            });
            next
        });
        (id, self.queues.len() > next.0 as usize)
    }

    pub(crate) fn key(&self, id: KeyId) -> &SchedulingKey {
        &self.queues[id.0 as usize].key
    }

    pub(crate) fn verdict(&self, id: KeyId, generation: u64) -> Option<Option<Reason>> {
        let verdict = self.queues[id.0 as usize].verdict.as_ref();
        verdict.filter(|(as_of, _)| *as_of == generation).map(|(_, reason)| reason.clone())
    }

    pub(crate) fn set_verdict(&mut self, id: KeyId, generation: u64, reason: Option<Reason>) {
        self.queues[id.0 as usize].verdict = Some((generation, reason));
    }

    #[inline]
    pub(crate) fn rest(&self, id: KeyId, charge: Class) -> Rest {
        self.rests[id.0 as usize][charge as usize]
    }

    #[inline]
    pub(crate) fn rest_mut(&mut self, id: KeyId, charge: Class) -> &mut Rest {
        &mut self.rests[id.0 as usize][charge as usize]
    }

    pub(crate) fn kind(&self, id: KeyId) -> usize {
        self.queues[id.0 as usize].kind as usize
    }

    pub(crate) fn set_kind(&mut self, id: KeyId, kind: usize) {
        self.queues[id.0 as usize].kind = kind as u32;
    }

    /// Why a key sleeps; out of date once it is awake.
    pub(crate) fn refused(&mut self, id: KeyId, charge: Class) -> &mut Option<Reason> {
        &mut self.queues[id.0 as usize].refused[charge as usize]
    }

    pub(crate) fn why_asleep(&self, id: KeyId, charge: Class) -> Option<&Reason> {
        let asleep = !self.rest(id, charge).is_awake();
        self.queues[id.0 as usize].refused[charge as usize].as_ref().filter(|_| asleep)
    }

    /// True if some of a key's waiting jobs sleep for CPU or memory only, charged to any class.
    pub(crate) fn lacks_host(&self, id: KeyId) -> bool {
        let queue = &self.queues[id.0 as usize];
        let asleep = [Class::Guaranteed, Class::BestEffort].into_iter();
        let devices = asleep.filter_map(|charge| self.why_asleep(id, charge));
        let waiting =
            queue.parts.iter().zip(&queue.no_partner).filter(|(part, _)| part.head.is_some());
        let partners = waiting.flat_map(|(_, refused)| refused.iter().flatten());
        devices.chain(partners).any(Reason::lacks_host)
    }

    pub(crate) fn head(&self, id: KeyId) -> Option<(Rank, JobId)> {
        self.queues[id.0 as usize].head
    }

    /// Notes why jobs that ask the same of a partner found none.
    pub(crate) fn refuse_partner(
        &mut self,
        id: KeyId,
        ask: AskId,
        charge: Class,
        reason: Option<Reason>,
    ) {
        let queue = &mut self.queues[id.0 as usize];
        let at = queue.place(Some(ask));
        queue.parts[at].asked[charge as usize] = true;
        queue.no_partner[at][charge as usize] = reason;
    }

    pub(crate) fn has_asked(&self, id: KeyId, ask: AskId, charge: Class) -> bool {
        self.queues[id.0 as usize].part(Some(ask)).is_some_and(|part| part.asked[charge as usize])
    }

    pub(crate) fn why_no_partner(&self, id: KeyId, ask: AskId, charge: Class) -> Option<&Reason> {
        let queue = &self.queues[id.0 as usize];
        let at = queue.parts.iter().position(|part| part.ask == Some(ask))?;
        queue.no_partner[at][charge as usize].as_ref()
    }

    /// Whether the queue was empty before.
    pub(crate) fn insert(
        &mut self,
        (id, ask): (KeyId, Option<AskId>),
        entry: (Rank, JobId),
        since: Time,
    ) -> bool {
        let queue = &mut self.queues[id.0 as usize];
        if queue.key.demand.gpus > 1 {
            queue.by_age.insert((since, entry.1));
        }
        let part = queue.part_mut(ask);
        let fresh = part.jobs.insert(entry);
        debug_assert!(fresh, "a job waits once");
        part.head = part.head.min(Some(entry)).or(Some(entry));
        let was_empty = queue.head.is_none();
        queue.head = queue.head.min(Some(entry)).or(Some(entry));
        was_empty
    }

    /// Whether the queue is empty now.
    pub(crate) fn remove(
        &mut self,
        (id, ask): (KeyId, Option<AskId>),
        entry: (Rank, JobId),
        since: Time,
    ) -> bool {
        let queue = &mut self.queues[id.0 as usize];
        if queue.key.demand.gpus > 1 {
            queue.by_age.remove(&(since, entry.1));
        }
        let part = queue.part_mut(ask);
        let there = part.jobs.remove(&entry);
        debug_assert!(there, "only a waiting job leaves its queue");
        if part.head == Some(entry) {
            part.head = part.jobs.first().copied();
        }
        if queue.head == Some(entry) {
            queue.head = queue.heads().min();
        }
        queue.head.is_none()
    }

    pub(crate) fn oldest(&self, id: KeyId) -> Option<(Time, JobId)> {
        self.queues[id.0 as usize].by_age.first().copied()
    }

    /// The first job of a key after one, in rank order.
    pub(crate) fn next_after(&self, id: KeyId, after: (Rank, JobId)) -> Option<(Rank, JobId)> {
        let parts = self.queues[id.0 as usize].parts.iter();
        parts.filter_map(|part| first_after(&part.jobs, after)).min()
    }

    /// What the jobs of a key ask of partners, and whether such have looked.
    pub(crate) fn asks(&self, id: KeyId, charge: Class) -> impl Iterator<Item = (AskId, bool)> {
        let parts = self.queues[id.0 as usize].parts.iter().filter(|part| part.head.is_some());
        parts.filter_map(move |part| Some((part.ask?, part.asked[charge as usize])))
    }

    /// The first job of a key that asks this of a partner.
    pub(crate) fn first_asking(&self, id: KeyId, ask: AskId) -> Option<(Rank, JobId)> {
        self.queues[id.0 as usize].part(Some(ask))?.head
    }

    /// The first of them after one.
    pub(crate) fn next_asking(
        &self,
        id: KeyId,
        ask: AskId,
        after: (Rank, JobId),
    ) -> Option<(Rank, JobId)> {
        first_after(&self.queues[id.0 as usize].part(Some(ask))?.jobs, after)
    }

    /// In rank order.
    pub(crate) fn iter(&self, id: KeyId) -> impl Iterator<Item = JobId> {
        let parts = &self.queues[id.0 as usize].parts;
        let (only, several) =
            if parts.len() > 1 { (&[][..], &parts[..]) } else { (&parts[..], &[][..]) };
        let mut mixed: Vec<(Rank, JobId)> =
            several.iter().flat_map(|part| part.jobs.iter().copied()).collect();
        mixed.sort_unstable();
        let in_order = only.iter().flat_map(|part| part.jobs.iter().copied());
        in_order.chain(mixed).map(|(_, job)| job)
    }
}

fn first_after(jobs: &BTreeSet<(Rank, JobId)>, after: (Rank, JobId)) -> Option<(Rank, JobId)> {
    jobs.range((Bound::Excluded(after), Bound::Unbounded)).next().copied()
}

/// A walk over the waiting jobs of a pool in rank order, which stays valid while a draft takes
/// jobs out of the queues. Costs O(log) a job visited, plus one visit for each key and, where jobs
/// share, each of its profiles.
#[derive(Debug)]
pub struct Walk {
    heap: BinaryHeap<Reverse<Stop>>,
    current: Option<Stop>,
}

/// A job, its key, and its place among the key's parts.
type Stop = ((Rank, JobId), KeyId, usize);

impl Walk {
    /// Over all keys of the pool that have waiting jobs.
    pub(crate) fn new(state: &State, pool: PoolId) -> Walk {
        let heap = state.pools[pool.index()]
            .active_keys
            .iter()
            .flat_map(|&key| {
                let parts = state.queues.queues[key.0 as usize].parts.iter().enumerate();
                parts.filter_map(move |(index, part)| Some(Reverse((part.head?, key, index))))
            })
            .collect();
        Walk { heap, current: None }
    }

    /// Takes up the job after the last one.
    fn step(&mut self, state: &State) {
        let Some((last, key, index)) = self.current.take() else { return };
        let part = &state.queues.queues[key.0 as usize].parts[index];
        self.heap.extend(first_after(&part.jobs, last).map(|next| Reverse((next, key, index))));
    }

    /// The next job in order. Jobs of the last one's key follow unless [`Walk::skip_key`] was
    /// called since.
    pub fn next(&mut self, state: &State) -> Option<JobId> {
        self.step(state);
        let Reverse(entry) = self.heap.pop()?;
        self.current = Some(entry);
        Some(entry.0.1)
    }

    /// Leaves out the remaining jobs of the last job's key, of the same profile where jobs share: what
    /// refused it refuses them.
    pub fn skip_key(&mut self) {
        self.current = None;
    }

    /// Leaves out all remaining jobs of a tenant.
    pub fn skip_tenant(&mut self, state: &State, tenant: TenantId) {
        let theirs = |key: KeyId| state.queues.key(key).tenant == tenant;
        if self.current.is_some_and(|(_, key, _)| theirs(key)) {
            self.current = None;
        }
        self.heap.retain(|&Reverse((_, key, _))| !theirs(key));
    }

    /// The rank of the next job without moving on, if there is one.
    pub fn peek(&mut self, state: &State) -> Option<(Rank, JobId)> {
        self.step(state);
        self.heap.peek().map(|&Reverse((job, ..))| job)
    }
}
