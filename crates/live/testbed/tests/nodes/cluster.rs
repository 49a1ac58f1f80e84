//! One control plane for all tests of a binary; a namespace and nodes of its own for each.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use deepshare_kube_api::{ContainerDevices, Decision, DeviceSlot, GpuNode, GpuNodeStatus, names};
use deepshare_testbed::{
    ControlPlane, NodeSimulator, NodeSpec, Options, User, assets_or_skip, manifests,
};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod as KubePod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client, CustomResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// For whatever is waited for: far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

static SHARED: OnceCell<Option<ControlPlane>> = OnceCell::const_new();

async fn shared() -> Option<&'static ControlPlane> {
    let start = async || {
        let assets = assets_or_skip().unwrap()?;
        let grace = Duration::from_secs(6);
        let options = Options { node_monitor_grace: grace, ..Options::default() };
        let plane = ControlPlane::start(&assets, options).await.unwrap();
        let crd = serde_json::to_string(&GpuNode::crd()).unwrap();
        manifests::apply(&plane.admin().await.unwrap(), &crd).await.unwrap();
        Some(plane)
    };
    SHARED.get_or_init(start).await.as_ref()
}

pub fn now() -> Instant {
    Instant::now()
}

async fn wait<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "not after {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Nodes and a namespace.
pub struct Cluster {
    client: Client,
    namespace: String,
    nodes: NodeSimulator,
}

impl Cluster {
    /// With these nodes, in a namespace of their name.
    pub async fn with(spec: NodeSpec) -> Option<Cluster> {
        let plane = shared().await?;
        let namespace = spec.prefix.clone();
        plane.create_namespace(&namespace).await.unwrap();
        let user = plane.client(&User::Nodes).await.unwrap();
        let nodes = NodeSimulator::start(user, spec).await.unwrap();
        Some(Cluster { client: plane.admin().await.unwrap(), namespace, nodes })
    }

    pub fn spec(&self) -> &NodeSpec {
        self.nodes.spec()
    }

