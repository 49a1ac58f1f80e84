//! The engine's books, as policies, the auditor and drivers see them.

use crate::admit::Tenants;
use crate::attempt::{Attempt, AttemptState, Slice};
use crate::books::{FreeIndex, Node};
use crate::job::{Job, JobState};
use crate::placement::{Misfit, Offer};
use crate::policy::Rank;
use crate::pool::Pool;
use crate::qad::{Degree, Qad};
use crate::queue::{KeyId, Queues, SchedulingKey, Walk};
use crate::reason::Reason;
use crate::settings::{CapacityMode, EngineSettings};
use crate::sharing::{PairCounts, RetentionTable};
use crate::site::Sites;
use deepshare_model::{
    AttemptId, Class, Demand, Devices, GpuTime, GpuTypeId, JobId, Layout, NodeId, PoolId,
    Resources, Span, TenantId, TenantSpec, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Cycle of the quota assurance degree where rounds have none (spec §1).
const QAD_CYCLE: Span = Span(50_000);

/// Everything the engine knows. Read-only outside the engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    pub(crate) now: Time,
    pub(crate) settings: EngineSettings,
    pub(crate) epoch: deepshare_model::Epoch,
    pub(crate) nodes: Vec<Node>,
    /// What nodes admit beside GPUs, CPU and memory.
    pub(crate) sites: Sites,
    pub(crate) pools: Vec<Pool>,
    pub(crate) tenants: Tenants,
    pub(crate) qad: Qad,
    pub(crate) jobs: Vec<Job>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) queues: Queues,
    pub(crate) next_queue_seq: u64,
    /// Jobs that back off, by the instant they return.
    pub(crate) timers: BTreeSet<(Time, JobId)>,
    /// Jobs that cannot run as things stand.
    pub(crate) unrunnable: BTreeSet<JobId>,
    /// Raised whenever inventory or quotas change: what could never run may run now.
    pub(crate) generation: u64,
    /// Slot of the last round, where rounds are slotted.
    pub(crate) last_slot: Option<u64>,
    /// Decision rounds held so far (one per pool considered).
    pub(crate) rounds: u64,
    /// Whether the policy starts guaranteed jobs charged as best-effort.
    pub(crate) spills: bool,
    /// Whether the policy lets jobs share devices.
    pub(crate) shares: bool,
    /// Whether the policy lets shrunk attempts grow back.
    pub(crate) grows: bool,
    pub(crate) retentions: RetentionTable,
    pub(crate) pair_counts: PairCounts,
    /// Resizes under way.
    pub(crate) resizes: u32,
    /// GPUs that waiting jobs ask for, by tenant and class.
    pub(crate) waiting_gpus: Vec<[u64; 2]>,
}

impl State {
    /// The instant of the last step.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The engine's settings.
    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Changes whenever inventory or quotas change; plans made before may be void.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every node, by id.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every pool, by id.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// One pool.
    pub fn pool(&self, pool: PoolId) -> &Pool {
        &self.pools[pool.index()]
    }

    /// Every job submitted so far, by id.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// One job.
    #[inline]
    pub fn job(&self, job: JobId) -> &Job {
        &self.jobs[job.index()]
    }

    /// One attempt.
    #[inline]
    pub fn attempt(&self, attempt: AttemptId) -> &Attempt {
        &self.attempts[attempt.index()]
    }

    /// Every attempt so far, by id.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// A tenant's terms.
    pub fn tenant(&self, tenant: TenantId) -> &TenantSpec {
        self.tenants.spec(tenant)
    }

    /// Number of tenants.
    pub fn tenant_count(&self) -> usize {
        self.tenants.all.len()
    }

    /// A tenant and its ancestors, nearest first.
    pub fn lineage(&self, tenant: TenantId) -> impl Iterator<Item = TenantId> {
        self.tenants.lineage(tenant)
    }

    /// GPUs of a type that a tenant (with its children) holds or is promised.
    pub fn used(&self, tenant: TenantId, gpu_type: GpuTypeId) -> u32 {
        self.tenants.used(tenant, gpu_type)
    }

    /// Decision rounds held so far, one per pool considered.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// What a scheduling key stands for.
    pub fn key(&self, key: KeyId) -> &SchedulingKey {
        self.queues.key(key)
    }

    /// Keys of a pool that have waiting jobs.
    pub fn active_keys(&self, pool: PoolId) -> impl Iterator<Item = KeyId> {
        self.pools[pool.index()].active_keys.iter().copied()
    }

