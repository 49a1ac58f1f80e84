//! Leadership as everybody else sees it, and the task that keeps it.
//!
//! [`Leadership`] is looked at right before each write: it costs reading a clock and two numbers. It
//! lapses by itself at the deadline, whatever the task that renews the Lease is doing.

use crate::api::{Api, Call, Refusal};
use crate::lease::{Candidate, Holding, Proposal, Timing};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Why this process may not write any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The Lease could not be renewed in time, or another process holds it.
    Lost(String),
    /// The API server does not accept our credentials.
    Unauthorized(String),
    /// We were asked to stop, and gave the Lease up.
    Released,
}

/// Whether this process leads. Cheap to clone and to ask.
#[derive(Clone)]
pub struct Leadership(Arc<Shared>);

struct Shared {
    origin: Instant,
    /// Microseconds from `origin`; 0: does not lead.
    until: AtomicU64,
    epoch: AtomicU32,
    ended: watch::Sender<Option<Ended>>,
}

impl Default for Leadership {
    fn default() -> Self {
        Leadership::new()
    }
}

impl Leadership {
    /// Nobody's yet.
    pub fn new() -> Leadership {
        Leadership(Arc::new(Shared {
            origin: Instant::now(),
            until: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            ended: watch::Sender::new(None),
        }))
    }

    /// True if this process may write now.
    pub fn holds(&self) -> bool {
        self.0.ended.borrow().is_none() && self.now() < self.until()
    }

