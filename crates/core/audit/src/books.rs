//! What the auditor believes, from the stream alone.

mod assurance;
pub(crate) mod attempt;
mod events;
mod found;
mod gpu_time;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod pairs;
pub(crate) mod sites;
mod tenants;

use crate::share_rules::ShareRules;
use crate::violation::{Duty, HostUse, Violation};
pub(crate) use assurance::Assurance;
use attempt::{Attempt, Ending};
use deepshare_engine::{
    AttemptState, EngineSettings, EvictReason, Placement, Preemption, RetentionTable,
};
use deepshare_model::{
    AttemptId, Class, Epoch, GpuTime, GpuTypeId, JobId, NodeId, Outcome, PoolId, Resources, SiteId,
    Span, TenantId, Time,
};
use gpu_time::GpuTimes;
use job::Job;
use node::Node;
use pairs::{Joining, Pair};
use sites::Sites;
use std::collections::{BTreeMap, BTreeSet};
use tenants::Tenants;

#[derive(Clone, Debug)]
pub(crate) struct Books {
    pub settings: EngineSettings,
    pub now: Time,
    pub epoch: Epoch,
    pub nodes: Vec<Node>,
    pub sites: Sites,
    pub tenants: Tenants,
    pub jobs: Vec<Job>,
    pub attempts: Vec<Attempt>,
    /// GPUs free and usable, by pool.
    pub pools: Vec<PoolCount>,
    /// Most GPUs that a node of the pool and type ever had: what "a node" means to a wide job.
    pub node_size: BTreeMap<(PoolId, GpuTypeId), u32>,
    /// GPU models seen so far, one above the highest.
    pub gpu_types: usize,
    pub gpu_times: GpuTimes,
    /// GPU time of released attempts.
    pub attempt_time: GpuTime,
    /// Quota assurance degrees, if they are to be checked.
    pub assurance: Option<Assurance>,
    /// What pairs must satisfy; `None` where a device has one holder.
    pub shares: Option<ShareRules>,
    /// By the attempt that joined and the one that was there.
    pub pairs: BTreeMap<(AttemptId, AttemptId), Pair>,
    pub retentions: RetentionTable,
    pub step: Step,
}

/// What this step touched, owes and set free; forgotten when the next begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub nodes: Vec<NodeId>,
    pub jobs: Vec<JobId>,
    pub attempts: Vec<AttemptId>,
    pub tenants: Vec<TenantId>,
    /// Attempts that must end before the step does.
    pub duties: Vec<(AttemptId, Duty)>,
    /// Nodes whose host resources must be covered when the step is over.
    pub host_due: Vec<NodeId>,
    /// Where what is promised must be admitted when the step is over.
    pub sites_due: Vec<(SiteId, NodeId)>,
    /// Attempts declared overdue.
    pub overdue: Vec<AttemptId>,
    /// GPUs of attempts preempted in this step: their quota counts as free.
    pub yielded: BTreeMap<(TenantId, Class, GpuTypeId), u32>,
    /// Who was evicted for whom, in the order decided.
    pub reclaims: Vec<Reclaim>,
    /// Ended because their pairs were slower than they may be.
    pub revoked: Vec<AttemptId>,
    /// Started beside others, with whom they are to be watched.
    pub unwatched: Vec<(AttemptId, AttemptId)>,
    /// Left alone with iterations in more steps than configured.
    pub in_steps: Vec<AttemptId>,
    /// Predictions changed.
    pub retentions: bool,
    /// The policy was asked to decide.
    pub woken: bool,
}

/// Attempts evicted for one job.
#[derive(Clone, Debug)]
pub(crate) struct Reclaim {
    pub beneficiary: JobId,
    pub victims: Vec<AttemptId>,
    /// It was given devices.
    pub served: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolCount {
    pub free: u32,
    pub usable: u32,
}

/// What becomes of a job whose attempt is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Requeue,
    BackOff,
    End(Outcome),
}

