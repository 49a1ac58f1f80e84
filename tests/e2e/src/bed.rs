//! A control plane for a test.

use deepshare_testbed::{Assets, ControlPlane, NodeSimulator, NodeSpec, Options, User, manifests};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For whatever is waited for: far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A control plane with DeepShare's resources, roles and policies installed.
pub struct Bed {
    plane: ControlPlane,
    /// May do everything.
    pub admin: Client,
    /// The scheduler's credentials.
    pub kubeconfig: PathBuf,
}

impl Bed {
    /// Starts one with a kube-scheduler, and with a short grace for nodes that fall silent.
    ///
    /// # Panics
    /// If the control plane does not come up: there is nothing to test then.
    pub async fn start(assets: &Assets) -> Bed {
        let options = Options {
            kube_scheduler_qps: Some(500),
            node_monitor_grace: Duration::from_secs(4),
            unreachable_toleration: Duration::from_secs(5),
            ..Options::default()
        };
        let plane = ControlPlane::start(assets, options).await.expect("the control plane starts");
        let admin = plane.admin().await.expect("an administrator's client");
        for path in ["deploy/crds", "deploy/rbac.yaml", "deploy/admission.yaml"] {
            manifests::apply_path(&admin, &root().join(path)).await.expect(path);
        }
        let kubeconfig = plane.kubeconfig(&User::scheduler()).await.expect("the scheduler's token");
        Bed { plane, admin, kubeconfig }
    }

    /// Nodes that are simulated from here on.
    ///
    /// # Panics
    /// If the API server refuses them.
    pub async fn nodes(&self, spec: NodeSpec) -> NodeSimulator {
        let user = self.plane.client(&User::Nodes).await.expect("the simulator's client");
        NodeSimulator::start(user, spec).await.expect("the nodes are registered")
    }

    /// A namespace in which pods can be created.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn namespace(&self, name: &str) {
        self.plane.create_namespace(name).await.expect("a namespace");
    }

    /// Pods of a namespace.
    pub fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// Creates any object.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn create(&self, object: Value) {
        let text = object.to_string();
        manifests::apply(&self.admin, &text)
            .await
            .unwrap_or_else(|error| panic!("{error}: {text}"));
    }

    /// Makes somebody the holder of the scheduler's Lease, whoever holds it; nobody, if `holder` is
    /// empty, as if it had expired.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn hand_lease_to(&self, holder: &str) {
        let leases: Api<Lease> = Api::namespaced(self.admin.clone(), "deepshare-system");
        let patch = Patch::Merge(json!({ "spec": { "holderIdentity": holder } }));
        let name = "deepshare-scheduler";
        leases.patch(name, &PatchParams::default(), &patch).await.expect("the Lease is changed");
    }

    /// Changes a node.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn patch_node(&self, node: &str, patch: Value) {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        let patch = Patch::Merge(patch);
        nodes.patch(node, &PatchParams::default(), &patch).await.expect("the node is changed");
    }

    /// Makes a simulated node behave as an annotation says.
    pub async fn node_behaves(&self, node: &str, key: &str, value: &str) {
        let key = format!("testbed.deepshare.io/{key}");
        self.patch_node(node, json!({ "metadata": { "annotations": { key: value } } })).await;
    }

    /// Takes a node out of the cluster, as if it had burnt down.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn burn_node(&self, node: &str) {
        self.node_behaves(node, "lost", "true").await;
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes.delete(node, &DeleteParams::default()).await.expect("the node is deleted");
    }

    /// Deletes namespaces, quotas and whatever is in them, and waits until their pods are gone.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn clear(&self, namespaces: &[String]) {
        let quotas: Api<deepshare_kube_api::TenantQuota> = Api::all(self.admin.clone());
        quotas
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await
            .expect("quotas are deleted");
        let spaces: Api<Namespace> = Api::all(self.admin.clone());
        for namespace in namespaces {
            let jobs: Api<k8s_openapi::api::batch::v1::Job> =
                Api::namespaced(self.admin.clone(), namespace);
            let now = DeleteParams::default().grace_period(0);
            let _ =
                jobs.delete_collection(&DeleteParams::background(), &ListParams::default()).await;
            let _ = self.pods(namespace).delete_collection(&now, &ListParams::default()).await;
            let _ = spaces.delete(namespace, &DeleteParams::default()).await;
        }
        for namespace in namespaces {
            wait(&format!("pods of {namespace} are gone"), async || {
                let pods = self.pods(namespace).list(&ListParams::default()).await.ok()?;
                pods.items.is_empty().then_some(())
            })
            .await;
        }
    }
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Asks again and again until there is an answer.
///
/// # Panics
/// If there is none within a minute.
pub async fn wait<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "not after {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
