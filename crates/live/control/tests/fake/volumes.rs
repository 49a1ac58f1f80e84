//! Volumes that are made once their pod has a node, through the whole loop: what is written, and when.

use crate::server::{self, Answer, Asked};
use deepshare_control::api::Api;
use deepshare_control::feeds::{FEEDS, News};
use deepshare_control::health::Health;
use deepshare_control::leadership::{Ended, Leadership};
use deepshare_control::metrics::Metrics;
use deepshare_control::recorder::Recorder;
use deepshare_control::run_loop::RunLoop;
use deepshare_control::settings::Settings;
use deepshare_control::writes::{WriterContext, Writers};
use deepshare_engine::Engine;
use deepshare_kube_index::{Change, Config, Patience};
use deepshare_model::Span;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// A scheduler that knows two nodes of one GPU each.
struct Scene {
    news: mpsc::Sender<News>,
    asked: Arc<Mutex<Vec<Asked>>>,
    leadership: Leadership,
}

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

impl Scene {
    async fn tell(&self, change: Change) {
        self.news.send(News::Change(change)).await.unwrap();
    }

    /// The claim with this node on it, and with its volume if it has one.
    async fn claim(&self, node: Option<&str>, volume: Option<&str>) {
        let mut claim = json!({
            "metadata": {"name": "data", "namespace": "a", "uid": "u-data", "annotations": {}},
            "spec": {"storageClassName": "fast", "volumeName": volume},
            "status": {"phase": if volume.is_some() { "Bound" } else { "Pending" }},
        });
        if let Some(node) = node {
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(node);
        }
        self.tell(Change::Claim(read(claim))).await;
    }