impl Books {
    pub fn new(settings: EngineSettings) -> Books {
        Books {
            settings,
            now: Time::ZERO,
            epoch: Epoch::default(),
            nodes: Vec::new(),
            sites: Sites::default(),
            tenants: Tenants::default(),
            jobs: Vec::new(),
            attempts: Vec::new(),
            pools: Vec::new(),
            node_size: BTreeMap::new(),
            gpu_types: 0,
            gpu_times: GpuTimes::default(),
            attempt_time: GpuTime::default(),
            assurance: None,
            shares: None,
            pairs: BTreeMap::new(),
            retentions: RetentionTable::default(),
            step: Step::default(),
        }
    }

    pub fn node(&self, node: NodeId) -> Result<&Node, Violation> {
        self.nodes.get(node.index()).ok_or(Violation::UnknownNode { node })
    }

    pub fn job(&self, job: JobId) -> Result<&Job, Violation> {
        self.jobs.get(job.index()).ok_or(Violation::UnknownJob { job })
    }

    pub fn job_mut(&mut self, job: JobId) -> Result<&mut Job, Violation> {
        let entry = self.jobs.get_mut(job.index()).ok_or(Violation::UnknownJob { job })?;
        self.step.jobs.push(job);
        Ok(entry)
    }

    /// An attempt that a command names.
    pub fn attempt(&self, attempt: AttemptId) -> Result<&Attempt, Violation> {
        self.attempts.get(attempt.index()).ok_or(Violation::UnknownAttempt { attempt })
    }

    pub fn live_attempts(&self) -> impl Iterator<Item = (AttemptId, &Attempt)> {
        let live = self.jobs.iter().filter_map(|job| job.live);
        live.map(|id| (id, &self.attempts[id.index()]))
    }

    fn pool_mut(&mut self, pool: PoolId) -> &mut PoolCount {
        if self.pools.len() <= pool.index() {
            self.pools.resize(pool.index() + 1, PoolCount::default());
        }
        &mut self.pools[pool.index()]
    }

    /// Changes a known node, and every sum over nodes with it.
    pub fn change_node(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        self.step.nodes.push(id);
        self.leave_sums(id);
        change(&mut self.nodes[id.index()]);
        self.enter_sums(id);
    }

    fn leave_sums(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        let (shares, usable, pool) = (node.shares(), node.usable().count(), node.spec.pool);
        self.gpu_times.remove(&shares);
        let pool = self.pool_mut(pool);
        pool.free -= shares.free.count();
        pool.usable -= usable;
    }

    fn enter_sums(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        let (shares, usable, spec) = (node.shares(), node.usable().count(), &node.spec);
        let (pool, gpu_type, gpus) = (spec.pool, spec.gpu_type, spec.gpus);
        self.gpu_times.add(&shares);
        let count = self.pool_mut(pool);
        count.free += shares.free.count();
        count.usable += usable;
        let size = self.node_size.entry((pool, gpu_type)).or_default();
        *size = gpus.max(*size);
        self.gpu_types = self.gpu_types.max(gpu_type.index() + 1);
    }

    /// Books a new attempt: reserved, until [`Books::occupy`] starts it.
    pub fn promise(
        &mut self,
        id: AttemptId,
        job: JobId,
        charged: Class,
        placement: &Placement,
        (joins, steps): (Vec<Joining>, u32),
    ) {
        let gpu_type = self.nodes[placement[0].node.index()].spec.gpu_type;
        for slice in placement {
            self.change_node(slice.node, |node| node.claim(slice.devices, id));
        }
        let spec = &self.jobs[job.index()].spec;
        let (tenant, gpus) = (spec.tenant, spec.demand.gpus);
        self.tenants.charge((tenant, charged), gpu_type, gpus);
        self.step.tenants.push(tenant);
        self.count_members(job, placement, (1, 0));
        let entry = &mut self.jobs[job.index()];
        (entry.live, entry.last) = (Some(id), Some(id));
        entry.refused = false;
        entry.backing_off = None;
        self.step.jobs.push(job);
        self.step.attempts.push(id);
        self.attempts.push(Attempt {
            job,
            epoch: self.epoch,
            charged,
            placement: placement.clone(),
            gpu_type,
            gpus,
            per_gpu: self.jobs[job.index()].spec.demand.per_gpu,
            resizes_from: None,
            shrunk_at: None,
            rigid: false,
            reached: AttemptState::Reserved,
            ending: None,
            broken: false,
            started_at: None,
            has_run: false,
            ran_since: None,
            spared_until: Time::ZERO,
            joins,
            steps,
        });
        for reclaim in &mut self.step.reclaims {
            reclaim.served |= reclaim.beneficiary == job;
        }
    }

