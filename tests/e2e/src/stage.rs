//! One test on a bed: its nodes and tenants, its schedulers, and what has to be true of it at the end.

use crate::bed::{Bed, wait};
use crate::evidence::{Evidence, Watching};
use crate::objects::{JobDraft, quota_with};
use crate::scheduler::Scheduler;
use deepshare_testbed::{NodeSimulator, NodeSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Nodes, tenants and what is watched of them.
pub struct Stage<'a> {
    bed: &'a Bed,
    name: String,
    nodes: NodeSimulator,
    spaces: Vec<String>,
    watching: Watching,
}

impl<'a> Stage<'a> {
    /// Sets up nodes and watches from here on. `name` is the begin of the names of all that is in it.
    ///
    /// # Panics
    /// If the API server refuses something.
    pub async fn set(bed: &'a Bed, name: &str, nodes: NodeSpec) -> Stage<'a> {
        let spec = NodeSpec { prefix: name.to_owned(), heartbeat: Duration::from_secs(1), ..nodes };
        let nodes = bed.nodes(spec).await;
        let watching = Evidence::watch(&bed.admin).await;
        Stage { bed, name: name.to_owned(), nodes, spaces: Vec::new(), watching }
    }

    /// A namespace of this name that nobody has a quota for.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn space(&mut self, name: &str) -> String {
        let namespace = self.namespace(name);
        self.bed.namespace(&namespace).await;
        self.spaces.push(namespace.clone());
        namespace
    }

    /// A tenant with so many GPUs and further fields of its quota.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn tenant(&mut self, name: &str, gpus: u32, more: &Value) {
        let namespace = self.space(name).await;
        self.bed.create(quota_with(&namespace, &namespace, &json!({ "*": gpus }), more)).await;
    }

    /// The namespace of a tenant.
    pub fn namespace(&self, tenant: &str) -> String {
        format!("{}-{tenant}", self.name)
    }

    /// The name of a node, by number.
    pub fn node(&self, at: usize) -> String {
        self.nodes.spec().name(at)
    }

    /// Creates a Job of a tenant.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn submit(&self, tenant: &str, job: &JobDraft) {
        self.bed.create(job.job(&self.namespace(tenant))).await;
    }

    /// Waits until so many pods of a Job run that nobody has asked to go; these.
    ///
    /// # Panics
    /// If they do not within a minute.
    pub async fn running(&self, tenant: &str, job: &str, pods: usize) -> Vec<Pod> {
        wait(&format!("{pods} pods of {tenant}'s {job} run"), async || {
            let mut theirs = self.pods(tenant, job).await;
            theirs.retain(|pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
            });
            (theirs.len() == pods).then_some(theirs)
        })
        .await
    }

    /// The pods of a Job that are there.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub async fn pods(&self, tenant: &str, job: &str) -> Vec<Pod> {
        let theirs = ListParams::default().labels(&format!("job-name={job}"));
        let pods = self.bed.pods(&self.namespace(tenant)).list(&theirs).await;
        pods.expect("pods are listed").items
    }

    /// What has been seen so far.
    pub fn so_far(&self) -> Evidence {
        self.watching.so_far()
    }

    /// Stops the schedulers, takes everything down, and holds what was seen and recorded against what is
    /// always true: no device given away twice, nobody guaranteed evicted, and every life of every
    /// scheduler replays to the same commands.
    ///
    /// # Errors
    /// All that is wrong.
    pub async fn strike(self, mut schedulers: Vec<Scheduler>) -> Result<Evidence, String> {
        schedulers.iter_mut().for_each(Scheduler::stop);
        let evidence = self.watching.end().await;
        self.bed.clear(&self.spaces).await;
        self.nodes.remove().await.expect("the nodes go");
        let mut wrong = evidence.faults.clone();
        let evicted = evidence.guaranteed_evicted.iter();
        wrong.extend(evicted.map(|pod| format!("{pod} is guaranteed and was evicted")));
        let logs = schedulers.iter().map(Scheduler::event_log).filter(|log| log.exists());
        let (mut commands, mut unequal) = (0, Vec::new());
        for log in logs {
            match replayed(&log) {
                Ok(replayed) => commands += replayed,
                Err(why) => unequal.push(why),
            }
        }
        wrong.extend(unequal);
        if commands == 0 {
            wrong.push("nothing was decided".to_owned());
        }
        match wrong.is_empty() {
            true => Ok(evidence),
            false => Err(format!("{}: {}", self.name, wrong.join("; "))),
        }
    }
}

/// Replays an event log; how many commands came out again.
///
/// # Errors
/// If it cannot be read, or others come out.
pub fn replayed(log: &Path) -> Result<u64, String> {
    let replay = deepshare_event_log::replay(log, None).map_err(|error| error.to_string())?;
    match replay.mismatch {
        Some(mismatch) => Err(format!("the replay differs: {mismatch}")),
        None => Ok(replay.commands),
    }
}
