//! A trace, a cluster and the artifact's tables, joined and checked.

use crate::cluster::NODE_GPUS;
use crate::error::LucidError;
use crate::forecast::{Forecast, ROW_S, seconds_between};
use crate::scores::{self, Scores};
use deepshare_interference::{PairTable, ProfilesFile, Workload};
use deepshare_model::Span;
use deepshare_trace::tables::quote;
use deepshare_trace::{Cluster, Problem, Problems, Trace};
use jiff::civil::DateTime;
use std::collections::BTreeMap;

const DAY_S: u64 = 86_400;
const MICROS: u64 = 1_000_000;
/// Longest duration accepted, seconds: three years.
const MAX_DURATION_S: u64 = 100_000_000;
/// Least speed accepted beside another job, as a share of the speed alone.
const SLOWEST: f64 = 0.05;

/// Speeds of pairs of workloads by position, as fractions of those alone.
type Speeds = BTreeMap<(usize, usize), (f64, f64)>;

/// The artifact's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// What jobs compute.
    pub profiles: ProfilesFile,
    /// Speeds of pairs.
    pub pairs: PairTable,
    /// Sharing scores.
    pub scores: Scores,
    /// Forecast arrivals.
    pub forecast: Forecast,
}

/// Everything that the artifact is given, in its own terms.
#[derive(Clone, Debug, PartialEq)]
pub struct LucidInputs {
    /// Jobs in trace order.
    pub jobs: Vec<LucidJob>,
    /// Virtual clusters, in the order of the cluster file.
    pub vcs: Vec<LucidVc>,
    /// What jobs compute; jobs name them by position.
    pub workloads: Vec<Workload>,
    /// Speeds of pairs of workloads, by position and as the file has them.
    pub speeds: BTreeMap<(usize, usize), (f64, f64)>,
    /// The file of pairs as it was named.
    pub pairs_file: String,
    /// Forecast arrivals.
    pub forecast: Forecast,
    /// When the clock starts, seconds on the trace's clock: a whole number of days, not after the
    /// first job.
    pub start_s: u64,
    /// Time of the forecast's first row, seconds on the trace's clock.
    pub forecast_start_s: i64,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LucidJob {
    /// Its name in the trace.
    pub id: String,
    /// Its line in the trace.
    pub row: u64,
    /// Position of its virtual cluster.
    pub vc: usize,
    /// GPUs.
    pub gpus: u32,
    /// Submission, seconds on the trace's clock.
    pub submit_s: u64,
    /// Seconds of work alone, at least 1.
    pub duration_s: u64,
    /// Estimated seconds of work.
    pub estimate: Span,
    /// Position of what it computes.
    pub workload: usize,
    /// Its sharing score.
    pub score: u32,
    /// GPU memory on each GPU, MiB.
    pub memory_mib: u32,
}

impl LucidJob {
    /// Its priority value, lower first: estimated GPU time.
    pub(crate) fn priority(&self) -> u128 {
        self.estimate.on(self.gpus).0
    }
}

/// A virtual cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LucidVc {
    /// Its name.
    pub name: String,
    /// Its nodes of 8 GPUs.
    pub nodes: u32,
}

