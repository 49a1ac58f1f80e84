//! The Lucid artifact's month: Helios Venus, September 2020, job by job.

use super::published::{self, Log, Outcome};
use crate::failure::Failure;
use crate::inputs::{self, Inputs};
use crate::interrupt::Interrupt;
use crate::lucid;
use crate::output::{grouped, json_line, plain_table, with_decimals};
use crate::progress::Progress;
use crate::settings::{self, Assignment, EstimatesFrom, Raw, Settings, TableFrom, TableSettings};
use crate::terminal;
use deepshare_lucid::Sharing;
use deepshare_metrics::{JobRecord, RunRecord, Summary};
use deepshare_model::{Span, Time};
use deepshare_sim::{SimSettings, simulate_all};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A line of the comparison.
struct Case {
    name: &'static str,
    policy: &'static str,
    /// A file of `lucid_venus/`, where the policy has estimates that are not the truth.
    estimates: Option<&'static str>,
    /// A file of `lucid_sim_results/`, where one was published.
    log: Option<&'static str>,
    /// Mean JCT and queueing delay in seconds of DeepShare's Table VI.
    paper: Option<(u32, u32)>,
    /// Of Lucid: when it shares GPUs.
    sharing: Option<Sharing>,
    /// Means that the artifact gives, without their fractions, over orders of simultaneous jobs.
    range: Option<Range>,
}

/// From the least to the greatest mean, in whole seconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Range {
    jct_mean_s: [u32; 2],
    queueing_delay_mean_s: [u32; 2],
}

const CASES: [Case; 8] = [
    Case {
        name: "FIFO",
        policy: "fifo",
        estimates: None,
        log: Some("fifo_consolidate_all_log.csv.zst"),
        paper: Some((64_314, 52_546)),
        sharing: None,
        range: None,
    },
    Case {
        name: "SJF",
        policy: "sjf",
        estimates: None,
        log: Some("sjf_consolidate_all_log.csv.zst"),
        paper: Some((21_094, 9_325)),
        sharing: None,
        range: None,
    },
    Case {
        name: "SRTF",
        policy: "srtf",
        estimates: None,
        log: Some("srtf_consolidate_all_log.csv.zst"),
        paper: None,
        sharing: None,
        range: None,
    },
    Case {
        name: "Tiresias",
        policy: "tiresias",
        estimates: None,
        log: Some("tiresias_consolidate_all_log.csv.zst"),
        paper: Some((14_684, 2_900)),
        sharing: None,
        range: None,
    },
    Case {
        name: "QSSF (EBM)",
        policy: "qssf",
        estimates: Some("Venus_Sept_ebm_weekly_updated.csv"),
        log: Some("qssf_consolidate_all_log.csv.zst"),
        paper: Some((15_550, 3_090)),
        sharing: None,
        range: None,
    },
    Case {
        name: "QSSF (LightGBM)",
        policy: "qssf",
        estimates: Some("Venus_Sept_lgb.csv.zst"),
        log: None,
        paper: None,
        sharing: None,
        range: None,
    },
    Case {
        name: "Lucid, no sharing",
        policy: lucid::POLICY,
        estimates: Some("Venus_Sept_ebm_weekly_updated.csv"),
        log: Some("lucid_consolidate_all_log.csv.zst"),
        paper: None,
        sharing: Some(Sharing::Off),
        range: None,
    },
    Case {
        name: "Lucid",
        policy: lucid::POLICY,
        estimates: Some("Venus_Sept_ebm_weekly_updated.csv"),
        log: None,
        paper: Some((13_877, 1_976)),
        sharing: Some(Sharing::Forecast),
        range: Some(Range { jct_mean_s: [12_885, 12_893], queueing_delay_mean_s: [914, 922] }),
    },
];

#[derive(Serialize)]
struct Document {
    deepshare: &'static str,
    reproduction: &'static str,
    runs: Vec<Shown>,
}

/// Our run beside what was published. Means are in seconds.
#[derive(Serialize)]
struct Shown {
    name: &'static str,
    policy: &'static str,
    estimates: String,
    result_hash: String,
    jct_mean_s: f64,
    queueing_delay_mean_s: f64,
    /// What follows is `null` where nothing was published.
    agreement: Option<Agreement>,
    artifact_jct_mean_s: Option<f64>,
    artifact_queueing_delay_mean_s: Option<f64>,
    /// Where there is no log of one order of simultaneous jobs, but there are means over some.
    artifact_range: Option<Range>,
    within_range: Option<bool>,
    paper_jct_mean_s: Option<u32>,
    paper_queueing_delay_mean_s: Option<u32>,
}

/// How many jobs are as published.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Agreement {
    jobs: usize,
    start: usize,
    end: usize,
    queue: usize,
    preemptions: usize,
    /// All four.
    every: usize,
}