    fn pods(&self) -> Api<KubePod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A pod on the first node.
    pub fn pod(&self, name: &str) -> Draft<'_> {
        let name = name.to_owned();
        Draft { cluster: self, name, annotations: BTreeMap::new(), requests: json!({}) }
    }

    pub async fn get(&self, pod: &Pod) -> Pod {
        let seen = self.pods().get(&pod.name()).await.unwrap();
        Pod(serde_json::to_value(seen).unwrap())
    }

    pub async fn until(&self, pod: &Pod, what: &str, is: impl Fn(&Pod) -> bool) -> Pod {
        wait(&format!("{}: {what}", pod.name()), async || {
            let seen = self.get(pod).await;
            is(&seen).then_some(seen)
        })
        .await
    }

    /// Every state of a pod from now on.
    pub fn record(&self, pod: &Pod) -> Arc<Mutex<Vec<Pod>>> {
        let history = Arc::new(Mutex::new(Vec::new()));
        let only = Config::default().fields(&format!("metadata.name={}", pod.name()));
        let (states, seen) = (watcher(self.pods(), only), history.clone());
        tokio::spawn(states.applied_objects().for_each(move |state| {
            let state = state.map(|state| Pod(serde_json::to_value(state).unwrap()));
            seen.lock().unwrap().extend(state);
            std::future::ready(())
        }));
        history
    }

    pub async fn gone(&self, pod: &Pod) {
        wait(&format!("{} is gone", pod.name()), async || {
            self.pods().get_opt(&pod.name()).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    pub async fn delete(&self, pod: &Pod, grace: u32) {
        let params = DeleteParams::default().grace_period(grace);
        self.pods().delete(&pod.name(), &params).await.unwrap();
    }

    /// Changes the requests of a pod's container.
    pub async fn resize(&self, pod: &Pod, requests: Value) {
        let container = json!({ "name": "main", "resources": { "requests": requests } });
        let patch = Patch::Strategic(json!({ "spec": { "containers": [container] } }));
        self.pods().patch_resize(&pod.name(), &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn annotate_node(&self, node: &str, key: &str, value: &str) {
        let annotations = json!({ format!("testbed.deepshare.io/{key}"): value });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn until_node(&self, node: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let nodes: Api<Node> = Api::all(self.client.clone());
        wait(&format!("{node}: {what}"), async || {
            let seen = serde_json::to_value(nodes.get(node).await.unwrap()).unwrap();
            is(&seen).then_some(seen)
        })
        .await
    }

    pub async fn gpu_node(
        &self,
        node: &str,
        what: &str,
        is: impl Fn(&GpuNodeStatus) -> bool,
    ) -> GpuNodeStatus {
        let nodes: Api<GpuNode> = Api::all(self.client.clone());
        wait(&format!("{node} tells of {what}"), async || {
            nodes.get(node).await.unwrap().status.filter(&is)
        })
        .await
    }
}

/// A pod to be.
pub struct Draft<'a> {
    cluster: &'a Cluster,
    name: String,
    annotations: BTreeMap<String, String>,
    requests: Value,
}

impl Draft<'_> {
    /// Annotation `testbed.deepshare.io/KEY`.
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(format!("testbed.deepshare.io/{key}"), value.to_owned());
        self
    }

    pub fn requests(mut self, requests: Value) -> Self {
        self.requests = requests;
        self
    }

    pub fn gpus(self, count: u32) -> Self {
        self.requests(json!({ names::GPU: count.to_string() }))
    }

    pub fn slot(self) -> Self {
        self.requests(json!({ names::GPU_SLOT: "1" }))
    }

    /// Creates it on the node.
    pub async fn create(self) -> Pod {
        let node = self.cluster.spec().name(0);
        self.post(Some(node)).await
    }

    /// Creates it and binds it with a decision that gives it these devices.
    pub async fn bind_with(self, devices: &[DeviceSlot]) -> Pod {
        let (pods, node) = (self.cluster.pods(), self.cluster.spec().name(0));
        let pod = self.post(None).await;
        let containers =
            vec![ContainerDevices { name: "main".to_owned(), devices: devices.to_vec() }];
        let decision = Decision {
            version: Decision::VERSION,
            pod_uid: pod.uid(),
            attempt: 1,
            epoch: 1,
            charged: "best-effort".to_owned(),
            containers,
            members: 1,
            submitted: "2026-01-01T00:00:00Z".to_owned(),
            preempted: Vec::new(),
            served_seconds: 0,
            steps: 1,
        };
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": pod.name(), "uid": pod.uid(),
                "annotations": { names::DECISION: decision.to_text() },
            },
            "target": { "kind": "Node", "name": node },
        });
        let params = PostParams::default();
        let _: Value =
            pods.create_subresource("binding", &pod.name(), &params, &binding).await.unwrap();
        pod
    }

    async fn post(self, node: Option<String>) -> Pod {
        // Kubernetes wants equal limits of what cannot be overcommitted.
        let limits: BTreeMap<&String, &Value> = self
            .requests
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| name.contains('/'))
            .collect();
        let resources = json!({ "requests": self.requests, "limits": limits });
        let pod = json!({
            "metadata": { "name": self.name, "annotations": self.annotations },
            "spec": {
                "nodeName": node,
                "schedulerName": "nobody",
                "restartPolicy": "Never",
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "main", "image": "none", "resources": resources }],
            },
        });
        let pod = serde_json::from_value(pod).unwrap();
        let created = self.cluster.pods().create(&PostParams::default(), &pod).await.unwrap();
        Pod(serde_json::to_value(created).unwrap())
    }
}

/// A pod as seen.
pub struct Pod(Value);

impl Pod {
    pub fn name(&self) -> String {
        self.0["metadata"]["name"].as_str().unwrap().to_owned()
    }

    pub fn uid(&self) -> String {
        self.0["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub fn status(&self) -> &Value {
        &self.0["status"]
    }

    pub fn phase(&self) -> &str {
        self.status()["phase"].as_str().unwrap_or_default()
    }

    /// Status of its container.
    pub fn container(&self) -> &Value {
        &self.status()["containerStatuses"][0]
    }

    /// Status of a condition.
    pub fn condition(&self, kind: &str) -> Option<String> {
        let all = self.status()["conditions"].as_array()?;
        let one = all.iter().find(|one| one["type"] == kind)?;
        one["status"].as_str().map(str::to_owned)
    }
}
