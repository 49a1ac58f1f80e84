//! An engine and its auditor, and ways to tell them different stories.

use crate::restless::Restless;
use deepshare_audit::{Auditor, Violation};
use deepshare_engine::{Command, Engine, EngineSettings, Event};
use deepshare_model::{
    Class, Demand, GpuTypeId, JobId, JobSpec, NodeId, NodeSpec, PoolId, Quota, Resources, Sharing,
    TenantId, TenantSpec, Time, UserId,
};

pub struct Pair {
    pub engine: Engine,
    pub auditor: Auditor,
    pub now: Time,
}

pub fn terms(quota: u32, parent: Option<TenantId>) -> TenantSpec {
    TenantSpec { parent, ..TenantSpec::new(PoolId(0), Quota::uniform(quota, 1)) }
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

pub fn job_of(gpus: u32, priority: i32) -> JobSpec {
    JobSpec {
        tenant: TenantId(0),
        user: UserId(0),
        class: Class::Guaranteed,
        priority,
        submit: Time::ZERO,
        demand: Demand::gpus(gpus),
        sharing: Sharing::default(),
        profile: None,
        training: None,
        recommended: None,
        requested_time: None,
    }
}

impl Pair {
    /// Two tenants with 8 GPUs of quota each, and two nodes of 4 GPUs.
    pub fn new(settings: EngineSettings) -> Pair {
        let engine = Engine::new(settings, Box::new(Restless));
        let mut pair = Pair { engine, auditor: Auditor::new(&settings), now: Time::ZERO };
        for tenant in [TenantId(0), TenantId(1)] {
            pair.tell(Event::TenantSet { tenant, spec: terms(8, None) }).expect("breaks no rule");
        }
        for node in [NodeId(0), NodeId(1)] {
            pair.tell(Event::NodeAdded { node, spec: node_of(4) }).expect("breaks no rule");
        }
        pair
    }

    /// Tells the engine only; its commands.
    pub fn tell_engine(&mut self, event: &Event) -> Vec<Command> {
        let mut out = Vec::new();
        self.engine.step(self.now, event, &mut out).expect("breaks no rule");
        out
    }

    /// Tells the engine one thing and the auditor another, then compares everything.
    pub fn tell_apart(&mut self, engine: Event, auditor: Event) -> Result<(), Violation> {
        self.auditor.event(self.now, &auditor)?;
        for command in self.tell_engine(&engine) {
            self.auditor.command(self.now, &command)?;
        }
        self.check()
    }

    /// Tells both the same.
    pub fn tell(&mut self, event: Event) -> Result<(), Violation> {
        self.tell_apart(event.clone(), event)
    }

    pub fn check(&mut self) -> Result<(), Violation> {
        self.auditor.compare(self.engine.state())?;
        self.auditor.check_all(self.engine.state())
    }

    pub fn submit(&mut self, job: JobId, gpus: u32, priority: i32) -> Result<(), Violation> {
        self.tell(Event::Submitted { job, spec: job_of(gpus, priority) })?;
        self.tell(Event::Wake)
    }
}

/// Asserts that a result is a violation of the given shape.
macro_rules! breaks {
    ($result:expr, $pattern:pat) => {{
        let result = $result;
        assert!(matches!(&result, Err($pattern)), "got {result:?}");
    }};
}
pub(crate) use breaks;
