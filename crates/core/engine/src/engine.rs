//! The state machine: one event in, commands out.

mod world;

use crate::attempt::{Attempt, AttemptState, Slice};
use crate::books::{Node, NodeCondition};
use crate::command::{Command, EvictReason};
use crate::draft::Draft;
use crate::event::{BindFailure, Event};
use crate::job::{Job, JobState};
use crate::policy::{Policy, Rank};
use crate::pool::Pool;
use crate::qad::Qad;
use crate::queue::SchedulingKey;
use crate::reason::Illegal;
use crate::settings::EngineSettings;
use crate::sharing::RetentionTable;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::state::State;
use deepshare_model::{
    AttemptId, Devices, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome, PoolId, Span,
    TenantId, TenantSpec, Time,
};
use std::collections::VecDeque;
use world::Finding;

/// The scheduler as a value. See the crate's documentation for the contract.
pub struct Engine {
    state: State,
    policy: Box<dyn Policy>,
}

impl Engine {
    /// An engine with no nodes, tenants or jobs: those arrive as events.
    pub fn new(settings: EngineSettings, policy: Box<dyn Policy>) -> Engine {
        let qad = Qad::new(settings.qad_lambda_milli);
        let (spills, shares, grows) = (policy.spills(), policy.shares(), policy.grows());
        let state = State { settings, qad, spills, shares, grows, ..State::default() };
        Engine { state, policy }
    }

    /// The books.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies one event that happened at `now`, appending what the world should do about it to
    /// `out`, in the order it should be done.
    ///
    /// # Errors
    /// [`Illegal`] if the policy broke a rule. The offending proposal was not applied, the rest of
    /// its round was, and the books are consistent: a simulation stops, a live driver counts it
    /// and goes on.
    ///
    /// # Panics
    /// If `now` runs backwards or ids are issued out of order: the driver is broken, and guessing
    /// would corrupt every figure after this one.
    pub fn step(
        &mut self,
        now: Time,
        event: &Event,
        out: &mut Vec<Command>,
    ) -> Result<(), Illegal> {
        assert!(now >= self.state.now, "time ran backwards: {now} after {}", self.state.now);
        self.state.now = now;
        match event {
            Event::Submitted { job, spec } => self.submit(*job, spec, out),
            Event::Estimated { job, run_time } => self.estimate(*job, *run_time),
            Event::Cancelled { job } => self.cancel(*job, out),
            Event::Held { job } => self.hold(*job, out),
            Event::Unheld { job } => self.unhold(*job),
            Event::Checkpoint { attempt, work, restart } => {
                let live = self.state.attempts.get(attempt.index()).filter(|a| a.is_live());
                if let Some(job) = live.map(|attempt| attempt.job) {
                    self.state.jobs[job.index()].saved = Some((*work, *restart));
                }
            }
            Event::Finished { attempt, outcome } => self.finish(*attempt, *outcome),
            Event::Bound { attempt } => self.advance(*attempt, AttemptState::Starting),
            Event::Running { attempt } => self.advance(*attempt, AttemptState::Running),
            Event::BindFailed { attempt, failure } => self.bind_failed(*attempt, *failure, out),
            Event::Rejected { attempt } => self.failed_start(*attempt, out),
            Event::StartOverdue { attempt } => self.start_overdue(*attempt, out),
            Event::EvictionRefused { attempt } => self.eviction_refused(*attempt, out),
            // Informs people; the devices stay held until they are released.
            Event::Terminating { .. } => {}
            Event::DevicesReleased { attempt } => self.devices_released(*attempt, out),
            Event::NodeAdded { node, spec } => self.add_node(*node, spec),
            Event::NodeCordoned { node, cordoned } => {
                let to = if *cordoned { NodeCondition::Cordoned } else { NodeCondition::Ready };
                if self.state.nodes[node.index()].condition != NodeCondition::Lost {
                    self.change_node(*node, |node| node.condition = to);
                    self.drop_void_reservations(*node, out);
                }
            }
            Event::NodeLost { node } => self.lose_node(*node, out),
            Event::NodeRecovered { node } => {
                if self.state.nodes[node.index()].condition == NodeCondition::Lost {
                    self.change_node(*node, |node| node.condition = NodeCondition::Ready);
                }
            }
            Event::NodeMoved { node, pool } => self.move_node(*node, *pool),
            Event::DeviceHealth { node, device, healthy } => {
                let device = Devices(1 << device);
                self.change_node(*node, |node| {
                    node.healthy = match healthy {
                        true => node.healthy.union(device),
                        false => node.healthy.minus(device),
                    }
                });
                self.drop_void_reservations(*node, out);
            }
            Event::Resized { attempt } => self.state.resized(*attempt, out),
            Event::ResizeRefused { attempt } => {
                for job in self.state.resize_refused(*attempt, out) {
                    self.after_attempt(job, None);
                }
            }
            Event::Carried { job, preempted_at, served } => {
                self.carry(*job, preempted_at, *served);
            }
            Event::Found { job, charged, placement, per_gpu, running_since } => {
                let (job, charged, per_gpu) = (*job, *charged, *per_gpu);
                let running_since = *running_since;
                self.find(&Finding { job, charged, placement, per_gpu, running_since }, out);
            }
            Event::Shielded { job, shielded } => self.shield(*job, *shielded),
            Event::Broken { attempt } => self.break_up(*attempt, out),
            Event::NodeChanged { node, gpus, capacity } => {
                self.resize_node(*node, *gpus, *capacity, out);
            }
            Event::Admitted { site, nodes, members } => self.admit(*site, nodes, *members, out),
            Event::AssuranceRestored { tenant, gpu_type, smoothed } => {
                self.state.restore_assurance(*tenant, *gpu_type, *smoothed);
            }
            Event::Retentions { table } => self.learn_retentions(table),
            Event::PairSampled { attempts, retentions, taken } => {
                self.state.sampled(*attempts, *retentions, *taken);
            }
            Event::TenantSet { tenant, spec } => self.set_tenant(*tenant, spec, out),
            Event::Leadership { epoch } => self.state.epoch = self.state.epoch.max(*epoch),
            Event::Wake => return self.wake(out),
        }
        Ok(())
    }