/// Runs the command.
///
/// # Errors
/// If the data are not there, or a job is not as published.
pub fn run(data: Option<&Path>, json: bool) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let data = folder(data)?;
    let settings = settings_of(&data, None);
    let inputs = inputs::load(&settings)?;
    let records = records(&data, &inputs, &interrupt)?;
    let mut shown = Vec::new();
    for (case, record) in CASES.iter().zip(&records) {
        let path = case.log.map(|log| data.join("lucid_sim_results").join(log));
        let log = path.as_deref().map(published::read).transpose()?;
        shown.push(Shown::of(case, record, log.as_ref(), &inputs));
    }
    let text = if json { document(shown) } else { table(&shown) };
    terminal::print(&text.0)?;
    match text.1 {
        Differing { jobs: 0, means: 0 } => Ok(()),
        Differing { jobs, means: 0 } => {
            Err(Failure::Differs(format!("{jobs} jobs are not as in the published logs")))
        }
        Differing { jobs, means } => Err(Failure::Differs(format!(
            "{jobs} jobs are not as in the published logs, and the means of {means} policies are \
             not within the published range"
        ))),
    }
}

/// Our run of every case.
fn records(data: &Path, inputs: &Inputs, interrupt: &Interrupt) -> Result<Vec<RunRecord>, Failure> {
    let mut runs: Vec<SimSettings> = Vec::new();
    let mut outside = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        let mut settings = settings_of(data, case.estimates);
        settings.policies = vec![case.policy];
        match case.sharing {
            None => runs.extend(inputs::runs(&settings, inputs)?),
            Some(sharing) => {
                outside.push((at, lucid::run(&settings, inputs, sharing)?));
            }
        }
    }
    let jobs = (inputs.trace.jobs.len() * runs.len()) as u64;
    let _progress = Progress::show(&interrupt.watch, jobs, true);
    let mut records = simulate_all(&inputs.trace, &inputs.cluster, &runs, &interrupt.watch)?;
    for (at, record) in outside {
        records.insert(at, record);
    }
    Ok(records)
}

fn folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = given.map(Path::to_owned);
    let folder = folder.or_else(|| std::env::var_os("DEEPSHARE_DATA").map(PathBuf::from));
    let Some(folder) = folder else {
        let what = "the data are not part of this program; name their folder with `--data DIR` \
                    (see `deepshare reproduce venus --help`)";
        return Err(Failure::Usage(what.to_owned()));
    };
    if !folder.join("helios_venus").is_dir() {
        let what = format!("{} has no folder helios_venus; give the data folder", folder.display());
        return Err(Failure::Usage(what));
    }
    Ok(folder)
}

/// The artifact's settings, with estimates from a file of `lucid_venus/`.
fn settings_of(data: &Path, estimates: Option<&str>) -> Settings {
    let venus = data.join("helios_venus");
    let file = |name: &str| venus.join(name).display().to_string();
    let assign = |name: &str, value: String| Assignment {
        key: settings::find_key(name).expect("it is in the table"),
        value: Raw::text(&value),
        place: name.to_owned(),
    };
    let mut settings = Settings::of(&[
        assign("compat", "lucid".to_owned()),
        assign("capacity", "partition".to_owned()),
        assign("trace.file", file("venus_sept2020_jobs.csv.zst")),
        assign("trace.order_file", file("venus_sept2020_trace_order.csv.zst")),
        assign("cluster.file", file("vc_config.csv")),
    ])
    .expect("these settings are sound");
    let venus = data.join("lucid_venus");
    if let Some(name) = estimates {
        settings.estimates = EstimatesFrom::File(venus.join(name));
    }
    settings.tables = TableSettings {
        profiles: Some(venus.join("venus_sept2020_profiles.csv.zst")),
        configurations: None,
        pairs: Some(TableFrom::File(venus.join("colocate_info.csv"))),
        workloads: Some(venus.join("single_data.csv")),
        forecast: Some(venus.join("Venus_throughput_pred.csv")),
        pairs_gpu: None,
    };
    settings
}

impl Shown {
    fn of(case: &Case, record: &RunRecord, log: Option<&Log>, inputs: &Inputs) -> Shown {
        let summary = Summary::of(record, &inputs.trace.tenants);
        let mean = |figure: &str| summary.value(figure).as_f64().unwrap_or(f64::NAN);
        let means = [mean("jct_mean_s"), mean("queueing_delay_mean_s")];
        Shown {
            name: case.name,
            policy: case.policy,
            estimates: summary.estimates.clone(),
            result_hash: summary.result_hash.clone(),
            jct_mean_s: means[0],
            queueing_delay_mean_s: means[1],
            agreement: log.map(|log| Agreement::of(record, log, inputs)),
            artifact_jct_mean_s: log.map(|log| log.jct_mean_s),
            artifact_queueing_delay_mean_s: log.map(|log| log.delay_mean_s),
            artifact_range: case.range,
            within_range: case.range.map(|range| range.holds(means)),
            paper_jct_mean_s: case.paper.map(|paper| paper.0),
            paper_queueing_delay_mean_s: case.paper.map(|paper| paper.1),
        }
    }
}

