//! The process: settings and credentials, then the Lease, then everything else, then its end.

use crate::api::Api;
use crate::feeds;
use crate::health::{self, Health};
use crate::leadership::{Ended, Keeper, Leadership};
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::retentions::Retentions;
use crate::run_loop::RunLoop;
use crate::settings::Settings;
use crate::writes::{WriterContext, Writers};
use deepshare_engine::Engine;
use deepshare_event_log::{Header, Limits, Writer};
use deepshare_kube_index::{Config, Patience};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// News of the watches that may wait for the engine loop; then the watches wait.
const NEWS: usize = 8_192;
/// Requests in flight may take so long to end before the Lease is given up.
const QUIESCE: Duration = Duration::from_secs(5);

/// Connects to the API server: by this kubeconfig, else as the environment says (`KUBECONFIG`,
/// `~/.kube/config`, or the service account of a pod).
///
/// # Errors
/// What is wrong with the configuration.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<kube::Client, String> {
    let config = match kubeconfig {
        None => kube::Config::infer().await.map_err(|error| error.to_string()),
        Some(path) => {
            let read = kube::config::Kubeconfig::read_from(path);
            let file = read.map_err(|error| format!("{}: {error}", path.display()))?;
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            config.map_err(|error| format!("{}: {error}", path.display()))
        }
    };
    let hint = "give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account";
    let mut config = config.map_err(|error| format!("no API server: {error}; {hint}"))?;
    // Each kind of write has its own rule for trying again.
    config.default_retry = false;
    let url = config.cluster_url.clone();
    kube::Client::try_from(config).map_err(|error| format!("cannot connect to {url}: {error}"))
}

/// Waits for the Lease, schedules while it lasts, and says how it ended. `stop` ends when the
/// process is asked to.
///
/// # Errors
/// If it could not begin: the address to listen on, or the event log.
pub async fn run(
    client: kube::Client,
    settings: Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<Ended, String> {
    let retentions = settings.retentions.as_deref().map(Retentions::from_file).transpose()?;
    let retentions = retentions.unwrap_or_default();
    let (leadership, metrics) = (Leadership::new(), Arc::new(Metrics::default()));
    let health = Arc::new(Health::new(leadership.clone(), metrics.clone()));
    let listener = health::bind(settings.listen).await?;
    tokio::spawn(health::serve(listener, health.clone()));
    let asked = leadership.clone();
    tokio::spawn(async move {
        stop.await;
        asked.end(Ended::Released);
    });

    let (api, identity) = (Api::new(client), identity());
    let lease = (settings.lease.namespace.clone(), settings.lease.name.clone());
    tracing::info!(identity, namespace = lease.0, name = lease.1, "waiting for the Lease");
    let timing = settings.timing();
    let mut keeper = Keeper::new(api.clone(), lease, identity.clone(), timing, leadership.clone());
    keeper.acquire().await;
    if !leadership.holds() {
        return Ok(leadership.ended().await);
    }
    tracing::info!(epoch = leadership.epoch(), "this process leads");
    let keeping = tokio::spawn(async move {
        keeper.keep().await;
        keeper
    });

    let recorder = Recorder::new(event_log(&settings)?, metrics.clone());
    let in_flight = settings.in_flight;
    let context = WriterContext {
        api: api.clone(),
        leadership: leadership.clone(),
        metrics: metrics.clone(),
        scheduler: settings.scheduler.clone(),
        identity,
    };
    let (tell_outcome, outcomes) = mpsc::unbounded_channel();
    let writers = Writers::start(context, |kind| in_flight[kind as usize] as usize, tell_outcome);
    let engine = Engine::new(settings.engine, settings.policy_config().build());
    let config = Config {
        scheduler: settings.scheduler.clone(),
        profiles: retentions.profiles,
        retentions: retentions.table,
        patience: Patience { volumes: settings.volumes, ..Patience::default() },
        ..Config::default()
    };
    let shared = (metrics.clone(), health, leadership.clone());
    let turns = RunLoop::new(engine, config, recorder, writers, shared);
    let (tell_news, news) = mpsc::channel(NEWS);
    feeds::start(&api, &leadership, &metrics, &tell_news);
    drop(tell_news);
    let writers = turns.run(news, outcomes).await;

    let why = leadership.ended().await;
    if why == Ended::Released
        && let Ok(mut keeper) = keeping.await
    {
        // A binding that is still on its way must not arrive under the next leader.
        match writers.quiesce(QUIESCE).await {
            true => keeper.release().await,
            false => tracing::warn!("requests are still in flight: the Lease is left to expire"),
        }
    }
    Ok(why)
}

/// Begins the event log, if there is to be one.
fn event_log(settings: &Settings) -> Result<Option<Writer>, String> {
    let Some(folder) = &settings.log.folder else { return Ok(None) };
    let written_by = format!("deepshare-scheduler {}", env!("CARGO_PKG_VERSION"));
    // Times in the log are those of Unix.
    let header = Header::new(written_by, settings.policy_config(), settings.engine, 0);
    let bytes = |mib: u32| u64::from(mib) << 20;
    let limits = Limits {
        segment_bytes: bytes(settings.log.file_mib),
        max_bytes: bytes(settings.log.max_mib),
        ..Limits::default()
    };
    let log = Writer::create(folder, header, limits);
    log.map(Some).map_err(|error| format!("no event log: {error}; set log.folder to another"))
}

/// A name that no other process has, and that tells people where this one runs.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), since.as_nanos())
}