    /// The latest instant by which the driver must send [`Event::Wake`], if any. An instant that
    /// is not later than the last step means: as soon as the events of that instant are done.
    pub fn next_wakeup(&self) -> Option<Time> {
        let state = &self.state;
        let timer = state.timers.first().map(|&(at, _)| at);
        let rounds =
            state.pools.iter().filter(|pool| pool.has_work()).filter_map(|pool| match pool.dirty {
                true => Some(state.now),
                false => pool.due(),
            });
        let round = rounds.min().map(|at| self.not_before_slot(at));
        let growth = state.next_growth().map(|at| self.not_before_slot(at));
        [timer, round, growth].into_iter().flatten().min()
    }

    /// A round at `at` has to wait for the next slot if `at`'s slot had one already.
    fn not_before_slot(&self, at: Time) -> Time {
        let cycle = self.state.settings.cycle;
        match self.state.last_slot {
            Some(last) if !cycle.is_zero() && at.0 / cycle.0 <= last => Time((last + 1) * cycle.0),
            _ => at,
        }
    }

    fn wake(&mut self, out: &mut Vec<Command>) -> Result<(), Illegal> {
        let now = self.state.now;
        while let Some(&(at, job)) = self.state.timers.first() {
            if at > now {
                break;
            }
            self.state.timers.pop_first();
            self.enqueue(job);
        }
        if self.not_before_slot(now) > now {
            return Ok(());
        }
        let mut verdict = Ok(());
        for index in 0..self.state.pools.len() {
            let pool = &mut self.state.pools[index];
            if !pool.dirty && pool.due().is_none_or(|at| at > now) {
                continue;
            }
            pool.wake_at = None;
            if !pool.has_work() {
                continue;
            }
            // Else what changed counts for whoever comes next.
            pool.dirty = false;
            pool.hosts.look_at = None;
            pool.reasons.clear();
            self.state.wake_sleepers(PoolId::from_index(index));
            self.state.rounds += 1;
            let cycle = self.state.settings.cycle;
            self.state.last_slot = now.0.checked_div(cycle.0);
            let mut draft = Draft::new(&mut self.state, PoolId::from_index(index));
            self.policy.round(&mut draft);
            verdict = verdict.and(draft.commit(out));
            self.state.look_at_growth(PoolId::from_index(index));
        }
        if self.state.next_growth().is_some_and(|at| at <= now) {
            self.state.grow_all_back(out);
        }
        verdict
    }

