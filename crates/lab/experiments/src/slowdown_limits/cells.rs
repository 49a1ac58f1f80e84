//! Runs of a cell and what is counted of them.

use super::queue::{Lengths, guesses};
use super::rivals::{Rival, all};
use super::worlds::{Told, World};
use crate::ExperimentError;
use deepshare_engine::CapacityMode;
use deepshare_metrics::{JobRecord, RunRecord, Summary};
use deepshare_model::Span;
use deepshare_sim::{Estimator, SharedInterference, SimSettings, Watch, simulate};
use deepshare_trace::Trace;
use rayon::prelude::*;

/// Limits of slowdown, thousandths.
pub const LIMITS: [u32; 5] = [1_100, 1_200, 1_300, 1_500, 2_000];
/// Policies that know no limits stand beside the others at this one.
pub const UNLIMITED_AT: u32 = 1_300;
/// Lengths from which on a job is in the next group, s.
pub const LENGTHS_S: [u64; 2] = [1_800, 7_200];
/// A job is over its limit if it is by more than a millionth of it; less is rounding.
const SLACK: f64 = 1e-6;

/// Jobs, and those of them over their limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Jobs.
    pub jobs: u64,
    /// Over their limit.
    pub over: u64,
}

impl Count {
    fn add(&mut self, is_over: bool) {
        self.jobs += 1;
        self.over += u64::from(is_over);
    }

    fn join(self, other: Count) -> Count {
        Count { jobs: self.jobs + other.jobs, over: self.over + other.over }
    }

    /// Per cent over; 0 of none.
    pub fn percent(self) -> f64 {
        100.0 * self.over as f64 / self.jobs.max(1) as f64
    }
}

/// What a run came to under a limit.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Jobs that shared, by time on GPUs.
    pub shared: Count,
    /// The same with the time that they waited after a stop.
    pub shared_requeued: Count,
    /// All jobs, by time on GPUs.
    pub everybody: Count,
    /// The same with waiting after a stop.
    pub everybody_requeued: Count,
    /// Jobs that shared, by [`LENGTHS_S`].
    pub by_length: [Count; 3],
    /// Of jobs that shared and are over their limit, those that were stopped.
    pub over_and_stopped: u64,
    /// Figures of [`FIGURES`], where the run has them.
    pub figures: [Option<f64>; FIGURES.len()],
    /// Times that a job asked for a partner in vain, by reason.
    pub refused: Vec<(String, u64)>,
}

/// Figures that are taken from the registry, and by what they are multiplied.
pub const FIGURES: [(&str, f64); 9] = [
    ("gpu_time_saved", 100.0),
    ("pairs_formed", 1.0),
    ("pairs_revoked", 1.0),
    ("jct_increase_mean", 100.0),
    ("jct_increase_sharing_mean", 100.0),
    ("jct_inconsistency_max_over_min", 1.0),
    ("jct_inconsistency_variation", 1.0),
    ("makespan_s", 1.0 / 3_600.0),
    ("jct_mean_s", 1.0 / 3_600.0),
];

impl Outcome {
    fn of(run: &RunRecord, limit_milli: u32) -> Outcome {
        let limit = f64::from(limit_milli) / 1_000.0 * (1.0 + SLACK);
        let is_over = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio > limit);
        let mut outcome = Outcome { refused: run.pairs.refused.clone(), ..Outcome::default() };
        for job in &run.jobs {
            let over = is_over(job.execution_ratio());
            let requeued = is_over(job.requeueing_ratio());
            outcome.everybody.add(over);
            outcome.everybody_requeued.add(requeued);
            if job.shared.is_zero() {
                continue;
            }
            outcome.shared.add(over);
            outcome.shared_requeued.add(requeued);
            outcome.by_length[length_group(job)].add(over);
            outcome.over_and_stopped += u64::from(over && job.preemptions > 0);
        }
        let summary = Summary::of::<&str>(run, &[]);
        outcome.figures = FIGURES.map(|(name, by)| Some(by * summary.value(name).as_f64()?));
        outcome
    }

    /// A figure of the registry.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let at = FIGURES.iter().position(|(known, _)| *known == name)?;
        self.figures[at]
    }
}

fn length_group(job: &JobRecord) -> usize {
    LENGTHS_S.iter().filter(|&&least| job.duration >= Span::from_secs(least)).count()
}

/// A scheduler under a limit: one outcome a seed.
pub struct Line {
    /// Its name.
    pub name: &'static str,
    /// By seed.
    pub outcomes: Vec<Outcome>,
}