    /// Waiting jobs of a key, in rank order.
    pub fn waiting_of(&self, key: KeyId) -> impl Iterator<Item = JobId> {
        self.queues.iter(key)
    }

    /// The first waiting job of a key and its rank.
    #[inline]
    pub fn first_waiting(&self, key: KeyId) -> Option<(Rank, JobId)> {
        self.queues.head(key)
    }

    /// The next waiting job of a key after a given one, in rank order.
    pub fn next_waiting(&self, key: KeyId, after: (Rank, JobId)) -> Option<(Rank, JobId)> {
        self.queues.next_after(key, after)
    }

    /// The gang of a key that has waited longest, and since when; `None` for jobs of one GPU.
    pub fn oldest_waiting(&self, key: KeyId) -> Option<(Time, JobId)> {
        self.queues.oldest(key)
    }

    /// A walk over a pool's waiting jobs in rank order.
    pub fn walk(&self, pool: PoolId) -> Walk {
        Walk::new(self, pool)
    }

    /// Attempts of a pool that hold or are promised devices, oldest first.
    pub fn live(&self, pool: PoolId) -> impl Iterator<Item = &Attempt> {
        self.pools[pool.index()].live.iter().map(|&attempt| self.attempt(attempt))
    }

    /// Attempts of a pool that could be chosen as victims, oldest first. Where quotas are
    /// guarantees, that leaves out whoever is charged to one.
    pub fn evictable(&self, pool: PoolId) -> impl Iterator<Item = &Attempt> {
        let allowed = |a: &&Attempt| !self.is_guaranteed(a) && a.no_eviction_before <= self.now;
        self.live(pool).filter(|a| a.is_evictable()).filter(allowed)
    }

    /// True if nobody may take the attempt's devices from it.
    pub(crate) fn is_guaranteed(&self, attempt: &Attempt) -> bool {
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        elastic && attempt.charged == Class::Guaranteed
    }

    /// Attempts that could be evicted for a guaranteed job and when they are expected to end, those
    /// expected to run longest first.
    pub fn reclaimable(&self, pool: PoolId) -> impl Iterator<Item = (Time, &Attempt)> {
        let by_end = self.pools[pool.index()].reclaimable.iter().rev();
        by_end.map(|&(end, attempt)| (end, self.attempt(attempt)))
    }

    /// Of those on nodes of one GPU type that share their devices only with others that could be
    /// evicted, the first to end of each set that shares the same, and when it is expected to: those
    /// with most time left first.
    pub fn parties(
        &self,
        pool: PoolId,
        gpu_type: GpuTypeId,
    ) -> impl Iterator<Item = (Time, &Attempt)> {
        let first = (gpu_type, Time::ZERO, AttemptId(0));
        let last = (gpu_type, Time::MAX, AttemptId(u32::MAX));
        let theirs = self.pools[pool.index()].parties.range(first..=last).rev();
        theirs.map(|&(_, end, attempt)| (end, self.attempt(attempt)))
    }

    /// Attempts of a tenant's guaranteed jobs that run beyond its quota, and when their jobs were
    /// submitted, in that order.
    pub fn spilled(
        &self,
        pool: PoolId,
        tenant: TenantId,
    ) -> impl Iterator<Item = (Time, AttemptId)> {
        let first = (tenant, Time::ZERO, AttemptId(0));
        let theirs = self.pools[pool.index()].spilled.range(first..);
        let theirs = theirs.take_while(move |(of, ..)| *of == tenant);
        theirs.map(|&(_, submit, attempt)| (submit, attempt))
    }

    /// Time the job has run, all attempts together, up to now.
    pub fn served(&self, job: JobId) -> Span {
        let job = self.job(job);
        job.served + self.current_stint(job)
    }

    /// Attained service since the last promotion (2D-LAS: GPUs × running time), up to now.
    pub fn attained(&self, job: JobId) -> GpuTime {
        let job = self.job(job);
        (job.served + self.current_stint(job)).saturating_sub(job.served_baseline).on(job.gpus())
    }

    /// Solo work that the job has done and need not repeat, restarts apart, up to now.
    pub fn progress(&self, job: JobId) -> Span {
        let job = self.job(job);
        job.work + self.current_work(job).saturating_sub(job.restart)
    }

    fn current_stint(&self, job: &Job) -> Span {
        let since = job.active().and_then(|attempt| self.attempt(attempt).running_since);
        since.map_or(Span::ZERO, |since| self.now.saturating_since(since))
    }

