//! What only a real cluster tells: what was there before this engine, what nodes admit, who is to be
//! left alone, and gangs that lost a member.

use super::Engine;
use crate::attempt::{Attempt, AttemptState, Placement, Slice};
use crate::command::{Command, EvictReason};
use crate::job::{JobState, is_within_hour};
use crate::sharing::{Company, PairTerms};
use deepshare_model::{
    AttemptId, Class, Devices, JobId, NodeId, PoolId, Resources, Retention, SiteId, Span, Time,
};
use std::collections::BTreeSet;

/// A job as it was found.
pub(super) struct Finding<'a> {
    pub(super) job: JobId,
    pub(super) charged: Class,
    pub(super) placement: &'a Placement,
    pub(super) per_gpu: Resources,
    pub(super) running_since: Option<Time>,
}

impl Engine {
    /// Books what happened to a job before this engine knew it.
    pub(super) fn carry(&mut self, id: JobId, preempted_at: &[Time], served: Span) {
        let now = self.state.now;
        let Some(job) = self.state.jobs.get_mut(id.index()) else { return };
        if job.last_attempt.is_some() {
            return;
        }
        job.preemptions = preempted_at.len() as u32;
        let mut recent: Vec<Time> = preempted_at.to_vec();
        recent.retain(|&at| is_within_hour(at, now));
        recent.sort_unstable();
        job.preempted_at = recent.into();
        job.served = served;
        if job.is_waiting() {
            self.state.leave_queue(id);
            self.join_ranked(id);
        }
    }

    pub(super) fn shield(&mut self, job: JobId, shielded: bool) {
        if let Some(job) = self.state.jobs.get_mut(job.index()) {
            job.shielded = shielded;
        }
    }

    /// Ends what is left of a gang.
    pub(super) fn break_up(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let Some(attempt) = self.state.attempts.get_mut(id.index()) else { return };
        if attempt.state == AttemptState::Reserved || !attempt.is_live() {
            return;
        }
        // If it is being evicted already and that is refused, it ends for this.
        attempt.broken = true;
        if attempt.is_evictable() {
            self.state.begin_eviction(id, EvictReason::Broken, out);
        }
    }

    /// Moves a job that was found onto the devices that it holds.
    pub(super) fn find(&mut self, found: &Finding<'_>, out: &mut Vec<Command>) {
        let known = self.state.jobs.get(found.job.index());
        let idle =
            known.is_some_and(|job| !matches!(job.state, JobState::Active(_) | JobState::Ended(_)));
        if !idle || !self.exists(found.placement) {
            return;
        }
        self.park(found.job);
        let id = self.book_found(found);
        self.link_found(id, out);
        let to = match found.running_since {
            Some(_) => AttemptState::Running,
            None => AttemptState::Starting,
        };
        self.state.set_attempt_state(id, to);
        self.state.sync_reclaimable(found.placement);
        self.state.note_shrunk(id);
        let pool = self.state.pool_of(found.job).index();
        self.state.pools[pool].dirty = true;
        self.drop_promises_on(found.placement, out);
        for slice in found.placement {
            self.cover_host(slice.node, out);
        }
    }

    /// True if every node of a placement is known and has its devices, each named once.
    fn exists(&self, placement: &Placement) -> bool {
        let nodes: BTreeSet<NodeId> = placement.iter().map(|slice| slice.node).collect();
        let there = |slice: &Slice| {
            let node = self.state.nodes.get(slice.node.index());
            let all = node.map_or(Devices::NONE, |node| Devices::first(node.spec.gpus));
            !slice.devices.is_empty() && slice.devices.minus(all).is_empty()
        };
        !placement.is_empty() && nodes.len() == placement.len() && placement.iter().all(there)
    }

    /// Gives up reservations of devices that somebody turned out to hold.
    pub(super) fn drop_promises_on(&mut self, held: &[Slice], out: &mut Vec<Command>) {
        let on = |other: &Slice| {
            let overlaps = |slice: &Slice| {
                slice.node == other.node && !slice.devices.intersect(other.devices).is_empty()
            };
            held.iter().any(overlaps)
        };
        for attempt in self.promised_where(|attempt| attempt.placement.iter().any(on)) {
            self.drop_promise(attempt, out);
        }
    }

    /// Reserved attempts, oldest first, without a look at all who run: a restart finds thousands of
    /// them. Each waits for somebody who is ending, or for somebody who is giving what it holds.
    fn promised_where(&self, wanted: impl Fn(&Attempt) -> bool) -> Vec<AttemptId> {
        let state = &self.state;
        let reserved =
            |attempt: &Attempt| attempt.state == AttemptState::Reserved && wanted(attempt);
        if state.resizes > 0 {
            let mut promised = self.attempts_where(reserved);
            promised.sort_unstable();
            return promised;
        }
        let ending = state.pools.iter().flat_map(|pool| &pool.ending);
        let waiters = ending.flat_map(|&id| state.attempt(id).waiters.iter().copied());
        let promised: BTreeSet<AttemptId> = waiters.collect();
        promised.into_iter().filter(|&id| reserved(state.attempt(id))).collect()
    }

    fn drop_promise(&mut self, attempt: AttemptId, out: &mut Vec<Command>) {
        // Who started meanwhile, as the one before it was dropped, needs no promise any more.
        if self.state.attempt(attempt).state == AttemptState::Reserved {
            let job = self.state.drop_reservation(attempt, out);
            self.after_attempt(job, None);
        }
    }

