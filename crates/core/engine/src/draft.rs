//! A round in the making: place, evict, mark, undo.
//!
//! Proposals take effect in the books at once, so that each sees the ones before it, and are
//! journaled, so that a search can take them back. Nothing reaches the world until the round ends.

mod share;
mod shrink;

use crate::attempt::{Attempt, AttemptState, Placement};
use crate::command::{Command, EvictReason, Preemption};
use crate::job::JobState;
use crate::policy::Rank;
use crate::pool::Guard;
use crate::queue::KeyId;
use crate::reason::{Illegal, Reason};
use crate::settings::CapacityMode;
use crate::site::Members;
use crate::state::State;
use deepshare_model::{AttemptId, Class, JobId, NodeId, PoolId, Resources, TenantId, Time};

/// Why an attempt is evicted.
#[derive(Clone, Copy, Debug)]
enum Why {
    Preempted(Option<Preemption>),
    /// For the sake of the pair it is part of.
    Parted(EvictReason),
}

/// One proposal, with what is needed to take it back.
#[derive(Debug)]
enum Proposal {
    Place(AttemptId),
    Evict(AttemptId, AttemptState, Why),
    Promote(AttemptId),
    Shrink(AttemptId, Resources),
}

/// A point of the draft to return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

/// One pool's round in the making.
#[derive(Debug)]
pub struct Draft<'a> {
    state: &'a mut State,
    pool: PoolId,
    journal: Vec<Proposal>,
    illegal: Option<Illegal>,
    /// How often proposals were taken back.
    undone: u32,
    /// Nodes that the policy keeps to itself for the rest of the round.
    kept: Vec<NodeId>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(state: &'a mut State, pool: PoolId) -> Draft<'a> {
        state.pools[pool.index()].sleepers.set_in_round(true);
        Draft { state, pool, journal: Vec::new(), illegal: None, undone: 0, kept: Vec::new() }
    }

    /// The books, with this draft's proposals in them.
    #[inline]
    pub fn state(&self) -> &State {
        self.state
    }

    /// The pool whose round this is.
    #[inline]
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// The instant of the round.
    #[inline]
    pub fn now(&self) -> Time {
        self.state.now
    }

    /// Devices free for placing now, those of evicted attempts included.
    pub fn free_gpus(&self) -> u32 {
        self.state.pool(self.pool).free_gpus()
    }

    /// Places a waiting job where the placer finds devices, or says why there are none. Devices of
    /// attempts evicted in this draft count as free; the job then starts when they are released.
    ///
    /// # Errors
    /// The reason it cannot be placed, quotas included. The draft is unchanged then.
    pub fn place(&mut self, job: JobId) -> Result<(), Reason> {
        let class = self.state.job(job).spec.class;
        self.place_as(job, class)
    }

    /// Places a waiting job charged to a class of its tenant, which may be another than its own: a
    /// guaranteed job beyond its quota can start as best-effort (spec §3, spill). Where quotas are
    /// not elastic a job is charged to its own class.
    ///
    /// # Errors
    /// As [`Draft::place`].
    pub fn place_as(&mut self, job: JobId, class: Class) -> Result<(), Reason> {
        if !self.is_waiting_here(job) {
            return Err(Reason::NotConsidered);
        }
        let spec = &self.state.job(job).spec;
        let (tenant, demand) = (spec.tenant, spec.demand);
        // Only elastic quotas tell the classes apart.
        let elastic = self.state.settings.capacity == CapacityMode::Elastic;
        let class = if elastic { class } else { spec.class };
        let placement = self.state.find(self.pool, (tenant, class), &demand, false)?;
        self.claim(job, class, placement);
        Ok(())
    }

    /// Why a waiting job cannot be placed now, charged to a class; `None` if it can. Changes nothing.
    pub fn refusal(&self, job: JobId, class: Class) -> Option<Reason> {
        let spec = &self.state.job(job).spec;
        self.state.find(self.pool, (spec.tenant, class), &spec.demand, false).err()
    }

    /// Tenants whose quota has come to be used less since this was last asked, in order.
    pub fn take_freed_quotas(&mut self) -> Vec<TenantId> {
        self.state.pools[self.pool.index()].sleepers.take_freed_quotas()
    }

    /// Charges a spilled job's devices to its tenant's quota from now on, if that has room.
    ///
    /// # Errors
    /// The quota that binds.
    pub fn promote(&mut self, attempt: AttemptId) -> Result<(), Reason> {
        let entry = self.state.attempt(attempt);
        let spec = &self.state.job(entry.job).spec;
        if entry.charged == Class::Guaranteed || spec.class != Class::Guaranteed {
            return Ok(());
        }
        let gpu_type = self.state.nodes[entry.placement[0].node.index()].spec.gpu_type;
        self.state.admits((spec.tenant, Class::Guaranteed), gpu_type, spec.demand.gpus)?;
        self.journal.push(Proposal::Promote(attempt));
        self.state.recharge(attempt, Class::Guaranteed);
        Ok(())
    }

    /// Places a waiting job on given devices, for policies that plan their own.
    ///
    /// # Errors
    /// The quota that binds, or nodes that do not admit the job. Devices that are not free, or too few
    /// or many of them, are an [`Illegal`] proposal.
    pub fn place_on(&mut self, job: JobId, placement: Placement) -> Result<(), Reason> {
        if !self.is_waiting_here(job) {
            return Err(Reason::NotConsidered);
        }
        let given: u32 = placement.iter().map(|slice| slice.devices.count()).sum();
        let asked = self.state.job(job).gpus();
        if given != asked {
            return self.refuse_illegal(Illegal::NotWhole { job, given, asked });
        }
        let free = placement.iter().all(|slice| {
            let node = &self.state.nodes[slice.node.index()];
            node.spec.pool == self.pool && slice.devices.minus(node.open()).is_empty()
        });
        if !free {
            return self.refuse_illegal(Illegal::NotFree(job));
        }
        let spec = &self.state.job(job).spec;
        let (tenant, class) = (spec.tenant, spec.class);
        let gpu_type = self.state.nodes[placement[0].node.index()].spec.gpu_type;
        self.state.admits((tenant, class), gpu_type, asked)?;
        let demand = self.state.job(job).spec.demand;
        if !self.state.admits_on(&placement, &demand) {
            return Err(self.state.not_admitted(self.pool, &demand, false));
        }
        self.claim(job, class, placement);
        Ok(())
    }

    /// Evicts a running attempt. Its devices count as free from here on in this draft.
    pub fn evict(&mut self, attempt: AttemptId) {
        self.evict_for(attempt, None);
    }

    /// Evicts a running attempt on behalf of a job, which the command then names.
    pub fn evict_for(&mut self, attempt: AttemptId, preemption: Option<Preemption>) {
        let victim = self.state.attempt(attempt);
        let job = victim.job;
        if self.state.pool_of(job) != self.pool {
            self.illegal.get_or_insert(Illegal::OtherPool(job));
            return;
        }
        if !victim.is_evictable() || victim.no_eviction_before > self.state.now {
            self.illegal.get_or_insert(Illegal::NotRunning(job));
            return;
        }
        if self.state.is_guaranteed(victim) {
            self.illegal.get_or_insert(Illegal::Guaranteed(job));
            return;
        }
        self.end(attempt, Why::Preempted(preemption));
    }

    fn end(&mut self, attempt: AttemptId, why: Why) {
        let before = self.state.attempt(attempt).state;
        self.state.set_attempt_state(attempt, AttemptState::Terminating);
        self.vacate(attempt);
        self.journal.push(Proposal::Evict(attempt, before, why));
    }

    /// Where the draft stands, to return to with [`Draft::undo_to`].
    pub fn mark(&self) -> Mark {
        Mark(self.journal.len())
    }

    /// How often proposals were taken back in this draft: what was worked out before is out of date
    /// when it changes.
    pub fn undone(&self) -> u32 {
        self.undone
    }

    /// Tenants of whom anything was proposed since `mark`; of a tenant with several proposals more
    /// than once.
    pub fn tenants_since(&self, mark: Mark) -> Vec<TenantId> {
        let proposals = self.journal[mark.0.min(self.journal.len())..].iter();
        let attempts = proposals.map(|proposal| match proposal {
            Proposal::Place(id) | Proposal::Promote(id) => *id,
            Proposal::Evict(id, ..) | Proposal::Shrink(id, _) => *id,
        });
        attempts.map(|id| self.state.job(self.state.attempt(id).job).spec.tenant).collect()
    }

    /// Takes back every proposal since `mark`, newest first.
    pub fn undo_to(&mut self, mark: Mark) {
        self.undone += u32::from(self.journal.len() > mark.0);
        while self.journal.len() > mark.0 {
            match self.journal.pop().expect("the journal is longer than the mark") {
                Proposal::Place(attempt) => self.unclaim(attempt),
                Proposal::Evict(attempt, before, _) => {
                    self.reoccupy(attempt);
                    self.state.set_attempt_state(attempt, before);
                }
                Proposal::Promote(attempt) => self.state.recharge(attempt, Class::BestEffort),
                Proposal::Shrink(attempt, before) => self.state.undo_resize(attempt, before),
            }
        }
    }

    /// Says why one job stays where it is.
    pub fn refuse(&mut self, job: JobId, reason: Reason) {
        self.state.pools[self.pool.index()].reasons.set_job(job, reason);
    }

    /// Says why every waiting job like this one stays where it is.
    pub fn refuse_key_of(&mut self, job: JobId, reason: Reason) {
        let key = self.state.job(job).key;
        self.state.pools[self.pool.index()].reasons.set_key(key, reason);
    }

    /// Says why every waiting job of a key stays where it is, charged to a class, and lets them
    /// sleep: [`State::awake_keys`] leaves them out until what they were refused for changes: more
    /// devices of the GPU types `open` to them (see [`State::open_types`]), more quota for others.
    /// For policies that place whatever fits.
    pub fn sleep(&mut self, key: KeyId, charge: Class, open: u64, reason: Reason) {
        self.state.put_to_sleep(key, charge, open, reason);
    }

    /// Wakes every sleeper of the pool that is charged to a guarantee at `at`: time alone may change
    /// what they were refused for.
    pub fn wake_sleepers_at(&mut self, at: Time) {
        let retry = &mut self.state.pools[self.pool.index()].sleepers.retry_at;
        *retry = Some(retry.map_or(at, |earlier| earlier.min(at)));
    }

    /// Brings [`Node::empties_at`](crate::Node::empties_at) of the pool's nodes up to date.
    pub fn refresh_emptying(&mut self) {
        let nodes: Vec<NodeId> = self.state.pool(self.pool).nodes.iter().copied().collect();
        nodes.into_iter().for_each(|node| self.state.refresh_emptying(node));
    }

    /// Sets nodes aside for a gang, from the next [`Draft::hold_back`] on, or gives them back.
    pub fn set_guard(&mut self, guard: Option<Guard>) {
        self.hold_back(false);
        let pool = &mut self.state.pools[self.pool.index()];
        let before = std::mem::replace(&mut pool.guard, guard);
        if let Some(before) = before {
            self.state.wake_for_nodes(self.pool, &before.nodes);
        }
    }

    /// Notes that no gang needs a guard before `at`.
    pub fn set_guard_idle_until(&mut self, at: Time) {
        self.state.pools[self.pool.index()].guard_idle_until = at;
    }

    /// Leaves the nodes set aside out of every search in this draft, or lets them in again.
    pub fn hold_back(&mut self, held_back: bool) {
        let Some(guard) = self.state.pools[self.pool.index()].guard.take() else { return };
        for &id in &guard.nodes {
            // Where nothing is open there is nothing to hold back, and a search for victims is made
            // with the nodes let in.
            let node = &self.state.nodes[id.index()];
            if node.is_held_back() != held_back && (!held_back || !node.open().is_empty()) {
                self.state.with_node(id, |node| node.hold_back(held_back));
            }
        }
        self.state.pools[self.pool.index()].guard = Some(guard);
    }

    /// Leaves nodes out of every search for the rest of this round.
    pub fn hold_back_nodes(&mut self, nodes: &[NodeId]) {
        for &id in nodes {
            self.state.with_node(id, |node| node.hold_back(true));
        }
        self.kept.extend(nodes);
    }

    /// Says why a tenant's other jobs stay where they are.
    pub fn refuse_tenant(&mut self, tenant: TenantId, reason: Reason) {
        self.state.pools[self.pool.index()].reasons.set_tenant(tenant, reason);
    }

    /// Says why every job not spoken of stays where it is.
    pub fn refuse_rest(&mut self, reason: Reason) {
        self.state.pools[self.pool.index()].reasons.set_rest(reason);
    }

    /// Lets a job's attained service count from zero again (Tiresias' promotion).
    pub fn forget_service(&mut self, job: JobId) {
        let served = self.state.served(job);
        self.state.jobs[job.index()].served_baseline = served;
    }

    /// Gives a waiting job another place in its queue.
    pub fn rerank(&mut self, job: JobId, rank: Rank) {
        if self.is_waiting_here(job) {
            self.state.leave_queue(job);
            self.state.jobs[job.index()].rank = rank;
            self.state.join_queue(job);
        }
    }

    /// Takes back the eviction of an attempt if nobody was placed on its devices, and says whether
    /// it did.
    pub fn spare(&mut self, attempt: AttemptId) -> bool {
        let evicted = |p: &Proposal| matches!(p, Proposal::Evict(id, ..) if *id == attempt);
        let Some(at) = self.journal.iter().position(evicted) else { return false };
        let spec = &self.state.job(self.state.attempt(attempt).job).spec;
        let (tenant, per_gpu) = (spec.tenant, self.state.attempt(attempt).per_gpu);
        let placement = &self.state.attempt(attempt).placement;
        let free = placement.iter().all(|slice| {
            let node = &self.state.nodes[slice.node.index()];
            let gpus = slice.devices.count();
            // What the world uses beyond what there is, is not this draft's doing.
            let has_host = node.host_room_for(per_gpu) >= gpus || !self.took_host(at, slice.node);
            slice.devices.intersect(node.claimed).is_empty() && has_host
        });
        let gpu_type = self.state.nodes[placement[0].node.index()].spec.gpu_type;
        let gpus = self.state.attempt(attempt).gpus();
        let class = self.state.attempt(attempt).charged;
        // Its quota is still its own unless somebody placed since may have been given it.
        let apart = self.state.settings.capacity == CapacityMode::Elastic;
        let rival = |p: &Proposal| match p {
            Proposal::Place(id) => !apart || self.state.attempt(*id).charged == class,
            _ => false,
        };
        let contested = self.journal[at..].iter().any(rival);
        let admits = !contested || self.state.admits((tenant, class), gpu_type, gpus).is_ok();
        if !free || !admits {
            return false;
        }
        self.undone += 1;
        let Proposal::Evict(_, before, _) = self.journal.remove(at) else {
            unreachable!("the proposal found is an eviction");
        };
        self.reoccupy(attempt);
        self.state.set_attempt_state(attempt, before);
        true
    }

    /// True if CPU or memory of a node was promised to anybody since the proposal at this place.
    fn took_host(&self, since: usize, node: NodeId) -> bool {
        let on = |id: AttemptId| {
            let attempt = self.state.attempt(id);
            let here = attempt.placement.iter().any(|slice| slice.node == node);
            here && attempt.per_gpu != Resources::default()
        };
        self.journal[since..].iter().any(|p| matches!(p, Proposal::Place(id) if on(*id)))
    }

    /// Asks for a round of this pool at `at`, even if nothing happens until then. The earliest
    /// request counts.
    pub fn wake_at(&mut self, at: Time) {
        let wake = &mut self.state.pools[self.pool.index()].wake_at;
        *wake = Some(wake.map_or(at, |earlier| earlier.min(at)));
    }

    /// Asks for a round of this pool at `at`, whether anybody waits then or not: to look at pairs.
    pub fn look_at_pairs(&mut self, at: Time) {
        self.state.pools[self.pool.index()].hosts.look_at(at);
    }

    fn refuse_illegal(&mut self, illegal: Illegal) -> Result<(), Reason> {
        self.illegal.get_or_insert(illegal);
        Err(Reason::NotConsidered)
    }

    fn is_waiting_here(&mut self, job: JobId) -> bool {
        if self.state.job(job).state != JobState::Waiting {
            self.illegal.get_or_insert(Illegal::NotWaiting(job));
            return false;
        }
        if self.state.pool_of(job) != self.pool {
            self.illegal.get_or_insert(Illegal::OtherPool(job));
            return false;
        }
        true
    }

    /// Promises devices to a new attempt of a waiting job.
    fn claim(&mut self, job: JobId, class: Class, placement: Placement) {
        let state = &mut *self.state;
        let id = AttemptId::from_index(state.attempts.len());
        state.leave_queue(job);
        let per_gpu = state.jobs[job.index()].spec.demand.per_gpu;
        for slice in &placement {
            let host = per_gpu.times(slice.devices.count());
            state.with_node(slice.node, |node| {
                node.claimed = node.claimed.union(slice.devices);
                node.take_host(host);
            });
        }
        let spec = &state.jobs[job.index()].spec;
        let gpu_type = state.nodes[placement[0].node.index()].spec.gpu_type;
        state.tenants.charge(spec.tenant, class, gpu_type, spec.demand.gpus);
        state.count_members(job, &placement, Members::Promised);
        state.pools[self.pool.index()].live.insert(id);
        let attempt = Attempt::new((id, job), state.epoch, class, placement, per_gpu);
        state.attempts.push(attempt);
        state.set_job_state(job, JobState::Active(id));
        self.journal.push(Proposal::Place(id));
    }

    fn unclaim(&mut self, attempt: AttemptId) {
        let state = &mut *self.state;
        // Undo runs newest first, so the attempt is the newest there is.
        let attempt = state.attempts.pop().filter(|last| last.id == attempt);
        let attempt = attempt.expect("undo takes back the newest attempt first");
        state.forget_claim(&attempt);
        state.set_job_state(attempt.job, JobState::Waiting);
        state.join_queue(attempt.job);
    }

    fn vacate(&mut self, attempt: AttemptId) {
        let (per_gpu, placement) = self.parts(attempt);
        for slice in placement {
            let host = per_gpu.times(slice.devices.count());
            self.state.with_node(slice.node, |node| {
                node.move_out(slice.devices, attempt);
                node.give_host(host);
            });
        }
        // A victim's quota counts as free in the draft, like its devices.
        self.state.charge_attempt(attempt, false);
    }

    fn reoccupy(&mut self, attempt: AttemptId) {
        let (per_gpu, placement) = self.parts(attempt);
        for slice in placement {
            let host = per_gpu.times(slice.devices.count());
            self.state.with_node(slice.node, |node| {
                node.move_in(slice.devices, attempt);
                node.take_host(host);
            });
        }
        self.state.charge_attempt(attempt, true);
    }

    fn parts(&self, attempt: AttemptId) -> (Resources, Placement) {
        let attempt = self.state.attempt(attempt);
        (attempt.per_gpu, attempt.placement.clone())
    }

    /// Ends the round: evictions first, then shrinks, promotions, then starts and reservations, each in
    /// proposal order.
    pub(crate) fn commit(mut self, out: &mut Vec<Command>) -> Result<(), Illegal> {
        self.hold_back(false);
        for id in std::mem::take(&mut self.kept) {
            self.state.with_node(id, |node| node.hold_back(false));
        }
        let journal = std::mem::take(&mut self.journal);
        for proposal in &journal {
            if let Proposal::Evict(attempt, before, why) = *proposal {
                self.reoccupy(attempt);
                self.state.set_attempt_state(attempt, before);
                match why {
                    Why::Preempted(preemption) => self.state.preempt(attempt, preemption, out),
                    Why::Parted(reason) => self.state.revoke(attempt, reason, out),
                }
            }
        }
        for proposal in &journal {
            if let Proposal::Shrink(attempt, before) = *proposal {
                match self.state.attempt(attempt).is_evictable() {
                    true => self.state.announce_shrink(attempt, out),
                    // Evicted later in the round: who needs its CPU and memory waits for its end.
                    false => self.state.undo_resize(attempt, before),
                }
            }
        }
        for proposal in &journal {
            if let Proposal::Promote(attempt) = *proposal {
                out.push(Command::Promote { attempt });
            }
        }
        for proposal in &journal {
            if let Proposal::Place(attempt) = *proposal {
                self.state.settle(attempt, out);
            }
        }
        self.state.pools[self.pool.index()].sleepers.set_in_round(false);
        match self.illegal {
            Some(illegal) => Err(illegal),
            None => Ok(()),
        }
    }
}
