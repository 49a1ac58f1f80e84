//! CPU time of a month's replay under every policy.

use cpu_time::ProcessTime;
use deepshare_model::Span;
use deepshare_policies::PolicyConfig;
use deepshare_sim::{Estimator, SimError, SimSettings, Watch, compat, simulate};
use deepshare_trace::generate::{GeneratorOptions, venus_like};
use deepshare_trace::{Cluster, Trace, TraceError, read_estimates, read_venus_month};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// User CPU seconds that the Lucid artifact's simulator (ASPLOS '23) takes for the same month, by
/// policy, as measured for this project in CPython on two cores: figures of another day and program
/// run, which say how the two compare to a digit, not to a percent.
const ARTIFACT_CPU_S: [(&str, f64); 5] =
    [("fifo", 880.0), ("sjf", 665.0), ("srtf", 717.0), ("qssf", 757.0), ("tiresias", 511.0)];

/// Most CPU seconds of one replay, and least ratio to the artifact's, that the project promises.
const BAR: (f64, f64) = (1.0, 500.0);

/// What to measure.
pub struct Options {
    /// Replays of each case; the median counts.
    pub runs: u32,
    /// The folder with the real month.
    pub data: Option<PathBuf>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file of the data folder cannot be used.
    #[error("{0}; is it the data folder?")]
    Data(#[from] TraceError),
    /// A replay failed.
    #[error("the replay under {policy} failed: {why}")]
    Replay {
        /// The policy.
        policy: String,
        /// What went wrong.
        why: SimError,
    },
}

struct Month {
    name: &'static str,
    trace: Trace,
    cluster: Cluster,
    /// Estimates of QSSF in the published run.
    published: Option<Estimator>,
}

/// A Markdown table, one line for each month, policy and settings.
///
/// # Errors
/// See [`BenchError`].
pub fn table(options: &Options) -> Result<String, BenchError> {
    let mut text = String::from(
        "| month | settings | policy | estimates | CPU s | from | to | jobs / CPU s \
         | Lucid artifact, CPU s | ratio |\n\
         | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut reading = String::new();
    let mut missed = Vec::new();
    if let Some(data) = &options.data {
        let begin = ProcessTime::now();
        let month = real_month(data)?;
        let seconds = begin.elapsed().as_secs_f64();
        say(&mut reading, format!("Reading the real month's files took {seconds:.3} CPU s"));
        missed.extend(rows(&month, options, &mut text)?);
    }
    let begin = ProcessTime::now();
    let (trace, cluster) = venus_like(0, &GeneratorOptions::default());
    let seconds = begin.elapsed().as_secs_f64();
    let verb = if reading.is_empty() { "Generating" } else { ", generating" };
    say(&mut reading, format!("{verb} the built-in one {seconds:.3} CPU s.\n"));
    let month = Month { name: "built-in", trace, cluster, published: None };
    missed.extend(rows(&month, options, &mut text)?);
    let (seconds, ratio) = BAR;
    let judged = match missed.is_empty() {
        true => "met by every line".to_owned(),
        false => format!("missed by {}", missed.join(", ")),
    };
    let bar = format!("Bar: at most {seconds} CPU s, at least {ratio}× less than the artifact");
    Ok(format!("{text}\n{bar}: {judged}.\n\n{reading}"))
}

fn say(text: &mut String, more: impl std::fmt::Display) {
    write!(text, "{more}").expect("writing to a string cannot fail");
}

fn real_month(data: &Path) -> Result<Month, BenchError> {
    let (trace, cluster) = read_venus_month(data)?;
    let name = "Venus_Sept_ebm_weekly_updated.csv";
    let negative = Some(compat::LUCID_NEGATIVE_ESTIMATE);
    let read = read_estimates(&data.join("lucid_venus").join(name), &trace, negative)?;
    let values: Arc<[Span]> = Arc::from(read.values);
    let published = Some(Estimator::Given { name: "EBM file".to_owned(), values });
    Ok(Month { name: "Venus", trace, cluster, published })
}

/// Measures every policy with default settings, and the artifact's five as it has them. Returns
/// the names of those that miss the bar.
fn rows(month: &Month, options: &Options, text: &mut String) -> Result<Vec<String>, BenchError> {
    let mut missed = Vec::new();
    let mut measure = |label: &str, settings: &SimSettings| -> Result<(), BenchError> {
        if !row(month, label, settings, options.runs, text)? {
            missed.push(format!("{} {label} {}", month.name, settings.policy.name()));
        }
        Ok(())
    };
    for name in PolicyConfig::NAMES {
        let policy = PolicyConfig::by_name(name).expect("its own list of names");
        let mut settings = SimSettings::new(policy);
        if name == "qssf" {
            settings.estimates = Estimator::RunningMean;
        }
        measure("default", &settings)?;
    }
    for (name, _) in ARTIFACT_CPU_S {
        let policy = PolicyConfig::by_name(name).expect("the artifact's policies are ours, too");
        let mut settings = SimSettings::new(policy);
        compat::lucid(&mut settings);
        match &month.published {
            Some(published) if name == "qssf" => settings.estimates = published.clone(),
            _ if name == "qssf" => settings.estimates = Estimator::RunningMean,
            _ => {}
        }
        measure("compat=lucid", &settings)?;
    }
    Ok(missed)
}

/// Measures one case. True if it meets the bar.
fn row(
    month: &Month,
    label: &str,
    settings: &SimSettings,
    runs: u32,
    text: &mut String,
) -> Result<bool, BenchError> {
    let policy = settings.policy.name();
    let mut seconds = Vec::new();
    for _ in 0..runs {
        let begin = ProcessTime::now();
        let run = simulate(&month.trace, &month.cluster, settings, &Watch::default());
        let elapsed = begin.elapsed().as_secs_f64();
        run.map_err(|why| BenchError::Replay { policy: policy.to_owned(), why })?;
        seconds.push(elapsed);
    }
    seconds.sort_by(f64::total_cmp);
    let (least, median, most) =
        (seconds[0], seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    let rate = month.trace.jobs.len() as f64 / median;
    let artifact = ARTIFACT_CPU_S.iter().find(|(name, _)| *name == policy);
    let artifact = artifact.filter(|_| month.published.is_some());
    let beside = match artifact {
        Some((_, theirs)) => format!("{theirs:.0} | {:.0}×", theirs / median),
        None => "– | –".to_owned(),
    };
    let (name, estimates) = (month.name, settings.estimates.name());
    let numbers = format!("{median:.3} | {least:.3} | {most:.3} | {rate:.0}");
    say(text, format!("| {name} | {label} | {policy} | {estimates} | {numbers} | {beside} |\n"));
    let fast = artifact.is_none_or(|(_, theirs)| theirs / median >= BAR.1);
    Ok(fast && median <= BAR.0)
}