impl Line {
    /// A count over all seeds.
    pub fn count(&self, get: impl Fn(&Outcome) -> Count) -> Count {
        self.outcomes.iter().map(get).fold(Count::default(), Count::join)
    }

    /// Mean of a figure over the seeds that have it.
    pub fn mean(&self, name: &str) -> Option<f64> {
        let values: Vec<f64> = self.outcomes.iter().filter_map(|o| o.figure(name)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// GPU time saved against running every job alone, per cent.
    pub fn saved(&self) -> f64 {
        self.mean("gpu_time_saved").unwrap_or(0.0)
    }
}

/// Every scheduler on one table under one limit.
pub struct Cell {
    /// The limit, thousandths.
    pub limit_milli: u32,
    /// In the order of [`all`].
    pub lines: Vec<Line>,
}

impl Cell {
    /// The line of a name.
    pub fn line(&self, name: &str) -> &Line {
        self.lines.iter().find(|line| line.name == name).expect("a line of every cell")
    }

    /// Part of what a scheduler with the true slowdowns saves, per cent.
    pub fn of_possible(&self, name: &str) -> Option<f64> {
        let possible = self.line(super::rivals::TRUTH).saved();
        (possible > 0.0).then(|| 100.0 * self.line(name).saved() / possible)
    }
}

/// What a seed's runs on one table have in common.
struct Inputs {
    trace: Trace,
    truth: SharedInterference,
    predicted: SharedInterference,
    seed: u64,
}

/// Every cell of a table.
///
/// # Errors
/// If a run fails, or the auditor, which is on in the first seed, finds fault.
pub fn cells(world: &World, lengths: &Lengths, seeds: u64) -> Result<Vec<Cell>, ExperimentError> {
    let inputs = |seed: u64| {
        let trace = lengths.queue(seed);
        let told = |told| world.interference(&trace, told, seed);
        let (truth, predicted) = (told(Told::Truth)?, told(Told::Predicted)?);
        Ok(Inputs { trace, truth, predicted, seed })
    };
    let inputs: Result<Vec<Inputs>, ExperimentError> = (1..=seeds).map(inputs).collect();
    let (inputs, rivals) = (inputs?, all());
    let tasks: Vec<(usize, &Inputs)> =
        (0..rivals.len()).flat_map(|rival| inputs.iter().map(move |of| (rival, of))).collect();
    let done: Result<Vec<Vec<Outcome>>, ExperimentError> =
        tasks.into_par_iter().map(|(rival, of)| outcomes(world, &rivals[rival], of)).collect();
    let done = done?;
    let line = |rival: usize, at: usize| {
        let of_rival = &done[rival * inputs.len()..][..inputs.len()];
        let outcomes = of_rival.iter().map(|by_limit| by_limit[at].clone()).collect();
        Line { name: rivals[rival].name, outcomes }
    };
    let cell = |(at, &limit_milli)| {
        let lines = (0..rivals.len()).map(|rival| line(rival, at)).collect();
        Cell { limit_milli, lines }
    };
    Ok(LIMITS.iter().enumerate().map(cell).collect())
}

/// What a scheduler comes to under each limit.
fn outcomes(world: &World, rival: &Rival, of: &Inputs) -> Result<Vec<Outcome>, ExperimentError> {
    if rival.limited {
        let one = |&limit| Ok(Outcome::of(&run(world, rival, of, limit)?, limit));
        return LIMITS.iter().map(one).collect();
    }
    let run = run(world, rival, of, LIMITS[0])?;
    Ok(LIMITS.iter().map(|&limit| Outcome::of(&run, limit)).collect())
}

fn run(
    world: &World,
    rival: &Rival,
    of: &Inputs,
    limit_milli: u32,
) -> Result<RunRecord, ExperimentError> {
    let mut settings = SimSettings::new(rival.policy(limit_milli));
    settings.engine.capacity = CapacityMode::Pool;
    settings.seed = of.seed;
    settings.audit = of.seed == 1;
    let told = if rival.told == Told::Truth { &of.truth } else { &of.predicted };
    settings.interference = Some(told.clone());
    if let Some(sigma) = rival.size_error {
        let values = guesses(&of.trace, sigma, of.seed).into();
        settings.estimates = Estimator::Given { name: "guesses".to_owned(), values };
    }
    let failed = |why| {
        let limit = f64::from(limit_milli) / 1_000.0;
        let case = format!("{}, limit {limit}, {}", world.name, rival.name);
        ExperimentError::Run { case, seed: of.seed, why: Box::new(why) }
    };
    simulate(&of.trace, &world.cluster(), &settings, &Watch::default()).map_err(failed)
}
