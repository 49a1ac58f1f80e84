//! Carries writes out: a bounded number at once, those about one subject in their order.

use super::observed::{ObservedNode, ObservedPod, nodes, pods};
use super::write::Write;
use deepshare_kube_api::GpuNode;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// Writes under way at once.
const AT_ONCE: usize = 32;
/// A write that fails for the server's sake is tried so often, at doubling intervals.
const TRIES: u32 = 8;

/// Queues of writes. Ends with its value.
#[derive(Debug)]
pub struct Writer {
    queues: Vec<UnboundedSender<Write>>,
    _workers: JoinSet<()>,
}

impl Writer {
    /// Starts the workers.
    pub fn new(client: &Client) -> Writer {
        let mut workers = JoinSet::new();
        let queue = |_| {
            let (sender, receiver) = unbounded_channel();
            workers.spawn(work(client.clone(), receiver));
            sender
        };
        let queues = (0..AT_ONCE).map(queue).collect();
        Writer { queues, _workers: workers }
    }

    /// Queues a write.
    pub fn send(&self, write: Write) {
        let hash = xxhash_rust::xxh3::xxh3_64(write.subject().as_bytes());
        let queue = hash as usize % self.queues.len();
        // A queue ends with its writer only.
        let _ = self.queues[queue].send(write);
    }
}

async fn work(client: Client, mut queue: UnboundedReceiver<Write>) {
    while let Some(write) = queue.recv().await {
        let mut pause = Duration::from_millis(50);
        for tried in 1..=TRIES {
            match carry_out(&client, &write).await {
                Ok(()) => break,
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    tracing::debug!(?write, code = status.code, "the object is another by now");
                    break;
                }
                Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                    tracing::error!(?write, "refused: {}", status.message);
                    break;
                }
                Err(error) => tracing::warn!(tried, "cannot write: {error}"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
}

async fn carry_out(client: &Client, write: &Write) -> Result<(), kube::Error> {
    let params = PatchParams::default();
    match write {
        Write::PodStatus { pod, status } => {
            let api: Api<ObservedPod> =
                Api::namespaced_with(client.clone(), &pod.namespace, &pods());
            let patch = json!({ "metadata": { "uid": pod.uid }, "status": status });
            api.patch_status(&pod.name, &params, &Patch::Strategic(patch)).await.map(drop)
        }
        Write::Remove { pod } => {
            let api: Api<ObservedPod> =
                Api::namespaced_with(client.clone(), &pod.namespace, &pods());
            let only = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
            let now = DeleteParams::default().grace_period(0).preconditions(only);
            api.delete(&pod.name, &now).await.map(drop)
        }
        Write::NodeStatus { node, status } => {
            let api: Api<ObservedNode> = Api::all_with(client.clone(), &nodes());
            let patch = Patch::Strategic(json!({ "status": status }));
            api.patch_status(node, &params, &patch).await.map(drop)
        }
        Write::GpuNodeStatus { node, status } => {
            let api: Api<GpuNode> = Api::all(client.clone());
            api.patch_status(node, &params, &Patch::Merge(json!({ "status": status })))
                .await
                .map(drop)
        }
        Write::Heartbeat { node } => {
            let api: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
            let renewed = json!({ "spec": { "renewTime": MicroTime(Timestamp::now()) } });
            api.patch(node, &params, &Patch::Merge(renewed)).await.map(drop)
        }
    }
}