    fn submit(&mut self, id: JobId, spec: &JobSpec, out: &mut Vec<Command>) {
        let state = &mut self.state;
        if id.index() < state.jobs.len() {
            return;
        }
        assert_eq!(id.index(), state.jobs.len(), "job ids are issued in order");
        let pool = state.tenants.spec(spec.tenant).pool;
        let key = state.intern(SchedulingKey::of(pool, spec));
        let profile = spec.profile.filter(|_| state.shares && spec.sharing.consent);
        let ask = profile.map(|profile| {
            let kind = state.queues.key(key).ask(profile);
            state.pools[pool.index()].hosts.asks.list(kind)
        });
        state.jobs.push(Job {
            spec: spec.clone(),
            state: JobState::Held,
            key,
            ask,
            estimate: None,
            work: Span::ZERO,
            restart: Span::ZERO,
            served: Span::ZERO,
            served_baseline: Span::ZERO,
            queued_at: state.now,
            queue_seq: 0,
            preemptions: 0,
            last_attempt: None,
            saved: None,
            lost: Span::ZERO,
            preempted_at: VecDeque::new(),
            demands: None,
            rank: Rank::default(),
            failed_starts: 0,
            cancelled: false,
            held: false,
            shielded: false,
        });
        match state.never_fits(key) {
            None => self.enqueue(id),
            Some(reason) => {
                state.set_job_state(id, JobState::Unrunnable(reason.clone()));
                state.unrunnable.insert(id);
                out.push(Command::Refuse { job: id, reason });
            }
        }
    }

    /// Puts a job into its queue, ranked anew.
    fn enqueue(&mut self, job: JobId) {
        let state = &mut self.state;
        state.set_job_state(job, JobState::Waiting);
        let entry = &mut state.jobs[job.index()];
        entry.queued_at = state.now;
        entry.queue_seq = state.next_queue_seq;
        state.next_queue_seq += 1;
        self.join_ranked(job);
    }

    /// Puts a job into its queue where its rank belongs by now.
    fn join_ranked(&mut self, job: JobId) {
        let rank = self.policy.rank(&self.state, job);
        self.state.jobs[job.index()].rank = rank;
        self.state.join_queue(job);
        self.state.look_at(job);
    }

    fn estimate(&mut self, job: JobId, run_time: Span) {
        let state = &mut self.state;
        let waiting = state.job(job).state == JobState::Waiting;
        if waiting {
            state.leave_queue(job);
        }
        state.jobs[job.index()].estimate = Some(run_time);
        if waiting {
            self.join_ranked(job);
        } else {
            if let Some(attempt) = state.job(job).active() {
                state.sync_attempt(attempt);
            }
            // A new estimate of a running job can change a plan, too.
            let pool = state.pool_of(job).index();
            state.pools[pool].dirty = true;
        }
    }

    fn cancel(&mut self, job: JobId, out: &mut Vec<Command>) {
        match self.state.job(job).state {
            JobState::Ended(_) => {}
            JobState::Active(attempt) => {
                self.state.jobs[job.index()].cancelled = true;
                match self.state.attempt(attempt).state {
                    AttemptState::Reserved => {
                        let job = self.state.drop_reservation(attempt, out);
                        self.state.end_job(job, Outcome::Cancelled);
                    }
                    AttemptState::Terminating | AttemptState::Released => {}
                    _ => self.state.begin_eviction(attempt, EvictReason::Cancelled, out),
                }
            }
            _ => {
                self.park(job);
                self.state.end_job(job, Outcome::Cancelled);
            }
        }
    }

