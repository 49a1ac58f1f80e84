//! The loop: what happens, what the engine makes of it, what becomes of that.

use crate::auditing::auditor_of;
use crate::classes::Classes;
use crate::error::SimError;
use crate::estimates::Predictor;
use crate::outages::{Outage, OutageModel, Outages, exponential};
use crate::queue::Due;
use crate::quota_meter::{AVOIDABLE_UP_TO_GPUS, QuotaMeter};
use crate::settings::{Oversize, SimSettings};
use crate::workload::Workload;
use crate::world::{World, stream};
use deepshare_audit::{Auditor, Violation};
use deepshare_engine::{Command, Engine, Event, NodeCondition, PairTest, State};
use deepshare_metrics::{Counters, PairRecord, RunRecord, UsageMeter};
use deepshare_model::{Class, GpuTypeId, JobId, JobSpec, NodeId, PoolId, Time};
use deepshare_policies::{DeepShareSettings, PolicyConfig};
use deepshare_trace::{Cluster, Trace};
use rand_pcg::Pcg64Mcg;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Lets others watch a run and stop it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Jobs that have ended, over all runs that share the watch.
    pub ended: AtomicU64,
    /// Set to stop the run with [`SimError::Interrupted`].
    pub stop: AtomicBool,
}

/// Rounds at one instant after which a run is given up as a livelock. One instant needs a round
/// for its events and rarely a second one for what that caused.
const MAX_ROUNDS_AT_ONCE: u32 = 10_000;

/// Replays `trace` on `cluster`.
///
/// # Errors
/// See [`SimError`]. No figures come out of a run that ends in one.
pub fn simulate(
    trace: &Trace,
    cluster: &Cluster,
    settings: &SimSettings,
    watch: &Watch,
) -> Result<RunRecord, SimError> {
    let mut workload = Workload::new(trace, cluster, settings.engine.capacity)?;
    let class_seed = settings.class_seed.unwrap_or(settings.seed);
    settings.classes.assign(&mut workload.jobs, class_seed);
    workload.recommend(settings.recommended_milli, settings.seed);
    if let Some(interference) = &settings.interference {
        workload.profile(interference, settings.policy.shares());
    }
    let mut simulation = Simulation::new(trace, &workload, settings)?;
    simulation.run(watch)?;
    Ok(simulation.record(trace))
}

struct Simulation<'a> {
    trace: &'a Trace,
    workload: &'a Workload,
    settings: &'a SimSettings,
    engine: Engine,
    auditor: Option<Auditor>,
    world: World,
    predictor: Predictor,
    meter: UsageMeter,
    quotas: QuotaMeter,
    outages: Vec<Pcg64Mcg>,
    now: Time,
    /// Nodes that take nothing new.
    closed: Vec<NodeId>,
    /// Changes of mind of jobs' owners that are still to come.
    owners: usize,
    /// The trace's next job; jobs have the same number in trace and engine.
    next_arrival: usize,
    commands: Vec<Command>,
    counters: Counters,
    pool_gpus: Vec<u32>,
    idle_steps: u64,
}

