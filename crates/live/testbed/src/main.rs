//! `deepshare-testbed`: clusters for development and tests.

use clap::{Args, Parser, Subcommand};
use deepshare_testbed::cluster::{self, Request};
use deepshare_testbed::control_plane;
use deepshare_testbed::{Assets, GpuResource, KubernetesVersion, NodeSimulator, NodeSpec, Options};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// What is logged unless RUST_LOG says otherwise. The client logs every answer that is an error,
/// also those of a server that is only just starting.
const LOGGED: &str = "warn,kube_client=off";

/// A Kubernetes control plane on loopback and simulated GPU nodes, for development and tests.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the programs of Kubernetes, unless they are there already, and say where they are.
    Build {
        #[command(flatten)]
        version: Version,
    },
    /// Bring a cluster up and leave it running. The programs of Kubernetes come from
    /// KUBEBUILDER_ASSETS if that is set, else they are built once with Go.
    Up {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        version: Version,
        /// YAML file, or folder of such, to apply; in the order given.
        #[arg(long = "manifest", value_name = "PATH")]
        manifests: Vec<PathBuf>,
        /// Run kube-scheduler, too, with this limit of requests per second.
        #[arg(long, value_name = "QPS")]
        kube_scheduler: Option<u32>,
        /// How long a node may miss heartbeats before it counts as lost, in seconds.
        #[arg(long, default_value_t = 50, value_name = "SECONDS")]
        node_monitor_grace: u64,
        #[command(flatten)]
        nodes: Nodes,
    },
    /// Print what points a shell to the cluster: eval "$(deepshare-testbed env)" sets KUBECONFIG,
    /// DEEPSHARE_CLUSTER, and PATH so that kubectl is found and what was built beside this program.
    Env {
        #[command(flatten)]
        place: Place,
    },
    /// Say what runs.
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// End the cluster and remove its folder.
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Simulate GPU nodes of any cluster, until interrupted. The nodes stay, as lost ones.
    Nodes {
        /// Of a user who may write nodes, leases, GpuNodes and the status of pods.
        #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
        kubeconfig: PathBuf,
        #[command(flatten)]
        nodes: Nodes,
    },
}

#[derive(Debug, Args)]
struct Version {
    /// Version of Kubernetes: 1.34, 1.35, 1.36 or 1.37. What KUBEBUILDER_ASSETS holds wins.
    #[arg(long, env = KubernetesVersion::VARIABLE, default_value_t, value_name = "VERSION")]
    kubernetes: KubernetesVersion,
}

#[derive(Debug, Args)]
struct Place {
    /// Folder of the cluster; by default one in the user's cache.
    #[arg(long = "dir", env = "DEEPSHARE_CLUSTER", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Place {
    fn folder(self) -> Result<PathBuf, cluster::ClusterError> {
        self.folder.map_or_else(cluster::default_folder, Ok)
    }
}

#[derive(Clone, Debug, Args)]
#[group(id = "simulated")]
struct Nodes {
    /// How many nodes.
    #[arg(long, visible_alias = "nodes", default_value_t = 4)]
    count: usize,
    /// GPUs of each node.
    #[arg(long, default_value_t = 8)]
    gpus: usize,
    /// Model of the GPUs.
    #[arg(long = "type", default_value = "A100-80GB", value_name = "MODEL")]
    gpu_type: String,
    /// Memory of each GPU in MiB.
    #[arg(long, default_value_t = 81_920, value_name = "MIB")]
    gpu_memory: u32,
    /// How the GPUs are offered.
    #[arg(long, value_enum, default_value_t)]
    resource: GpuResource,
    /// CPUs of each node.
    #[arg(long, default_value_t = 128)]
    cpus: u32,
    /// Memory of each node in GiB.
    #[arg(long, default_value_t = 1024, value_name = "GIB")]
    memory: u32,
    /// Most pods on each node.
    #[arg(long, default_value_t = 110)]
    pods: u32,
    /// Begin of the nodes' names.
    #[arg(long, default_value = "node", value_name = "NAME")]
    prefix: String,
    /// A label of every node; may be given several times.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Same seed, same device UUIDs and start delays.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time between heartbeats of a node, in seconds.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    heartbeat: u64,
    /// Time between samples of what pairs keep of their speed, in seconds.
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    sample: u64,
}

