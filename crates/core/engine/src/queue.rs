//! Waiting jobs, grouped by what makes them interchangeable.
//!
//! Two jobs with the same [`SchedulingKey`] have the same tenant, class and demand. If one cannot
//! be placed in a round, neither can the other: a round looks at keys, not at jobs.

use crate::policy::Rank;
use crate::reason::Reason;
use crate::sharing::{AskKind, Patience};
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
    /// Its profile, where the policy lets jobs share.
    pub profile: Option<ProfileClassId>,
}

impl SchedulingKey {
    pub(crate) fn of(pool: PoolId, spec: &JobSpec, shares: bool) -> SchedulingKey {
        SchedulingKey {
            pool,
            tenant: spec.tenant,
            class: spec.class,
            demand: spec.demand,
            sharing: spec.sharing,
            profile: spec.profile.filter(|_| shares && spec.sharing.consent),
        }
    }
}

impl SchedulingKey {
    /// What it asks of a partner; `None` if it shares with nobody.
    pub fn ask(&self) -> Option<AskKind> {
        let SchedulingKey { class, demand, sharing, .. } = *self;
        self.profile.map(|profile| AskKind { class, demand, sharing, profile })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    key: SchedulingKey,
    jobs: BTreeSet<(Rank, JobId)>,
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
    /// Where its pool lists keys that look for like partners.
    ask: Option<u32>,
    /// How its search for partners went.
    patience: Patience,
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
                jobs: BTreeSet::new(),
                head: None,
                by_age: BTreeSet::new(),
                verdict: None,
                refused: [None, None],
                kind: 0,
                ask: None,
                patience: Patience::default(),
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

    pub(crate) fn ask(&self, id: KeyId) -> Option<u32> {
        self.queues[id.0 as usize].ask
    }

    pub(crate) fn patience(&self, id: KeyId) -> &Patience {
        &self.queues[id.0 as usize].patience
    }

    pub(crate) fn patience_mut(&mut self, id: KeyId) -> &mut Patience {
        &mut self.queues[id.0 as usize].patience
    }

    pub(crate) fn set_ask(&mut self, id: KeyId, ask: u32) {
        self.queues[id.0 as usize].ask = Some(ask);
    }

    /// Why a key sleeps; out of date once it is awake.
    pub(crate) fn refused(&mut self, id: KeyId, charge: Class) -> &mut Option<Reason> {
        &mut self.queues[id.0 as usize].refused[charge as usize]
    }

    pub(crate) fn why_asleep(&self, id: KeyId, charge: Class) -> Option<&Reason> {
        let asleep = !self.rest(id, charge).is_awake();
        self.queues[id.0 as usize].refused[charge as usize].as_ref().filter(|_| asleep)
    }

    pub(crate) fn head(&self, id: KeyId) -> Option<(Rank, JobId)> {
        self.queues[id.0 as usize].head
    }

    /// True if the queue was empty before.
    pub(crate) fn insert(&mut self, id: KeyId, rank: Rank, job: JobId, since: Time) -> bool {
        let queue = &mut self.queues[id.0 as usize];
        if queue.key.demand.gpus > 1 {
            queue.by_age.insert((since, job));
        }
        let jobs = &mut queue.jobs;
        let was_empty = jobs.is_empty();
        let fresh = jobs.insert((rank, job));
        debug_assert!(fresh, "a job waits once");
        if queue.head.is_none_or(|head| (rank, job) < head) {
            queue.head = Some((rank, job));
        }
        was_empty
    }

    /// True if the queue is empty now.
    pub(crate) fn remove(&mut self, id: KeyId, rank: Rank, job: JobId, since: Time) -> bool {
        let queue = &mut self.queues[id.0 as usize];
        if queue.key.demand.gpus > 1 {
            queue.by_age.remove(&(since, job));
        }
        let jobs = &mut queue.jobs;
        let there = jobs.remove(&(rank, job));
        debug_assert!(there, "only a waiting job leaves its queue");
        if queue.head == Some((rank, job)) {
            queue.head = jobs.first().copied();
        }
        jobs.is_empty()
    }

    pub(crate) fn oldest(&self, id: KeyId) -> Option<(Time, JobId)> {
        self.queues[id.0 as usize].by_age.first().copied()
    }

    pub(crate) fn next_after(
        &self,
        id: KeyId,
        after: Option<(Rank, JobId)>,
    ) -> Option<(Rank, JobId)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.queues[id.0 as usize].jobs.range((from, Bound::Unbounded)).next().copied()
    }

    pub(crate) fn iter(&self, id: KeyId) -> impl Iterator<Item = JobId> {
        self.queues[id.0 as usize].jobs.iter().map(|&(_, job)| job)
    }
}

/// A walk over the waiting jobs of a pool in rank order, which stays valid while a draft takes
/// jobs out of the queues. Costs O(log) a job visited, plus one visit for each key.
#[derive(Debug)]
pub struct Walk {
    heap: BinaryHeap<Reverse<(Rank, JobId, KeyId)>>,
    current: Option<(Rank, JobId, KeyId)>,
}

impl Walk {
    /// Over all keys of the pool that have waiting jobs.
    pub(crate) fn new(state: &State, pool: PoolId) -> Walk {
        let heap = state.pools[pool.index()]
            .active_keys
            .iter()
            .filter_map(|&key| {
                let (rank, job) = state.queues.next_after(key, None)?;
                Some(Reverse((rank, job, key)))
            })
            .collect();
        Walk { heap, current: None }
    }

    /// The next job in order. Jobs of the last one's key follow unless [`Walk::skip_key`] was
    /// called since.
    pub fn next(&mut self, state: &State) -> Option<JobId> {
        if let Some((rank, job, key)) = self.current.take()
            && let Some((rank, job)) = state.queues.next_after(key, Some((rank, job)))
        {
            self.heap.push(Reverse((rank, job, key)));
        }
        let Reverse(entry) = self.heap.pop()?;
        self.current = Some(entry);
        Some(entry.1)
    }

    /// Leaves out the remaining jobs of the last job's key: what refused it refuses them.
    pub fn skip_key(&mut self) {
        self.current = None;
    }

    /// Leaves out all remaining jobs of a tenant.
    pub fn skip_tenant(&mut self, state: &State, tenant: TenantId) {
        let theirs = |key: KeyId| state.queues.key(key).tenant == tenant;
        if self.current.is_some_and(|(_, _, key)| theirs(key)) {
            self.current = None;
        }
        self.heap.retain(|&Reverse((_, _, key))| !theirs(key));
    }

    /// The rank of the next job without moving on, if there is one.
    pub fn peek(&mut self, state: &State) -> Option<(Rank, JobId)> {
        if let Some((rank, job, key)) = self.current.take()
            && let Some((rank, job)) = state.queues.next_after(key, Some((rank, job)))
        {
            self.heap.push(Reverse((rank, job, key)));
        }
        self.heap.peek().map(|&Reverse((rank, job, _))| (rank, job))
    }
}
