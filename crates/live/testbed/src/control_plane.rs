//! etcd, kube-apiserver, kube-controller-manager and, for comparison, kube-scheduler on 127.0.0.1.
//!
//! TLS and RBAC are on, as on a real cluster; only the disk is not waited for (etcd runs with
//! `--unsafe-no-fsync`). Every control plane has free ports and a data folder of its own, so
//! several run side by side.

mod certificates;
mod guard;
mod kubeconfig;
mod launch;
mod process;

pub use process::PidFile;
pub(crate) use process::tail;

use crate::assets::Assets;
use guard::Guard;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use process::Running;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a control plane is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where its data, logs and kubeconfigs go; kept when it stops. `None`: a temporary folder that
    /// goes with it.
    pub folder: Option<PathBuf>,
    /// Whether kube-controller-manager runs. Without it nobody notices lost nodes, creates service
    /// accounts, collects garbage or runs Jobs, and the admission plugins that would wait for
    /// that are off.
    pub controllers: bool,
    /// Client limits of a kube-scheduler to run beside the scheduler under test, in requests per
    /// second; `None`: no kube-scheduler.
    pub kube_scheduler_qps: Option<u32>,
    /// How long a node may miss its heartbeat before it counts as lost. Kubernetes: 50 s.
    pub node_monitor_grace: Duration,
    /// How long pods stay on a lost node (their default toleration). Kubernetes' default is 300 s.
    pub unreachable_toleration: Duration,
    /// File for an audit log of writes to pods and their subresources, with metadata only.
    pub audit_log: Option<PathBuf>,
    /// More flags for kube-apiserver.
    pub apiserver_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            folder: None,
            controllers: true,
            kube_scheduler_qps: None,
            node_monitor_grace: Duration::from_secs(50),
            unreachable_toleration: Duration::from_secs(300),
            audit_log: None,
            apiserver_flags: Vec::new(),
        }
    }
}

/// Who talks to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// May do everything (group `system:masters`).
    Admin,
    /// The node simulator.
    Nodes,
    /// A service account, with a token as its pod would have; it has to exist.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl User {
    /// The scheduler's service account, as `deploy/rbac.yaml` creates it.
    pub fn scheduler() -> User {
        User::ServiceAccount {
            namespace: "deepshare-system".to_owned(),
            name: "deepshare-scheduler".to_owned(),
        }
    }
}

/// Why a control plane does not run, or does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// A program is not among the assets.
    #[error("{program} is not in {}: add it there, or leave out what needs it", folder.display())]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A file or process could not be made.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// Keys or certificates could not be made.
    #[error("cannot make certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// A program ended while it was waited for.
    #[error("{program} ended at its start ({status}); the end of {}:\n{tail}", log.display())]
    Ended {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It did not get ready.
    #[error("{what} not ready after {seconds} s: {last}; the end of {}:\n{tail}", log.display())]
    NotReady {
        /// What was waited for.
        what: &'static str,
        /// How long.
        seconds: u64,
        /// The last answer.
        last: String,
        /// The log that matters.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// A kubeconfig that we wrote cannot be used.
    #[error("kubeconfig {}: {error}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: String,
    },
    /// The API server refused something.
    #[error("{doing}: {error}")]
    Api {
        /// What was asked.
        doing: String,
        /// What it said.
        error: Box<kube::Error>,
    },
}

/// A running control plane. Ends with its value, and with the process that holds it, however
/// that ends.
#[derive(Debug)]
pub struct ControlPlane {
    folder: PathBuf,
    server: String,
    processes: Vec<Running>,
    guard: Option<Guard>,
}

impl ControlPlane {
    /// Starts one and waits until it serves (four to fifteen seconds).
    ///
    /// # Errors
    /// If a program is missing, ends early or does not get ready within a minute; with the last
    /// lines of its log.
    pub async fn start(
        assets: &Assets,
        options: Options,
    ) -> Result<ControlPlane, ControlPlaneError> {
        // Ports are picked free, but another process may take one before ours does.
        for _ in 0..2 {
            match launch::launch(assets, &options).await {
                Err(error) if error.to_string().contains("address already in use") => {}
                done => return done,
            }
        }
        launch::launch(assets, &options).await
    }

    /// Its data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Lets it run on after this process: what is needed to end it later.
    pub fn detach(mut self) -> Vec<PidFile> {
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        std::mem::take(&mut self.processes).into_iter().map(Running::detach).collect()
    }

    /// Starts kube-scheduler beside whatever runs, with this limit of requests per second; what
    /// an earlier one of this control plane logged is lost.
    ///
    /// # Errors
    /// If the program is missing or cannot be started.
    pub fn start_kube_scheduler(
        &mut self,
        assets: &Assets,
        qps: u32,
    ) -> Result<(), ControlPlaneError> {
        launch::kube_scheduler(self, assets, qps)
    }

