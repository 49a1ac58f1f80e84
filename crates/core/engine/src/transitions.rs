//! What moves jobs and attempts from state to state, and keeps the books in step.

use crate::attempt::{Attempt, AttemptState, Counted, Slice};
use crate::command::{Command, EvictReason, Preemption};
use crate::job::{Job, JobState};
use crate::qad::Degree;
use crate::queue::{KeyId, SchedulingKey};
use crate::settings::CapacityMode;
use crate::sharing::asks::AskId;
use crate::site::Members;
use crate::state::State;
use deepshare_model::{
    AttemptId, Class, Devices, GpuTypeId, JobId, NodeId, PoolId, Resources, Span, TenantId, Time,
};

impl State {
    /// Takes a waiting job out of its queue.
    pub(crate) fn leave_queue(&mut self, job: JobId) {
        let entry = &self.jobs[job.index()];
        let (key, ask, since) = (entry.key, entry.ask, entry.queued_at);
        let pool = self.queues.key(key).pool.index();
        if self.queues.remove((key, ask), (entry.rank, job), since) {
            self.pools[pool].active_keys.remove(&key);
        }
        self.sync_asking(key, ask);
        self.pools[pool].waiting -= 1;
        self.count_waiting(job, false);
    }

    /// Puts a job into its queue under the rank it has.
    pub(crate) fn join_queue(&mut self, job: JobId) {
        let entry = &self.jobs[job.index()];
        let (key, ask, since) = (entry.key, entry.ask, entry.queued_at);
        let pool = self.queues.key(key).pool.index();
        if self.queues.insert((key, ask), (entry.rank, job), since) {
            self.pools[pool].active_keys.insert(key);
            self.key_filled(key);
        }
        self.sync_asking(key, ask);
        self.pools[pool].waiting += 1;
        self.count_waiting(job, true);
    }

    /// Keeps the list of who looks for partners in step with a queue.
    fn sync_asking(&mut self, key: KeyId, ask: Option<AskId>) {
        let Some(ask) = ask else { return };
        let SchedulingKey { pool, tenant, .. } = *self.queues.key(key);
        let first = self.queues.first_asking(key, ask);
        self.pools[pool.index()].hosts.asks.set_first(ask, (tenant, key), first);
    }

    fn count_waiting(&mut self, job: JobId, waits: bool) {
        let spec = &self.jobs[job.index()].spec;
        let (tenant, class, gpus) = (spec.tenant, spec.class, u64::from(spec.demand.gpus));
        if self.waiting_gpus.len() <= tenant.index() {
            self.waiting_gpus.resize(tenant.index() + 1, [0; 2]);
        }
        let waiting = &mut self.waiting_gpus[tenant.index()][class as usize];
        *waiting = if waits { *waiting + gpus } else { *waiting - gpus };
    }

    /// A job joined its queue: worth a round unless its kind sleeps and is not the first there to look
    /// for such a partner.
    pub(crate) fn look_at(&mut self, job: JobId) {
        let Job { key, ask, .. } = *self.job(job);
        let pool = self.queues.key(key).pool;
        let is_new = ask.is_some_and(|ask| self.asks(pool).is_new(ask, key));
        if is_new || self.is_awake(key) {
            self.pools[pool.index()].dirty = true;
        }
    }

    fn billing(&self, attempt: &Attempt) -> (TenantId, Class, GpuTypeId, u32) {
        let spec = &self.job(attempt.job).spec;
        let gpu_type = self.nodes[attempt.placement[0].node.index()].spec.gpu_type;
        // What it holds: a job that was found may hold less than it asks for.
        (spec.tenant, attempt.charged, gpu_type, attempt.gpus())
    }

    /// Moves a job to another state, and its demand along.
    pub(crate) fn set_job_state(&mut self, job: JobId, state: JobState) {
        self.jobs[job.index()].state = state;
        self.sync_demand(job);
    }

