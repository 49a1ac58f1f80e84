//! Creates the objects of simulated nodes.

use super::kubelet::Kubelet;
use super::spec::NodeSpec;
use super::{SimulatorError, status};
use deepshare_kube_api::GpuNode;
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::Value;

/// Nodes that are registered at once.
const AT_ONCE: usize = 32;

/// Registers all nodes. Whether the API server knows GpuNodes.
pub async fn register(
    client: &Client,
    spec: &NodeSpec,
    kubelets: &[Kubelet],
) -> Result<bool, SimulatorError> {
    let gpu_nodes: Api<GpuNode> = Api::all(client.clone());
    let known = match gpu_nodes.list(&ListParams::default().limit(1)).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            tracing::warn!("the API server has no GpuNodes: apply deploy/crds to see devices");
            false
        }
        Err(error) => return Err(failed("listing GpuNodes", error)),
    };
    let one = |kubelet| register_one(client, spec, kubelet, known);
    let all = stream::iter(kubelets.iter().map(one));
    all.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(known)
}

async fn register_one(
    client: &Client,
    spec: &NodeSpec,
    kubelet: &Kubelet,
    gpu_nodes: bool,
) -> Result<(), SimulatorError> {
    let (name, now) = (kubelet.name(), Timestamp::now());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    create(&leases, status::lease(spec, name, now)).await?;
    let node = status::registration(spec, name, kubelet.devices(), now);
    let nodes: Api<Node> = Api::all(client.clone());
    if !create(&nodes, node.clone()).await? {
        let patch = Patch::Strategic(&node);
        let params = PatchParams::default();
        nodes
            .patch(name, &params, &patch)
            .await
            .map_err(|error| failed("patching a node", error))?;
        nodes
            .patch_status(name, &params, &patch)
            .await
            .map_err(|error| failed("patching a node's status", error))?;
    }
    if gpu_nodes && spec.resource == super::GpuResource::Deepshare {
        let api: Api<GpuNode> = Api::all(client.clone());
        create(&api, status::gpu_node_object(spec, name)).await?;
    }
    Ok(())
}

/// Creates an object. Whether it did not exist.
async fn create<K>(api: &Api<K>, object: Value) -> Result<bool, SimulatorError>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let doing = format!("creating {kind} {}", object["metadata"]["name"]);
    let object: K = serde_json::from_value(object)
        .map_err(|error| failed(&doing, kube::Error::SerdeError(error)))?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(failed(&doing, error)),
    }
}

fn failed(doing: &str, error: kube::Error) -> SimulatorError {
    SimulatorError::Api { doing: doing.to_owned(), error: Box::new(error) }
}