impl<'a> Simulation<'a> {
    fn new(
        trace: &'a Trace,
        workload: &'a Workload,
        settings: &'a SimSettings,
    ) -> Result<Simulation<'a>, SimError> {
        let mut world = World::new(trace, workload, settings);
        let oversize = workload.oversize(&settings.engine);
        if let Some((job, reason)) = oversize.first()
            && settings.oversize == Oversize::Error
        {
            let first = &trace.jobs[job.index()];
            return Err(SimError::Oversize {
                count: oversize.len(),
                first: first.id.clone(),
                line: first.row,
                reason: reason.clone(),
            });
        }
        for (job, _) in oversize {
            // The engine hears of it all the same, and says why it waits.
            world.refuse(job);
        }
        let mut simulation = Simulation {
            trace,
            workload,
            settings,
            engine: Engine::new(settings.engine, settings.policy.build()),
            auditor: settings.audit.then(|| auditor_of(&settings.engine, &settings.policy)),
            world,
            predictor: Predictor::new(settings.estimates.clone()),
            meter: UsageMeter::new(workload.pools.max(1)),
            quotas: quota_meter(trace, workload, settings),
            outages: Vec::new(),
            now: Time::ZERO,
            closed: Vec::new(),
            owners: 0,
            next_arrival: 0,
            commands: Vec::new(),
            counters: Counters::default(),
            pool_gpus: vec![0; workload.pools.max(1)],
            idle_steps: 0,
        };
        for event in workload.inventory() {
            simulation.step(&event)?;
        }
        if let Some(interference) = &settings.interference {
            let table = match settings.policy.predicts_pairs() {
                true => interference.predicted.clone(),
                false => interference.predicted.unknowing(),
            };
            simulation.step(&Event::Retentions { table })?;
        }
        for node in &workload.nodes {
            simulation.pool_gpus[node.pool.index()] += node.gpus;
        }
        simulation.schedule_outages();
        simulation.schedule_arrival();
        Ok(simulation)
    }

    fn schedule_outages(&mut self) {
        match &self.settings.outages {
            Outages::None => {}
            Outages::Listed(outages) => {
                for (at, due) in outages.iter().flat_map(Outage::events) {
                    self.world.queue.push(at, due);
                }
            }
            Outages::Drawn(model) => {
                let begin = self.trace.jobs.first().map_or(Time::ZERO, |job| job.submit);
                for index in 0..self.workload.nodes.len() {
                    let mut rng = stream(self.settings.seed, 1_000 + index as u64);
                    let at = begin + exponential(model.mean_up, &mut rng);
                    self.outages.push(rng);
                    self.world.queue.push(at, Due::NodeFails(NodeId::from_index(index)));
                }
            }
        }
    }

    fn schedule_arrival(&mut self) {
        if let Some(job) = self.trace.jobs.get(self.next_arrival) {
            self.world.queue.push(job.submit, Due::Arrival);
        }
    }

    fn run(&mut self, watch: &Watch) -> Result<(), SimError> {
        let mut reported = self.world.ended;
        while self.world.ended < self.trace.jobs.len() {
            self.go_to_next_instant()?;
            let mut rounds = 0;
            loop {
                while let Some(due) = self.world.queue.pop_at(self.now) {
                    self.happen(due)?;
                }
                if self.engine.next_wakeup().is_none_or(|at| at > self.now) {
                    break;
                }
                self.step(&Event::Wake)?;
                self.hear()?;
                rounds += 1;
                if rounds > MAX_ROUNDS_AT_ONCE {
                    return Err(self.livelock());
                }
            }
            self.measure();
            if watch.stop.load(Ordering::Relaxed) {
                return Err(SimError::Interrupted);
            }
            let ended = self.world.ended;
            watch.ended.fetch_add((ended - reported) as u64, Ordering::Relaxed);
            reported = ended;
            if self.idle_steps > self.settings.max_idle_steps {
                return Err(self.livelock());
            }
        }
        if let Some(auditor) = &mut self.auditor {
            let now = self.now;
            let checked = auditor.check_all(self.engine.state());
            let closed = checked.and_then(|()| auditor.finish(now).map(|_| ()));
            closed.map_err(|violation| audit_failed(now, violation))?;
        }
        Ok(())
    }

    fn go_to_next_instant(&mut self) -> Result<(), SimError> {
        let next = [self.world.queue.next_at(), self.engine.next_wakeup()];
        let Some(next) = next.into_iter().flatten().min() else { return Err(self.stuck()) };
        let only_outages = self.next_arrival >= self.trace.jobs.len()
            && self.owners == 0
            && self.engine.next_wakeup().is_none()
            && self.nothing_moves();
        if only_outages && !matches!(self.settings.outages, Outages::Listed(_)) {
            return Err(self.stuck());
        }
        self.now = next.max(self.now);
        self.meter.advance(self.now);
        Ok(())
    }

    /// True if no attempt holds devices and none is away for a while.
    fn nothing_moves(&self) -> bool {
        let state = self.engine.state();
        let nodes_up = state.nodes().iter().all(|node| node.condition == NodeCondition::Ready);
        nodes_up && state.pools().iter().all(|pool| pool.live_attempts() == 0)
    }

    fn happen(&mut self, due: Due) -> Result<(), SimError> {
        match due {
            Due::Arrival => self.arrive()?,
            Due::Releases(job) => {
                self.owners -= 1;
                if !self.world.is_over(job) {
                    self.step(&Event::Unheld { job })?;
                }
            }
            Due::Withdraws(job) => {
                self.owners -= 1;
                if self.world.withdraw(self.now, job) {
                    self.step(&Event::Cancelled { job })?;
                }
            }
            Due::WorkDone(attempt, token) => {
                if let Some(job) = self.world.work_done(self.now, attempt, token) {
                    let duration = self.trace.jobs[job.index()].duration;
                    self.predictor.learn(&self.workload.jobs[job.index()], duration);
                }
            }
            Due::NodeFails(node) => {
                if let Outages::Drawn(model) = self.settings.outages {
                    self.schedule_return(node, model);
                }
                self.step(&Event::NodeLost { node })?;
            }
            Due::NodeReturns(node) => {
                if let Outages::Drawn(model) = self.settings.outages {
                    let rng = &mut self.outages[node.index()];
                    let at = self.now + exponential(model.mean_up, rng);
                    self.world.queue.push(at, Due::NodeFails(node));
                }
                self.step(&Event::NodeRecovered { node })?;
            }
            Due::Cordons(node, cordoned) => {
                self.closed.retain(|&other| other != node);
                self.closed.extend(cordoned.then_some(node));
                self.step(&Event::NodeCordoned { node, cordoned })?;
            }
            Due::Binds(attempt) => self.world.bind(self.now, attempt),
            Due::Starts(attempt) => self.world.start(self.now, attempt),
            Due::LetsGo(attempt) => self.world.let_go(self.now, attempt),
            Due::Reads(newer, host) => self.world.read_pair(self.now, newer, host),
            Due::News(event) => self.step(&event)?,
        }
        self.hear()
    }

    fn schedule_return(&mut self, node: NodeId, model: OutageModel) {
        let at = self.now + exponential(model.mean_down, &mut self.outages[node.index()]);
        self.world.queue.push(at, Due::NodeReturns(node));
    }

    fn arrive(&mut self) -> Result<(), SimError> {
        let job = JobId::from_index(self.next_arrival);
        let mut spec = self.workload.jobs[job.index()].clone();
        if self.settings.classes == Classes::Overflow {
            spec.class = self.overflow_class(&spec);
            self.world.records[job.index()].class = spec.class;
        }
        self.next_arrival += 1;
        self.schedule_arrival();
        self.meter.submitted();
        let duration = self.trace.jobs[job.index()].duration;
        let estimate = self.predictor.estimate(job, &spec, duration);
        self.step(&Event::Submitted { job, spec })?;
        if let Some(run_time) = estimate {
            self.step(&Event::Estimated { job, run_time })?;
        }
        self.owner_plans(job)
    }

    /// Holds a job that its owner holds, and schedules its release and withdrawal.
    fn owner_plans(&mut self, job: JobId) -> Result<(), SimError> {
        let plans = &self.trace.jobs[job.index()];
        if let Some(until) = plans.hold_until.filter(|&until| until > self.now) {
            self.step(&Event::Held { job })?;
            self.world.queue.push(until, Due::Releases(job));
            self.owners += 1;
        }
        if let Some(at) = plans.cancel {
            self.world.queue.push(at, Due::Withdraws(job));
            self.owners += 1;
        }
        Ok(())
    }

    /// Best-effort if the tenant's guaranteed demand leaves no room for the job in its quota.
    fn overflow_class(&self, spec: &JobSpec) -> Class {
        let state = self.engine.state();
        let demand = state.guaranteed(spec.tenant).0;
        let full = demand + spec.demand.gpus > state.tenant(spec.tenant).quota.total();
        // A job that could never run as best-effort keeps its claim.
        let mut types = (0..state.gpu_types()).map(GpuTypeId::from_index);
        let fits = types.any(|gpu_type| {
            let wanted = spec.demand.gpu_type.is_none_or(|wanted| wanted == gpu_type);
            let limit = state.limit(spec.tenant, Class::BestEffort, gpu_type);
            wanted && limit.is_none_or(|(most, _)| most >= spec.demand.gpus)
        });
        if full && fits { Class::BestEffort } else { Class::Guaranteed }
    }

    /// Tells the engine all that can be heard at once.
    fn hear(&mut self) -> Result<(), SimError> {
        while let Some(event) = self.world.news.pop_front() {
            self.step(&event)?;
        }
        Ok(())
    }

    fn step(&mut self, event: &Event) -> Result<(), SimError> {
        let now = self.now;
        self.counters.events += 1;
        self.idle_steps += 1;
        if let Some(auditor) = &mut self.auditor {
            auditor.event(now, event).map_err(|violation| audit_failed(now, violation))?;
        }
        self.commands.clear();
        let stepped = self.engine.step(now, event, &mut self.commands);
        stepped.map_err(|illegal| SimError::Illegal { at: now, illegal })?;
        self.counters.commands += self.commands.len() as u64;
        for command in &self.commands {
            if let Some(auditor) = &mut self.auditor {
                auditor.command(now, command).map_err(|violation| audit_failed(now, violation))?;
            }
            self.world.obey(now, command);
        }
        self.quotas.stepped(self.engine.state(), event, &self.commands);
        if let Some(auditor) = &mut self.auditor {
            let compared = auditor.compare(self.engine.state());
            compared.map_err(|violation| audit_failed(now, violation))?;
        }
        for job in std::mem::take(&mut self.world.just_ended) {
            self.idle_steps = 0;
            self.meter.ended();
            if let Some(auditor) = &mut self.auditor {
                let checked = auditor.work(job, self.world.ledger(job));
                checked.map_err(|violation| audit_failed(now, violation))?;
            }
        }
        Ok(())
    }

    fn measure(&mut self) {
        for (index, pool) in self.engine.state().pools().iter().enumerate() {
            let (usable, free) = (pool.usable_gpus(), pool.free_gpus());
            let (waiting, pool) = (pool.waiting_jobs(), PoolId::from_index(index));
            let held = self.held_on_closed(pool);
            self.meter.set_pool(pool, usable + held, usable - free + held, waiting);
        }
        self.meter.set_sharing(self.world.levels);
        self.quotas.measure(self.now, self.engine.state());
    }

    /// GPUs in use on nodes of a pool that take nothing new. They are no longer the pool's to give.
    fn held_on_closed(&self, pool: PoolId) -> u32 {
        let nodes = self.closed.iter().map(|node| &self.engine.state().nodes()[node.index()]);
        let closed = nodes
            .filter(|node| node.spec.pool == pool && node.condition == NodeCondition::Cordoned);
        closed.map(|node| node.held().count()).sum()
    }

    fn waiting(&self) -> u64 {
        self.engine.state().pools().iter().map(|pool| u64::from(pool.waiting_jobs())).sum()
    }

    fn stuck(&self) -> SimError {
        let state = self.engine.state();
        let jobs = (0..self.next_arrival).map(JobId::from_index);
        let waits = jobs
            .filter(|job| !self.world.records[job.index()].refused)
            .find_map(|job| Some((job, state.explain(job)?)));
        let (first, reason) = match waits {
            Some((job, reason)) => (self.trace.jobs[job.index()].id.clone(), reason.to_string()),
            None => ("none".to_owned(), "every job has ended or not yet come".to_owned()),
        };
        SimError::Stuck { at: self.now, waiting: self.waiting(), first, reason }
    }

    fn livelock(&self) -> SimError {
        SimError::Livelock {
            at: self.now,
            steps: self.idle_steps,
            running: self.engine.state().pools().iter().map(|pool| pool.live_attempts()).sum(),
            waiting: self.waiting(),
        }
    }

    fn record(self, trace: &Trace) -> RunRecord {
        debug_assert_eq!(self.world.records.len(), trace.jobs.len());
        RunRecord {
            policy: self.settings.policy.name().to_owned(),
            estimates: self.settings.estimates.name().to_owned(),
            usage: self.meter.usage(),
            quota: self.quotas.finish(self.now, self.engine.state()),
            jobs: self.world.records,
            pool_gpus: self.pool_gpus,
            residents_per_gpu: if self.engine.state().pair_counts().formed > 0 { 2 } else { 1 },
            pairs: pair_record(self.engine.state()),
            counters: Counters { rounds: self.engine.state().rounds(), ..self.counters },
        }
    }
}

fn quota_meter(trace: &Trace, workload: &Workload, settings: &SimSettings) -> QuotaMeter {
    let gpus: u64 = workload.nodes.iter().map(|node| u64::from(node.gpus)).sum();
    let cap = match &settings.policy {
        PolicyConfig::DeepShare(policy) if policy.preemption_cap > 0 => policy.preemption_cap,
        _ => DeepShareSettings::default().preemption_cap,
    };
    let arrivals_end = trace.jobs.last().map_or(Time::ZERO, |job| job.submit);
    let look_for_avoidable = gpus <= AVOIDABLE_UP_TO_GPUS || settings.audit;
    QuotaMeter::new(&settings.engine, &workload.tenants, arrivals_end, cap, look_for_avoidable)
}

fn pair_record(state: &State) -> PairRecord {
    let counts = state.pair_counts();
    let refused = PairTest::ALL.map(|test| (test.name().to_owned(), counts.refused[test as usize]));
    PairRecord { formed: counts.formed, revoked: counts.revoked, refused: refused.into() }
}

fn audit_failed(at: Time, violation: Violation) -> SimError {
    SimError::Audit { at, violation: Box::new(violation) }
}