impl Range {
    /// True if both means are in it, their fractions aside.
    fn holds(&self, [jct, delay]: [f64; 2]) -> bool {
        let within = |mean: f64, [least, most]: [u32; 2]| {
            (f64::from(least)..=f64::from(most)).contains(&mean.trunc())
        };
        within(jct, self.jct_mean_s) && within(delay, self.queueing_delay_mean_s)
    }

    fn show(&self) -> String {
        let ends = |[least, most]: [u32; 2]| {
            format!("{}-{}", grouped(f64::from(least)), grouped(f64::from(most)))
        };
        format!("{} / {}", ends(self.jct_mean_s), ends(self.queueing_delay_mean_s))
    }
}

impl Agreement {
    fn of(record: &RunRecord, log: &Log, inputs: &Inputs) -> Agreement {
        let mut agreement = Agreement { jobs: log.outcomes.len(), ..Agreement::default() };
        for (job, ours) in inputs.trace.jobs.iter().zip(&record.jobs) {
            let Some(theirs) = log.outcomes.get(&job.id) else { continue };
            let Some(ours) = outcome(ours) else { continue };
            agreement.start += usize::from(ours.start_s == theirs.start_s);
            agreement.end += usize::from(ours.end_s == theirs.end_s);
            agreement.queue += usize::from(ours.queue_s == theirs.queue_s);
            agreement.preemptions += usize::from(ours.preemptions == theirs.preemptions);
            agreement.every += usize::from(ours == *theirs);
        }
        agreement
    }
}

/// In whole seconds; `None` if it has not ended or something is not whole, as nothing published
/// equals that.
fn outcome(record: &JobRecord) -> Option<Outcome> {
    let whole = |micros: u64| micros.is_multiple_of(1_000_000).then_some(micros / 1_000_000);
    let instant = |time: Option<Time>| time.and_then(|time| whole(time.0));
    let Span(waited) = record.waited;
    Some(Outcome {
        start_s: instant(record.first_start)?,
        end_s: instant(record.end)?,
        queue_s: whole(waited)?,
        preemptions: u64::from(record.preemptions),
    })
}

/// What is not as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Differing {
    jobs: usize,
    /// Policies whose means are out of range.
    means: usize,
}

impl Differing {
    fn of(runs: &[Shown]) -> Differing {
        let agreements = runs.iter().filter_map(|run| run.agreement);
        Differing {
            jobs: agreements.map(|of| of.jobs - of.every).sum(),
            means: runs.iter().filter(|run| run.within_range == Some(false)).count(),
        }
    }
}

/// The text and what differs.
fn document(runs: Vec<Shown>) -> (String, Differing) {
    let differing = Differing::of(&runs);
    let deepshare = env!("CARGO_PKG_VERSION");
    (json_line(&Document { deepshare, reproduction: "venus", runs }), differing)
}

/// A share, rounded down, so that only all is 100%.
fn percent(count: usize, all: usize) -> String {
    if count == all {
        return "100%".to_owned();
    }
    let hundredths = count * 10_000 / all.max(1);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

fn table(runs: &[Shown]) -> (String, Differing) {
    let row = |run: &Shown| {
        let share = |count: fn(&Agreement) -> usize| {
            run.agreement.map_or_else(|| "-".to_owned(), |of| percent(count(&of), of.jobs))
        };
        let pair = |jct: Option<f64>, delay: Option<f64>, decimals: usize| {
            jct.zip(delay).map_or_else(
                || "-".to_owned(),
                |(jct, delay)| {
                    format!("{} / {}", with_decimals(jct, decimals), with_decimals(delay, decimals))
                },
            )
        };
        vec![
            run.name.to_owned(),
            share(|of| of.start),
            share(|of| of.end),
            share(|of| of.queue),
            share(|of| of.preemptions),
            pair(Some(run.jct_mean_s), Some(run.queueing_delay_mean_s), 1),
            run.artifact_range.map_or_else(
                || pair(run.artifact_jct_mean_s, run.artifact_queueing_delay_mean_s, 1),
                |range| range.show(),
            ),
            pair(
                run.paper_jct_mean_s.map(f64::from),
                run.paper_queueing_delay_mean_s.map(f64::from),
                0,
            ),
        ]
    };
    let header = [
        "",
        "start",
        "end",
        "queue",
        "pre-\nemptions",
        "ours\nJCT / delay, s",
        "artifact's logs\nJCT / delay, s",
        "paper\nJCT / delay, s",
    ];
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let jobs = runs.iter().filter_map(|run| run.agreement).map(|of| of.jobs).max().unwrap_or(0);
    let text = format!(
        "Helios Venus, September 2020, compat lucid; share of {jobs} jobs equal to the second, and \
         means\n\n{}",
        plain_table(&header, &rows, 1, 2)
    );
    (text, Differing::of(runs))
}
