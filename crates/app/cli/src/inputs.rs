//! From settings to what a simulation takes: the jobs, the cluster, and settings for each policy.

use crate::failure::Failure;
use crate::history;
use crate::settings::{Capacity, ClassesFrom, EstimatesFrom, GenerateSettings, Preset, Settings};
use crate::sharing;
use deepshare_engine::CapacityMode;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Classes, Estimator, OutageModel, Outages, SimSettings, read_outages};
use deepshare_trace::generate::{GeneratorOptions, SCALE_JOBS, scale, testbed, venus_like};
use deepshare_trace::{
    Cluster, ClusterOptions, ReadOptions, Trace, read_cluster, read_estimates, read_trace,
};
use std::path::Path;
use std::sync::Arc;

/// Share of best-effort jobs if none is given, thousandths.
const USUAL_BEST_EFFORT_MILLI: u32 = 400;

/// What a simulation takes beside settings.
pub struct Inputs {
    /// The jobs.
    pub trace: Trace,
    /// The machines.
    pub cluster: Cluster,
}

/// Reads, or generates, what the settings name.
///
/// # Errors
/// If a file cannot be used.
pub fn load(settings: &Settings) -> Result<Inputs, Failure> {
    if let Some(log) = &settings.trace.log {
        return history::load(log, settings);
    }
    let (Some(trace), Some(cluster)) = (&settings.trace.file, &settings.cluster.file) else {
        let (trace, cluster) = generated(&settings.generate, settings.seed());
        return Ok(Inputs { trace, cluster });
    };
    let cluster = cluster_of(cluster, settings)?;
    let named = !cluster.tenants.is_empty();
    let options = ReadOptions {
        format: settings.trace.format,
        time_unit: settings.trace.time_unit,
        times: settings.trace.times.clone(),
        known_tenants: named.then(|| cluster.tenant_names()),
        known_gpu_types: cluster.gpu_types.clone(),
        order: settings.trace.order_file.clone(),
        ..ReadOptions::default()
    };
    let trace = read_trace(trace, &options)?;
    Ok(Inputs { trace, cluster })
}

/// Reads the cluster of a file.
///
/// # Errors
/// If it cannot be used.
pub fn cluster_of(file: &Path, settings: &Settings) -> Result<Cluster, Failure> {
    let per_node = u32::try_from(settings.cluster.gpus_per_node);
    let options = ClusterOptions { gpus_per_node: per_node.expect("settings allow at most 64") };
    Ok(read_cluster(file, options)?)
}

/// The history that needs no file. Its numbers are within the limits of settings.
pub fn generated(generate: &GenerateSettings, seed: u64) -> (Trace, Cluster) {
    let small = |number: u64| u32::try_from(number).expect("settings keep it in range");
    let jobs = generate.jobs.map(small);
    match generate.preset {
        Preset::Testbed => testbed(seed),
        Preset::Scale => scale(seed, jobs.unwrap_or(SCALE_JOBS)),
        Preset::Venus => {
            let usual = GeneratorOptions::default();
            let options = generate.days.map_or(usual, |days| GeneratorOptions::days(small(days)));
            let jobs = jobs.unwrap_or(options.jobs);
            venus_like(seed, &GeneratorOptions { jobs, ..options })
        }
    }
}

/// A policy's capacity mode: as said, or as policy and cluster suggest.
fn capacity(settings: &Settings, policy: &PolicyConfig, cluster: &Cluster) -> CapacityMode {
    let borrows = matches!(policy, PolicyConfig::ElasticQuota {} | PolicyConfig::DeepShare(_));
    let quotas = || cluster.tenants.iter().any(|tenant| tenant.quota.total() > 0);
    match settings.capacity {
        Capacity::Mode(mode) => mode,
        Capacity::Auto if borrows && quotas() => CapacityMode::Elastic,
        Capacity::Auto if borrows => CapacityMode::Pool,
        Capacity::Auto if cluster.nodes.iter().all(|node| node.tenant.is_some()) => {
            CapacityMode::Partition
        }
        Capacity::Auto if !cluster.tenants.is_empty() => CapacityMode::Hard,
        Capacity::Auto => CapacityMode::Pool,
    }
}

/// The capacity mode, if it is the same for every policy.
pub fn one_capacity(runs: &[SimSettings]) -> Option<CapacityMode> {
    let mode = runs.first()?.engine.capacity;
    runs.iter().all(|run| run.engine.capacity == mode).then_some(mode)
}

/// The simulator's settings for every policy asked for.
///
/// # Errors
/// If a file of estimates or outages cannot be used.
pub fn runs(settings: &Settings, inputs: &Inputs) -> Result<Vec<SimSettings>, Failure> {
    let outages = outages(settings, &inputs.cluster)?;
    let mut runs: Vec<SimSettings> =
        settings.policies.iter().map(|name| settings.run(name).clone()).collect();
    let given = match &settings.estimates {
        // Read even if no policy of this run uses it: a wrong file should be said at once.
        EstimatesFrom::File(path) => Some(given(path, settings, &inputs.trace)?),
        _ => None,
    };
    let interference = sharing::interference(settings, inputs, &runs)?;
    let forecast = sharing::forecast(settings, &inputs.trace)?;
    for run in &mut runs {
        run.interference = interference.clone();
        if let (PolicyConfig::Lucid(own), Some((from, rows))) = (&mut run.policy, &forecast) {
            (own.forecast_from, own.forecast_milli) = (*from, rows.clone());
        }
        run.engine.capacity = capacity(settings, &run.policy, &inputs.cluster);
        run.classes = classes(settings);
        run.outages = outages.clone();
        if run.policy.uses_estimates() {
            run.estimates = estimator(&settings.estimates, run.policy.name(), given.as_ref());
        }
    }
    Ok(runs)
}

fn classes(settings: &Settings) -> Classes {
    match settings.classes {
        ClassesFrom::Trace => Classes::AsGiven,
        ClassesFrom::Coin => Classes::Coin {
            best_effort_milli: settings.best_effort_milli.unwrap_or(USUAL_BEST_EFFORT_MILLI),
        },
        ClassesFrom::Overflow => Classes::Overflow,
    }
}

fn estimator(from: &EstimatesFrom, policy: &str, given: Option<&Estimator>) -> Estimator {
    match (from, given) {
        (EstimatesFrom::Default, _) if matches!(policy, "qssf" | "lucid" | "deepshare") => {
            Estimator::RunningMean
        }
        (EstimatesFrom::RunningMean, _) => Estimator::RunningMean,
        (EstimatesFrom::File(_), Some(given)) => given.clone(),
        _ => Estimator::Oracle,
    }
}

fn given(path: &Path, settings: &Settings, trace: &Trace) -> Result<Estimator, Failure> {
    let read = read_estimates(path, trace, settings.negative_estimate)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).display().to_string();
    Ok(Estimator::Given { name, values: Arc::from(read.values) })
}

fn outages(settings: &Settings, cluster: &Cluster) -> Result<Outages, Failure> {
    let outages = &settings.outages;
    if let Some(path) = &outages.file {
        return Ok(Outages::Listed(read_outages(path, cluster)?));
    }
    Ok(match (outages.mean_up, outages.mean_down) {
        (Some(mean_up), Some(mean_down)) => Outages::Drawn(OutageModel { mean_up, mean_down }),
        _ => Outages::None,
    })
}
