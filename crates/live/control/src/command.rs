//! The command line of `deepshare-scheduler`.

use crate::leadership::Ended;
use crate::process;
use crate::settings::Settings;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Something failed that is not told apart below.
const FAILED: u8 = 1;
/// The command line or the settings make no sense; clap's own, too.
const USAGE: u8 = 2;
/// Leadership was lost.
const LOST: u8 = 3;
/// The API server does not accept our credentials.
const UNAUTHORIZED: u8 = 4;

/// Schedules the pods of a Kubernetes cluster that name it in spec.schedulerName.
///
/// Of several processes with one Lease, one schedules and the others stand by.
#[derive(Parser)]
#[command(
    name = "deepshare-scheduler",
    version,
    after_help = "Exit status: 0 asked to stop, and the \
    Lease was given up; 1 failed; 2 wrong arguments or settings; 3 leadership was lost; 4 the API \
    server does not accept the credentials. Restart it in every case but 2.\n\
    RUST_LOG sets what is logged, as in RUST_LOG=deepshare_control=debug."
)]
struct Args {
    /// Where the API server is, and who we are. By default KUBECONFIG, ~/.kube/config, or the service
    /// account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Settings (docs/kubernetes/settings.md). By default, the defaults.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Log in JSON, a line each.
    #[arg(long)]
    log_json: bool,
}

/// Runs `deepshare-scheduler` with the arguments of this process.
pub fn main() -> ExitCode {
    let args = Args::parse();
    let settings = match args.settings.as_deref().map(Settings::from_file) {
        None => Settings::default(),
        Some(Ok(settings)) => settings,
        Some(Err(problems)) => {
            for problem in &problems {
                eprintln!("error: {problem}");
            }
            return ExitCode::from(USAGE);
        }
    };
    log(args.log_json);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no threads");
            return ExitCode::from(FAILED);
        }
    };
    let ended = runtime.block_on(async {
        let client = process::connect(args.kubeconfig.as_deref()).await?;
        process::run(client, settings, asked_to_stop()?).await
    });
    // What is still in flight must not hold the process up.
    runtime.shutdown_background();
    match ended {
        Ok(Ended::Released) => {
            tracing::info!("asked to stop");
            ExitCode::SUCCESS
        }
        Ok(Ended::Lost(why)) => {
            tracing::error!(why, "leadership was lost: stopping");
            ExitCode::from(LOST)
        }
        Ok(Ended::Unauthorized(why)) => {
            tracing::error!(why, "the API server does not accept our credentials: stopping");
            ExitCode::from(UNAUTHORIZED)
        }
        Err(why) => {
            tracing::error!("{why}");
            ExitCode::from(FAILED)
        }
    }
}

/// Ends when the process is asked to stop.
fn asked_to_stop() -> Result<impl Future<Output = ()> + Send + 'static, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let (mut terminate, mut interrupt) =
        (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn log(json: bool) {
    // The client logs each refused request as an error; what they mean for us is logged where they
    // are handled.
    let default = || EnvFilter::new("info,kube_client=off");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json {
        builder.json().init();
    } else {
        builder.init();
    }
}
