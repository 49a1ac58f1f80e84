//! A small world that goes wrong in every way the vocabulary has a word for.

use crate::restless::Restless;
use deepshare_audit::{AuditReport, Auditor, Violation};
use deepshare_engine::{
    AttemptState, BindFailure, CapacityMode, Engine, EngineSettings, Event, Placer,
};
use deepshare_model::{
    AttemptId, Class, Demand, Epoch, GpuTypeId, JobId, JobSpec, Layout, NodeId, NodeSpec, Outcome,
    PoolId, Quota, Resources, Sharing, Span, TenantId, TenantSpec, Time, UserId,
};

/// Draws from one seed (the SplitMix64 recurrence).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct World {
    dice: Dice,
    settings: EngineSettings,
    now: Time,
    engine: Engine,
    auditor: Auditor,
    /// Events sent before, to be sent again.
    past: Vec<Event>,
    jobs: u32,
    nodes: u32,
}

const TENANTS: u64 = 4;
const SEEDS: u64 = 12;

impl World {
    fn new(seed: u64, capacity: CapacityMode, placer: Placer) -> World {
        let settings = EngineSettings { capacity, placer, ..EngineSettings::default() };
        let mut world = World {
            dice: Dice(seed),
            settings,
            now: Time::ZERO,
            engine: Engine::new(settings, Box::new(Restless)),
            auditor: Auditor::new(&settings).check_every(1),
            past: Vec::new(),
            jobs: 0,
            nodes: 0,
        };
        for tenant in 0..TENANTS as u32 {
            let spec = world.terms(tenant);
            world
                .send(Event::TenantSet { tenant: TenantId(tenant), spec })
                .expect("breaks no rule");
        }
        for _ in 0..4 {
            world.add_node().expect("breaks no rule");
        }
        world
    }

    /// Tenants 1 and 2 are children of 0 and share its pool; 3 has a pool of its own.
    fn terms(&mut self, tenant: u32) -> TenantSpec {
        let quota = Quota::uniform(4 + self.dice.below(12) as u32, 2);
        TenantSpec {
            parent: (tenant == 1 || tenant == 2).then_some(TenantId(0)),
            ..TenantSpec::new(PoolId(u16::from(tenant == 3)), quota)
        }
    }

    fn send(&mut self, event: Event) -> Result<(), Violation> {
        let mut out = Vec::new();
        self.auditor.event(self.now, &event)?;
        self.engine.step(self.now, &event, &mut out).expect("the policy keeps the rules");
        for command in &out {
            self.auditor.command(self.now, command)?;
        }
        self.auditor.compare(self.engine.state())?;
        self.past.push(event);
        Ok(())
    }

    fn add_node(&mut self) -> Result<(), Violation> {
        let spec = NodeSpec {
            pool: PoolId(u16::from(self.dice.one_in(3))),
            gpu_type: GpuTypeId(self.dice.below(2) as u16),
            gpus: [4, 8][self.dice.below(2) as usize],
            gpu_memory_mib: [0, 16_000, 32_000][self.dice.below(3) as usize],
            capacity: Resources { cpu_milli: 24_000, memory_mib: 64_000 },
        };
        let node = NodeId(self.nodes);
        self.nodes += 1;
        self.send(Event::NodeAdded { node, spec })
    }

    fn submit(&mut self) -> Result<(), Violation> {
        let member = 1 + self.dice.below(3) as u32;
        let members = 1 + self.dice.below(4) as u32;
        let (gpus, layout) = match self.dice.one_in(2) {
            true => (member * members, Layout::Members(member)),
            false => (1 + self.dice.below(10) as u32, Layout::Consolidated),
        };
        let per_gpu = Resources {
            cpu_milli: self.dice.below(7) * 1_000,
            memory_mib: self.dice.below(9) * 1_000,
        };
        let demand = Demand {
            gpus,
            layout,
            gpu_type: self.dice.one_in(3).then(|| GpuTypeId(self.dice.below(2) as u16)),
            gpu_memory_mib: self.dice.below(3) as u32 * 12_000,
            per_gpu,
            site: None,
        };
        let spec = JobSpec {
            tenant: TenantId(self.dice.below(TENANTS) as u32),
            user: UserId(0),
            class: Class::Guaranteed,
            priority: self.dice.below(4) as i32,
            submit: self.now,
            demand,
            sharing: Sharing::default(),
            profile: None,
            training: None,
            recommended: None,
            requested_time: None,
        };
        let job = JobId(self.jobs);
        self.jobs += 1;
        self.send(Event::Submitted { job, spec })
    }

    fn some_job(&mut self) -> JobId {
        // Mostly recent ones: the old ones are over.
        let back = self.dice.below(12.min(u64::from(self.jobs))) as u32;
        JobId(self.jobs - 1 - back)
    }

    fn some_node(&mut self) -> NodeId {
        NodeId(self.dice.below(u64::from(self.nodes)) as u32)
    }