    fn current_work(&self, job: &Job) -> Span {
        job.active().map_or(Span::ZERO, |attempt| self.worked(self.attempt(attempt)))
    }

    /// GPUs that a tenant's waiting jobs of one class ask for.
    pub fn waiting_gpus(&self, tenant: TenantId, class: Class) -> u64 {
        self.waiting_gpus.get(tenant.index()).map_or(0, |by_class| by_class[class as usize])
    }

    /// Predicted solo time to the job's end if it runs on, or starts now: work left and the restart it
    /// owes. Zero for a job that outlived its estimate; `None` without an estimate.
    pub fn remaining(&self, job: JobId) -> Option<Span> {
        let job = self.job(job);
        Some(job.left_at_start()?.saturating_sub(self.current_work(job)))
    }

    /// Normalised cumulative preemption overhead up to now, 0 to 1 (spec §1, C_p; reading D10: lost
    /// over lost and done). The restart that the job owed at its last stop counts as lost whether it
    /// is paid yet or not.
    pub fn preemption_overhead(&self, job: JobId) -> f64 {
        let entry = self.job(job);
        let lost = entry.lost + entry.restart;
        if lost.is_zero() {
            return 0.0;
        }
        lost.as_secs_f64() / (lost + self.progress(job)).as_secs_f64()
    }

    /// Why the job is not running; `None` if it runs, is starting or has ended.
    pub fn explain(&self, job: JobId) -> Option<Reason> {
        let entry = self.job(job);
        match &entry.state {
            JobState::Waiting => {
                let charge = entry.spec.class;
                if let Some(reason) = self.queues.why_asleep(entry.key, charge) {
                    let partner = |ask| self.queues.why_no_partner(entry.key, ask, charge);
                    let looks = self.is_hungry(entry.key, charge)
                        && !matches!(reason, Reason::WouldDelay { .. });
                    let no_partner = entry.ask.filter(|_| looks).and_then(partner);
                    return Some(no_partner.unwrap_or(reason).clone());
                }
                let pool = &self.pools[self.pool_of(job).index()];
                Some(pool.reasons.of(job, entry.key, entry.spec.tenant))
            }
            JobState::Held => Some(Reason::Held),
            JobState::BackingOff { until } => Some(Reason::BackingOff { until: *until }),
            JobState::Unrunnable(reason) => Some(reason.clone()),
            JobState::Active(attempt) => {
                let attempt = self.attempt(*attempt);
                (attempt.state == AttemptState::Reserved)
                    .then_some(Reason::AwaitingRelease { holders: attempt.awaits.len() as u32 })
            }
            JobState::Ended(_) => None,
        }
    }

    /// The pool a job waits for.
    #[inline]
    pub fn pool_of(&self, job: JobId) -> PoolId {
        self.queues.key(self.job(job).key).pool
    }

    /// Whether `gpus` more of a type, charged to a tenant's class, are within all that binds.
    pub(crate) fn admits(
        &self,
        (tenant, class): (TenantId, Class),
        gpu_type: GpuTypeId,
        gpus: u32,
    ) -> Result<(), Reason> {
        let mode = self.settings.capacity;
        self.tenants.admits(mode, (tenant, class), gpu_type, gpus)?;
        let Some(capacity) = self.lent_of((tenant, class), gpu_type) else { return Ok(()) };
        let left = self.tenants.left_to_borrow(tenant, gpu_type, gpus, capacity);
        if left < 0 {
            let left = (left + i64::from(gpus)).max(0) as u32;
            return Err(Reason::LendingLimit { need: gpus, left });
        }
        Ok(())
    }

    /// GPUs of the pool of which a tenant's class may use what is lent; `None` where lending does
    /// not bind it.
    fn lent_of(&self, (tenant, class): (TenantId, Class), gpu_type: GpuTypeId) -> Option<u32> {
        let elastic = self.settings.capacity == CapacityMode::Elastic;
        if !elastic || class != Class::BestEffort || !self.tenants.limit_lending {
            return None;
        }
        let pool = &self.pools[self.tenants.spec(tenant).pool.index()];
        Some(pool.usable.get(gpu_type.index()).map_or(0, FreeIndex::total))
    }

    /// Length of a slot of the quota assurance degree, which is reported for policies without a
    /// cycle too.
    pub fn qad_cycle(&self) -> Span {
        if self.settings.cycle.is_zero() { QAD_CYCLE } else { self.settings.cycle }
    }

