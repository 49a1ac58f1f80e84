//! The ground that all stand on: one control plane, its nodes, and the schedulers in turn.

use crate::Failure;
use crate::audit::AuditLog;
use crate::check::GPUS;
use crate::process::{Cost, cost};
use deepshare_kube_api::{GpuNode, names};
use deepshare_testbed::{
    Assets, ControlPlane, KubernetesVersion, NodeSimulator, NodeSpec, Options, User, manifests,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where every measured pod is.
const NAMESPACE: &str = "bench";
/// Client limits of kube-scheduler: far above what it can use.
const QPS: u32 = 10_000;
/// Requests in flight when pods are created.
const CREATING: usize = 32;
/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// `deepshare-scheduler`.
    DeepShare,
    /// `kube-scheduler`.
    Kube,
}

impl Contender {
    /// Both.
    pub const ALL: [Contender; 2] = [Contender::DeepShare, Contender::Kube];

    /// The program.
    pub fn program(self) -> &'static str {
        match self {
            Contender::DeepShare => "deepshare-scheduler",
            Contender::Kube => "kube-scheduler",
        }
    }

    /// What pods call it in `spec.schedulerName`.
    pub fn name(self) -> &'static str {
        match self {
            Contender::DeepShare => names::SCHEDULER,
            Contender::Kube => "default-scheduler",
        }
    }
}

/// A control plane without controllers, whose API server writes an audit log.
pub struct Ground {
    assets: Assets,
    plane: ControlPlane,
    /// The program of DeepShare.
    scheduler: PathBuf,
    kubeconfig: PathBuf,
    admin: Client,
    /// What the API server was asked.
    pub audit: AuditLog,
    // Dropped last: the control plane writes into it.
    folder: TempDir,
}

impl Ground {
    /// Starts the control plane and installs DeepShare's resources.
    ///
    /// # Errors
    /// If something is missing or refused.
    pub async fn new(scheduler: &Path, root: &Path) -> Result<Ground, Failure> {
        let scheduler = scheduler.canonicalize().map_err(|error| {
            format!("{}: {error}; build deepshare-control first", scheduler.display())
        })?;
        let assets = Assets::find_or_build(KubernetesVersion::asked()?)?;
        let folder = tempfile::Builder::new().prefix("deepshare-bench-").tempdir()?;
        let log = folder.path().join("audit.log");
        let options = Options {
            folder: Some(folder.path().join("control-plane")),
            // Jobs, garbage and lost nodes are not what is measured.
            controllers: false,
            audit_log: Some(log.clone()),
            // One file: a log that is cut cannot be followed.
            apiserver_flags: vec!["--audit-log-maxsize=16384".to_owned()],
            ..Options::default()
        };
        let plane = ControlPlane::start(&assets, options).await?;
        let admin = plane.admin().await?;
        for path in ["deploy/crds", "deploy/rbac.yaml"] {
            manifests::apply_path(&admin, &root.join(path)).await?;
        }
        plane.create_namespace(NAMESPACE).await?;
        let kubeconfig = plane.kubeconfig(&User::scheduler()).await?;
        let audit = AuditLog::new(log);
        Ok(Ground { assets, plane, scheduler, kubeconfig, admin, audit, folder })
    }

    /// Version of Kubernetes.
    pub fn kubernetes(&self) -> String {
        self.assets.kubernetes_version().unwrap_or_default()
    }

    /// Applies objects.
    ///
    /// # Errors
    /// If one is refused.
    pub async fn apply(&self, objects: &Value) -> Result<(), Failure> {
        Ok(manifests::apply(&self.admin, &objects.to_string()).await?)
    }

    /// A tenant with a quota of so many GPUs, whose namespace is the measured one.
    ///
    /// # Errors
    /// If it is refused.
    pub async fn quota(&self, gpus: usize) -> Result<(), Failure> {
        self.apply(&json!({
            "apiVersion": "deepshare.io/v1alpha1",
            "kind": "TenantQuota",
            "metadata": { "name": NAMESPACE },
            "spec": { "gpus": { "*": gpus }, "namespaces": [NAMESPACE] },
        }))
        .await
    }

