//! Everything that is written to the API server on the index's behalf.
//!
//! [`Writers::submit`] never waits: the engine goes on deciding while requests are in flight. What is
//! asked of one pod is done in order (`lanes.rs`), each kind of write has its own bound on requests in
//! flight, so that status writes cannot hold up bindings, and how each ended comes back on one
//! channel. How each is carried out is in `executor.rs`.

mod announcer;
mod executor;
mod lanes;
mod requests;

use crate::api::Api;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use announcer::Announcer;
use deepshare_kube_index::{Action, Outcome};
use executor::Executor;
use lanes::{Lanes, Subject};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Bindings, and the nodes of claims before them.
    Bind,
    /// Evictions, deletions, and the conditions before them.
    Evict,
    /// Resizes.
    Resize,
    /// Conditions, nominations and annotations of pods.
    Status,
    /// Status of tenants.
    Tenant,
    /// Events.
    Announce,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] =
        [Kind::Bind, Kind::Evict, Kind::Resize, Kind::Status, Kind::Tenant, Kind::Announce];

    /// Its name in settings and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bind => "bind",
            Kind::Evict => "evict",
            Kind::Resize => "resize",
            Kind::Status => "status",
            Kind::Tenant => "tenant",
            Kind::Announce => "event",
        }
    }
}

/// What writers need.
pub struct WriterContext {
    /// Where to write.
    pub api: Api,
    /// Looked at before each write.
    pub leadership: Leadership,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The scheduler's name, as `reportingController` of events.
    pub scheduler: String,
    /// This process, as `reportingInstance` of events.
    pub identity: String,
}

/// Takes actions in. Dropping it ends the tasks behind it once what was taken in is done.
pub struct Writers {
    actions: mpsc::UnboundedSender<Action>,
    announcer: Announcer,
    executor: Arc<Executor>,
    metrics: Arc<Metrics>,
}

impl Writers {
    /// Starts the tasks that write, with so many requests of each kind in flight at most. How each
    /// action ended is sent to `outcomes`.
    pub fn start(
        context: WriterContext,
        in_flight: impl Fn(Kind) -> usize,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> Writers {
        let WriterContext { api, leadership, metrics, scheduler, identity } = context;
        let executor = Executor::new(api, leadership, metrics.clone(), outcomes, in_flight);
        let executor = Arc::new(executor);
        let announcer = Announcer::start(executor.clone(), scheduler, identity);
        let (actions, taken) = mpsc::unbounded_channel();
        tokio::spawn(dispatch(taken, executor.clone(), metrics.clone()));
        Writers { actions, announcer, executor, metrics }
    }

    /// Takes an action in, to be carried out as soon as its turn comes.
    pub fn submit(&self, action: Action) {
        if let Action::Announce { pod, reason, message, warning } = action {
            if !self.announcer.announce(pod, reason, message, warning) {
                self.metrics.events_dropped.add(1);
            }
            return;
        }
        // The task behind it ends after this value does.
        let _ = self.actions.send(action);
    }

    /// Waits until no request is in flight, at most this long; false: some still are. Leadership must
    /// have ended, or new ones begin meanwhile.
    pub async fn quiesce(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.executor.idle()).await.is_ok()
    }
}

/// Starts each action when the one before it on the same subject has ended.
async fn dispatch(
    mut taken: mpsc::UnboundedReceiver<Action>,
    executor: Arc<Executor>,
    metrics: Arc<Metrics>,
) {
    let mut lanes = Lanes::default();
    let (ended, mut endings) = mpsc::unbounded_channel::<Subject>();
    let mut open = true;
    while open || !lanes.is_empty() {
        let next = tokio::select! {
            action = taken.recv(), if open => {
                open = action.is_some();
                action.and_then(|action| lanes.push(action))
            }
            Some(subject) = endings.recv() => lanes.done(&subject),
        };
        metrics.writes_waiting.set(lanes.len() as u64);
        if let Some(turn) = next {
            let (executor, ended) = (executor.clone(), ended.clone());
            tokio::spawn(async move {
                let subject = Subject::of(&turn.action);
                executor.carry_out(turn).await;
                // The receiver outlives every lane.
                let _ = ended.send(subject);
            });
        }
    }
}