    async fn pod(&self, name: &str, claim: Option<&str>) {
        let volumes: Vec<Value> = claim
            .into_iter()
            .map(|claim| json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}}))
            .collect();
        let requests = json!({"cpu": "1", "deepshare.io/gpu": "1"});
        self.tell(Change::Pod(Box::new(read(json!({
            "metadata": {"name": name, "namespace": "a", "uid": name},
            "spec": {
                "schedulerName": "deepshare", "volumes": volumes,
                "containers": [{"name": "main", "resources": {"requests": requests}}],
            },
            "status": {"phase": "Pending"},
        })))))
        .await;
    }

    /// A pod whose claim is not bound comes; the node that is chosen for it.
    async fn choice_for(&self, pod: &str) -> String {
        self.claim(None, None).await;
        self.pod(pod, Some("data")).await;
        self.until("a node is chosen", |scene| scene.nodes().len() == 1).await;
        self.nodes()[0].clone().unwrap()
    }

    async fn cluster(&self) {
        for name in ["n0", "n1"] {
            let node = json!({
                "metadata": {"name": name},
                "status": {
                    "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9", "deepshare.io/gpu": "1"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            });
            self.tell(Change::Node(Box::new(read(node)))).await;
            let device = json!({
                "uuid": format!("GPU-{name}"), "memoryMib": 81_920, "healthy": true, "mps": "ready",
            });
            let gpus = json!({
                "apiVersion": "deepshare.io/v1alpha1", "kind": "GpuNode",
                "metadata": {"name": name}, "spec": {"gpuType": "A100", "slotsPerGpu": 2},
                "status": {"total": 1, "healthy": 1, "devices": [device], "allocations": []},
            });
            self.tell(Change::Gpus(Box::new(read(gpus)))).await;
        }
        let quota = json!({
            "apiVersion": "deepshare.io/v1alpha1", "kind": "TenantQuota",
            "metadata": {"name": "a"}, "spec": {"gpus": {"*": 2}, "namespaces": ["a"]},
        });
        self.tell(Change::Quota(Box::new(read(quota)))).await;
        self.tell(Change::Namespace(read(json!({"metadata": {"name": "a"}})))).await;
        let class = json!({
            "metadata": {"name": "fast"}, "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        });
        self.tell(Change::StorageClass(read(class))).await;
        for feed in 0..FEEDS {
            self.news.send(News::Listed(feed)).await.unwrap();
        }
    }

    /// Nodes written on the claim so far, in order.
    fn nodes(&self) -> Vec<Option<String>> {
        let note = "/metadata/annotations/volume.kubernetes.io~1selected-node";
        let asked = self.asked.lock().unwrap();
        let claims = asked.iter().filter(|one| one.path.ends_with("/persistentvolumeclaims/data"));
        claims.map(|one| one.body.pointer(note).unwrap().as_str().map(str::to_owned)).collect()
    }

    /// Pods that were to be bound so far, in order.
    fn bound(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let pods = asked.iter().filter_map(|one| one.path.strip_suffix("/binding"));
        pods.map(|path| path.rsplit('/').next().unwrap().to_owned()).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Scene) -> bool) {
        for _ in 0..1_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("not after 20 s: {what}; {:?}", self.asked.lock().unwrap());
    }
}

/// Plays a story to a scheduler that waits so long for volumes, and writes one thing of a kind at a time.
async fn play(volumes: Span, story: impl AsyncFnOnce(&Scene)) {
    let (client, asked) = server::start(|_| Answer::of(200, json!({}))).await;
    let leadership = Leadership::new();
    leadership.extend(leadership.now() + Duration::from_secs(600), 1);
    let metrics: Arc<Metrics> = Arc::default();
    let context = WriterContext {
        api: Api::new(client),
        leadership: leadership.clone(),
        metrics: metrics.clone(),
        scheduler: "deepshare".into(),
        identity: "me".into(),
    };
    let (outcomes, ended) = mpsc::unbounded_channel();
    let writers = Writers::start(context, |_| 1, outcomes);
    let settings = Settings::default();
    let engine = Engine::new(settings.engine, settings.policy_config().build());
    let patience = Patience { volumes, ..Patience::default() };
    let config = Config { patience, ..Config::default() };
    let health = Arc::new(Health::new(leadership.clone(), metrics.clone()));
    let recorder = Recorder::new(None, metrics.clone());
    let shared = (metrics, health, leadership.clone());
    let turns = RunLoop::new(engine, config, recorder, writers, shared);
    let (news, told) = mpsc::channel(64);
    let scene = Scene { news, asked, leadership: leadership.clone() };
    let plot = async {
        scene.cluster().await;
        story(&scene).await;
        leadership.end(Ended::Released);
    };
    tokio::join!(turns.run(told, ended), plot);
}

async fn volume(scene: &Scene, node: &str) {
    let volume = json!({"metadata": {"name": "v"}, "spec": {}});
    scene.tell(Change::Volume(read(volume))).await;
    scene.claim(Some(node), Some("v")).await;
}

#[tokio::test]
async fn the_node_comes_before_the_volume_the_volume_before_the_binding_and_others_do_not_wait() {
    play(Span::from_secs(600), async |scene| {
        let node = scene.choice_for("p").await;
        scene.pod("plain", None).await;
        scene.until("the other pod is bound", |scene| scene.bound() == ["plain"]).await;
        scene.claim(Some(&node), None).await;
        volume(scene, &node).await;
        scene.until("it is bound", |scene| scene.bound() == ["plain", "p"]).await;
        assert_eq!(scene.nodes().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_given_back_is_not_chosen_again_at_once() {
    play(Span::from_secs(600), async |scene| {
        let first = scene.choice_for("p").await;
        scene.claim(Some(&first), None).await;
        scene.claim(None, None).await;
        scene.until("another is", |scene| scene.nodes().len() == 2).await;
        assert_ne!(scene.nodes()[1].as_deref(), Some(&*first));
        assert!(scene.nodes()[1].is_some() && scene.bound().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_volume_that_takes_too_long_has_its_node_taken_back() {
    play(Span::from_secs(1), async |scene| {
        let first = scene.choice_for("p").await;
        scene.claim(Some(&first), None).await;
        scene.until("it is taken back", |scene| scene.nodes().len() == 2).await;
        assert_eq!(scene.nodes()[1], None);
        assert!(scene.bound().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_volume_that_comes_after_the_leadership_is_over_binds_nothing() {
    play(Span::from_secs(600), async |scene| {
        let node = scene.choice_for("p").await;
        scene.leadership.extend(scene.leadership.now(), 1);
        volume(scene, &node).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(scene.bound().is_empty(), "another process decides by now");
    })
    .await;
}
