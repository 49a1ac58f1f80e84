//! Starts the programs in order and waits for each.

use super::certificates::{Authority, key_pair, write};
use super::guard::Guard;
use super::kubeconfig::{self, Login};
use super::process::Running;
use super::{ControlPlane, ControlPlaneError, Options, io};
use crate::assets::Assets;
use kube::Client;
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the program that runs the controllers.
pub const CONTROLLERS: &str = "kube-controller-manager";

/// Name of the scheduler to compare with.
pub const KUBE_SCHEDULER: &str = "kube-scheduler";

/// Users with certificates: name of the file, user, group. The node simulator is of the nodes'
/// group for the API server's flow control, and has its rights from a role of its own.
const USERS: [(&str, &str, &str); 4] = [
    ("admin", "deepshare-testbed:admin", "system:masters"),
    ("nodes", "deepshare-testbed:nodes", "system:nodes"),
    (CONTROLLERS, "system:kube-controller-manager", "system:kube-controller-manager"),
    (KUBE_SCHEDULER, "system:kube-scheduler", "system:kube-scheduler"),
];

/// What the node simulator may do.
const NODES_ROLE: &str = include_str!("nodes-role.yaml");

/// Starts everything. On failure what was started ends again.
pub async fn launch(assets: &Assets, options: &Options) -> Result<ControlPlane, ControlPlaneError> {
    let (folder, temporary) = match &options.folder {
        Some(folder) => (folder.clone(), false),
        None => (temporary_folder()?, true),
    };
    std::fs::create_dir_all(&folder).map_err(io("create", &folder))?;
    let folder = folder.canonicalize().map_err(io("open", &folder))?;
    let guard = Guard::new(temporary.then_some(folder.as_path()))?;
    let [etcd, peer, secure] = free_ports()?;
    let server = format!("https://127.0.0.1:{secure}");
    let mut plane = ControlPlane { folder, server, processes: Vec::new(), guard: Some(guard) };
    credentials(&plane)?;

    start(&mut plane, assets, "etcd", etcd_flags(etcd, peer))?;
    let flags = apiserver_flags(&plane.folder, options, etcd, secure)?;
    start(&mut plane, assets, "kube-apiserver", flags)?;
    let client = plane.admin().await?;
    wait("kube-apiserver", 60, &mut plane.processes, async || ready(&client).await).await?;
    if options.controllers {
        let flags = controller_flags(&plane.folder, options);
        start(&mut plane, assets, CONTROLLERS, flags)?;
    }
    if let Some(qps) = options.kube_scheduler_qps {
        kube_scheduler(&mut plane, assets, qps)?;
    }
    crate::manifests::apply(&client, NODES_ROLE).await.map_err(|error| ControlPlaneError::Io {
        doing: "apply",
        path: PathBuf::from("nodes-role.yaml"),
        error: std::io::Error::other(error),
    })?;
    Ok(plane)
}

/// Starts kube-scheduler.
pub fn kube_scheduler(
    plane: &mut ControlPlane,
    assets: &Assets,
    qps: u32,
) -> Result<(), ControlPlaneError> {
    let config = scheduler_config(&plane.folder, qps)?;
    let flags = [format!("--config={}", config.display()), "--secure-port=0".to_owned()];
    start(plane, assets, KUBE_SCHEDULER, flags.to_vec())
}

fn start(
    plane: &mut ControlPlane,
    assets: &Assets,
    name: &'static str,
    flags: Vec<String>,
) -> Result<(), ControlPlaneError> {
    let program = assets.program(name).ok_or_else(|| ControlPlaneError::NoProgram {
        program: name,
        folder: assets.folder().to_owned(),
    })?;
    run(plane, &program, &flags)
}

/// Starts a program that ends with the control plane.
pub fn run(
    plane: &mut ControlPlane,
    program: &Path,
    flags: &[String],
) -> Result<(), ControlPlaneError> {
    let process = Running::start(program, &plane.folder, flags)?;
    if let Some(guard) = &mut plane.guard {
        guard.watch(process.pid())?;
    }
    plane.processes.push(process);
    Ok(())
}

