//! Simulated GPU nodes: kubelets, device plugins and node agents of thousands of nodes in one
//! process.
//!
//! They do what the control plane and a scheduler can see of real ones: nodes with leases, pods
//! admitted or rejected for good, devices of one set held whole or by slot, starts, ends, slow
//! stops, resizes in their two steps, faults. How a pod or node behaves is said by its annotations
//! (`docs/testbed.md`).

mod behaviour;
mod devices;
mod driver;
mod event;
mod kubelet;
mod observed;
mod pod;
mod register;
mod requests;
mod spec;
mod status;
mod write;
mod writer;

pub use spec::{GpuResource, NodeSpec, SIMULATOR};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use kubelet::Kubelet;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Why nodes are not simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// The specification means nothing.
    #[error("{0}")]
    Spec(String),
    /// The API server refused something.
    #[error("{doing}: {error}")]
    Api {
        /// What was asked.
        doing: String,
        /// What it said.
        error: Box<kube::Error>,
    },
}

/// Nodes that are being simulated. They fall silent, as lost nodes do, when this ends.
pub struct NodeSimulator {
    client: Client,
    spec: Arc<NodeSpec>,
    task: JoinHandle<()>,
}

impl NodeSimulator {
    /// Registers the nodes and plays them from here on, in a task of this async runtime. Nodes that
    /// exist already are taken over, with their pods. Without DeepShare's custom resources they
    /// have no GpuNodes.
    ///
    /// # Errors
    /// If the specification makes no sense or the API server refuses a node.
    pub async fn start(client: Client, spec: NodeSpec) -> Result<NodeSimulator, SimulatorError> {
        spec.check().map_err(SimulatorError::Spec)?;
        let spec = Arc::new(spec);
        let kubelets: Vec<Kubelet> =
            (0..spec.count).map(|index| Kubelet::new(&spec, index)).collect();
        let gpu_nodes = register::register(&client, &spec, &kubelets).await?;
        let driver = driver::Driver::new(client.clone(), spec.clone(), kubelets, gpu_nodes);
        let task = tokio::spawn(driver.run());
        Ok(NodeSimulator { client, spec, task })
    }

    /// What is simulated.
    pub fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    /// Ends the simulation and removes the nodes.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn remove(self) -> Result<(), SimulatorError> {
        self.task.abort();
        let ours = ListParams::default().labels(&format!("{SIMULATOR}={}", self.spec.prefix));
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |error| SimulatorError::Api { doing, error: Box::new(error) }
        };
        let nodes: Api<Node> = Api::all(self.client.clone());
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let gpu_nodes: Api<deepshare_kube_api::GpuNode> = Api::all(self.client.clone());
        for node in nodes.list(&ours).await.map_err(failed("listing nodes"))? {
            let name = node.metadata.name.unwrap_or_default();
            let now = DeleteParams::default();
            nodes.delete(&name, &now).await.map_err(failed("deleting a node"))?;
            // Neither has to exist.
            let _ = leases.delete(&name, &now).await;
            let _ = gpu_nodes.delete(&name, &now).await;
        }
        Ok(())
    }
}

impl Drop for NodeSimulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}