    /// Takes an inactive job out of whatever it waits in.
    fn park(&mut self, job: JobId) {
        match self.state.job(job).state {
            JobState::Waiting => {
                self.state.leave_queue(job);
                // A job ahead is gone: those behind it may move.
                let pool = self.state.pool_of(job);
                self.state.pools[pool.index()].dirty = true;
                self.state.look_at_growth(pool);
            }
            JobState::BackingOff { until } => {
                self.state.timers.remove(&(until, job));
            }
            JobState::Unrunnable(_) => {
                self.state.unrunnable.remove(&job);
            }
            JobState::Held | JobState::Active(_) | JobState::Ended(_) => {}
        }
    }

    fn hold(&mut self, job: JobId, out: &mut Vec<Command>) {
        self.state.jobs[job.index()].held = true;
        match self.state.job(job).state {
            JobState::Waiting | JobState::BackingOff { .. } => {
                self.park(job);
                self.state.set_job_state(job, JobState::Held);
            }
            JobState::Active(attempt)
                if self.state.attempt(attempt).state == AttemptState::Reserved =>
            {
                let job = self.state.drop_reservation(attempt, out);
                self.after_attempt(job, None);
            }
            // Whoever runs keeps running; whoever cannot run is held if that changes.
            _ => {}
        }
    }

    fn unhold(&mut self, job: JobId) {
        self.state.jobs[job.index()].held = false;
        if self.state.job(job).state == JobState::Held {
            self.enqueue(job);
        }
    }

    fn advance(&mut self, id: AttemptId, to: AttemptState) {
        let now = self.state.now;
        let Some(attempt) = self.state.attempts.get_mut(id.index()) else { return };
        let job = attempt.job;
        if attempt.state < AttemptState::Binding || attempt.state >= AttemptState::Released {
            return;
        }
        if to == AttemptState::Running && attempt.running_since.is_none() {
            attempt.running_since = Some(now);
            attempt.rate_since = now;
            self.state.jobs[job.index()].failed_starts = 0;
        }
        match (attempt.state, &mut attempt.eviction) {
            // Started while its eviction was under way: remember, in case that is refused.
            (AttemptState::Terminating, Some((_, before))) => *before = to.max(*before),
            (AttemptState::Terminating, None) => {}
            (state, _) => self.state.set_attempt_state(id, to.max(state)),
        }
    }

    fn bind_failed(&mut self, id: AttemptId, failure: BindFailure, out: &mut Vec<Command>) {
        if failure != BindFailure::Permanent {
            return self.failed_start(id, out);
        }
        if self.has_not_run(id) {
            let job = self.state.release(id, out);
            self.state.end_job(job, Outcome::Failed);
        }
    }

    fn has_not_run(&self, id: AttemptId) -> bool {
        self.state.attempts.get(id.index()).is_some_and(|attempt| {
            let started = attempt.state > AttemptState::Reserved && attempt.is_live();
            started && attempt.running_since.is_none()
        })
    }

    fn failed_start(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        if !self.has_not_run(id) {
            return;
        }
        let job = self.state.release(id, out);
        if matches!(self.state.job(job).state, JobState::Ended(_)) {
            return;
        }
        let until = self.note_failed_start(job);
        self.after_attempt(job, Some(until));
    }

    /// Books a failed start. Until when the job pauses, longer with each failure in a row.
    fn note_failed_start(&mut self, job: JobId) -> Time {
        let settings = self.state.settings;
        let entry = &mut self.state.jobs[job.index()];
        let doublings = entry.failed_starts.min(32);
        entry.failed_starts += 1;
        let pause = settings.backoff_first.0.saturating_mul(1 << doublings);
        self.state.now + Span(pause.min(settings.backoff_max.0))
    }