    /// Nodes of eight GPUs, simulated until the value goes; they stay in the cluster.
    ///
    /// # Errors
    /// If they are refused.
    pub async fn nodes(&self, count: usize) -> Result<NodeSimulator, Failure> {
        let user = self.plane.client(&User::Nodes).await?;
        let nodes = NodeSimulator::start(
            user,
            NodeSpec { count, gpus: GPUS as usize, ..NodeSpec::default() },
        )
        .await?;
        let shown: Api<GpuNode> = Api::all(self.admin.clone());
        let begun = Instant::now();
        loop {
            let all = shown.list(&ListParams::default()).await?;
            let ready = all.iter().filter(|node| node.status.is_some()).count();
            if ready >= count {
                return Ok(nodes);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("only {ready} of {count} nodes show their devices").into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Starts a scheduler.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, contender: Contender) -> Result<(), Failure> {
        match contender {
            Contender::Kube => self.plane.start_kube_scheduler(&self.assets, QPS)?,
            Contender::DeepShare => {
                let settings = self.folder.path().join("settings.toml");
                let log = self.folder.path().join("events");
                let text = format!("listen = \"127.0.0.1:0\"\n[log]\nfolder = {log:?}\n");
                std::fs::write(&settings, text)?;
                let arguments = [
                    format!("--kubeconfig={}", self.kubeconfig.display()),
                    format!("--settings={}", settings.display()),
                ];
                self.plane.run(&self.scheduler, &arguments)?;
            }
        }
        Ok(())
    }

    /// Replays all that DeepShare recorded: how many commands came out again.
    ///
    /// # Errors
    /// If the log cannot be read, or others come out.
    pub fn replay(&self) -> Result<u64, Failure> {
        let replay = deepshare_event_log::replay(&self.folder.path().join("events"), None)?;
        match replay.mismatch {
            Some(mismatch) => Err(format!("the event log replays differently: {mismatch}").into()),
            None => Ok(replay.commands),
        }
    }

    /// Asks a scheduler to stop and waits until it has.
    pub fn stop(&mut self, contender: Contender) {
        self.plane.stop(contender.program());
    }

    /// Ends a scheduler as a crash does.
    pub fn kill(&mut self, contender: Contender) {
        self.plane.kill(contender.program());
    }

    /// What a program has cost.
    pub fn cost(&self, program: &str) -> Cost {
        cost(self.plane.pid(program))
    }

    /// What the API server and its database have cost.
    pub fn server_cpu_s(&self) -> f64 {
        self.cost("kube-apiserver").cpu_s + self.cost("etcd").cpu_s
    }

    /// What a scheduler said.
    pub fn said(&self, contender: Contender) -> String {
        let log = self.plane.folder().join(format!("{}.log", contender.program()));
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// The measured pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Creates pods, many at once.
    ///
    /// # Errors
    /// If one is refused.
    pub async fn create(&self, pods: impl Iterator<Item = Value>) -> Result<(), Failure> {
        let api = self.pods();
        let one = |pod: Value| {
            let api = api.clone();
            async move {
                let pod: Pod = serde_json::from_value(pod)?;
                api.create(&PostParams::default(), &pod).await?;
                Ok::<(), Failure>(())
            }
        };
        stream::iter(pods.map(one)).buffer_unordered(CREATING).try_collect().await
    }

    /// Removes pods at once, as many as match; waits until they are gone.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn remove(&self, labels: &str) -> Result<(), Failure> {
        let pods = self.pods();
        let these = ListParams::default().labels(labels);
        let begun = Instant::now();
        loop {
            let now = DeleteParams::default().grace_period(0);
            // A large collection may take longer than one request may.
            let _ = pods.delete_collection(&now, &these).await;
            if pods.list(&these.clone().limit(1)).await?.items.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("pods {labels} do not go").into());
            }
        }
    }

    /// Follows the audit log until so many pods are bound.
    ///
    /// # Errors
    /// If they are not after minutes; with the scheduler's last words.
    pub async fn until_bound(&mut self, count: usize, by: Contender) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            self.audit.follow()?;
            if self.audit.bound() >= count {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let (program, bound) = (by.program(), self.audit.bound());
                let said = self.said(by);
                let tail: Vec<&str> = said.lines().rev().take(10).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                let tail = tail.join("\n");
                return Err(format!("{program}: only {bound} of {count} bound; {tail}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until nothing was written to pods for so long.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn settle(&mut self, quiet: Duration) -> Result<(), Failure> {
        loop {
            let before = self.audit.read();
            tokio::time::sleep(quiet).await;
            self.audit.follow()?;
            if self.audit.read() == before {
                return Ok(());
            }
        }
    }
}

/// A pod that holds GPUs.
pub struct Draft<'a> {
    /// Its name.
    pub name: String,
    /// Who is to place it.
    pub by: Contender,
    /// GPUs.
    pub gpus: u32,
    /// DeepShare's class.
    pub class: &'a str,
    /// Its group of pods, for the selector; empty: none.
    pub group: &'a str,
    /// Members of its gang, if it is one.
    pub gang: u32,
}

impl Draft<'_> {
    /// The pod as JSON.
    pub fn pod(&self) -> Value {
        let Draft { name, by, gpus, class, group, gang } = self;
        let mut annotations = json!({ "deepshare.io/class": class });
        if *gang > 1 {
            annotations["deepshare.io/gang"] = json!(group);
            annotations["deepshare.io/gang-size"] = json!(gang.to_string());
        }
        let gpus = json!({ names::GPU: gpus.to_string() });
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "labels": { "group": group }, "annotations": annotations },
            "spec": {
                "schedulerName": by.name(),
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 30,
                "containers": [{
                    "name": "main",
                    "image": "train",
                    "resources": { "requests": gpus, "limits": gpus },
                }],
            },
        })
    }
}
