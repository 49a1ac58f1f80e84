//! Waiting that the right victims would have ended, told from the books alone.
//!
//! Knows nothing of how a policy looks for victims: it asks whether a job would fit if everything
//! that may be evicted were gone.

use deepshare_engine::{
    Attempt, AttemptState, JobState, KeyId, Node, Placer, SchedulingKey, State,
};
use deepshare_metrics::Avoidable;
use deepshare_model::{
    AttemptId, Class, Demand, Devices, GpuTypeId, JobId, Layout, NodeId, PoolId, Resources,
    TenantId, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// Sums up avoidable waiting. One job of each key is watched at a time.
#[derive(Default)]
pub(super) struct AvoidableMeter {
    open: BTreeMap<KeyId, Open>,
    jobs: BTreeSet<JobId>,
    sums: Avoidable,
}

/// A key whose jobs would fit and wait.
#[derive(Clone, Copy)]
struct Open {
    /// They have fitted since, without a break.
    since: Time,
    /// One that waits, and how it can be told that it has waited ever since.
    witness: JobId,
    queue_seq: u64,
    /// It has waited and fitted since.
    from: Time,
}

impl AvoidableMeter {
    pub(super) fn measure(&mut self, now: Time, state: &State) {
        let mut before = std::mem::take(&mut self.open);
        for pool in (0..state.pools().len()).map(PoolId::from_index) {
            for id in state.active_keys(pool) {
                let key = state.key(id);
                if key.class != Class::Guaranteed || !would_start(state, key) {
                    continue;
                }
                let open = self.follow(now, state, id, before.remove(&id));
                self.open.insert(id, open);
            }
        }
        for open in before.into_values() {
            self.close(now, state, open);
        }
    }

    /// A key's jobs fit and wait at `now`, and did before if `open` says so.
    fn follow(&mut self, now: Time, state: &State, key: KeyId, open: Option<Open>) -> Open {
        if let Some(open) = open
            && waits(state, open)
        {
            return open;
        }
        if let Some(open) = open {
            self.close(now, state, open);
        }
        let (_, witness) = state.first_waiting(key).expect("an active key has a waiting job");
        let since = open.map_or(now, |open| open.since);
        let entry = state.job(witness);
        let from = since.max(entry.queued_at);
        Open { since, witness, queue_seq: entry.queue_seq, from }
    }

    /// A watched job's waiting ends.
    fn close(&mut self, now: Time, state: &State, open: Open) {
        let must = open.from + state.settings().grace + state.qad_cycle();
        let over = now.saturating_since(must);
        if over.is_zero() {
            return;
        }
        self.jobs.insert(open.witness);
        self.sums.time += over;
        self.sums.gpu_time += over.on(state.job(open.witness).gpus());
        let earlier = |(job, at): (JobId, Time)| (at, job) < (must, open.witness);
        if !self.sums.first.is_some_and(earlier) {
            self.sums.first = Some((open.witness, must));
        }
    }

    pub(super) fn finish(mut self, end: Time, state: &State) -> Avoidable {
        for open in std::mem::take(&mut self.open).into_values() {
            self.close(end, state, open);
        }
        Avoidable { jobs: self.jobs.len() as u64, ..self.sums }
    }
}

/// True if the watched job has not left its queue.
fn waits(state: &State, open: Open) -> bool {
    let entry = state.job(open.witness);
    entry.state == JobState::Waiting && entry.queue_seq == open.queue_seq
}

/// True if a guaranteed job of this key is inside its tenant's quota and would fit if all that may
/// be evicted now were gone.
pub(super) fn would_start(state: &State, key: &SchedulingKey) -> bool {
    (0..state.gpu_types()).map(GpuTypeId::from_index).any(|gpu_type| {
        key.demand.gpu_type.is_none_or(|wanted| wanted == gpu_type)
            && inside_quota(state, key.tenant, gpu_type, key.demand.gpus)
            && Offer { state, pool: key.pool, gpu_type, demand: &key.demand }.fits()
    })
}

/// What a tenant's guaranteed jobs are promised, in every capacity mode alike.
fn inside_quota(state: &State, tenant: TenantId, gpu_type: GpuTypeId, gpus: u32) -> bool {
    state.lineage(tenant).all(|tenant| {
        let used = state.used_by_class(tenant, Class::Guaranteed, gpu_type);
        used + gpus <= state.tenant(tenant).quota.of(gpu_type)
    })
}

/// What the nodes of one type would offer a demand without all that may be evicted.
struct Offer<'a> {
    state: &'a State,
    pool: PoolId,
    gpu_type: GpuTypeId,
    demand: &'a Demand,
}