    /// Keeps the guaranteed demand of a job's tenant in step: jobs that wait or pause, and those
    /// that hold or are promised devices as guaranteed. A spilled job is served, if not as it was
    /// promised, and demands nothing until it is promoted or preempted. A waiting job that takes
    /// any GPU type counts under the one of which its tenant was promised most.
    fn sync_demand(&mut self, job: JobId) {
        let entry = &self.jobs[job.index()];
        let demand = entry.spec.demand;
        let wanted = match entry.state {
            _ if entry.spec.class != Class::Guaranteed => None,
            JobState::Waiting | JobState::BackingOff { .. } => {
                let quota = &self.tenants.spec(entry.spec.tenant).quota;
                Some(demand.gpu_type.unwrap_or_else(|| quota.largest()))
            }
            JobState::Active(attempt) => {
                let attempt = self.attempt(attempt);
                let node = attempt.placement.first().map(|slice| slice.node);
                let gpu_type = node.map(|node| self.nodes[node.index()].spec.gpu_type);
                gpu_type.filter(|_| attempt.charged == Class::Guaranteed)
            }
            JobState::Held | JobState::Unrunnable(_) | JobState::Ended(_) => None,
        };
        let (tenant, before) = (entry.spec.tenant, entry.demands);
        if wanted == before {
            return;
        }
        let gpus = i64::from(demand.gpus);
        for (gpu_type, gpus) in [(before, -gpus), (wanted, gpus)] {
            if let Some(gpu_type) = gpu_type {
                self.change_account(tenant, gpu_type, (gpus, 0));
            }
        }
        self.jobs[job.index()].demands = wanted;
    }

    /// Counts a tenant's waiting jobs that take any GPU type anew, after its quotas changed.
    pub(crate) fn recount_demand(&mut self, tenant: TenantId) {
        let pools = (0..self.pools.len()).map(PoolId::from_index);
        let keys = pools.flat_map(|pool| self.active_keys(pool));
        let untyped = keys.filter(|&key| {
            let key = self.queues.key(key);
            key.tenant == tenant && key.demand.gpu_type.is_none()
        });
        let waiting = untyped.flat_map(|key| self.waiting_of(key));
        let pausing = self.timers.iter().map(|&(_, job)| job);
        for job in waiting.chain(pausing).collect::<Vec<_>>() {
            self.sync_demand(job);
        }
    }

    /// Changes what a tenant's guaranteed jobs demand and hold.
    pub(crate) fn change_account(
        &mut self,
        tenant: TenantId,
        gpu_type: GpuTypeId,
        change: (i64, i64),
    ) {
        let (quota, slot) = (self.tenants.spec(tenant).quota.of(gpu_type), self.qad_slot());
        self.qad.change((tenant, gpu_type), change, quota, slot);
    }

    /// Moves an attempt to another state, and what the books hold of it along.
    pub(crate) fn set_attempt_state(&mut self, id: AttemptId, state: AttemptState) {
        self.attempts[id.index()].state = state;
        let pool = self.pool_of(self.attempt(id).job).index();
        match state {
            AttemptState::Terminating => _ = self.pools[pool].ending.insert(id),
            _ => _ = self.pools[pool].ending.remove(&id),
        }
        self.sync_attempt(id);
    }

    /// Keeps tenants' accounts and what is reclaimable in step with an attempt.
    pub(crate) fn sync_attempt(&mut self, id: AttemptId) {
        let attempt = self.attempt(id);
        let guaranteed = attempt.charged == Class::Guaranteed;
        let holds = (AttemptState::Binding..AttemptState::Released).contains(&attempt.state);
        let evictable = attempt.is_evictable();
        let end = self.expected_end(attempt);
        let reclaimable = (!guaranteed && evictable).then_some(end);
        let wanted = Counted {
            held: guaranteed && holds,
            until: holds.then_some(if evictable { end } else { self.now }),
            reclaimable,
            leads: self.leads(attempt, reclaimable),
            spilled: !guaranteed
                && evictable
                && self.job(attempt.job).spec.class == Class::Guaranteed,
            host: self.host_kind(attempt).map(|kind| (kind, end)),
        };
        let before = attempt.counted;
        if wanted == before {
            return;
        }
        self.attempts[id.index()].counted = wanted;
        if wanted.until != before.until {
            for slice in &self.attempts[id.index()].placement {
                self.nodes[slice.node.index()].emptying_changed = true;
            }
        }
        if wanted.host != before.host {
            self.sync_host(id, before.host, wanted.host);
        }
        if wanted.held != before.held {
            let (tenant, _, gpu_type, gpus) = self.billing(self.attempt(id));
            let gpus = i64::from(gpus) * if wanted.held { 1 } else { -1 };
            self.change_account(tenant, gpu_type, (0, gpus));
        }
        let job = self.attempt(id).job;
        let (pool, spec) = (self.pool_of(job).index(), &self.jobs[job.index()].spec);
        let spilled = (spec.tenant, spec.submit, id);
        let pool = &mut self.pools[pool];
        if let Some(end) = before.reclaimable {
            pool.reclaimable.remove(&(end, id));
        }
        if let Some(end) = wanted.reclaimable {
            pool.reclaimable.insert((end, id));
        }
        if wanted.spilled {
            pool.spilled.insert(spilled);
            // Its quota may have come to have room while it was only promised devices.
            pool.sleepers.note_freed(spilled.0);
        } else {
            pool.spilled.remove(&spilled);
        }
        self.sync_leads(id, before.leads);
        if wanted.reclaimable != before.reclaimable {
            for partner in self.partners(id) {
                let (partner, leads) = (self.attempt(partner), self.attempt(partner).counted.leads);
                let (id, wanted) = (partner.id, self.leads(partner, partner.counted.reclaimable));
                self.attempts[id.index()].counted.leads = wanted;
                self.sync_leads(id, leads);
            }
        }
        if wanted.reclaimable.is_some() != before.reclaimable.is_some() {
            let placement = self.attempt(id).placement.clone();
            self.sync_reclaimable(&placement);
            // What it can be shrunk by may let a guaranteed job join somebody there.
            let nodes = placement.iter().map(|slice| slice.node);
            nodes.filter(|_| wanted.reclaimable.is_some()).for_each(|node| self.unblock(node));
        }
    }

