//! What moves jobs and attempts from state to state, and keeps the books in step.

use crate::attempt::{Attempt, AttemptState};
use crate::command::{Command, EvictReason};
use crate::job::JobState;
use crate::settings::CapacityMode;
use crate::state::State;
use deepshare_model::{AttemptId, Class, GpuTypeId, JobId, NodeId, Span, TenantId};

impl State {
    /// Takes a waiting job out of its queue.
    pub(crate) fn leave_queue(&mut self, job: JobId) {
        let entry = &self.jobs[job.index()];
        let (key, rank) = (entry.key, entry.rank);
        let pool = self.queues.key(key).pool.index();
        if self.queues.remove(key, rank, job) {
            self.pools[pool].active_keys.remove(&key);
        }
        self.pools[pool].waiting -= 1;
    }

    /// Puts a job into its queue under the rank it has.
    pub(crate) fn join_queue(&mut self, job: JobId) {
        let entry = &self.jobs[job.index()];
        let (key, rank) = (entry.key, entry.rank);
        let pool = self.queues.key(key).pool.index();
        if self.queues.insert(key, rank, job) {
            self.pools[pool].active_keys.insert(key);
        }
        self.pools[pool].waiting += 1;
    }

    fn billing(&self, attempt: &Attempt) -> (TenantId, Class, GpuTypeId, u32) {
        let spec = &self.job(attempt.job).spec;
        let gpu_type = self.nodes[attempt.placement[0].node.index()].spec.gpu_type;
        (spec.tenant, spec.class, gpu_type, spec.demand.gpus)
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
            let host = self.host_share(attempt.job, slice.devices);
            self.with_node(slice.node, |node| {
                node.claimed = node.claimed.minus(slice.devices);
                node.give_host(host);
            });
            self.tell_new_pool(slice.node, attempt.job);
        }
        let (tenant, class, gpu_type, gpus) = self.billing(attempt);
        self.tenants.refund(tenant, class, gpu_type, gpus);
        let pool = self.pool_of(attempt.job).index();
        self.pools[pool].live.remove(&attempt.id);
    }

    /// Starts a newly placed attempt if nobody stands in its way, else reserves its devices.
    pub(crate) fn settle(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        if self.await_holders(id) {
            let attempt = self.attempt(id);
            let (job, placement) = (attempt.job, attempt.placement.clone());
            self.jobs[job.index()].last_attempt = Some(id);
            out.push(Command::Reserve { attempt: id, job, placement });
        } else {
            self.start(id, out);
        }
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
        awaits.sort_unstable();
        awaits.dedup();
        for &holder in &awaits {
            self.attempts[holder.index()].waiters.push(id);
        }
        let waits = !awaits.is_empty();
        self.attempts[id.index()].awaits = awaits;
        waits
    }

    /// Attempts that use the quota an attempt was promised, where more was promised than there is.
    fn holders_of_its_quota(&self, attempt: &Attempt) -> Vec<AttemptId> {
        if self.settings.capacity != CapacityMode::Hard {
            return Vec::new();
        }
        let (tenant, _, gpu_type, _) = self.billing(attempt);
        let over: Vec<TenantId> = self.tenants.overdrawn(tenant, gpu_type).collect();
        if over.is_empty() {
            return Vec::new();
        }
        let pool = self.pool_of(attempt.job);
        let uses = |other: &&Attempt| {
            let theirs = self.job(other.job).spec.tenant;
            self.tenants.lineage(theirs).any(|above| over.contains(&above))
        };
        self.live(pool).filter(uses).map(|other| other.id).collect()
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
        let attempt = &mut self.attempts[id.index()];
        attempt.state = AttemptState::Binding;
        attempt.epoch = epoch;
        self.jobs[job.index()].last_attempt = Some(id);
        out.push(Command::Start { attempt: id, epoch, job, placement });
    }

    /// Asks the world to end an attempt.
    pub(crate) fn begin_eviction(
        &mut self,
        id: AttemptId,
        reason: EvictReason,
        out: &mut Vec<Command>,
    ) {
        let (epoch, grace) = (self.epoch, self.settings.grace);
        let attempt = &mut self.attempts[id.index()];
        attempt.eviction = Some((reason, attempt.state));
        attempt.state = AttemptState::Terminating;
        let grace = if reason == EvictReason::NodeLost { Span::ZERO } else { grace };
        out.push(Command::Evict { attempt: id, epoch, reason, grace });
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
        let pool = self.pool_of(attempt.job).index();
        self.pools[pool].dirty = true;
        out.push(Command::ReleaseReservation { attempt: id });
        attempt.job
    }

    /// Frees a started attempt's devices, starts whoever waited for them, and books its progress.
    /// The caller decides what becomes of the job.
    pub(crate) fn release(&mut self, id: AttemptId, out: &mut Vec<Command>) -> JobId {
        self.charge_attempt(id, false);
        let attempt = &mut self.attempts[id.index()];
        attempt.state = AttemptState::Released;
        let job = attempt.job;
        let placement = std::mem::take(&mut attempt.placement);
        let waiters = std::mem::take(&mut attempt.waiters);
        let running_since = attempt.running_since;
        for slice in &placement {
            let host = self.host_share(job, slice.devices);
            self.with_node(slice.node, |node| {
                node.move_out(slice.devices, id);
                node.give_host(host);
            });
            self.tell_new_pool(slice.node, job);
        }
        let pool = self.pool_of(job).index();
        self.pools[pool].live.remove(&id);
        self.pools[pool].dirty = true;
        let stint = running_since.map_or(Span::ZERO, |since| self.now.saturating_since(since));
        self.book_progress(job, stint);
        for waiter in waiters {
            let awaits = &mut self.attempts[waiter.index()].awaits;
            awaits.retain(|&holder| holder != id);
            if awaits.is_empty() {
                self.start(waiter, out);
            }
        }
        job
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
    fn book_progress(&mut self, job: JobId, stint: Span) {
        let entry = &mut self.jobs[job.index()];
        entry.served += stint;
        match entry.saved.take() {
            Some((work, restart)) => (entry.work, entry.restart) = (work, restart),
            None => {
                let restart_paid = stint.min(entry.restart);
                entry.work += stint - restart_paid;
                entry.restart -= restart_paid;
            }
        }
    }

    /// Ends a job that is in no queue. The first news of an end counts.
    pub(crate) fn end_job(&mut self, job: JobId, outcome: deepshare_model::Outcome) {
        let state = &mut self.jobs[job.index()].state;
        if !matches!(state, JobState::Ended(_)) {
            *state = JobState::Ended(outcome);
        }
    }
}