impl Offer<'_> {
    fn fits(&self) -> bool {
        let Some(index) = self.state.pool(self.pool).obtainable(self.gpu_type) else {
            return false;
        };
        let gpus = self.demand.gpus;
        // The index counts attempts that may not be evicted just now too: it can only say no.
        if index.total() < gpus {
            return false;
        }
        let at_least = |least: u32| (least..=index.levels()).flat_map(|level| index.at(level));
        let spread = self.state.settings().placer == Placer::NodeOrder;
        let each = match self.demand.layout {
            Layout::Members(each) => each.max(1),
            Layout::Consolidated if spread => 1,
            Layout::Consolidated => {
                if at_least(gpus).any(|node| self.room(node) >= gpus) {
                    return true;
                }
                let (size, whole) = (index.levels(), gpus / index.levels().max(1));
                return gpus > size && self.fits_whole(size, whole, gpus % size, at_least);
            }
        };
        let members: u32 = at_least(each).map(|node| self.room(node) / each).sum();
        members * each >= gpus
    }

    /// Whole nodes, and one more for the remainder.
    fn fits_whole<I: Iterator<Item = NodeId>>(
        &self,
        size: u32,
        whole: u32,
        rest: u32,
        at_least: impl Fn(u32) -> I,
    ) -> bool {
        let full = at_least(size).filter(|&node| self.room(node) >= size).count() as u32;
        let more = || at_least(rest).filter(|&n| self.room(n) >= rest).count() as u32 > whole;
        full >= whole && (rest == 0 || more())
    }

    /// GPUs that the node would offer.
    fn room(&self, id: NodeId) -> u32 {
        let node = &self.state.nodes()[id.index()];
        let memory = node.spec.gpu_memory_mib;
        if memory > 0 && self.demand.gpu_memory_mib > memory {
            return 0;
        }
        let open = node.open();
        let gone = |device: &u32| node.residents(*device).iter().all(|&id| self.may_go(id));
        let freed = node.obtainable().minus(open).iter().filter(gone).count() as u32;
        let host = if self.demand.per_gpu == Resources::default() {
            u32::MAX
        } else {
            self.host_room(id, node)
        };
        (open.count() + freed).min(host)
    }

    /// True if the attempt may be evicted for a guaranteed job now.
    fn may_go(&self, id: AttemptId) -> bool {
        let (now, attempt) = (self.state.now(), self.state.attempt(id));
        attempt.charged == Class::BestEffort
            && attempt.is_evictable()
            && self.state.evictable_from(attempt) <= now
    }

    /// GPUs for which the host resources would be enough: those of whoever stays are taken.
    fn host_room(&self, id: NodeId, node: &Node) -> u32 {
        let stays = |attempt: &&Attempt| {
            attempt.state == AttemptState::Reserved || !self.may_go(attempt.id)
        };
        let mut left = node.spec.capacity;
        for attempt in self.state.live(self.pool).filter(stays) {
            let here = attempt.placement.iter().filter(|slice| slice.node == id);
            let devices = here.fold(Devices::NONE, |all, slice| all.union(slice.devices));
            let per_gpu = self.state.job(attempt.job).spec.demand.per_gpu;
            let taken = per_gpu.times(devices.count());
            left.cpu_milli = left.cpu_milli.saturating_sub(taken.cpu_milli);
            left.memory_mib = left.memory_mib.saturating_sub(taken.memory_mib);
        }
        let share = |left: u64, each: u64| left.checked_div(each).unwrap_or(u64::MAX);
        let per_gpu = self.demand.per_gpu;
        let cpu = share(left.cpu_milli, per_gpu.cpu_milli);
        let memory = share(left.memory_mib, per_gpu.memory_mib);
        u32::try_from(cpu.min(memory)).unwrap_or(u32::MAX)
    }
}