    /// Whether an attempt that is expected to end then, if it is reclaimable, is the first to end of
    /// all who share its devices, and all of them are reclaimable.
    fn leads(&self, attempt: &Attempt, end: Option<Time>) -> Option<(GpuTypeId, Time)> {
        let end = end?;
        let first = attempt.beside.iter().all(|beside| {
            let theirs = self.attempt(beside.partner).counted.reclaimable;
            theirs.is_some_and(|theirs| (end, attempt.id) < (theirs, beside.partner))
        });
        let node = attempt.placement.first()?.node;
        first.then(|| (self.nodes[node.index()].spec.gpu_type, end))
    }

    /// Keeps the index of attempts that lead in step.
    fn sync_leads(&mut self, id: AttemptId, before: Option<(GpuTypeId, Time)>) {
        let attempt = self.attempt(id);
        let (wanted, pool) = (attempt.counted.leads, self.pool_of(attempt.job).index());
        if wanted == before {
            return;
        }
        let parties = &mut self.pools[pool].parties;
        if let Some((gpu_type, end)) = before {
            parties.remove(&(gpu_type, end, id));
        }
        if let Some((gpu_type, end)) = wanted {
            parties.insert((gpu_type, end, id));
        }
    }

    /// Works out which devices have none but residents that can be evicted.
    pub(crate) fn sync_reclaimable(&mut self, placement: &[Slice]) {
        for slice in placement {
            let node = &self.nodes[slice.node.index()];
            let reclaimable = slice.devices.iter().filter(|&device| {
                let mut residents = node.residents(device).iter();
                residents.len() > 0
                    && residents.all(|&id| self.attempt(id).counted.reclaimable.is_some())
            });
            let reclaimable = reclaimable.fold(Devices::NONE, |all, d| all.union(Devices(1 << d)));
            self.with_node(slice.node, |node| {
                node.reclaimable = node.reclaimable.minus(slice.devices).union(reclaimable);
            });
        }
    }

    /// Works out when the last of a node's residents is expected to leave, if that has changed.
    pub(crate) fn refresh_emptying(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        if !node.emptying_changed {
            return;
        }
        let residents = node.held().iter().flat_map(|device| node.residents(device));
        let last = residents.filter_map(|&id| self.attempt(id).counted.until).max();
        let node = &mut self.nodes[id.index()];
        node.empties_at = last.unwrap_or(Time::ZERO);
        node.emptying_changed = false;
    }

    /// When an attempt is expected to end; never, without an estimate. Fixed while its speed is.
    fn expected_end(&self, attempt: &Attempt) -> Time {
        let Some(left) = self.job(attempt.job).left_at_start() else { return Time::MAX };
        let since = match attempt.running_since {
            None => return self.now + left,
            Some(since) => since.max(attempt.rate_since),
        };
        since + attempt.rate().time_for(left.saturating_sub(attempt.worked))
    }

    /// Charges an attempt's devices to another class of its tenant.
    pub(crate) fn recharge(&mut self, id: AttemptId, class: Class) {
        self.charge_attempt(id, false);
        let (tenant, charged, ..) = self.billing(self.attempt(id));
        self.wake_for_quota(self.pool_of(self.attempt(id).job), tenant, charged);
        self.attempts[id.index()].charged = class;
        self.charge_attempt(id, true);
        self.sync_attempt(id);
        let job = self.attempt(id).job;
        self.sync_demand(job);
    }