    /// Why other tenants will never lend a best-effort job what it asks for, if so.
    fn never_lent(
        &self,
        (tenant, class): (TenantId, Class),
        gpu_type: GpuTypeId,
        need: u32,
    ) -> Option<Reason> {
        let capacity = self.lent_of((tenant, class), gpu_type)?;
        let most = self.tenants.most_to_borrow(tenant, gpu_type, capacity).max(0);
        let left = u32::try_from(most).unwrap_or(u32::MAX);
        (need > left).then_some(Reason::LendingLimit { need, left })
    }

    /// When an attempt may be evicted at the earliest: after its tenant's minimum run time, and once
    /// a refused eviction may be tried again.
    pub fn evictable_from(&self, attempt: &Attempt) -> Time {
        let tenant = self.job(attempt.job).spec.tenant;
        let since = attempt.running_since.unwrap_or(self.now);
        attempt.no_eviction_before.max(since + self.tenants.spec(tenant).min_run_time)
    }

    /// Whether `gpus` more of a type, charged to a tenant's class, are within every quota and every
    /// lending limit that binds.
    pub fn allows(
        &self,
        (tenant, class): (TenantId, Class),
        gpu_type: GpuTypeId,
        gpus: u32,
    ) -> bool {
        let mode = self.settings.capacity;
        let within = self.tenants.allowance(mode, (tenant, class), gpu_type) >= gpus;
        let lends = self.tenants.limit_lending;
        within && (!lends || self.admits((tenant, class), gpu_type, gpus).is_ok())
    }

    /// The current slot of the quota assurance degree.
    pub(crate) fn qad_slot(&self) -> u64 {
        self.now.0 / self.qad_cycle().0
    }

    /// GPU types that any pool has nodes of, one above the highest.
    pub fn gpu_types(&self) -> usize {
        self.pools.iter().map(|pool| pool.free.len()).max().unwrap_or(0)
    }

    /// A tenant's quota assurance degree now, and smoothed as of the current slot (spec §2).
    pub fn qad(&self, tenant: TenantId) -> (Degree, Degree) {
        self.qad.of(tenant, self.qad_slot())
    }

    /// GPUs that a tenant's guaranteed jobs demand, and that they hold.
    pub fn guaranteed(&self, tenant: TenantId) -> (u32, u32) {
        self.qad.counts(tenant)
    }

    /// [`State::qad`] of one GPU type.
    pub fn qad_of_type(&self, tenant: TenantId, gpu_type: GpuTypeId) -> (Degree, Degree) {
        self.qad.of_type((tenant, gpu_type), self.qad_slot())
    }

    /// [`State::guaranteed`] by GPU type, up to the last type with an account.
    pub fn guaranteed_by_type(
        &self,
        tenant: TenantId,
    ) -> impl ExactSizeIterator<Item = (u32, u32)> {
        self.qad.counts_by_type(tenant)
    }

    /// GPUs of a type that a tenant (with its children) holds or is promised in one class.
    pub fn used_by_class(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        self.tenants.used_by_class(tenant, class, gpu_type)
    }

