//! A cluster that runs on between commands: `up`, `env`, `status` and `down`.

use crate::assets::{Assets, AssetsError, KubernetesVersion};
use crate::control_plane::{ControlPlane, ControlPlaneError, Options, PidFile, User, client};
use crate::manifests::{self, ManifestError};
use crate::nodes::SIMULATOR;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is written down of a cluster, in its folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    kubernetes: String,
    server: String,
    assets: PathBuf,
    nodes: usize,
    processes: Vec<PidFile>,
}

const RECORD: &str = "cluster.json";
/// For nodes to get ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// What to bring up.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it keeps everything; removed by [`down`].
    pub folder: PathBuf,
    /// Which Kubernetes.
    pub version: KubernetesVersion,
    /// How many simulated nodes.
    pub nodes: usize,
    /// Arguments of this program that simulate them, without those that name the cluster.
    pub simulator: Vec<String>,
    /// YAML files, or folders of them, to apply: custom resources, roles.
    pub manifests: Vec<PathBuf>,
    /// The control plane.
    pub options: Options,
}

/// Why a cluster is not as asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No programs.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// The control plane does not run.
    #[error(transparent)]
    ControlPlane(#[from] ControlPlaneError),
    /// A manifest was not applied.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The folder is somebody else's.
    #[error("{} is not empty and holds no cluster: name another folder with --dir", .0.display())]
    NotOurs(PathBuf),
    /// There is nothing to point a shell to.
    #[error("no cluster runs in {}: bring one up first", .0.display())]
    Absent(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The record of a cluster is damaged.
    #[error("{}: {error}; end its processes by hand and remove the folder", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// Simulated nodes did not appear.
    #[error("only {ready} of {nodes} nodes got ready; the end of {}:\n{tail}", log.display())]
    Nodes {
        /// How many are ready.
        ready: usize,
        /// How many should be.
        nodes: usize,
        /// The simulator's log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
}

/// Where a cluster is kept if nobody says where.
///
/// # Errors
/// If there is no cache folder.
pub fn default_folder() -> Result<PathBuf, ClusterError> {
    Ok(crate::assets::cache()?.join("cluster"))
}

/// Brings a cluster up, unless it is; how to use it.
///
/// # Errors
/// Whatever keeps it from running; nothing runs then.
pub async fn up(request: Request) -> Result<String, ClusterError> {
    let folder = &request.folder;
    if let Some(record) = read(folder)? {
        if record.processes.iter().any(PidFile::runs) {
            return Ok(format!("it is up already\n{}", usage(folder, &record)));
        }
        fs::remove_dir_all(folder).map_err(io("remove", folder))?;
    }
    let assets = Assets::find_or_build(request.version)?;
    fs::create_dir_all(folder).map_err(io("create", folder))?;
    let mut record = Record {
        kubernetes: assets.kubernetes_version().unwrap_or_default(),
        assets: assets.folder().to_owned(),
        nodes: request.nodes,
        ..Record::default()
    };
    write(folder, &record)?;
    let begun = Instant::now();
    let options = Options { folder: Some(folder.clone()), ..request.options };
    let plane = ControlPlane::start(&assets, options).await?;
    record.server = plane.server().to_owned();
    let admin = plane.admin().await?;
    for path in &request.manifests {
        manifests::apply_path(&admin, path).await?;
    }
    if request.manifests.iter().any(|path| path.ends_with("rbac.yaml")) {
        plane.kubeconfig(&User::scheduler()).await?;
    }
    let simulator = (request.nodes > 0).then(|| simulate(plane.folder(), &request.simulator));
    let simulator = simulator.transpose()?;
    record.processes = plane.detach();
    record.processes.extend(simulator.clone());
    let written = write(folder, &record);
    let done = match written {
        Ok(()) => nodes_ready(&admin, folder, simulator.as_ref(), request.nodes).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        record.processes.iter().rev().for_each(PidFile::end);
        return Err(error);
    }
    let took = begun.elapsed().as_secs_f64();
    Ok(format!("up in {took:.1} s\n{}", usage(folder, &record)))
}

/// What runs.
///
/// # Errors
/// If the record cannot be read.
pub async fn status(folder: &Path) -> Result<String, ClusterError> {
    let Some(record) = read(folder)? else {
        return Ok(format!("no cluster in {}", folder.display()));
    };
    let mut text = format!("API server at {}\n", record.server);
    for process in &record.processes {
        let state = if process.runs() { "runs" } else { "has ended" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {} (process {}) {state}", process.name, process.pid);
    }
    let admin = client(&folder.join("admin.kubeconfig")).await;
    let nodes = match admin {
        Ok(admin) => ready_nodes(&admin).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let _ = match nodes {
        Ok(ready) => writeln!(text, "  {ready} of {} simulated nodes are ready", record.nodes),
        Err(error) => writeln!(text, "  the API server does not answer: {error}"),
    };
    Ok(text + &usage(folder, &record))
}

/// Commands for a POSIX shell that point it to the cluster: the variables `DEEPSHARE_CLUSTER` and
/// `KUBECONFIG`; and on the `PATH` `kubectl`, if it is among the programs, and whatever was built
/// beside this program.
///
/// # Errors
/// If no cluster runs in the folder.
pub fn environment(folder: &Path) -> Result<String, ClusterError> {
    let absent = || ClusterError::Absent(folder.to_owned());
    let record = read(folder)?.ok_or_else(absent)?;
    if !record.processes.iter().any(PidFile::runs) {
        return Err(absent());
    }
    let folder = folder.canonicalize().map_err(io("open", folder))?;
    let mut text = format!(
        "export DEEPSHARE_CLUSTER={}\nexport KUBECONFIG={}",
        quoted(&folder),
        quoted(&folder.join("admin.kubeconfig"))
    );
    let kubectl = record.assets.join("kubectl").is_file().then_some(record.assets);
    let ours = std::env::current_exe().ok().and_then(|ours| Some(ours.parent()?.to_owned()));
    for programs in [ours, kubectl].into_iter().flatten() {
        // Writing to a string does not fail.
        let _ = write!(text, "\nexport PATH={}:\"$PATH\"", quoted(&programs));
    }
    Ok(text)
}

/// A path as one word of a shell, whatever is in it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Ends everything and removes the folder.
///
/// # Errors
/// If the record cannot be read or the folder not removed.
pub fn down(folder: &Path) -> Result<String, ClusterError> {
    let Some(record) = read(folder)? else {
        return Ok(format!("no cluster in {}", folder.display()));
    };
    record.processes.iter().rev().for_each(PidFile::end);
    fs::remove_dir_all(folder).map_err(io("remove", folder))?;
    Ok("down".to_owned())
}

fn usage(folder: &Path, record: &Record) -> String {
    let kubectl = record.assets.join("kubectl");
    let kubectl = if kubectl.is_file() { kubectl.display().to_string() } else { "kubectl".into() };
    let admin = folder.join("admin.kubeconfig");
    format!(
        "  {}\n  export KUBECONFIG={}\n  {kubectl} get nodes\n  logs and kubeconfigs of other \
         users are in {}",
        record.kubernetes,
        admin.display(),
        folder.display()
    )
}

fn simulate(folder: &Path, arguments: &[String]) -> Result<PidFile, ClusterError> {
    let program = std::env::current_exe().map_err(io("find", Path::new("this program")))?;
    let kubeconfig = folder.join("nodes.kubeconfig");
    let mut all = vec!["nodes".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    all.extend(arguments.iter().cloned());
    Ok(crate::control_plane::start_detached(&program, folder, &all)?)
}

async fn ready_nodes(admin: &Client) -> Result<usize, kube::Error> {
    let nodes: Api<Node> = Api::all(admin.clone());
    let nodes = nodes.list(&ListParams::default().labels(SIMULATOR)).await?;
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|one| one.type_ == "Ready" && one.status == "True");
        let tainted = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        ready && tainted.is_none_or(Vec::is_empty)
    };
    Ok(nodes.iter().filter(|node| ready(node)).count())
}

async fn nodes_ready(
    admin: &Client,
    folder: &Path,
    simulator: Option<&PidFile>,
    nodes: usize,
) -> Result<(), ClusterError> {
    let begun = Instant::now();
    loop {
        let ready = ready_nodes(admin).await.unwrap_or(0);
        if ready >= nodes {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE || simulator.is_some_and(|one| !one.runs()) {
            let log = folder.join("deepshare-testbed.log");
            let tail = crate::control_plane::tail(&log);
            return Err(ClusterError::Nodes { ready, nodes, log, tail });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The record in a folder; `None` where there is nothing.
fn read(folder: &Path) -> Result<Option<Record>, ClusterError> {
    let path = folder.join(RECORD);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let record = serde_json::from_str(&text);
            record.map(Some).map_err(|error| ClusterError::Record { path, error })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
            if empty { Ok(None) } else { Err(ClusterError::NotOurs(folder.to_owned())) }
        }
        Err(error) => Err(ClusterError::Io { doing: "read", path, error }),
    }
}

fn write(folder: &Path, record: &Record) -> Result<(), ClusterError> {
    let path = folder.join(RECORD);
    let text = serde_json::to_string_pretty(record)
        .map_err(|error| ClusterError::Record { path: path.clone(), error })?;
    fs::write(&path, text + "\n").map_err(io("write", &path))
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ClusterError {
    let path = path.to_owned();
    move |error| ClusterError::Io { doing, path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_pointed_to_a_running_cluster_whatever_its_path_is() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("it's here");
        let none = environment(&folder).unwrap_err().to_string();
        assert!(none.contains("it's here: bring one up first"), "{none}");

        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kubectl"), "").unwrap();
        let program = std::env::current_exe().unwrap();
        let ourselves = PidFile { name: "this test".into(), pid: std::process::id(), program };
        let record =
            Record { assets: folder.clone(), processes: vec![ourselves], ..Record::default() };
        write(&folder, &record).unwrap();
        let script = environment(&folder).unwrap() + "\nprintf '%s\\n' \"$KUBECONFIG\" \"$PATH\"";
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(shell.stdout).unwrap();
        let folder = folder.canonicalize().unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next(), folder.join("admin.kubeconfig").to_str());
        assert!(
            lines.next().unwrap().starts_with(&format!("{}/it's here:", home.path().display()))
        );
    }
}