    /// Charges an attempt's devices to its tenant, or refunds them.
    pub(crate) fn charge_attempt(&mut self, attempt: AttemptId, charge: bool) {
        let (tenant, class, gpu_type, gpus) = self.billing(self.attempt(attempt));
        if charge {
            self.tenants.charge(tenant, class, gpu_type, gpus);
        } else {
            self.tenants.refund(tenant, class, gpu_type, gpus);
        }
    }

    /// Charges every live attempt anew, after tenants changed parents.
    pub(crate) fn bill_anew(&mut self) {
        self.tenants.clear_use();
        let live: Vec<AttemptId> =
            self.pools.iter().flat_map(|pool| pool.live.iter().copied()).collect();
        for attempt in live {
            self.charge_attempt(attempt, true);
        }
    }

    /// Returns what a reserved attempt was promised. The attempt may be out of its table already.
    pub(crate) fn forget_claim(&mut self, attempt: &Attempt) {
        for slice in &attempt.placement {
            let host = State::host_share(attempt, slice.devices);
            let kept = self.claimed_by_hosts(attempt, slice.node);
            self.with_node(slice.node, |node| {
                node.claimed = node.claimed.minus(slice.devices.minus(kept));
                node.give_host(host);
            });
            self.tell_new_pool(slice.node, attempt.job);
        }
        self.count_members(attempt.job, &attempt.placement, Members::Returned);
        let (tenant, class, gpu_type, gpus) = self.billing(attempt);
        self.tenants.refund(tenant, class, gpu_type, gpus);
        let pool = self.pool_of(attempt.job).index();
        self.pools[pool].live.remove(&attempt.id);
    }

    /// Devices of a node that are promised to those whom an attempt was to join.
    fn claimed_by_hosts(&self, attempt: &Attempt, node: NodeId) -> Devices {
        let hosts = attempt.company.iter().map(|company| self.attempt(company.host));
        let reserved = hosts.filter(|host| host.state == AttemptState::Reserved);
        let slices = reserved.flat_map(|host| &host.placement).filter(|slice| slice.node == node);
        slices.fold(Devices::NONE, |all, slice| all.union(slice.devices))
    }

    /// Starts a newly placed attempt if nobody stands in its way, else reserves its devices.
    pub(crate) fn settle(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        if self.await_holders(id) {
            let attempt = self.attempt(id);
            let (job, charged) = (attempt.job, attempt.charged);
            let placement = attempt.placement.clone();
            self.jobs[job.index()].last_attempt = Some(id);
            out.push(Command::Reserve { attempt: id, job, charged, placement });
        } else {
            self.start(id, out);
        }
    }

    /// True if a node has the CPU and memory for all that stays there or is promised there.
    pub(crate) fn covers_host(&self, id: NodeId) -> bool {
        let node = &self.nodes[id.index()];
        let (mut cpu, mut memory) = node.host_balance();
        for device in node.held().iter() {
            let residents = node.residents(device).iter().map(|&id| self.attempt(id));
            for leaving in residents.filter(|attempt| attempt.state == AttemptState::Terminating) {
                cpu += leaving.per_gpu.cpu_milli as i64;
                memory += leaving.per_gpu.memory_mib as i64;
            }
        }
        cpu >= 0 && memory >= 0
    }

    /// Takes over a tenant's Q̃ from an earlier engine.
    pub(crate) fn restore_assurance(
        &mut self,
        tenant: TenantId,
        gpu_type: GpuTypeId,
        smoothed: Degree,
    ) {
        if tenant.index() >= self.tenants.all.len() {
            return;
        }
        let slot = self.qad_slot();
        self.qad.restore((tenant, gpu_type), smoothed, slot);
        let pool = self.tenants.spec(tenant).pool;
        self.pools[pool.index()].dirty = true;
    }

    /// Looks again at what a reserved attempt waits for, after quotas changed.
    pub(crate) fn look_again(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        for holder in std::mem::take(&mut self.attempts[id.index()].awaits) {
            self.attempts[holder.index()].waiters.retain(|&waiter| waiter != id);
        }
        if !self.await_holders(id) {
            self.start(id, out);
        }
    }

    /// Lets an attempt wait for whoever stands in its way, and says whether anybody does.
    fn await_holders(&mut self, id: AttemptId) -> bool {
        let awaits = self.in_the_way(id);
        for &holder in &awaits {
            self.attempts[holder.index()].waiters.push(id);
        }
        let waits = !awaits.is_empty();
        self.attempts[id.index()].awaits = awaits;
        waits
    }

