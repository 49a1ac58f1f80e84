//! All runs, and what is compared of them.

use super::jobs::{Windows, at_load};
use super::lines::{Cell, Key};
use super::truth::{Models, Pairs};
use crate::ExperimentError;
use crate::figures::Interval;
use deepshare_metrics::{RunRecord, Summary};
use deepshare_sim::{SharedInterference, Watch, simulate};
use deepshare_trace::{Cluster, ClusterOptions, Trace, read_cluster_from};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Cursor;

/// Sixteen nodes of four GPUs.
const CLUSTER: &str = include_str!("../../../../../examples/training/cluster-64.toml");
/// This seed's runs are checked by the auditor.
const AUDITED: u64 = 1;

/// What the page needs of a run.
pub(super) struct Outcome {
    /// Mean completion time, s.
    pub(super) jct_s: f64,
    /// Mean duration, which nobody's completion time is below, s.
    pub(super) duration_s: f64,
    pub(super) preemptions: u64,
    pub(super) formed: u64,
    pub(super) revoked: u64,
    pub(super) refused: Vec<(String, u64)>,
    pub(super) audited: bool,
}

impl Outcome {
    fn of(run: &RunRecord, trace: &Trace, audited: bool) -> Outcome {
        let summary = Summary::of(run, &trace.tenants);
        Outcome {
            jct_s: summary.value("jct_mean_s").as_f64().expect("every job ends"),
            duration_s: mean_duration_s(trace),
            preemptions: summary.jobs.preemptions,
            formed: run.pairs.formed,
            revoked: run.pairs.revoked,
            refused: run.pairs.refused.clone(),
            audited,
        }
    }
}

fn mean_duration_s(trace: &Trace) -> f64 {
    let sum: f64 = trace.jobs.iter().map(|job| job.duration.as_secs_f64()).sum();
    sum / trace.jobs.len() as f64
}

/// Outcomes by line, each by seed.
pub(super) struct Grid {
    outcomes: BTreeMap<Key, Vec<Outcome>>,
}

impl Grid {
    /// Runs everything, cell by cell on all cores.
    ///
    /// # Errors
    /// If a run fails.
    pub(super) fn run(windows: &Windows, seeds: u64) -> Result<Grid, ExperimentError> {
        let options = ClusterOptions::default();
        let cluster =
            read_cluster_from("cluster-64.toml", Cursor::new(CLUSTER.as_bytes()), options)?;
        let (cluster, models) = (&cluster, &Models::read()?);
        let cells = Cell::all().flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed)));
        let cells: Vec<(Cell, u64)> = cells.collect();
        let ran: Result<Vec<_>, ExperimentError> = cells
            .into_par_iter()
            .map(|(cell, seed)| run_cell(cell, seed, windows, cluster, models))
            .collect();
        let mut outcomes: BTreeMap<Key, Vec<Outcome>> = BTreeMap::new();
        for (key, outcome) in ran?.into_iter().flatten() {
            outcomes.entry(key).or_default().push(outcome);
        }
        Ok(Grid { outcomes })
    }

    /// A line's outcomes, by seed.
    pub(super) fn of(&self, key: Key) -> &[Outcome] {
        &self.outcomes[&key]
    }

    /// Every line.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Outcome)> {
        self.outcomes.iter().flat_map(|(key, runs)| runs.iter().map(move |run| (key, run)))
    }

    /// Something of the mean completion times of several lines, seed by seed.
    pub(super) fn paired<const N: usize>(
        &self,
        keys: [Key; N],
        compare: impl Fn([f64; N]) -> f64,
    ) -> Interval {
        let runs = keys.map(|key| self.of(key));
        let of = |seed: usize| Some(compare(runs.map(|runs| runs[seed].jct_s)));
        Interval::of((0..runs[0].len()).map(of)).expect("there is a seed")
    }

    /// Mean completion time of a line, s.
    pub(super) fn jct(&self, key: Key) -> Interval {
        self.paired([key], |[jct]| jct)
    }

    /// How far below a line's mean completion time the mean duration is, per cent: nobody can gain more.
    pub(super) fn most_to_gain(&self, key: Key) -> Interval {
        let of = |run: &Outcome| Some(100.0 * (1.0 - run.duration_s / run.jct_s));
        Interval::of(self.of(key).iter().map(of)).expect("there is a seed")
    }

    /// Mean duration, s.
    pub(super) fn duration(&self, key: Key) -> Interval {
        Interval::of(self.of(key).iter().map(|run| Some(run.duration_s))).expect("there is a seed")
    }

    /// Mean completion time of one over another's.
    pub(super) fn ratio(&self, one: Key, other: Key) -> Interval {
        self.paired([one, other], |[one, other]| one / other)
    }
}

fn run_cell(
    cell: Cell,
    seed: u64,
    windows: &Windows,
    cluster: &Cluster,
    models: &Models,
) -> Result<Vec<(Key, Outcome)>, ExperimentError> {
    let trace = at_load(&windows.of_seed(cell.jobs, seed), cluster.gpus(), cell.load_milli);
    let assignment = models.drawn(&trace, cluster, seed)?;
    let mut truths: BTreeMap<Pairs, Option<SharedInterference>> = BTreeMap::new();
    let mut outcomes = Vec::new();
    for key in cell.keys() {
        let truth = truths.entry(key.pairs);
        let truth = truth.or_insert_with(|| models.interference(&assignment, key.pairs));
        let mut settings = key.line.settings(seed);
        settings.interference = truth.clone();
        settings.audit = seed == AUDITED;
        let failed =
            |why| ExperimentError::Run { case: format!("{key:?}"), seed, why: Box::new(why) };
        let run = simulate(&trace, cluster, &settings, &Watch::default()).map_err(failed)?;
        outcomes.push((key, Outcome::of(&run, &trace, settings.audit)));
    }
    Ok(outcomes)
}