    fn start_overdue(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let Some(attempt) = self.state.attempts.get(id.index()) else { return };
        if matches!(attempt.state, AttemptState::Binding | AttemptState::Starting) {
            self.state.begin_eviction(id, EvictReason::StartOverdue, out);
        }
    }

    fn eviction_refused(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let pause = self.state.settings.backoff_max;
        let now = self.state.now;
        let Some(attempt) = self.state.attempts.get_mut(id.index()) else { return };
        // Other evictions are deletions, which no disruption budget protects.
        let Some((_, before)) = attempt.eviction.filter(|(reason, _)| reason.is_chosen()) else {
            return;
        };
        if attempt.state != AttemptState::Terminating {
            return;
        }
        attempt.eviction = None;
        attempt.no_eviction_before = now + pause;
        let job = attempt.job;
        let nodes: Vec<NodeId> = attempt.placement.iter().map(|slice| slice.node).collect();
        let waiters = std::mem::take(&mut attempt.waiters);
        self.state.set_attempt_state(id, before);
        // It may be a victim again later: whoever waits has to learn when.
        let pool = self.state.pool_of(job).index();
        self.state.pools[pool].dirty = true;
        for waiter in waiters {
            let job = self.state.drop_reservation(waiter, out);
            self.after_attempt(job, None);
        }
        // What came up while the eviction was under way ends it all the same.
        let lost = |node: &NodeId| self.state.nodes[node.index()].condition == NodeCondition::Lost;
        if nodes.iter().any(lost) {
            self.state.begin_eviction(id, EvictReason::NodeLost, out);
        } else if self.state.attempt(id).broken {
            self.state.begin_eviction(id, EvictReason::Broken, out);
        } else if self.state.job(job).cancelled {
            self.state.begin_eviction(id, EvictReason::Cancelled, out);
        }
    }

    fn finish(&mut self, id: AttemptId, outcome: Outcome) {
        let Some(attempt) = self.state.attempts.get_mut(id.index()) else { return };
        let job = attempt.job;
        match attempt.state {
            AttemptState::Reserved => {}
            AttemptState::Released => {
                // Its release overtook the news: the work is done all the same, unless the job
                // was started again meanwhile.
                let last = self.state.job(job).last_attempt == Some(id);
                let idle = self.state.job(job).active().is_none();
                let over = matches!(self.state.job(job).state, JobState::Ended(_));
                if last && idle && !over {
                    self.park(job);
                    self.state.end_job(job, outcome);
                }
            }
            _ => {
                attempt.eviction = None;
                self.state.set_attempt_state(id, AttemptState::Terminating);
                self.state.end_job(job, outcome);
            }
        }
    }

    fn devices_released(&mut self, id: AttemptId, out: &mut Vec<Command>) {
        let Some(attempt) = self.state.attempts.get(id.index()) else { return };
        if !attempt.is_live() || attempt.state == AttemptState::Reserved {
            return;
        }
        let reason = attempt.evict_reason();
        let preempted = reason.is_some_and(EvictReason::is_chosen);
        // A gang that breaks before it ran would break again at once.
        let failed = reason == Some(EvictReason::Broken) && attempt.running_since.is_none();
        let job = self.state.release(id, out);
        if matches!(self.state.job(job).state, JobState::Ended(_)) {
            return;
        }
        let pause = match (preempted, failed) {
            (true, _) => self.note_preemption(job),
            (_, true) => Some(self.note_failed_start(job)),
            _ => None,
        };
        self.after_attempt(job, pause);
    }