    /// Who has to end or give before a placed attempt can start.
    pub(crate) fn in_the_way(&self, id: AttemptId) -> Vec<AttemptId> {
        let mut awaits = Vec::new();
        let attempt = self.attempt(id);
        for slice in &attempt.placement {
            let node = &self.nodes[slice.node.index()];
            // Beside the holders of its own devices, a start waits for every ending attempt of a
            // node whose CPU or memory was promised on the strength of their leaving.
            let devices = if node.host_overdrawn() { node.held() } else { slice.devices };
            for device in devices.iter() {
                awaits.extend(node.residents(device));
            }
        }
        awaits.extend(self.holders_of_its_quota(attempt));
        awaits.retain(|&holder| self.attempt(holder).state == AttemptState::Terminating);
        awaits.extend(self.shrinking_beside(attempt));
        awaits.sort_unstable();
        awaits.dedup();
        awaits
    }

    /// Attempts whose CPU and memory an attempt may have been promised before they gave it.
    fn shrinking_beside(&self, attempt: &Attempt) -> Vec<AttemptId> {
        if self.resizes == 0 || attempt.per_gpu == Resources::default() {
            return Vec::new();
        }
        let nodes = attempt.placement.iter().map(|slice| &self.nodes[slice.node.index()]);
        let residents = nodes.flat_map(|node| {
            node.held().iter().flat_map(|device| node.residents(device).iter().copied())
        });
        residents.filter(|&id| self.attempt(id).is_shrinking()).collect()
    }

    /// Ending attempts that use the quota an attempt was promised, where more was promised than there
    /// is.
    fn holders_of_its_quota(&self, attempt: &Attempt) -> Vec<AttemptId> {
        let mode = self.settings.capacity;
        let (tenant, class, gpu_type, _) = self.billing(attempt);
        let over: Vec<TenantId> = self.tenants.overdrawn(mode, (tenant, class), gpu_type).collect();
        if over.is_empty() {
            return Vec::new();
        }
        let uses = |other: &AttemptId| {
            let other = self.attempt(*other);
            let theirs = self.job(other.job).spec.tenant;
            let same = mode == CapacityMode::Hard || other.charged == class;
            same && self.tenants.lineage(theirs).any(|above| over.contains(&above))
        };
        let pool = self.pool_of(attempt.job).index();
        self.pools[pool].ending.iter().copied().filter(uses).collect()
    }

    fn start(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let (job, placement) = (self.attempt(id).job, self.attempt(id).placement.clone());
        let epoch = self.epoch;
        for slice in &placement {
            self.with_node(slice.node, |node| {
                node.claimed = node.claimed.minus(slice.devices);
                node.move_in(slice.devices, id);
            });
        }
        self.count_members(job, &placement, Members::Started);
        self.attempts[id.index()].epoch = epoch;
        let mut watch = Vec::new();
        self.join(id, &mut watch);
        self.set_attempt_state(id, AttemptState::Binding);
        if !watch.is_empty() {
            self.sync_reclaimable(&placement);
        }
        self.jobs[job.index()].last_attempt = Some(id);
        let Attempt { charged, steps, .. } = *self.attempt(id);
        out.push(Command::Start { attempt: id, epoch, job, charged, placement, steps });
        out.append(&mut watch);
    }

    /// Asks the world to end an attempt.
    pub(crate) fn begin_eviction(
        &mut self,
        id: AttemptId,
        reason: EvictReason,
        out: &mut Vec<Command>,
    ) {
        self.evict(id, reason, None, out);
    }

    /// Asks the world to end an attempt in favour of another job.
    pub(crate) fn preempt(
        &mut self,
        id: AttemptId,
        preemption: Option<Preemption>,
        out: &mut Vec<Command>,
    ) {
        self.evict(id, EvictReason::Preempted, preemption, out);
    }

    fn evict(
        &mut self,
        id: AttemptId,
        reason: EvictReason,
        preemption: Option<Preemption>,
        out: &mut Vec<Command>,
    ) {
        let (epoch, grace) = (self.epoch, self.settings.grace);
        let attempt = &mut self.attempts[id.index()];
        attempt.eviction = Some((reason, attempt.state));
        self.set_attempt_state(id, AttemptState::Terminating);
        let grace = if reason == EvictReason::NodeLost { Span::ZERO } else { grace };
        out.push(Command::Evict { attempt: id, epoch, reason, grace, preemption });
    }

