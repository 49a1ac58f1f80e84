//! `deepshare-cluster-bench`: DeepShare beside kube-scheduler on one control plane, in one run.
//!
//! The API server's audit log is the clock for both, client limits are lifted on both, and what was
//! bound is checked against the nodes' devices afterwards.

mod audit;
mod check;
mod fill;
mod ground;
mod process;
mod reclaim;
mod report;
mod restart;
mod singles;

use clap::Parser;
use ground::{Contender, Ground};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Any error: the person at the terminal is told, and nothing is done about it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures deepshare-scheduler beside kube-scheduler on one control plane of this machine. Prints
/// tables in Markdown; what is going on goes to standard error.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// The scheduler's program.
    #[arg(long, default_value = "target/release/deepshare-scheduler", value_name = "FILE")]
    scheduler: PathBuf,
    /// Nodes of eight GPUs to fill, and to reclaim on.
    #[arg(long, default_value_t = 500)]
    nodes: usize,
    /// How often each fills them.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Pods, one at a time, in each run.
    #[arg(long, default_value_t = 100)]
    singles: usize,
    /// How often a gang reclaims its quota.
    #[arg(long, default_value_t = 5)]
    reclaims: usize,
    /// Nodes of the cluster on which the scheduler is restarted; 0: leave that out.
    #[arg(long, default_value_t = 2_000)]
    large_nodes: usize,
    /// Its pods, those that wait included.
    #[arg(long, default_value_t = 20_000)]
    large_pods: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(&Cli::parse()).await {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("deepshare-cluster-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(cli: &Cli) -> Result<String, Failure> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    if cli.large_nodes > 0 && cli.large_pods <= cli.large_nodes * check::GPUS as usize {
        return Err("--large-pods: somebody has to wait; ask for more pods than GPUs".into());
    }
    let mut ground = Ground::new(&cli.scheduler, root).await?;
    let mut report = report::Report { kubernetes: ground.kubernetes(), ..Default::default() };
    let gpus = cli.nodes * check::GPUS as usize;
    ground.quota(gpus).await?;
    let simulator = ground.nodes(cli.nodes).await?;
    // Silent nodes: kubelets would compete for the cores with what is measured.
    drop(simulator);
    for run in 0..cli.runs {
        let mut order = Contender::ALL;
        // Neither always goes first.
        order.rotate_left(run % 2);
        for by in order {
            eprintln!("run {run}: {} fills {} nodes", by.program(), cli.nodes);
            report.fills.push(fill::fill(&mut ground, by, gpus).await?);
        }
        for by in order {
            eprintln!("run {run}: {} gets one pod at a time", by.program());
            report.singles.push((by, singles::singles(&mut ground, by, cli.singles).await?));
        }
    }
    let simulator = ground.nodes(cli.nodes).await?;
    eprintln!("gangs reclaim their quota");
    report.reclaims = reclaim::reclaims(&mut ground, cli.nodes, cli.reclaims).await?;
    simulator.remove().await?;
    if cli.large_nodes > 0 {
        eprintln!("{} nodes and {} pods", cli.large_nodes, cli.large_pods);
        ground.quota(cli.large_pods).await?;
        drop(ground.nodes(cli.large_nodes).await?);
        let restart = restart::restart(&mut ground, cli.large_nodes, cli.large_pods).await?;
        report.restart = Some(restart);
    }
    report.replayed = ground.replay()?;
    Ok(report.markdown())
}