    /// Books a preemption. Until when the job pauses before it may start again, if it has been
    /// preempted before within the hour: two jobs that take turns at evicting help nobody.
    fn note_preemption(&mut self, job: JobId) -> Option<Time> {
        let (now, settings) = (self.state.now, self.state.settings);
        let entry = &mut self.state.jobs[job.index()];
        let before = entry.preempted_within_hour(now);
        entry.preemptions += 1;
        while entry.preempted_at.len() > before {
            entry.preempted_at.pop_front();
        }
        entry.preempted_at.push_back(now);
        let doublings = u32::try_from(before.checked_sub(1)?).unwrap_or(32).min(32);
        let pause = settings.preempted_pause.0.saturating_mul(1 << doublings);
        Some(now + Span(pause.min(settings.backoff_max.0.saturating_mul(10))))
            .filter(|&until| until > now)
    }

    /// A job that is out of its queue and not over: where it goes now.
    fn after_attempt(&mut self, job: JobId, back_off: Option<Time>) {
        let entry = &mut self.state.jobs[job.index()];
        if entry.cancelled {
            self.state.end_job(job, Outcome::Cancelled);
        } else if entry.held {
            self.state.set_job_state(job, JobState::Held);
        } else if let Some(until) = back_off {
            self.state.set_job_state(job, JobState::BackingOff { until });
            self.state.timers.insert((until, job));
        } else {
            self.enqueue(job);
        }
    }

    fn make_pool(&mut self, pool: PoolId) {
        let pools = self.state.pools.len().max(pool.index() + 1);
        self.state.pools.resize_with(pools, Pool::default);
    }

    fn add_node(&mut self, id: NodeId, spec: &NodeSpec) {
        if id.index() < self.state.nodes.len() {
            return;
        }
        assert_eq!(id.index(), self.state.nodes.len(), "node ids are issued in order");
        self.make_pool(spec.pool);
        let mut node = Node::new(spec.clone());
        node.condition = NodeCondition::Lost;
        self.state.nodes.push(node);
        self.state.pools[spec.pool.index()].admit(id, spec);
        self.change_node(id, |node| node.condition = NodeCondition::Ready);
    }

    /// Changes a node's usability, and looks again at what could not run before.
    fn change_node(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        self.state.with_node(id, change);
        let pool = self.state.nodes[id.index()].spec.pool;
        self.state.pools[pool.index()].dirty = true;
        self.recheck_unrunnable();
    }

    fn recheck_unrunnable(&mut self) {
        self.state.generation += 1;
        for job in self.state.unrunnable.clone() {
            let key = self.state.job(job).key;
            if self.state.never_fits(key).is_none() {
                self.state.unrunnable.remove(&job);
                self.after_attempt(job, None);
            }
        }
    }

    /// Gives up reservations on devices of a node that take no new work any more.
    fn drop_void_reservations(&mut self, id: NodeId, out: &mut Vec<Command>) {
        let node = &self.state.nodes[id.index()];
        let void = node.claimed.minus(node.usable());
        if !void.is_empty() {
            self.drop_promises_on(&[Slice { node: id, devices: void }], out);
        }
    }

    /// Live attempts, over all pools: a node that changed pools may still run those of its old one.
    fn attempts_where(&self, wanted: impl Fn(&Attempt) -> bool) -> Vec<AttemptId> {
        let pools = (0..self.state.pools.len()).map(PoolId::from_index);
        let live = pools.flat_map(|pool| self.state.live(pool));
        live.filter(|attempt| wanted(attempt)).map(|attempt| attempt.id).collect()
    }

    fn lose_node(&mut self, id: NodeId, out: &mut Vec<Command>) {
        if self.state.nodes[id.index()].condition == NodeCondition::Lost {
            return;
        }
        self.change_node(id, |node| node.condition = NodeCondition::Lost);
        let touching = self.attempts_where(|a| a.placement.iter().any(|slice| slice.node == id));
        for attempt in touching {
            match self.state.attempt(attempt).state {
                AttemptState::Reserved => {
                    let job = self.state.drop_reservation(attempt, out);
                    self.after_attempt(job, None);
                }
                AttemptState::Terminating | AttemptState::Released => {}
                _ => self.state.begin_eviction(attempt, EvictReason::NodeLost, out),
            }
        }
    }