    /// Gives up a reservation; the caller decides what becomes of the job.
    pub(crate) fn drop_reservation(&mut self, id: AttemptId, out: &mut Vec<Command>) -> JobId {
        let attempt = &mut self.attempts[id.index()];
        attempt.state = AttemptState::Released;
        let awaits = std::mem::take(&mut attempt.awaits);
        let attempt = attempt.clone();
        for holder in awaits {
            self.attempts[holder.index()].waiters.retain(|&waiter| waiter != id);
        }
        self.forget_claim(&attempt);
        self.attempts[id.index()].placement = Vec::new();
        let (pool, tenant) = (self.pool_of(attempt.job), self.job(attempt.job).spec.tenant);
        self.wake_for_quota(pool, tenant, attempt.charged);
        self.pools[pool.index()].dirty = true;
        out.push(Command::ReleaseReservation { attempt: id });
        attempt.job
    }

    /// Frees a started attempt's devices, starts whoever waited for them, and books its progress.
    /// The caller decides what becomes of the job.
    pub(crate) fn release(&mut self, id: AttemptId, out: &mut Vec<Command>) -> JobId {
        self.charge_attempt(id, false);
        let (tenant, charged, ..) = self.billing(self.attempt(id));
        self.wake_for_quota(self.pool_of(self.attempt(id).job), tenant, charged);
        self.set_attempt_state(id, AttemptState::Released);
        let attempt = &mut self.attempts[id.index()];
        let job = attempt.job;
        let placement = std::mem::take(&mut attempt.placement);
        let waiters = std::mem::take(&mut attempt.waiters);
        let (running_since, per_gpu) = (attempt.running_since, attempt.per_gpu);
        if attempt.resizing.take().is_some() {
            self.resizes -= 1;
        }
        let shared = !attempt.beside.is_empty();
        self.forget_growth(id);
        let worked = self.worked(self.attempt(id));
        for slice in &placement {
            let host = per_gpu.times(slice.devices.count());
            self.with_node(slice.node, |node| {
                node.move_out(slice.devices, id);
                node.give_host(host);
            });
            self.note_room(slice.node);
            self.tell_new_pool(slice.node, job);
        }
        if shared {
            self.part(id, out);
            self.sync_reclaimable(&placement);
        }
        let pool = self.pool_of(job).index();
        self.pools[pool].live.remove(&id);
        self.pools[pool].dirty = true;
        let stint = running_since.map_or(Span::ZERO, |since| self.now.saturating_since(since));
        self.book_progress(job, stint, worked);
        self.release_waiters(id, waiters, out);
        job
    }

    /// Starts whoever waited for an attempt, and for nobody else.
    pub(crate) fn release_waiters(
        &mut self,
        id: AttemptId,
        waiters: Vec<AttemptId>,
        out: &mut Vec<Command>,
    ) {
        for waiter in waiters {
            let awaits = &mut self.attempts[waiter.index()].awaits;
            awaits.retain(|&holder| holder != id);
            if awaits.is_empty() {
                self.start(waiter, out);
            }
        }
    }

    /// A node that changed pools gives what its old pool's jobs leave to its new pool, which has no
    /// other way to know.
    fn tell_new_pool(&mut self, node: NodeId, job: JobId) {
        let pool = self.nodes[node.index()].spec.pool;
        if pool != self.pool_of(job) {
            self.pools[pool.index()].dirty = true;
            self.generation += 1;
        }
    }

    /// Adds a finished stint to the job's books. Without a report of what was saved, everything
    /// after the restart it owed counts as kept.
    fn book_progress(&mut self, job: JobId, stint: Span, worked: Span) {
        let entry = &mut self.jobs[job.index()];
        entry.served += stint;
        let restart_paid = worked.min(entry.restart);
        let done = entry.work + (worked - restart_paid);
        entry.restart -= restart_paid;
        entry.lost += restart_paid;
        match entry.saved.take() {
            Some((work, restart)) => {
                entry.lost += done.saturating_sub(work);
                (entry.work, entry.restart) = (work, restart);
            }
            None => entry.work = done,
        }
    }

    /// Ends a job that is in no queue. The first news of an end counts.
    pub(crate) fn end_job(&mut self, job: JobId, outcome: deepshare_model::Outcome) {
        if !matches!(self.job(job).state, JobState::Ended(_)) {
            self.set_job_state(job, JobState::Ended(outcome));
        }
    }
}
