//! An engine and a world that does at once what it is told, with the engine's time measured.
//!
//! Who wants what is arranged so that quotas are always at work. The first tenant has the largest
//! quota and no guaranteed job: all of it is lent. Every second tenant keeps its guaranteed demand
//! to part of its quota, so that its next guaranteed job has a right to GPUs that others borrow.
//! The others have more guaranteed jobs waiting than their quota holds. All have best-effort jobs.

use super::inputs::Inputs;
use deepshare_audit::Auditor;
use deepshare_engine::{Command, Engine, Event};
use deepshare_model::{
    AttemptId, Class, JobId, JobSpec, NodeId, Outcome, PoolId, ProfileClassId, Span, TenantId, Time,
};
use deepshare_policies::PolicyConfig;
use deepshare_predict::RunningMean;
use deepshare_sim::SimSettings;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least time between an instant and the next: a slot of the engine's.
pub const STEP: Span = Span(50_000);
/// Guaranteed demand of a tenant that lends, as thousandths of its quota.
const LENT_FROM_MILLI: u32 = 800;

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts told to start.
    pub starts: u64,
    /// Attempts evicted for another job.
    pub victims: u64,
    /// Jobs for which others were evicted: changes of beneficiary, which come in a row.
    pub reclaims: u64,
    /// Devices promised that others still held.
    pub reservations: u64,
}

/// Engine and world.
pub struct World {
    engine: Engine,
    policy: PolicyConfig,
    inputs: Arc<Inputs>,
    now: Time,
    /// Jobs of the inputs taken so far.
    taken: usize,
    durations: Vec<Span>,
    /// When attempts end by themselves, some of which were evicted before.
    ends: BinaryHeap<Reverse<(Time, AttemptId)>>,
    means: RunningMean,
    spent: Duration,
    tally: Tally,
    /// Beneficiary of the last eviction.
    last_beneficiary: Option<JobId>,
    commands: Vec<Command>,
    /// Profile classes that jobs take in turn; 0: jobs have none, and share with nobody.
    classes: usize,
    /// Watches every step, where a test wants it; its time is not counted.
    pub auditor: Option<Auditor>,
}

impl World {
    /// A world with nodes and tenants, and without jobs.
    pub fn new(settings: &SimSettings, inputs: Arc<Inputs>) -> World {
        World::watched(settings, inputs, None)
    }

    /// The same with an auditor.
    pub fn watched(settings: &SimSettings, inputs: Arc<Inputs>, auditor: Option<Auditor>) -> World {
        let mut world = World {
            engine: Engine::new(settings.engine, settings.policy.build()),
            policy: settings.policy.clone(),
            inputs: Arc::clone(&inputs),
            now: Time::ZERO,
            taken: 0,
            durations: Vec::new(),
            ends: BinaryHeap::new(),
            means: RunningMean::default(),
            spent: Duration::ZERO,
            tally: Tally::default(),
            last_beneficiary: None,
            commands: Vec::new(),
            classes: settings.interference.as_ref().map_or(0, |shared| shared.classes.len()),
            auditor,
        };
        if let Some(shared) = &settings.interference {
            world.tell(Event::Retentions { table: shared.predicted.clone() });
        }
        // Users are known: else the whole queue would be of jobs without an estimate.
        for (spec, duration) in &inputs.jobs {
            world.means.learn(spec.user, spec.tenant, *duration);
        }
        for (index, spec) in inputs.tenants.iter().enumerate() {
            let tenant = TenantId::from_index(index);
            world.tell(Event::TenantSet { tenant, spec: spec.clone() });
        }
        for (index, spec) in inputs.nodes.iter().enumerate() {
            world.tell(Event::NodeAdded { node: NodeId::from_index(index), spec: spec.clone() });
        }
        world
    }

    /// Another world in the same state.
    pub fn fork(&self) -> World {
        let restored = Engine::restore(self.engine.snapshot(), self.policy.build());
        World {
            engine: restored.expect("layout and policy are its own"),
            policy: self.policy.clone(),
            inputs: Arc::clone(&self.inputs),
            durations: self.durations.clone(),
            ends: self.ends.clone(),
            means: self.means.clone(),
            commands: Vec::new(),
            auditor: self.auditor.clone(),
            ..*self
        }
    }

    /// The engine, to be looked at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What it began with.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Waiting jobs.
    pub fn waiting(&self) -> u32 {
        self.engine.state().pool(PoolId(0)).waiting_jobs()
    }

    /// When the next attempt ends.
    pub fn next_end(&mut self) -> Option<Time> {
        while let Some(&Reverse((at, attempt))) = self.ends.peek() {
            if self.engine.state().attempt(attempt).is_live() {
                return Some(at);
            }
            self.ends.pop();
        }
        None
    }

    /// Goes on to the first slot from `at` on, at whose start something will happen: all that
    /// happens in a slot is decided at once. Wakes that the engine asks for before are held, and the
    /// engine's time for each is added to `between`.
    pub fn advance_to(&mut self, at: Time, between: &mut Vec<Duration>) {
        let at = Time(at.0.next_multiple_of(STEP.0));
        while let Some(wake) = self.engine.next_wakeup().filter(|&wake| wake < at) {
            self.begin(wake.max(self.now));
            self.tell(Event::Wake);
            between.push(self.spent);
        }
        self.begin(at);
    }