    /// An attempt, and what could truthfully be said about it next.
    fn news(&mut self) -> Option<Event> {
        let live: Vec<AttemptId> =
            self.engine.state().attempts().iter().filter(|a| a.is_live()).map(|a| a.id).collect();
        if live.is_empty() {
            return None;
        }
        let attempt = live[self.dice.below(live.len() as u64) as usize];
        let entry = self.engine.state().attempt(attempt);
        let (state, ran) = (entry.state, entry.running_since.is_some());
        let failures = [BindFailure::Transient, BindFailure::Conflict, BindFailure::Permanent];
        let failure = failures[self.dice.below(3) as usize];
        // However often it is told, an attempt ended one way.
        let outcome = Outcome::ALL[attempt.index() % 3];
        Some(match (state, self.dice.below(8)) {
            (AttemptState::Reserved, _) => return None,
            (AttemptState::Terminating, 0) => Event::EvictionRefused { attempt },
            (AttemptState::Terminating, 1) => Event::Terminating { attempt, until: self.now },
            (AttemptState::Terminating, 2) if ran => Event::Finished { attempt, outcome },
            (AttemptState::Terminating, _) => Event::DevicesReleased { attempt },
            (AttemptState::Running, 0..3) => Event::Finished { attempt, outcome },
            (AttemptState::Running, 3) => Event::DevicesReleased { attempt },
            (AttemptState::Running, _) => return None,
            (AttemptState::Binding, 0) => Event::BindFailed { attempt, failure },
            (AttemptState::Starting, 0) => Event::Rejected { attempt },
            (_, 1) => Event::StartOverdue { attempt },
            (AttemptState::Binding, 2..5) => Event::Bound { attempt },
            _ => Event::Running { attempt },
        })
    }

    /// One event of an instant.
    fn happening(&mut self) -> Result<(), Violation> {
        match self.dice.below(40) {
            0..8 => self.submit(),
            8 if self.nodes < 12 => self.add_node(),
            _ if self.jobs == 0 => Ok(()),
            9 => self.job_event(),
            10 => self.node_event(),
            11 if !self.past.is_empty() => self.repeat(),
            _ => self.news().map_or(Ok(()), |event| self.send(event)),
        }
    }

    fn job_event(&mut self) -> Result<(), Violation> {
        let job = self.some_job();
        let event = match self.dice.below(5) {
            0 => Event::Cancelled { job },
            1 => Event::Held { job },
            2 | 3 => Event::Unheld { job },
            _ => Event::Estimated { job, run_time: Span::from_secs(self.dice.below(100)) },
        };
        self.send(event)
    }

    fn node_event(&mut self) -> Result<(), Violation> {
        let node = self.some_node();
        let device = self.dice.below(4) as u32;
        let event = match self.dice.below(10) {
            0 => Event::NodeCordoned { node, cordoned: true },
            1 | 2 => Event::NodeCordoned { node, cordoned: false },
            3 => Event::NodeLost { node },
            4 => Event::NodeRecovered { node },
            5 => Event::DeviceHealth { node, device, healthy: false },
            6 => Event::DeviceHealth { node, device, healthy: true },
            8 => Event::NodeMoved { node, pool: PoolId(self.dice.below(2) as u16) },
            7 => Event::Leadership { epoch: Epoch(self.dice.below(50) as u32) },
            _ => {
                let tenant = self.dice.below(TENANTS) as u32;
                Event::TenantSet { tenant: TenantId(tenant), spec: self.terms(tenant) }
            }
        };
        self.send(event)
    }

    /// News of attempts and submissions may come again, much later.
    fn repeat(&mut self) -> Result<(), Violation> {
        let event = self.past[self.dice.below(self.past.len() as u64) as usize].clone();
        match event {
            Event::Wake | Event::Held { .. } | Event::TenantSet { .. } => Ok(()),
            event => self.send(event),
        }
    }

    fn run(&mut self, instants: u32) -> Result<AuditReport, Violation> {
        for _ in 0..instants {
            self.now = self.now + Span(self.dice.below(3_000_000));
            for _ in 0..1 + self.dice.below(4) {
                self.happening()?;
            }
            if self.engine.next_wakeup().is_some_and(|at| at <= self.now) {
                self.send(Event::Wake)?;
            }
        }
        self.auditor.finish(self.now)
    }
}

#[test]
fn the_engine_keeps_every_rule_in_random_worlds() {
    let mut checked = 0;
    for capacity in [CapacityMode::Partition, CapacityMode::Hard, CapacityMode::Pool] {
        for placer in [Placer::Consolidate, Placer::ConsolidateArtifact, Placer::NodeOrder] {
            for seed in 0..SEEDS {
                let mut world = World::new(seed, capacity, placer);
                let report = world.run(600).unwrap_or_else(|violation| {
                    panic!("seed {seed}, {:?}: {violation}\n{violation:?}", world.settings)
                });
                assert!(report.attempts > 50, "seed {seed}: too quiet to mean anything");
                checked += report.commands;
            }
        }
    }
    assert!(checked > 10_000);
}