    /// The attempt of a found job, on its devices; beside nobody yet.
    fn book_found(&mut self, found: &Finding<'_>) -> AttemptId {
        let state = &mut self.state;
        let id = AttemptId::from_index(state.attempts.len());
        let placement = found.placement.clone();
        for slice in &placement {
            state.with_node(slice.node, |node| {
                node.take_host(found.per_gpu.times(slice.devices.count()));
                node.move_in(slice.devices, id);
            });
        }
        let pool = state.pool_of(found.job).index();
        state.pools[pool].live.insert(id);
        let since = found.running_since.map(|since| since.min(state.now));
        let (job, per_gpu) = (found.job, found.per_gpu);
        let mut attempt = Attempt::new((id, job), state.epoch, found.charged, placement, per_gpu);
        attempt.state = AttemptState::Binding;
        attempt.running_since = since;
        attempt.rate_since = since.unwrap_or_default();
        state.attempts.push(attempt);
        state.charge_attempt(id, true);
        let job = &mut state.jobs[found.job.index()];
        job.last_attempt = Some(id);
        if since.is_some() {
            job.failed_starts = 0;
        }
        state.set_job_state(found.job, JobState::Active(id));
        id
    }

    /// Links a found attempt with whoever is on its devices. Two alone on theirs are a pair, held to
    /// what the policy asks of one; others only share.
    fn link_found(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let attempt = self.state.attempt(id);
        let (job, placement) = (attempt.job, attempt.placement.clone());
        let mut beside: BTreeSet<AttemptId> = BTreeSet::new();
        let mut crowd: BTreeSet<AttemptId> = BTreeSet::new();
        for slice in &placement {
            for device in slice.devices.iter() {
                let residents = self.state.nodes[slice.node.index()].residents(device);
                let others = residents.iter().copied().filter(|&other| other != id);
                beside.extend(others.clone());
                if residents.len() > 2 {
                    crowd.extend(others);
                }
            }
        }
        for host in beside {
            let alone = !crowd.contains(&host) && self.state.attempt(host).is_evictable();
            let company = (alone && self.state.shares).then(|| {
                let jobs = [job, self.state.attempt(host).job];
                let [own, theirs] = self.predicted(jobs);
                let bar = self.policy.bar_of_found(&self.state, jobs);
                Company::new(host, PairTerms { bar, own, theirs })
            });
            self.state.link(id, host, company, out);
        }
    }

    /// What two jobs are predicted to keep beside each other; all of it, where nobody knows.
    fn predicted(&self, jobs: [JobId; 2]) -> [Retention; 2] {
        let profiles = jobs.map(|job| self.state.job(job).spec.profile);
        let [Some(own), Some(other)] = profiles else { return [Retention::WHOLE; 2] };
        let keeps = |own, other| self.state.retentions.get(own, other);
        [keeps(own, other), keeps(other, own)].map(|keeps| keeps.unwrap_or(Retention::WHOLE))
    }

    /// A node has other devices or host resources than it had.
    pub(super) fn resize_node(
        &mut self,
        id: NodeId,
        gpus: u32,
        capacity: Resources,
        out: &mut Vec<Command>,
    ) {
        let Some(node) = self.state.nodes.get(id.index()) else { return };
        let gpus = gpus.clamp(node.spec.gpus, Devices::MAX_PER_NODE);
        if (gpus, capacity) == (node.spec.gpus, node.spec.capacity) {
            return;
        }
        let spec = &node.spec;
        self.state.pools[spec.pool.index()].make_room(spec.gpu_type, gpus);
        self.change_node(id, |node| node.resize(gpus, capacity));
        self.state.note_room(id);
        self.cover_host(id, out);
    }

    /// Gives up, newest first, reservations for which a node has not enough CPU and memory any more
    /// even when all who are leaving have left. The others wait for whoever leaves there.
    fn cover_host(&mut self, id: NodeId, out: &mut Vec<Command>) {
        if !self.state.nodes[id.index()].host_overdrawn() {
            return;
        }
        let on = |slice: &Slice| slice.node == id;
        let mut promised = self.promised_where(|attempt| {
            attempt.per_gpu != Resources::default() && attempt.placement.iter().any(on)
        });
        while !self.state.covers_host(id)
            && let Some(newest) = promised.pop()
        {
            self.drop_promise(newest, out);
        }
        for attempt in promised {
            if self.state.attempt(attempt).state == AttemptState::Reserved {
                self.state.look_again(attempt, out);
            }
        }
    }

    /// What nodes admit of a site from now on.
    pub(super) fn admit(
        &mut self,
        site: SiteId,
        nodes: &[NodeId],
        members: u32,
        out: &mut Vec<Command>,
    ) {
        let news = self.state.admit_members(site, nodes, members);
        if news.is_empty() {
            return;
        }
        for &node in &news {
            self.drop_overpromised(site, node, out);
            self.state.unblock(node);
        }
        let pools: BTreeSet<PoolId> =
            news.iter().map(|node| self.state.nodes[node.index()].spec.pool).collect();
        for pool in pools {
            self.state.wake_all_keys(pool);
            self.state.pools[pool.index()].dirty = true;
        }
        self.recheck_unrunnable();
    }

    /// Gives up, newest first, reservations on a node that does not take so many members any more.
    fn drop_overpromised(&mut self, site: SiteId, node: NodeId, out: &mut Vec<Command>) {
        if !self.state.is_overpromised(site, node) {
            return;
        }
        let mut promised = self.promised_where(|attempt| {
            let demand = &self.state.job(attempt.job).spec.demand;
            demand.site == Some(site) && attempt.placement.iter().any(|slice| slice.node == node)
        });
        while self.state.is_overpromised(site, node)
            && let Some(newest) = promised.pop()
        {
            self.drop_promise(newest, out);
        }
    }
}
