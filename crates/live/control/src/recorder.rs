//! Every step of the engine into the event log and the counters.

use crate::metrics::{Metrics, TenantFigures};
use deepshare_engine::{Command, Engine, Event, Illegal, JobState, State};
use deepshare_event_log::{Name, Named as LogNamed, Opening, WriteError, Writer};
use deepshare_kube_index::{Named, Record};
use deepshare_model::{GpuTypeId, TenantId, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// Is told every step of the engine. What cannot be written is lost, and said so once: scheduling does
/// not depend on its log.
pub struct Recorder {
    log: Option<Writer>,
    metrics: Arc<Metrics>,
    names: BTreeMap<LogNamed, String>,
    unflushed: bool,
}

impl Recorder {
    /// Counts in `metrics`, and writes to a log if there is one.
    pub fn new(log: Option<Writer>, metrics: Arc<Metrics>) -> Recorder {
        Recorder { log, metrics, names: BTreeMap::new(), unflushed: false }
    }

    /// True if something was recorded that a kill would lose.
    pub fn is_unflushed(&self) -> bool {
        self.unflushed && self.log.is_some()
    }

    /// Writes out what has gathered.
    pub fn flush(&mut self) {
        self.unflushed = false;
        self.write(Writer::flush);
    }

    /// Begins a new file of the log if the current one is full.
    pub fn rotate(&mut self, engine: &Engine) {
        let names = &mut self.names;
        if let Some(log) = &mut self.log {
            if log.is_due() {
                // The steps from here on tell nothing more of jobs that are over.
                names.retain(|of, _| !is_over(of, engine.state()));
            }
            let opening = || Opening {
                snapshot: engine.snapshot(),
                names: names.iter().map(|(&of, name)| Name { of, name: name.clone() }).collect(),
            };
            warn(log.rotate_if_due(opening));
        }
    }

    /// Shows how tenants are doing.
    pub fn show_tenants(&self, state: &State) {
        let figures = |number: usize| {
            let id = TenantId(u32::try_from(number).unwrap_or(u32::MAX));
            let (now, smoothed) = state.qad(id);
            let (demanded, held) = state.guaranteed(id);
            TenantFigures {
                name: self.names.get(&LogNamed::Tenant(id)).cloned().unwrap_or_default(),
                assurance: [now.as_f64(), smoothed.as_f64()],
                guaranteed: [demanded, held],
            }
        };
        let all = (0..state.tenant_count()).map(figures).filter(|tenant| !tenant.name.is_empty());
        *self.metrics.tenants.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
    }

    fn write(&mut self, what: impl FnOnce(&mut Writer) -> Result<(), WriteError>) {
        if let Some(log) = &mut self.log {
            warn(what(log));
        }
    }
}

fn is_over(of: &LogNamed, state: &State) -> bool {
    let LogNamed::Job(id) = of else { return false };
    state.jobs().get(id.index()).is_some_and(|job| matches!(job.state, JobState::Ended(_)))
}

fn warn(written: Result<(), WriteError>) {
    if let Err(error) = written {
        tracing::error!(%error, "the event log; scheduling goes on");
    }
}

impl Record for Recorder {
    fn step(
        &mut self,
        now: Time,
        event: &Event,
        commands: &[Command],
        _state: &State,
        illegal: Option<&Illegal>,
    ) {
        self.metrics.events.add(1);
        self.metrics.commands.add(commands.len() as u64);
        if let Some(illegal) = illegal {
            self.metrics.illegal.add(1);
            tracing::error!(%illegal, "a proposal broke a rule and was not carried out: a bug");
        }
        self.unflushed = true;
        self.write(|log| log.step(now, event, commands, illegal));
    }

    fn name(&mut self, named: &Named) {
        let (of, name) = match named {
            Named::Tenant(id, name) => (LogNamed::Tenant(*id), name),
            Named::Node(id, name) => (LogNamed::Node(*id), name),
            Named::Job(id, name) => (LogNamed::Job(*id), name),
            Named::User(id, name) => (LogNamed::User(*id), name),
            Named::Profile(id, name) => (LogNamed::Profile(*id), name),
            Named::GpuType(number, name) => {
                (LogNamed::GpuType(GpuTypeId(u16::try_from(*number).unwrap_or(u16::MAX))), name)
            }
        };
        if self.log.is_some() || matches!(of, LogNamed::Tenant(_)) {
            self.names.insert(of, name.clone());
        }
        self.write(|log| log.name(&Name { of, name: name.clone() }));
    }
}