impl Nodes {
    fn spec(self) -> NodeSpec {
        NodeSpec {
            prefix: self.prefix,
            count: self.count,
            gpus: self.gpus,
            gpu_type: self.gpu_type,
            gpu_memory_mib: self.gpu_memory,
            resource: self.resource,
            cpus: self.cpus,
            memory_gib: self.memory,
            pods: self.pods,
            labels: self.labels.into_iter().collect(),
            seed: self.seed,
            heartbeat: Duration::from_secs(self.heartbeat),
            sample: Duration::from_secs(self.sample),
            ..NodeSpec::default()
        }
    }

    /// The same as arguments.
    fn arguments(&self) -> Vec<String> {
        let resource = match self.resource {
            GpuResource::Deepshare => "deepshare",
            GpuResource::Nvidia => "nvidia",
        };
        let mut all = vec![
            format!("--count={}", self.count),
            format!("--gpus={}", self.gpus),
            format!("--type={}", self.gpu_type),
            format!("--gpu-memory={}", self.gpu_memory),
            format!("--resource={resource}"),
            format!("--cpus={}", self.cpus),
            format!("--memory={}", self.memory),
            format!("--pods={}", self.pods),
            format!("--prefix={}", self.prefix),
            format!("--seed={}", self.seed),
            format!("--heartbeat={}", self.heartbeat),
            format!("--sample={}", self.sample),
        ];
        all.extend(self.labels.iter().map(|(key, value)| format!("--label={key}={value}")));
        all
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(Cli::parse().command).await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("deepshare-testbed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<String, Box<dyn std::error::Error>> {
    match command {
        Command::Up { place, version, manifests, kube_scheduler, node_monitor_grace, nodes } => {
            nodes.clone().spec().check()?;
            let options = Options {
                kube_scheduler_qps: kube_scheduler,
                node_monitor_grace: Duration::from_secs(node_monitor_grace),
                ..Options::default()
            };
            let request = Request {
                folder: place.folder()?,
                version: version.kubernetes,
                nodes: nodes.count,
                simulator: nodes.arguments(),
                manifests,
                options,
            };
            Ok(cluster::up(request).await?)
        }
        Command::Build { version } => {
            let assets = Assets::find_or_build(version.kubernetes)?;
            Ok(format!("the programs of Kubernetes are in {}", assets.folder().display()))
        }
        Command::Env { place } => Ok(cluster::environment(&place.folder()?)?),
        Command::Status { place } => Ok(cluster::status(&place.folder()?).await?),
        Command::Down { place } => Ok(cluster::down(&place.folder()?)?),
        Command::Nodes { kubeconfig, nodes } => {
            let client = control_plane::client(&kubeconfig).await?;
            let simulator = NodeSimulator::start(client, nodes.spec()).await?;
            eprintln!("{} nodes are simulated until this is interrupted", simulator.spec().count);
            interrupted().await?;
            Ok(String::new())
        }
    }
}

/// Waits for Ctrl-C or a polite kill.
async fn interrupted() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = tokio::signal::ctrl_c() => done,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_cluster_hands_its_nodes_on_as_arguments() {
        Cli::command().debug_assert();
        let flags = ["--nodes=3", "--resource=nvidia", "--label=a=b", "--seed=7", "--memory=5"];
        let up = Cli::parse_from(["testbed", "up"].into_iter().chain(flags));
        let Command::Up { nodes, .. } = up.command else { panic!("not up") };
        let mut handed =
            vec!["testbed".to_owned(), "nodes".to_owned(), "--kubeconfig=x".to_owned()];
        handed.extend(nodes.arguments());
        let Command::Nodes { nodes: again, .. } = Cli::parse_from(handed).command else {
            panic!("not nodes")
        };
        assert_eq!(format!("{:?}", again.spec()), format!("{:?}", nodes.spec()));
    }
}