impl LucidInputs {
    /// Joins a trace with a cluster, the artifact's tables and an estimate for each job.
    ///
    /// # Errors
    /// If a job has no profile or score, runs or comes at a fraction of a second, which the
    /// artifact would wait for without end, or the forecast is for another time than the trace.
    ///
    /// # Panics
    /// If there are not as many estimates as jobs.
    pub fn new(
        trace: &Trace,
        cluster: &Cluster,
        tables: Tables,
        estimates: &[Span],
    ) -> Result<LucidInputs, LucidError> {
        assert_eq!(trace.jobs.len(), estimates.len(), "one estimate a job");
        let vcs = virtual_clusters(cluster)?;
        check_times(trace, &vcs)?;
        let mut join = Join::new(&tables);
        let mut jobs = Vec::with_capacity(trace.jobs.len());
        for (job, &estimate) in trace.jobs.iter().zip(estimates) {
            let Some((workload, score, memory_mib)) = join.of(&job.id) else { continue };
            jobs.push(LucidJob {
                id: job.id.clone(),
                row: job.row,
                vc: job.tenant.index(),
                gpus: job.gpus,
                submit_s: job.submit.0 / MICROS,
                duration_s: job.duration.0 / MICROS,
                estimate,
                workload,
                score,
                memory_mib,
            });
        }
        let workloads = join.finish()?;
        let start_s = jobs.first().map_or(0, |job| job.submit_s / DAY_S * DAY_S);
        let forecast_start_s = place_forecast(&tables.forecast, trace, start_s)?;
        Ok(LucidInputs {
            speeds: speeds(&tables.pairs, &workloads)?,
            pairs_file: tables.pairs.file,
            jobs,
            vcs,
            workloads,
            forecast: tables.forecast,
            start_s,
            forecast_start_s,
        })
    }
}

fn virtual_clusters(cluster: &Cluster) -> Result<Vec<LucidVc>, LucidError> {
    let names = cluster.tenants.iter().map(|tenant| tenant.name.clone());
    let mut vcs: Vec<LucidVc> = names.map(|name| LucidVc { name, nodes: 0 }).collect();
    for node in &cluster.nodes {
        let vc = node.tenant.and_then(|tenant| vcs.get_mut(tenant.index()));
        let Some(vc) = vc.filter(|_| node.gpus == NODE_GPUS) else {
            let what = match node.tenant {
                None => format!("node {} belongs to no tenant", node.name),
                Some(_) => format!("node {} has {}", node.name, node.gpus),
            };
            return Err(LucidError::Cluster(format!("{what}; give a vc_config.csv")));
        };
        vc.nodes += 1;
    }
    Ok(vcs)
}

/// Times must be whole seconds: the artifact compares them with a clock that ticks once a second.
fn check_times(trace: &Trace, vcs: &[LucidVc]) -> Result<(), LucidError> {
    let mut problems = Problems::of(&trace.report.file);
    let remedy = "give whole seconds, or leave the job out";
    for job in &trace.jobs {
        let mut wrong = |what: &str| {
            problems.push(Problem::at(job.row, format!("job {} {what}", quote(&job.id)), remedy));
        };
        if job.submit.0 % MICROS != 0 {
            wrong("is submitted at a fraction of a second, and the artifact never sees it");
        }
        if job.duration.is_zero() {
            wrong("runs for no time, and the artifact waits for its end for ever");
        } else if job.duration.0 % MICROS != 0 {
            wrong("runs for a fraction of a second, and the artifact never sees its end");
        } else if job.duration.0 / MICROS > MAX_DURATION_S {
            wrong("runs for more than three years");
        }
        if job.tenant.index() >= vcs.len() {
            wrong("is of no virtual cluster of the cluster file");
        }
    }
    Ok(problems.check()?)
}

/// The time of the forecast's first row on the trace's clock: by date, where the trace has dates,
/// else the start of the clock's first day.
///
/// In the published month the artifact's clock starts with the first job of April, 151 s after
/// midnight, and it takes that for midnight. So does this, for any trace whose clock starts within
/// one row of the forecast from midnight; others have their forecast at its own time.
///
/// # Errors
/// If no job of the trace is submitted in the time of the forecast.
pub fn place_forecast(forecast: &Forecast, trace: &Trace, start_s: u64) -> Result<i64, LucidError> {
    let start = i64::try_from(start_s).unwrap_or(i64::MAX);
    let origin: Option<DateTime> =
        trace.report.origin.as_deref().and_then(|origin| origin.parse().ok());
    let Some(origin) = origin else { return Ok(start) };
    let row = i64::try_from(ROW_S).expect("a row is short");
    let day = i64::try_from(DAY_S).expect("a day is short");
    let into_day = seconds_between(origin.date().at(0, 0, 0, 0), origin);
    let slip = if day - into_day < row { into_day - day } else { into_day };
    let first_s = seconds_between(origin, forecast.first) + if slip < row { slip } else { 0 };
    let last_s = first_s.saturating_add((forecast.rows.len() as u64 * ROW_S) as i64);
    let until = trace.jobs.last().map_or(start_s, |job| job.submit.0 / MICROS);
    if last_s < start || first_s > i64::try_from(until).unwrap_or(i64::MAX) {
        let what = format!(
            "the forecast is from {} on for {} hours, and no job of {} is submitted then",
            forecast.first,
            forecast.rows.len() as u64 * ROW_S / 3_600,
            trace.report.file
        );
        let problems = Problems::of(&forecast.file);
        let problem = Problem::of_file(what, "give the forecast of the trace's own days");
        return Err(problems.fatal(problem).into());
    }
    Ok(first_s)
}