    /// Charges an attempt's devices to its tenant's quota from now on.
    pub fn promote(&mut self, id: AttemptId) {
        let attempt = &mut self.attempts[id.index()];
        let (gpu_type, before) = (attempt.gpu_type, attempt.charged);
        attempt.charged = Class::Guaranteed;
        let (tenant, gpus) = (self.jobs[attempt.job.index()].spec.tenant, attempt.gpus);
        self.tenants.refund((tenant, before), gpu_type, gpus);
        self.tenants.charge((tenant, Class::Guaranteed), gpu_type, gpus);
        self.step.tenants.push(tenant);
        self.step.attempts.push(id);
    }

    /// Moves a reserved attempt onto its devices.
    pub fn occupy(&mut self, id: AttemptId) {
        self.step.attempts.push(id);
        let attempt = &mut self.attempts[id.index()];
        attempt.reached = AttemptState::Binding;
        attempt.started_at = Some(self.now);
        let (job, placement) = (attempt.job, attempt.placement.clone());
        self.count_members(job, &placement, (-1, 1));
        let devices = placement
            .iter()
            .flat_map(|slice| slice.devices.iter().map(|device| (slice.node, device)));
        let holders = devices.filter_map(|(node, device)| {
            self.nodes[node.index()].holders[device as usize].first().copied()
        });
        let hosts: BTreeSet<AttemptId> = holders.collect();
        self.step.unwatched = hosts.into_iter().map(|host| (id, host)).collect();
        for slice in placement {
            self.change_node(slice.node, |node| {
                node.unclaim(slice.devices, id);
                node.hold(slice.devices, id);
            });
        }
    }

    pub fn begin_eviction(
        &mut self,
        id: AttemptId,
        reason: EvictReason,
        preemption: Option<Preemption>,
    ) {
        self.step.attempts.push(id);
        if let Some(Preemption { beneficiary, .. }) = preemption {
            let known = self.step.reclaims.iter_mut().find(|r| r.beneficiary == beneficiary);
            match known {
                Some(reclaim) => reclaim.victims.push(id),
                None => {
                    let victims = vec![id];
                    self.step.reclaims.push(Reclaim { beneficiary, victims, served: false });
                }
            }
        }
        let attempt = &mut self.attempts[id.index()];
        attempt.ending = Some(Ending::Evicted(reason));
        if reason == EvictReason::SlowdownLimit {
            self.remember(id);
        }
        let attempt = &mut self.attempts[id.index()];
        if matches!(reason, EvictReason::Degraded | EvictReason::SlowdownLimit) {
            self.step.revoked.push(id);
        }
        if reason.is_chosen() {
            let (gpu_type, charged, gpus) = (attempt.gpu_type, attempt.charged, attempt.gpus);
            for tenant in self.tenants.lineage(self.jobs[attempt.job.index()].spec.tenant) {
                *self.step.yielded.entry((tenant, charged, gpu_type)).or_default() += gpus;
            }
        }
    }

