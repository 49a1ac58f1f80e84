//! How each action is carried out: which answers are worth another try, and what came of it.

use super::Kind;
use super::lanes::Turn;
use super::requests;
use crate::api::{Api, Call, Refusal};
use crate::leadership::{Ended, Leadership};
use crate::metrics::Metrics;
use deepshare_engine::BindFailure;
use deepshare_kube_index::{Action, ClaimRef, Outcome, PodRef};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;

/// Tries of a write that may be repeated.
const TRIES: u32 = 5;
/// More requests of one kind are never in flight: each has a connection.
const MOST_IN_FLIGHT: usize = 1_024;
/// A disruption budget that refused is not asked again sooner.
const BUDGET_PAUSE: Duration = Duration::from_secs(1);

/// Carries actions out, each kind with its own bound on how many requests are in flight.
pub struct Executor {
    api: Api,
    leadership: Leadership,
    metrics: Arc<Metrics>,
    outcomes: mpsc::UnboundedSender<Outcome>,
    /// One for each kind, and how many permits it has.
    permits: [(Semaphore, u32); Kind::ALL.len()],
}

impl Executor {
    /// An executor whose kinds have so many requests in flight at most.
    pub fn new(
        api: Api,
        leadership: Leadership,
        metrics: Arc<Metrics>,
        outcomes: mpsc::UnboundedSender<Outcome>,
        in_flight: impl Fn(Kind) -> usize,
    ) -> Executor {
        let permits = Kind::ALL.map(|kind| {
            let bound = in_flight(kind).clamp(1, MOST_IN_FLIGHT);
            (Semaphore::new(bound), bound as u32)
        });
        Executor { api, leadership, metrics, outcomes, permits }
    }

    /// Carries an action out and tells how it ended. A process that does not lead any more writes
    /// nothing and tells nothing.
    pub async fn carry_out(&self, Turn { action, hurry }: Turn) {
        let outcome = match action {
            Action::SelectNode { claim, node: Some(node) } => self.select_node(claim, &node).await,
            Action::SelectNode { claim, node: None } => {
                self.inform(Kind::Bind, &requests::select_node(&claim, None)).await
            }
            Action::Bind { pod, node, annotations } => {
                Some(self.bind(pod, &node, &annotations).await)
            }
            Action::Evict { pod, grace_s, message, force_after_s } => {
                let force_after = force_after_s.map(|s| Duration::from_secs(u64::from(s)));
                self.evict(pod, grace_s, &message, force_after, &hurry).await
            }
            Action::Delete { pod, orphaned: true, message, .. } => {
                self.inform(Kind::Evict, &requests::fail_orphan(&pod, &message)).await;
                Some(self.delete_unmarked(pod, 0).await)
            }
            Action::Delete { pod, grace_s, message, .. } => {
                Some(self.delete(pod, grace_s, &message).await)
            }
            Action::Resize { pod, requests, annotations } => {
                let call = requests::resize(&pod, &requests);
                let mut done = Ok(());
                if !annotations.is_empty() {
                    let note = requests::annotate(&pod, &annotations);
                    done = self.persist(Kind::Resize, &note).await;
                }
                if done.is_ok() {
                    done = self.persist(Kind::Resize, &call).await;
                }
                done.err().map(|refusal| Outcome::ResizeRefused { pod, message: refusal.message })
            }
            Action::Annotate { pod, annotations } => {
                self.inform(Kind::Status, &requests::annotate(&pod, &annotations)).await
            }
            Action::Explain { pod, reason, message } => {
                self.inform(Kind::Status, &requests::explain(&pod, &reason, &message)).await
            }
            Action::Nominate { pod, node } => {
                self.inform(Kind::Status, &requests::nominate(&pod, node.as_deref())).await
            }
            Action::TenantStatus { name, status } => {
                self.inform(Kind::Tenant, &requests::tenant_status(&name, &status)).await
            }
            // Announcements have a task of their own.
            Action::Announce { .. } => None,
        };
        if let Some(outcome) = outcome
            && self.leadership.holds()
        {
            // Nobody listens only while the process ends.
            let _ = self.outcomes.send(outcome);
        }
    }

    /// Requests of a kind that may be in flight at once.
    pub fn most_in_flight(&self, kind: Kind) -> usize {
        self.permits[kind as usize].1 as usize
    }

    /// Waits until no request is in flight.
    pub async fn idle(&self) {
        for (permits, all) in &self.permits {
            // Nobody closes a semaphore.
            let _ = permits.acquire_many(*all).await;
        }
    }

    /// One request, if this process leads at the moment it goes out.
    pub async fn send(&self, kind: Kind, call: &Call) -> Result<(), Refusal> {
        let Ok(_permit) = self.permits[kind as usize].0.acquire().await else {
            return Err(Refusal::silence("this process is stopping".to_owned()));
        };
        if !self.leadership.holds() {
            return Err(Refusal::silence("this process does not lead any more".to_owned()));
        }
        let asked = Instant::now();
        let done = self.api.send(call).await;
        self.metrics.write(kind, asked.elapsed(), done.as_ref().err().map(|r| r.status));
        if let Err(refusal) = &done {
            tracing::debug!(path = call.path, %refusal, "refused");
            if refusal.status == 401 {
                self.leadership.end(Ended::Unauthorized(refusal.message.clone()));
            }
        }
        done
    }