    /// The term, from 1; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.0.epoch.load(Ordering::Acquire)
    }

    /// Ends it for good: no write starts from now on. The first reason given counts.
    pub fn end(&self, why: Ended) {
        self.0.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(why);
            first
        });
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.0.ended.subscribe();
        let why = ended.wait_for(Option::is_some).await.map(|why| (*why).clone());
        why.ok().flatten().unwrap_or_else(|| Ended::Lost("nobody keeps the Lease".to_owned()))
    }

    /// Extends it, as the Lease's keeper does; tests play the keeper.
    pub fn extend(&self, until: Duration, epoch: u32) {
        self.0.epoch.store(epoch, Ordering::Release);
        self.0.until.store(micros(until), Ordering::Release);
    }

    /// Time on its own clock.
    pub fn now(&self) -> Duration {
        self.0.origin.elapsed()
    }

    fn until(&self) -> Duration {
        Duration::from_micros(self.0.until.load(Ordering::Acquire))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Keeps one Lease.
pub struct Keeper {
    api: Api,
    namespace: String,
    name: String,
    candidate: Candidate,
    leadership: Leadership,
    acquired: String,
}

/// What we read of a Lease.
#[derive(Deserialize)]
struct Lease {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_transitions: Option<u32>,
    lease_duration_seconds: Option<u32>,
    renew_time: Option<String>,
    acquire_time: Option<String>,
}

impl Keeper {
    /// A candidate for the Lease of this namespace and name. `identity` is this process's alone.
    pub fn new(
        api: Api,
        (namespace, name): (String, String),
        identity: String,
        timing: Timing,
        leadership: Leadership,
    ) -> Keeper {
        let candidate = Candidate::new(identity, timing);
        Keeper { api, namespace, name, candidate, leadership, acquired: String::new() }
    }

    /// Waits until this process leads, or may never.
    pub async fn acquire(&mut self) {
        let ended = self.leadership.clone();
        tokio::select! {
            _ = ended.ended() => {}
            () = async {
                while !self.leadership.holds() {
                    self.attempt().await;
                    if !self.leadership.holds() {
                        tokio::time::sleep(self.candidate.timing().retry).await;
                    }
                }
            } => {}
        }
    }

    /// Renews until the leadership ends. What is lost is not won back: the process has to stop.
    pub async fn keep(&mut self) {
        let ended = self.leadership.clone();
        tokio::select! {
            _ = ended.ended() => {}
            why = self.renew() => self.leadership.end(Ended::Lost(why)),
        }
    }

    async fn renew(&mut self) -> String {
        let mut trouble = String::new();
        loop {
            let Some(until) = self.candidate.leads_until() else {
                return format!("another process holds the Lease {}/{}", self.namespace, self.name);
            };
            let left = until.saturating_sub(self.leadership.now());
            if left.is_zero() {
                return format!(
                    "the Lease {}/{} could not be renewed in time: {trouble}",
                    self.namespace, self.name
                );
            }
            tokio::time::sleep(self.candidate.timing().retry.min(left)).await;
            let left = until.saturating_sub(self.leadership.now());
            match tokio::time::timeout(left, self.attempt()).await {
                Ok(None) => trouble.clear(),
                Ok(Some(refusal)) => trouble = refusal.to_string(),
                Err(_) => {
                    self.candidate.refused();
                    trouble = "no answer".to_owned();
                }
            }
        }
    }

    /// Gives the Lease up, so that another candidate takes over at once. Writes must have stopped.
    pub async fn release(&mut self) {
        // The last renewal may have been cut off: only the server knows which version is there.
        let released = match self.api.fetch::<Lease>(&Call::get(self.path(true))).await {
            Ok(lease) => {
                let held = holding(lease);
                if held.holder != self.candidate.identity() {
                    return;
                }
                let body = self.body(Some(&held.version), "", held.transitions);
                self.api
                    .send(&Call::of(Method::PUT, self.path(true), "application/json", &body))
                    .await
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = released {
            tracing::warn!(%refusal, "the Lease could not be released; it will expire");
        }
    }

    /// One try: read if need be, then write.
    async fn attempt(&mut self) -> Option<Refusal> {
        let outcome = self.try_once().await;
        if let Err(refusal) = &outcome {
            self.candidate.refused();
            if refusal.status == 401 {
                self.leadership.end(Ended::Unauthorized(refusal.message.clone()));
            }
            tracing::debug!(%refusal, "the Lease was not written");
        }
        let until = self.candidate.leads_until().unwrap_or_default();
        self.leadership.extend(until, self.candidate.epoch());
        outcome.err()
    }

    async fn try_once(&mut self) -> Result<(), Refusal> {
        let now = self.leadership.now();
        if self.candidate.leads_until().is_none() || self.candidate.propose(now).is_none() {
            let found = match self.api.fetch::<Lease>(&Call::get(self.path(true))).await {
                Ok(lease) => {
                    self.acquired = lease.spec.acquire_time.clone().unwrap_or_default();
                    Some(holding(lease))
                }
                Err(refusal) if refusal.status == 404 => None,
                Err(refusal) => return Err(refusal),
            };
            self.candidate.observe(self.leadership.now(), found);
        }
        let asked = self.leadership.now();
        let call = match self.candidate.propose(asked) {
            None | Some(Proposal::Wait) => return Ok(()),
            Some(Proposal::Create { transitions }) => {
                self.acquired = timestamp();
                let body = self.body(None, self.candidate.identity(), transitions);
                Call::post(self.path(false), &body)
            }
            Some(Proposal::Replace { version, transitions, taken_over }) => {
                if taken_over || self.acquired.is_empty() {
                    self.acquired = timestamp();
                }
                let body = self.body(Some(&version), self.candidate.identity(), transitions);
                Call::of(Method::PUT, self.path(true), "application/json", &body)
            }
        };
        let stored = self.api.fetch::<Lease>(&call).await?;
        self.candidate.written(asked, holding(stored));
        Ok(())
    }

    fn path(&self, with_name: bool) -> String {
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        if with_name { format!("{all}/{}", self.name) } else { all }
    }

    fn body(&self, version: Option<&str>, holder: &str, transitions: u32) -> Value {
        let mut metadata = json!({ "namespace": self.namespace, "name": self.name });
        if let Some(version) = version {
            metadata["resourceVersion"] = version.into();
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": self.candidate.timing().duration.as_secs().max(1),
                "leaseTransitions": transitions,
                "acquireTime": self.acquired,
                "renewTime": timestamp(),
            },
        })
    }
}

fn holding(lease: Lease) -> Holding {
    Holding {
        holder: lease.spec.holder_identity.unwrap_or_default(),
        transitions: lease.spec.lease_transitions.unwrap_or_default(),
        duration_s: lease.spec.lease_duration_seconds.unwrap_or_default(),
        renewed: lease.spec.renew_time.unwrap_or_default(),
        version: lease.metadata.resource_version,
    }
}

/// The time of day as RFC 3339 with microseconds.
pub fn timestamp() -> String {
    let now = k8s_openapi::jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    format!("{now:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leadership_lapses_by_itself_and_ends_for_good() {
        let leadership = Leadership::new();
        assert!(!leadership.holds(), "nobody leads before the Lease says so");
        leadership.extend(leadership.now() + Duration::from_secs(60), 3);
        assert!(leadership.holds());
        leadership.extend(leadership.now(), 3);
        assert!(!leadership.holds(), "its deadline has passed");
        leadership.extend(leadership.now() + Duration::from_secs(60), 3);
        leadership.end(Ended::Lost("cut off".to_owned()));
        leadership.end(Ended::Released);
        leadership.extend(leadership.now() + Duration::from_secs(60), 4);
        assert!(!leadership.holds(), "what has ended does not come back");
    }

    #[tokio::test]
    async fn whoever_waits_is_told_the_first_reason() {
        let leadership = Leadership::new();
        leadership.end(Ended::Unauthorized("who are you".to_owned()));
        leadership.end(Ended::Released);
        assert_eq!(leadership.ended().await, Ended::Unauthorized("who are you".to_owned()));
    }
}