    fn begin(&mut self, at: Time) {
        self.now = at;
        self.spent = Duration::ZERO;
    }

    /// Ends the instant: the engine decides if it has to. The engine's time for all of the instant.
    pub fn decide(&mut self) -> Duration {
        if self.engine.next_wakeup().is_some_and(|at| at <= self.now) {
            self.tell(Event::Wake);
        }
        self.spent
    }

    /// Ends the attempts that are due.
    pub fn end_due(&mut self) {
        while self.next_end().is_some_and(|at| at <= self.now) {
            let Some(Reverse((_, attempt))) = self.ends.pop() else { return };
            self.end(attempt);
        }
    }

    /// Ends an attempt, due or not.
    pub fn end(&mut self, attempt: AttemptId) {
        let job = self.engine.state().attempt(attempt).job;
        let spec = &self.engine.state().job(job).spec;
        self.means.learn(spec.user, spec.tenant, self.durations[job.index()]);
        self.tell(Event::Finished { attempt, outcome: Outcome::Succeeded });
        self.tell(Event::DevicesReleased { attempt });
    }

    /// Submits the next of the inputs' jobs, from the first again after the last.
    pub fn submit_next(&mut self) -> JobId {
        let inputs = Arc::clone(&self.inputs);
        let (spec, duration) = &inputs.jobs[self.taken % inputs.jobs.len()];
        self.taken += 1;
        let mut spec = spec.clone();
        if self.classes > 0 {
            spec.profile = Some(ProfileClassId::from_index(self.taken % self.classes));
            spec.sharing.consent = true;
        }
        if spec.class == Class::Guaranteed && !self.has_room(&spec) {
            spec.class = Class::BestEffort;
        }
        self.submit(spec, *duration)
    }

    /// Whether a guaranteed job keeps to what its tenant asks for; see the top of this file.
    fn has_room(&self, spec: &JobSpec) -> bool {
        if spec.tenant == TenantId(0) {
            return false;
        }
        if !lends(spec.tenant) {
            return true;
        }
        let quota = self.engine.state().tenant(spec.tenant).quota.total();
        let (demand, _) = self.engine.state().guaranteed(spec.tenant);
        (demand + spec.demand.gpus) * 1_000 <= quota * LENT_FROM_MILLI
    }

    /// Submits a job now.
    pub fn submit(&mut self, mut spec: JobSpec, duration: Span) -> JobId {
        let job = JobId::from_index(self.durations.len());
        self.durations.push(duration);
        spec.submit = self.now;
        let estimate = self.means.estimate(spec.user, spec.tenant);
        self.tell(Event::Submitted { job, spec });
        if let Some(run_time) = estimate {
            self.tell(Event::Estimated { job, run_time });
        }
        job
    }

    /// Tells the engine, does what it asks for, and tells it so.
    pub fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut commands = std::mem::take(&mut self.commands);
            commands.clear();
            if let Some(auditor) = &mut self.auditor {
                auditor.event(self.now, &event).expect("the driver keeps the rules");
            }
            let begin = Instant::now();
            let legal = self.engine.step(self.now, &event, &mut commands);
            self.spent += begin.elapsed();
            legal.expect("DeepShare keeps the rules");
            for command in &commands {
                if let Some(auditor) = &mut self.auditor {
                    auditor.command(self.now, command).expect("DeepShare keeps the rules");
                }
                self.carry_out(command, &mut events);
            }
            if let Some(auditor) = &mut self.auditor {
                auditor.compare(self.engine.state()).expect("the engine's books are right");
            }
            self.commands = commands;
        }
    }

    fn carry_out(&mut self, command: &Command, events: &mut VecDeque<Event>) {
        match *command {
            Command::Start { attempt, job, .. } => {
                self.tally.starts += 1;
                self.ends.push(Reverse((self.now + self.durations[job.index()], attempt)));
                events.push_back(Event::Bound { attempt });
                events.push_back(Event::Running { attempt });
            }
            Command::Evict { attempt, preemption, .. } => {
                let beneficiary = preemption.map(|preemption| preemption.beneficiary);
                self.tally.victims += u64::from(beneficiary.is_some());
                if beneficiary.is_some() && beneficiary != self.last_beneficiary {
                    self.tally.reclaims += 1;
                    self.last_beneficiary = beneficiary;
                }
                events.push_back(Event::DevicesReleased { attempt });
            }
            Command::Reserve { .. } => self.tally.reservations += 1,
            Command::Watch { .. }
            | Command::Accumulate { .. }
            | Command::Shrink { .. }
            | Command::Grow { .. }
            | Command::Promote { .. }
            | Command::ReleaseReservation { .. }
            | Command::Refuse { .. } => {}
        }
    }
}

/// Whether a tenant keeps its guaranteed demand below its quota.
pub fn lends(tenant: TenantId) -> bool {
    tenant.0.is_multiple_of(2)
}
