//! An engine and the least world it needs: everything is done at once and as told.

use deepshare_engine::{Command, Engine, EngineSettings, Event, Policy};
use deepshare_model::{
    AttemptId, Class, Demand, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome, PoolId, Quota,
    Resources, Sharing, Span, TenantId, TenantSpec, Time, UserId,
};

/// One pool, one tenant, an engine.
pub(super) struct Stage {
    engine: Engine,
    now: Time,
    jobs: u32,
    commands: Vec<Command>,
    /// Attempts that were told to start and did, oldest first.
    pub(super) started: Vec<AttemptId>,
    /// Attempts that were evicted.
    pub(super) evicted: u32,
}

impl Stage {
    pub(super) fn new(policy: Box<dyn Policy>, nodes: u32, gpus_per_node: u32) -> Stage {
        let mut stage = Stage {
            engine: Engine::new(EngineSettings::default(), policy),
            now: Time::ZERO,
            jobs: 0,
            commands: Vec::new(),
            started: Vec::new(),
            evicted: 0,
        };
        let spec = TenantSpec::new(PoolId(0), Quota::default());
        stage.tell(&Event::TenantSet { tenant: TenantId(0), spec });
        for node in 0..nodes {
            let spec = NodeSpec {
                pool: PoolId(0),
                gpu_type: GpuTypeId(0),
                gpus: gpus_per_node,
                gpu_memory_mib: 0,
                capacity: Resources::UNLIMITED,
            };
            stage.tell(&Event::NodeAdded { node: NodeId(node), spec });
        }
        stage
    }

    /// Passes an event on and does what the engine asks for.
    fn tell(&mut self, event: &Event) {
        let mut commands = std::mem::take(&mut self.commands);
        commands.clear();
        self.engine.step(self.now, event, &mut commands).expect("policies here keep the rules");
        for command in &commands {
            match command {
                Command::Start { attempt, .. } => {
                    self.started.push(*attempt);
                    self.tell(&Event::Bound { attempt: *attempt });
                    self.tell(&Event::Running { attempt: *attempt });
                }
                Command::Evict { .. } => self.evicted += 1,
                _ => {}
            }
        }
        self.commands = commands;
    }

    pub(super) fn submit(&mut self, gpus: u32, run_time_s: u64) -> JobId {
        let job = JobId(self.jobs);
        self.jobs += 1;
        let spec = JobSpec {
            tenant: TenantId(0),
            user: UserId(0),
            class: Class::Guaranteed,
            priority: 0,
            submit: self.now,
            demand: Demand::gpus(gpus),
            sharing: Sharing::default(),
            profile: None,
            training: None,
            recommended: None,
            requested_time: None,
        };
        self.tell(&Event::Submitted { job, spec });
        self.estimate(job, run_time_s);
        job
    }

    fn estimate(&mut self, job: JobId, run_time_s: u64) {
        self.tell(&Event::Estimated { job, run_time: Span::from_secs(run_time_s) });
    }

    pub(super) fn finish(&mut self, attempt: AttemptId) {
        self.tell(&Event::Finished { attempt, outcome: Outcome::Succeeded });
        self.tell(&Event::DevicesReleased { attempt });
    }

    pub(super) fn wake(&mut self) {
        self.tell(&Event::Wake);
    }

    /// A second later, a round: told once more what is known of a running job, the engine looks
    /// at its pool again, and nothing has changed but the time.
    pub(super) fn round(&mut self, running: JobId, run_time_s: u64) {
        self.now = self.now + Span::SECOND;
        self.estimate(running, run_time_s);
        let rounds = self.engine.state().rounds();
        self.wake();
        assert_eq!(self.engine.state().rounds(), rounds + 1, "one round was held");
    }

    pub(super) fn advance_s(&mut self, seconds: u64) {
        self.now = self.now + Span::from_secs(seconds);
    }

    /// Checks that so many jobs have started since the beginning and nobody was evicted.
    pub(super) fn expect_started(&self, count: usize) {
        assert_eq!((self.started.len(), self.evicted), (count, 0));
    }

    pub(super) fn waiting(&self) -> u32 {
        self.engine.state().pool(PoolId(0)).waiting_jobs()
    }
}