/// Asks until the answer is yes.
pub async fn wait(
    what: &'static str,
    seconds: u64,
    processes: &mut [Running],
    ask: impl AsyncFn() -> Result<(), String>,
) -> Result<(), ControlPlaneError> {
    let begun = Instant::now();
    loop {
        let Err(last) = ask().await else { return Ok(()) };
        processes.iter_mut().try_for_each(Running::check)?;
        if begun.elapsed() > Duration::from_secs(seconds) {
            let (log, tail) = processes.last().map(Running::log_tail).unwrap_or_default();
            return Err(ControlPlaneError::NotReady { what, seconds, last, log, tail });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ready means that the bootstrap roles exist, too: a check behind `/readyz` waits for them.
async fn ready(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/readyz").body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let answer = client.request_text(request).await.map_err(|error| error.to_string())?;
    if answer == "ok" { Ok(()) } else { Err(answer) }
}

fn credentials(plane: &ControlPlane) -> Result<(), ControlPlaneError> {
    let folder = &plane.folder;
    let authority = Authority::new(folder)?;
    authority.sign("server", "deepshare-testbed:server", "deepshare-testbed")?;
    key_pair(folder, "service-accounts")?;
    for (name, user, group) in USERS {
        authority.sign(name, user, group)?;
        let path = folder.join(format!("{name}.kubeconfig"));
        let login = Login::Certificate(name.to_owned());
        kubeconfig::write(&path, &plane.server, &folder.join("ca.crt"), name, &login)?;
    }
    Ok(())
}

fn etcd_flags(client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (local(client), local(peer));
    let mut flags = vec![
        "--name=testbed".to_owned(),
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=testbed={peer}"),
        // The data dies with the cluster: nobody is helped by waiting for a disk.
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=4294967296".to_owned(),
    ];
    for side in ["", "peer-"] {
        flags.push(format!("--{side}cert-file=server.crt"));
        flags.push(format!("--{side}key-file=server.key"));
        flags.push(format!("--{side}trusted-ca-file=ca.crt"));
        flags.push(format!("--{side}client-cert-auth"));
    }
    flags
}

fn apiserver_flags(
    folder: &Path,
    options: &Options,
    etcd: u16,
    secure: u16,
) -> Result<Vec<String>, ControlPlaneError> {
    let mut flags = vec![
        format!("--etcd-servers={}", local(etcd)),
        "--etcd-cafile=ca.crt".to_owned(),
        "--etcd-certfile=server.crt".to_owned(),
        "--etcd-keyfile=server.key".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={secure}"),
        "--tls-cert-file=server.crt".to_owned(),
        "--tls-private-key-file=server.key".to_owned(),
        "--client-ca-file=ca.crt".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-account-key-file=service-accounts.pub".to_owned(),
        "--service-account-signing-key-file=service-accounts.key".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        // Loopback is no address for an endpoint.
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged".to_owned(),
        "--profiling=false".to_owned(),
        seconds("--default-unreachable-toleration-seconds", options.unreachable_toleration),
        seconds("--default-not-ready-toleration-seconds", options.unreachable_toleration),
    ];
    if !options.controllers {
        // Both wait for something that only a controller does.
        flags.push("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned());
    }
    if let Some(log) = &options.audit_log {
        let policy = folder.join("audit-policy.yaml");
        write(&policy, include_str!("audit-policy.yaml"))?;
        flags.push(format!("--audit-policy-file={}", policy.display()));
        flags.push(format!("--audit-log-path={}", log.display()));
    }
    flags.extend(options.apiserver_flags.iter().cloned());
    Ok(flags)
}

fn controller_flags(folder: &Path, options: &Options) -> Vec<String> {
    let grace = options.node_monitor_grace;
    // Looks ten times within the grace period, at most every five seconds (the default).
    let period = (grace / 10).min(Duration::from_secs(5));
    let kubeconfig = folder.join(format!("{CONTROLLERS}.kubeconfig"));
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--secure-port=0".to_owned(),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--service-account-private-key-file=service-accounts.key".to_owned(),
        "--root-ca-file=ca.crt".to_owned(),
        format!("--node-monitor-grace-period={}ms", grace.as_millis()),
        format!("--node-monitor-period={}ms", period.as_millis()),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

fn scheduler_config(folder: &Path, qps: u32) -> Result<PathBuf, ControlPlaneError> {
    let path = folder.join("kube-scheduler.config");
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": {
            "kubeconfig": folder.join("kube-scheduler.kubeconfig"),
            "qps": qps,
            "burst": qps.saturating_mul(2),
        },
    });
    write(&path, &config.to_string())?;
    Ok(path)
}

fn local(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

fn seconds(flag: &str, value: Duration) -> String {
    format!("{flag}={}", value.as_secs())
}

/// Ports that nobody listens on now; held together, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N], ControlPlaneError> {
    let here = Path::new("127.0.0.1");
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io("listen on", here))?;
        *port = listener.local_addr().map_err(io("listen on", here))?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn temporary_folder() -> Result<PathBuf, ControlPlaneError> {
    let made = tempfile::Builder::new().prefix("deepshare-testbed-").tempdir();
    let made = made.map_err(io("create a folder in", &std::env::temp_dir()))?;
    Ok(made.keep())
}
