//! What jobs that share GPUs do to each other, from the files that settings name or from chance.

use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::settings::{ProfilesFrom, Settings, TableFrom};
use crate::{lucid, terminal};
use deepshare_interference::{
    Assignment, ContentionModel, Coverage, PairOptions, PairTable, PredictionQuality,
    RetentionMatrix, read_configurations, read_pairs, read_profiles,
};
use deepshare_lucid::{place_forecast, read_forecast, read_scores};
use deepshare_model::Time;
use deepshare_sim::{Interference, SharedInterference, SimSettings};
use deepshare_trace::Trace;
use std::sync::Arc;

/// The truth about pairs and what policies are told of it; `None` if nobody shares.
///
/// # Errors
/// If a file cannot be used.
pub fn interference(
    settings: &Settings,
    inputs: &Inputs,
    runs: &[SimSettings],
) -> Result<Option<SharedInterference>, Failure> {
    let tables = &settings.tables;
    let shared = runs
        .iter()
        .any(|run| run.policy.shares() && !lucid::is_artifact(settings, run.policy.name()));
    let given = tables.profiles.is_some() || tables.configurations.is_some();
    if !(given || (shared && settings.sharing.profiles == ProfilesFrom::Drawn)) {
        return Ok(None);
    }
    let assignment = assignment(settings, inputs)?;
    let pairs = pairs(settings)?;
    let (catalogue, mechanism) = (&assignment.catalogue, settings.sharing.mechanism);
    let model = ContentionModel::default();
    let (truth, coverage) = RetentionMatrix::truth(catalogue, pairs.as_ref(), &model, mechanism);
    let (quality, seed) = (quality(settings), settings.seed());
    let (predicted, _) = truth.predicted(quality, seed);
    let mut interference = Interference::new(&assignment, &truth, &predicted);
    interference.predicted.errors_ppm = truth.error_percentiles(quality, seed);
    interference.notes = pairs.iter().map(|pairs| covered(&pairs.file, &coverage)).collect();
    if assignment.averaged > 0 {
        let count = assignment.averaged;
        let note = format!("rows of {count} profiles differ; their means are taken");
        interference.notes.push(note);
    }
    interference.device_memory_mib = settings.sharing.gpu_memory_mib;
    interference.sample_period = settings.sharing.sample_period;
    interference.sample_noise = f64::from(settings.sharing.noise_milli) / 1_000.0;
    if let Some(path) = &tables.workloads {
        interference.predicted.scores = read_scores(path)?.by_class(catalogue)?;
    }
    Ok(Some(Arc::new(interference)))
}

/// What each job runs: as a file says, drawn from a pool, or drawn from the built-in catalogue.
fn assignment(settings: &Settings, inputs: &Inputs) -> Result<Assignment, Failure> {
    let (tables, seed) = (&settings.tables, settings.seed());
    let (trace, cluster) = (&inputs.trace, &inputs.cluster);
    if let Some(path) = &tables.profiles {
        return Ok(Assignment::from_file(&read_profiles(path)?, trace)?);
    }
    let pool = match &tables.configurations {
        Some(TableFrom::Shipped(shipped)) => shipped.configurations()?,
        Some(TableFrom::File(path)) => read_configurations(path)?,
        None => return Ok(Assignment::drawn(trace, seed)),
    };
    let device_mib = settings.sharing.gpu_memory_mib;
    Ok(Assignment::from_pool(&pool, trace, cluster, device_mib, seed)?)
}

/// How good what policies are told is.
fn quality(settings: &Settings) -> PredictionQuality {
    let share = |milli: u32| f64::from(milli) / 1_000.0;
    match (settings.sharing.prediction_mae_milli, settings.sharing.prediction_r2_milli) {
        (Some(mae), _) => PredictionQuality::SlowdownError(share(mae)),
        (None, Some(r_squared)) => PredictionQuality::RSquared(share(r_squared)),
        (None, None) => unreachable!("settings were checked"),
    }
}

/// Measured pairs, if the settings name a file of them.
///
/// # Errors
/// If the file cannot be used.
pub fn pairs(settings: &Settings) -> Result<Option<PairTable>, Failure> {
    let tables = &settings.tables;
    let options = PairOptions { gpu_type: tables.pairs_gpu.clone(), ..PairOptions::default() };
    Ok(match &tables.pairs {
        Some(TableFrom::Shipped(shipped)) => Some(shipped.pairs()?),
        Some(TableFrom::File(path)) => Some(read_pairs(path, &options)?),
        None => None,
    })
}

/// Lucid's forecast on the trace's clock: when its first ten minutes begin, and jobs in each,
/// thousandths.
///
/// # Errors
/// If the file cannot be used, or is of another time than the trace.
pub fn forecast(settings: &Settings, trace: &Trace) -> Result<Option<(Time, Vec<u64>)>, Failure> {
    let Some(path) = &settings.tables.forecast else { return Ok(None) };
    let forecast = read_forecast(path)?;
    let start_s = trace.jobs.first().map_or(0, |job| job.submit.0 / 1_000_000);
    let first_s = place_forecast(&forecast, trace, start_s)?;
    // Rows before the clock's zero have passed.
    let passed = usize::try_from(first_s.min(0).unsigned_abs().div_ceil(600)).unwrap_or(usize::MAX);
    let from_s = first_s + i64::try_from(passed).unwrap_or(0) * 600;
    let milli = |jobs: f64| (jobs.clamp(0.0, 1e9) * 1_000.0).round() as u64;
    let rows = forecast.rows.iter().skip(passed).map(|row| milli(row.jobs)).collect();
    Ok(Some((Time::from_secs(from_s.unsigned_abs()), rows)))
}

/// How much of what is asked a file of pairs answers.
fn covered(file: &str, coverage: &Coverage) -> String {
    let share = 100.0 * coverage.table_share();
    let unfit = coverage.does_not_fit().len();
    let mut text = format!("{share:.1} % of ordered pairs of profiles are in {file}");
    if unfit > 0 {
        text += &format!(
            "; it says of {unfit} pairs that they do not fit into memory: whether they share is \
             decided by the memory of their profiles"
        );
    }
    text
}

/// Says where profiles and slowdowns come from.
pub fn advise(settings: &Settings, runs: &[SimSettings]) {
    let Some(interference) = runs.iter().find_map(|run| run.interference.as_ref()) else { return };
    let classes = interference.classes.len();
    let seed = settings.seed();
    let from = match (&settings.tables.profiles, &settings.tables.configurations) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(pool)) => format!("drawn from {} with seed {seed}", pool.shown()),
        (None, None) => format!("drawn with seed {seed}"),
    };
    let slowdowns = match &settings.tables.pairs {
        Some(pairs) => format!("{}, others by the contention model", pairs.shown()),
        None => "by the contention model".to_owned(),
    };
    for note in &interference.notes {
        terminal::say(&format!("note: {note}"));
    }
    terminal::say(&format!("sharing: {classes} profiles, {from}; slowdowns {slowdowns}"));
}