    fn move_node(&mut self, id: NodeId, to: PoolId) {
        let spec = self.state.nodes[id.index()].spec.clone();
        self.make_pool(to);
        let condition = self.state.nodes[id.index()].condition;
        self.state.pools[spec.pool.index()].nodes.remove(&id);
        self.state.pools[spec.pool.index()].dirty = true;
        self.state.with_node(id, |node| node.condition = NodeCondition::Lost);
        self.state.nodes[id.index()].spec.pool = to;
        self.state.pools[to.index()].admit(id, &spec);
        self.change_node(id, |node| node.condition = condition);
    }

    fn learn_retentions(&mut self, table: &RetentionTable) {
        let known = &self.state.retentions;
        if !known.rows.is_empty() && table.version <= known.version {
            return;
        }
        self.state.retentions = table.clone();
        for pool in (0..self.state.pools.len()).map(PoolId::from_index) {
            self.state.wake_all_keys(pool);
            self.state.pools[pool.index()].dirty = true;
        }
    }

    fn set_tenant(&mut self, id: TenantId, spec: &TenantSpec, out: &mut Vec<Command>) {
        self.make_pool(spec.pool);
        if self.state.tenants.set(id, spec.clone()) {
            self.state.bill_anew();
        }
        for attempt in self.attempts_where(|attempt| attempt.state == AttemptState::Reserved) {
            self.state.look_again(attempt, out);
        }
        for gpu_type in (0..self.state.gpu_types()).map(GpuTypeId::from_index) {
            self.state.change_account(id, gpu_type, (0, 0));
        }
        self.state.pools[spec.pool.index()].dirty = true;
        self.state.recount_demand(id);
        self.state.wake_all_keys(spec.pool);
        self.state.note_freed_quota(spec.pool, id);
        self.recheck_unrunnable();
        self.refuse_outgrown(out);
    }

    /// Refuses waiting jobs that have come to be larger than a quota.
    fn refuse_outgrown(&mut self, out: &mut Vec<Command>) {
        let pools = (0..self.state.pools.len()).map(PoolId::from_index);
        let keys: Vec<_> = pools.flat_map(|pool| self.state.active_keys(pool)).collect();
        for key in keys {
            let Some(reason) = self.state.never_fits(key) else { continue };
            if !reason.is_quota() {
                continue;
            }
            for job in self.state.waiting_of(key).collect::<Vec<_>>() {
                self.state.leave_queue(job);
                self.state.set_job_state(job, JobState::Unrunnable(reason.clone()));
                self.state.unrunnable.insert(job);
                out.push(Command::Refuse { job, reason: reason.clone() });
            }
        }
    }

    /// The engine between two steps, to be restored anywhere.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: Snapshot::VERSION,
            policy: self.policy.name().to_owned(),
            settings: self.state.settings,
            state: self.state.clone(),
        }
    }

    /// Goes on from a snapshot, under the policy it was taken under.
    ///
    /// # Errors
    /// If the snapshot has another layout or was taken under another policy.
    pub fn restore(snapshot: Snapshot, policy: Box<dyn Policy>) -> Result<Engine, SnapshotError> {
        if snapshot.version != Snapshot::VERSION {
            return Err(SnapshotError::Version {
                found: snapshot.version,
                expected: Snapshot::VERSION,
            });
        }
        if snapshot.policy != policy.name() {
            let given = policy.name().to_owned();
            return Err(SnapshotError::Policy { found: snapshot.policy, given });
        }
        let mut state = snapshot.state;
        state.queues.rebuild();
        for pool in &mut state.pools {
            pool.hosts.asks.rebuild();
        }
        state.set_spills(policy.spills());
        state.set_shares(policy.shares());
        state.grows = policy.grows();
        // What was read back fits exactly; the next job should not pay for moving all of them.
        state.jobs.reserve(state.jobs.len() / 2);
        state.attempts.reserve(state.attempts.len() / 2);
        Ok(Engine { state, policy })
    }
}