/// Finds what the tables know of jobs, and collects what they lack.
struct Join<'a> {
    tables: &'a Tables,
    numbers: BTreeMap<&'a Workload, usize>,
    without_profile: Vec<String>,
    without_score: BTreeMap<&'a Workload, String>,
}

impl<'a> Join<'a> {
    fn new(tables: &'a Tables) -> Join<'a> {
        Join {
            tables,
            numbers: BTreeMap::new(),
            without_profile: Vec::new(),
            without_score: BTreeMap::new(),
        }
    }

    /// Number and score of a job's workload, and its memory.
    fn of(&mut self, job: &str) -> Option<(usize, u32, u32)> {
        let Some(profile) = self.tables.profiles.of_job.get(job) else {
            self.without_profile.push(quote(job));
            return None;
        };
        let Some(score) = self.tables.scores.of(&profile.workload) else {
            self.without_score.entry(&profile.workload).or_insert_with(|| quote(job));
            return None;
        };
        let next = self.numbers.len();
        let number = *self.numbers.entry(&profile.workload).or_insert(next);
        Some((number, score, profile.memory_mib))
    }

    /// Workloads by number.
    fn finish(self) -> Result<Vec<Workload>, LucidError> {
        if let Some(first) = self.without_profile.first() {
            let count = self.without_profile.len();
            let what = format!("no profile for {count} jobs of the trace, the first {first}");
            let problems = Problems::of(&self.tables.profiles.file);
            return Err(problems.fatal(Problem::of_file(what, "add a row for each")).into());
        }
        let mut problems = Problems::of(&self.tables.scores.file);
        for (workload, job) in self.without_score {
            problems.push(scores::lacking(workload, &format!(", which job {job} computes")));
        }
        problems.check()?;
        let mut by_number: Vec<_> = self.numbers.into_iter().collect();
        by_number.sort_by_key(|&(_, number)| number);
        Ok(by_number.into_iter().map(|(workload, _)| workload.clone()).collect())
    }
}

/// Pairs of workloads that some job has, by number; speeds as measured, also above 1.
///
/// # Errors
/// If one of these pairs is there twice in this order, or is so slow that it would hardly ever end.
fn speeds(pairs: &PairTable, workloads: &[Workload]) -> Result<Speeds, LucidError> {
    let numbers: BTreeMap<&Workload, usize> = workloads.iter().zip(0..).collect();
    let mut problems = Problems::of(&pairs.file);
    let mut found = BTreeMap::new();
    for row in pairs.rows() {
        let (Some(&one), Some(&other)) = (numbers.get(&row.one), numbers.get(&row.other)) else {
            continue;
        };
        let mut wrong = |what: &str, remedy: &str| {
            let what = format!("{} beside {} {what}", row.one, row.other);
            let in_line = Problem::at(row.line, what.clone(), remedy);
            problems.push(if row.line > 0 { in_line } else { Problem::of_file(what, remedy) });
        };
        // Pairs that do not fit into memory were measured at no speed.
        let (of_one, of_other) = row.retention.unwrap_or_default();
        if of_one.min(of_other) < SLOWEST {
            wrong("goes at less than 0.05 of its speed alone", "leave the row out");
        } else if found.insert((one, other), (of_one, of_other)).is_some() {
            wrong("is there a second time", "give one row a pair");
        }
    }
    problems.check()?;
    Ok(found)
}