    /// What a tenant may use of a GPU type in one class, and what it uses; `None` where no quota
    /// binds. Hard quotas are for both classes together.
    pub fn limit(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> Option<(u32, u32)> {
        self.tenants.limit(self.settings.capacity, (tenant, class), gpu_type)
    }

    /// What a tenant may still be given in one class, over GPU types that have nodes.
    pub fn allowance(&self, tenant: TenantId, class: Class, gpu_type: GpuTypeId) -> u32 {
        self.tenants.allowance(self.settings.capacity, (tenant, class), gpu_type)
    }

    /// Devices for a demand of `tenant` in `pool` now, or why there are none. Changes nothing.
    pub(crate) fn find(
        &self,
        pool: PoolId,
        (tenant, class): (TenantId, Class),
        demand: &Demand,
        empty: bool,
    ) -> Result<Vec<Slice>, Reason> {
        let books = &self.pools[pool.index()];
        let indexes = if empty { &books.usable } else { &books.free };
        let mut best: Option<Reason> = None;
        for (gpu_type, index) in indexes.iter().enumerate() {
            let gpu_type = GpuTypeId::from_index(gpu_type);
            let offered = books.usable.get(gpu_type.index()).map_or(0, FreeIndex::total);
            if demand.gpu_type.is_some_and(|wanted| wanted != gpu_type) || offered == 0 {
                continue;
            }
            let quota = self.admits((tenant, class), gpu_type, demand.gpus);
            // An empty pool still has quotas: only those that bind even then count.
            let binds =
                |reason: &Reason| !empty || matches!(reason, Reason::LargerThanQuota { .. });
            let never = empty.then(|| self.never_lent((tenant, class), gpu_type, demand.gpus));
            if let Some(reason) = quota.err().filter(binds).or(never.flatten()) {
                // With machines in the way of one GPU type and quota in that of another, machines
                // are what can change by evicting; for an empty pool they are not.
                match empty {
                    true => best = Some(reason),
                    false => _ = best.get_or_insert(reason),
                }
                continue;
            }
            let offer = Offer { nodes: &self.nodes, sites: &self.sites, index, empty };
            match self.settings.placer.find(&offer, demand) {
                Ok(placement) => return Ok(placement),
                Err(misfit) => {
                    let (need, free) = (demand.gpus, index.total());
                    let reason = match misfit {
                        Misfit::TooFew => Reason::NotEnoughFree { need, free },
                        Misfit::Shape => {
                            Reason::Fragmented { need, free, largest: index.largest() }
                        }
                        Misfit::Host => Reason::NotEnoughHost { need },
                        Misfit::Site => self.not_admitted(pool, demand, empty),
                    };
                    if best.as_ref().is_none_or(|best| !empty && best.is_quota()) {
                        best = Some(reason);
                    }
                }
            }
        }
        Err(best.unwrap_or(Reason::NotEnoughFree { need: demand.gpus, free: 0 }))
    }

    /// The reason that keeps a job from ever running as inventory and quotas stand, if any.
    pub(crate) fn never_fits(&mut self, key: KeyId) -> Option<Reason> {
        if let Some(verdict) = self.queues.verdict(key, self.generation) {
            return verdict;
        }
        let verdict = self.search_empty_pool(key);
        self.queues.set_verdict(key, self.generation, verdict.clone());
        verdict
    }

    fn search_empty_pool(&self, key: KeyId) -> Option<Reason> {
        let SchedulingKey { pool, tenant, class, demand, .. } = *self.queues.key(key);
        let adds_up = match demand.layout {
            Layout::Consolidated => true,
            Layout::Members(each) => each > 0 && demand.gpus % each == 0,
        };
        if demand.gpus == 0 || !adds_up {
            return Some(Reason::BadDemand);
        }
        match self.find(pool, (tenant, class), &demand, true) {
            Ok(_) => None,
            Err(reason) if reason.is_quota() => Some(reason),
            Err(reason @ Reason::NotAdmitted { .. }) => Some(reason),
            Err(_) => {
                let usable = &self.pools[pool.index()].usable;
                let offers = usable.iter().enumerate().filter(|(gpu_type, _)| {
                    demand.gpu_type.is_none_or(|wanted| wanted.index() == *gpu_type)
                });
                let pool = offers.map(|(_, index)| index.total()).max().unwrap_or(0);
                Some(Reason::LargerThanPool { need: demand.gpus, pool })
            }
        }
    }

    /// Changes a node and keeps the indexes of its pool in step.
    pub(crate) fn with_node<R>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> R) -> R {
        let node = &mut self.nodes[id.index()];
        let counts =
            |node: &Node| (node.open().count(), node.usable().count(), node.obtainable().count());
        let before = counts(node);
        // What a partner needs of a node whose hosts nobody could join.
        let blocked = self.pools[node.spec.pool.index()].hosts.is_blocked(id);
        let lacked = blocked.then(|| (node.unclaimed(), node.host_balance()));
        let result = change(node);
        let after = counts(node);
        let gained = lacked.is_some_and(|(devices, (cpu, memory))| {
            let now = node.host_balance();
            !node.unclaimed().minus(devices).is_empty() || now.0 > cpu || now.1 > memory
        });
        let (pool, gpu_type) = (node.spec.pool, node.spec.gpu_type.index());
        let pool = &mut self.pools[pool.index()];
        pool.free[gpu_type].change(id, before.0, after.0);
        pool.usable[gpu_type].change(id, before.1, after.1);
        pool.obtainable[gpu_type].change(id, before.2, after.2);
        self.note_offer(id, [before.0, after.0], [before.2, after.2]);
        if gained {
            self.unblock(id);
        }
        result
    }

    /// The host resources that a slice of the attempt's placement uses.
    pub(crate) fn host_share(attempt: &Attempt, devices: Devices) -> Resources {
        attempt.per_gpu.times(devices.count())
    }
}