    /// The same, repeated while the server has trouble.
    pub async fn persist(&self, kind: Kind, call: &Call) -> Result<(), Refusal> {
        let mut tries = 1;
        loop {
            match self.send(kind, call).await {
                Err(refusal)
                    if refusal.is_transient() && tries < TRIES && self.leadership.holds() =>
                {
                    tokio::time::sleep(refusal.pause(tries)).await;
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    /// A write that only informs: of its failure nobody is told. The pod may be gone by now.
    async fn inform(&self, kind: Kind, call: &Call) -> Option<Outcome> {
        if let Err(refusal) = self.persist(kind, call).await
            && !refusal.is_gone()
        {
            tracing::warn!(path = call.path, %refusal, "could not be written");
        }
        None
    }

    /// One try: the engine knows better than we do what to do next.
    async fn bind(
        &self,
        pod: PodRef,
        node: &str,
        annotations: &std::collections::BTreeMap<String, String>,
    ) -> Outcome {
        match self.send(Kind::Bind, &requests::bind(&pod, node, annotations)).await {
            Ok(()) => Outcome::Bound { pod },
            Err(refusal) => {
                let failure = bind_failure(refusal.status);
                Outcome::BindFailed { pod, failure, message: refusal.message }
            }
        }
    }

    /// Nothing waits here for the volume: the watch shows it. `None`: the claim will show the node.
    async fn select_node(&self, claim: ClaimRef, node: &str) -> Option<Outcome> {
        let call = requests::select_node(&claim, Some(node));
        let refusal = self.persist(Kind::Bind, &call).await.err()?;
        let failure = match refusal.is_gone() {
            true => BindFailure::Conflict,
            false => bind_failure(refusal.status),
        };
        Some(Outcome::SelectionFailed { claim, failure, message: refusal.message })
    }

    /// `None`: a deletion has come meanwhile, and tells how it ends.
    async fn evict(
        &self,
        pod: PodRef,
        grace_s: u32,
        message: &str,
        force_after: Option<Duration>,
        hurry: &Notify,
    ) -> Option<Outcome> {
        if self.mark(&pod, message).await {
            return Some(Outcome::Evicting { pod });
        }
        let call = requests::evict(&pod, grace_s);
        let begun = Instant::now();
        let mut asked = 0;
        loop {
            asked += 1;
            let refusal = match self.persist(Kind::Evict, &call).await {
                Err(refusal) if !refusal.is_gone() => refusal,
                _ => return Some(Outcome::Evicting { pod }),
            };
            let left = force_after.map(|limit| limit.saturating_sub(begun.elapsed()));
            if refusal.is_budget() && left == Some(Duration::ZERO) {
                return Some(self.delete_unmarked(pod, grace_s).await);
            }
            let again = left.is_some() || asked < 2;
            if !refusal.is_budget() || !again || !self.leadership.holds() {
                return Some(Outcome::EvictionRefused { pod, message: refusal.message });
            }
            let pause = refusal.pause(asked).max(BUDGET_PAUSE).min(left.unwrap_or(Duration::MAX));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = hurry.notified() => return None,
            }
        }
    }

    async fn delete(&self, pod: PodRef, grace_s: u32, message: &str) -> Outcome {
        match self.mark(&pod, message).await {
            true => Outcome::Evicting { pod },
            false => self.delete_unmarked(pod, grace_s).await,
        }
    }

    async fn delete_unmarked(&self, pod: PodRef, grace_s: u32) -> Outcome {
        match self.persist(Kind::Evict, &requests::delete(&pod, grace_s)).await {
            Err(refusal) if !refusal.is_gone() => {
                // Whoever hears of it asks again at once.
                tokio::time::sleep(refusal.pause(TRIES).max(BUDGET_PAUSE)).await;
                Outcome::EvictionRefused { pod, message: refusal.message }
            }
            _ => Outcome::Evicting { pod },
        }
    }

    /// Writes why the pod is about to go. True if it is gone already. Where the condition cannot be
    /// written, the eviction is worth more than the note about it. A pod that is refused its eviction
    /// afterwards keeps the condition until the disruption controller clears it, two minutes later.
    async fn mark(&self, pod: &PodRef, message: &str) -> bool {
        match self.persist(Kind::Evict, &requests::disruption_target(pod, message)).await {
            Ok(()) => false,
            Err(refusal) if refusal.is_gone() => true,
            Err(refusal) => {
                tracing::warn!(pod = pod.name, %refusal, "no DisruptionTarget condition");
                false
            }
        }
    }
}

fn bind_failure(status: u16) -> BindFailure {
    match status {
        404 | 409 => BindFailure::Conflict,
        400 | 403 | 422 => BindFailure::Permanent,
        _ => BindFailure::Transient,
    }
}
