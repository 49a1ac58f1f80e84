//! Sequences of events and commands written by hand, as a driver and an engine would exchange them.

use deepshare_audit::{Auditor, Violation};
use deepshare_engine::{CapacityMode, Command, EngineSettings, Event, EvictReason, Slice};
use deepshare_model::{
    AttemptId, Class, Demand, Devices, Epoch, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, Outcome,
    PoolId, Quota, Resources, Sharing, Span, TenantId, TenantSpec, Time, UserId,
};

pub const T0: TenantId = TenantId(0);
pub const A0: AttemptId = AttemptId(0);
pub const A1: AttemptId = AttemptId(1);
pub const A2: AttemptId = AttemptId(2);
pub const N0: NodeId = NodeId(0);
pub const N1: NodeId = NodeId(1);
pub const J0: JobId = JobId(0);
pub const J1: JobId = JobId(1);

/// Devices of nodes, by bit.
pub type On<'a> = &'a [(NodeId, u64)];

pub struct Hand {
    pub auditor: Auditor,
    pub now: Time,
    /// Classes of the jobs so far.
    jobs: Vec<Class>,
    nodes: u32,
    tenants: u32,
}

pub fn hard() -> EngineSettings {
    EngineSettings { capacity: CapacityMode::Hard, ..EngineSettings::default() }
}

pub fn node_of(gpus: u32) -> NodeSpec {
    NodeSpec {
        pool: PoolId(0),
        gpu_type: GpuTypeId(0),
        gpus,
        gpu_memory_mib: 0,
        capacity: Resources::UNLIMITED,
    }
}

pub fn job_of(demand: Demand) -> JobSpec {
    JobSpec {
        tenant: T0,
        user: UserId(0),
        class: Class::Guaranteed,
        priority: 0,
        submit: Time::ZERO,
        demand,
        sharing: Sharing::default(),
        profile: None,
        training: None,
        recommended: None,
        requested_time: None,
    }
}

impl Hand {
    /// No nodes, no tenants.
    pub fn bare(settings: EngineSettings) -> Hand {
        Hand::beside(Auditor::new(&settings))
    }

    /// The given auditor, which has seen nothing yet.
    pub fn beside(auditor: Auditor) -> Hand {
        Hand { auditor, now: Time::ZERO, jobs: Vec::new(), nodes: 0, tenants: 0 }
    }

    /// One tenant with a large quota, and nodes of so many GPUs.
    pub fn with_nodes(settings: EngineSettings, gpus: &[u32]) -> Hand {
        let mut hand = Hand::bare(settings);
        hand.tenant(TenantSpec::new(PoolId(0), Quota::uniform(1_000, 2)));
        for &gpus in gpus {
            hand.node(node_of(gpus));
        }
        hand
    }

    /// The common case: default settings.
    pub fn new(gpus: &[u32]) -> Hand {
        Hand::with_nodes(EngineSettings::default(), gpus)
    }

    pub fn event(&mut self, event: Event) -> Result<(), Violation> {
        self.auditor.event(self.now, &event)
    }

    /// An event that breaks no rule.
    pub fn sees(&mut self, event: Event) {
        self.event(event).expect("breaks no rule");
    }

    /// What the next step says: where missed duties show.
    pub fn next_step(&mut self) -> Result<(), Violation> {
        self.event(Event::Wake)
    }

    pub fn passes(&mut self, seconds: u64) {
        self.now = self.now + Span::from_secs(seconds);
    }

    pub fn tenant(&mut self, spec: TenantSpec) -> TenantId {
        let tenant = TenantId(self.tenants);
        self.tenants += 1;
        self.sees(Event::TenantSet { tenant, spec });
        tenant
    }

    pub fn node(&mut self, spec: NodeSpec) -> NodeId {
        let node = NodeId(self.nodes);
        self.nodes += 1;
        self.sees(Event::NodeAdded { node, spec });
        node
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        let job = JobId::from_index(self.jobs.len());
        self.jobs.push(spec.class);
        self.sees(Event::Submitted { job, spec });
        job
    }

    /// A consolidated job of so many GPUs.
    pub fn job(&mut self, gpus: u32) -> JobId {
        self.submit(job_of(Demand::gpus(gpus)))
    }

    pub fn command(&mut self, command: Command) -> Result<(), Violation> {
        self.auditor.command(self.now, &command)
    }

    pub fn reserve(&mut self, attempt: AttemptId, job: JobId, on: On) -> Result<(), Violation> {
        self.command(Command::Reserve {
            attempt,
            job,
            charged: self.jobs.get(job.index()).copied().unwrap_or_default(),
            placement: placement(on),
        })
    }

    pub fn start(&mut self, attempt: AttemptId, job: JobId, on: On) -> Result<(), Violation> {
        self.start_under(Epoch(0), attempt, job, on)
    }

    pub fn start_under(
        &mut self,
        epoch: Epoch,
        attempt: AttemptId,
        job: JobId,
        on: On,
    ) -> Result<(), Violation> {
        self.command(Command::Start {
            attempt,
            epoch,
            job,
            charged: self.jobs.get(job.index()).copied().unwrap_or_default(),
            placement: placement(on),
            steps: 1,
        })
    }

    pub fn evict(&mut self, attempt: AttemptId, reason: EvictReason) -> Result<(), Violation> {
        let (epoch, grace) = (Epoch(0), Span::from_secs(30));
        self.command(Command::Evict { attempt, epoch, reason, grace, preemption: None })
    }

    pub fn preempt(&mut self, attempt: AttemptId) -> Result<(), Violation> {
        self.evict(attempt, EvictReason::Preempted)
    }

    pub fn give_up(&mut self, attempt: AttemptId) -> Result<(), Violation> {
        self.command(Command::ReleaseReservation { attempt })
    }

    /// A job of so many GPUs that runs there.
    pub fn running(&mut self, gpus: u32, attempt: AttemptId, on: On) -> JobId {
        let job = self.job(gpus);
        self.start(attempt, job, on).expect("breaks no rule");
        self.sees(Event::Bound { attempt });
        self.sees(Event::Running { attempt });
        job
    }

    pub fn finished(&mut self, attempt: AttemptId) {
        self.sees(Event::Finished { attempt, outcome: Outcome::Succeeded });
    }

    pub fn released(&mut self, attempt: AttemptId) {
        self.sees(Event::DevicesReleased { attempt });
    }
}

pub fn placement(on: On) -> Vec<Slice> {
    on.iter().map(|&(node, bits)| Slice { node, devices: Devices(bits) }).collect()
}

/// Asserts that a result is a violation of the given shape.
macro_rules! breaks {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {{
        let result = $result;
        assert!(matches!(&result, Err($pattern) $(if $guard)?), "got {result:?}");
    }};
}
pub(crate) use breaks;