    /// Ends an attempt, reserved or started, and says what becomes of its job.
    pub fn release(&mut self, id: AttemptId, after: After) {
        self.step.attempts.push(id);
        let attempt = &mut self.attempts[id.index()];
        let reserved = attempt.is_reserved();
        attempt.reached = AttemptState::Released;
        let placement = std::mem::take(&mut attempt.placement);
        let (job, gpu_type, started_at) = (attempt.job, attempt.gpu_type, attempt.started_at);
        let (charged, gpus) = (attempt.charged, attempt.gpus);
        if reserved {
            self.count_members(job, &placement, (-1, 0));
        }
        let partners = self.partners_of(id);
        self.part(id);
        let alone = partners.iter().map(|&(partner, _)| partner).filter(|&partner| {
            let attempt = &self.attempts[partner.index()];
            attempt.is_evictable() && attempt.steps > 1 && self.pairs_of(partner).next().is_none()
        });
        let alone: Vec<AttemptId> = alone.collect();
        self.step.in_steps.extend(alone);
        for slice in placement {
            self.change_node(slice.node, |node| {
                node.unclaim(slice.devices, id);
                node.vacate(slice.devices, id);
            });
        }
        let tenant = self.jobs[job.index()].spec.tenant;
        self.tenants.refund((tenant, charged), gpu_type, gpus);
        self.step.tenants.push(tenant);
        let held = started_at.map_or(Span::ZERO, |at| self.now.saturating_since(at));
        self.attempt_time += held.on(gpus);
        let until = self.now + self.pause(job);
        self.step.jobs.push(job);
        let entry = &mut self.jobs[job.index()];
        entry.held_time += held;
        entry.live = None;
        match after {
            After::End(outcome) => entry.end(outcome),
            _ if entry.cancelled => entry.end(Outcome::Cancelled),
            After::Requeue => {}
            After::BackOff => {
                entry.failed_starts += 1;
                entry.backing_off = (!entry.held).then_some(until);
            }
        }
    }

    /// Books that a preempted job's devices are released. If it was preempted before within the
    /// hour, it pauses: doubled each time.
    pub fn note_preemption(&mut self, id: JobId) {
        let (now, settings) = (self.now, self.settings);
        let job = &mut self.jobs[id.index()];
        let before = job.preempted_within_hour(now);
        job.preempted_at.push(now);
        if before == 0 || job.held || job.ended.is_some() {
            return;
        }
        let doublings = (before - 1).min(32);
        let pause = settings.preempted_pause.0.saturating_mul(1 << doublings);
        let until = now + Span(pause.min(settings.backoff_max.0.saturating_mul(10)));
        job.backing_off = Some(until).filter(|&until| until > now);
    }

    /// How long the job pauses if its start fails now: doubled with each failure in a row.
    fn pause(&self, job: JobId) -> Span {
        let failures = self.jobs[job.index()].failed_starts.min(32);
        let pause = self.settings.backoff_first.0.saturating_mul(1 << failures);
        Span(pause.min(self.settings.backoff_max.0))
    }

    /// CPU and memory of a node used by what is there and promised there, device by device: `counted`
    /// says what an attempt counts beside each.
    pub fn host_use(&self, id: NodeId, counted: impl Fn(&Attempt) -> Option<Resources>) -> HostUse {
        let node = &self.nodes[id.index()];
        let mut used = HostUse::default();
        for attempt in node.holders.iter().flatten().chain(node.claimant.iter().flatten()) {
            let attempt = &self.attempts[attempt.index()];
            if let Some(per_gpu) = counted(attempt) {
                used.add(per_gpu, 1);
            }
        }
        used
    }

    /// Attempts whose devices, held or promised, are on the node.
    pub fn attempts_on(&self, id: NodeId) -> Vec<AttemptId> {
        let node = &self.nodes[id.index()];
        let mut found: Vec<_> =
            node.holders.iter().flatten().chain(node.claimant.iter().flatten()).copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Claimants of an attempt's devices, those apart who are to share them with it.
    pub fn claimants_over(&self, holder: AttemptId) -> Vec<AttemptId> {
        let slices = self.attempts[holder.index()].placement.iter();
        let mut found: Vec<_> = slices
            .flat_map(|slice| {
                let node = &self.nodes[slice.node.index()];
                slice.devices.iter().filter_map(|device| node.claimant[device as usize])
            })
            .collect();
        found.retain(|&id| {
            !self.attempts[id.index()].joins.iter().any(|joins| joins.host == holder)
        });
        found.sort_unstable();
        found.dedup();
        found
    }
}