    /// Starts any program in the folder, to end with the control plane; what it says goes to
    /// `NAME.log` there.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&mut self, program: &Path, arguments: &[String]) -> Result<(), ControlPlaneError> {
        launch::run(self, program, arguments)
    }

    /// Asks a program to stop, by force after ten seconds; nothing if it does not run.
    pub fn stop(&mut self, program: &str) {
        self.take(program).into_iter().for_each(Running::stop);
    }

    /// Ends a program without asking; nothing if it does not run.
    pub fn kill(&mut self, program: &str) {
        self.take(program).iter_mut().for_each(Running::kill);
    }

    /// Programs that this value ends no more: whoever takes them does.
    fn take(&mut self, program: &str) -> Vec<Running> {
        let taken = self.processes.extract_if(.., |process| process.name() == program);
        let taken: Vec<Running> = taken.collect();
        for process in &taken {
            if let Some(guard) = &mut self.guard {
                // A guard that hears nothing any more guards nothing either.
                let _ = guard.forget(process.pid());
            }
        }
        taken
    }

    /// Process id of one of the programs, while it runs.
    pub fn pid(&self, program: &str) -> Option<u32> {
        let found = self.processes.iter().find(|process| process.name() == program);
        found.map(Running::pid)
    }

    /// A client that may do everything. Belongs to the async runtime that it was made in.
    ///
    /// # Errors
    /// If its kubeconfig cannot be used.
    pub async fn admin(&self) -> Result<Client, ControlPlaneError> {
        client(&self.folder.join("admin.kubeconfig")).await
    }

    /// A client for a user.
    ///
    /// # Errors
    /// As [`ControlPlane::kubeconfig`].
    pub async fn client(&self, user: &User) -> Result<Client, ControlPlaneError> {
        client(&self.kubeconfig(user).await?).await
    }

    /// A kubeconfig for a user; for a service account with a token of a day.
    ///
    /// # Errors
    /// If the service account does not exist, or the file cannot be written.
    pub async fn kubeconfig(&self, user: &User) -> Result<PathBuf, ControlPlaneError> {
        match user {
            User::Admin => Ok(self.folder.join("admin.kubeconfig")),
            User::Nodes => Ok(self.folder.join("nodes.kubeconfig")),
            User::ServiceAccount { namespace, name } => {
                let accounts: Api<ServiceAccount> = Api::namespaced(self.admin().await?, namespace);
                let day = 24 * 3600;
                let spec = TokenRequestSpec { expiration_seconds: Some(day), ..Default::default() };
                let request = TokenRequest { spec, ..TokenRequest::default() };
                let request: TokenRequest = accounts
                    .create_subresource("token", name, &PostParams::default(), &request)
                    .await
                    .map_err(api(format!("token for service account {namespace}/{name}")))?;
                let token = request.status.map(|status| status.token).unwrap_or_default();
                let path = self.folder.join(format!("{name}.kubeconfig"));
                let ca = self.folder.join("ca.crt");
                let login = kubeconfig::Login::Token(token);
                kubeconfig::write(&path, &self.server, &ca, name, &login)?;
                Ok(path)
            }
        }
    }

    /// Creates a namespace and waits until pods can be created in it: the admission of pods needs
    /// its default service account, which a controller makes.
    ///
    /// # Errors
    /// If it exists or is not ready within 30 s.
    pub async fn create_namespace(&self, name: &str) -> Result<(), ControlPlaneError> {
        let client = self.admin().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .map_err(api(format!("creating namespace {name}")))?;
        if !self.processes.iter().any(|process| process.name() == launch::CONTROLLERS) {
            return Ok(());
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client, name);
        launch::wait("the default service account", 30, &mut [], async || {
            accounts.get("default").await.map(drop).map_err(|error| error.to_string())
        })
        .await
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            process.kill();
        }
    }
}

/// Starts a program that runs on after this process; what it says goes to `NAME.log` in the folder.
///
/// # Errors
/// If it cannot be started.
pub fn start_detached(
    program: &Path,
    folder: &Path,
    arguments: &[String],
) -> Result<PidFile, ControlPlaneError> {
    Running::start(program, folder, arguments).map(Running::detach)
}

/// A client with a kubeconfig.
///
/// # Errors
/// If the file cannot be read or used.
pub async fn client(path: &Path) -> Result<Client, ControlPlaneError> {
    let bad = |error: String| ControlPlaneError::Kubeconfig { path: path.to_owned(), error };
    let file = Kubeconfig::read_from(path).map_err(|error| bad(error.to_string()))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| bad(error.to_string()))?;
    Client::try_from(config).map_err(|error| bad(error.to_string()))
}

fn api(doing: String) -> impl FnOnce(kube::Error) -> ControlPlaneError {
    move |error| ControlPlaneError::Api { doing, error: Box::new(error) }
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ControlPlaneError {
    let path = path.to_owned();
    move |error| ControlPlaneError::Io { doing, path, error }
}
