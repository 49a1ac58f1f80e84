//! Tables of an experiment: lines of runs, one a seed, under the same load.

use crate::ExperimentError;
use crate::cases::Case;
use crate::figures::{Column, Range};
use crate::month::Month;
use deepshare_metrics::Summary;
use deepshare_sim::{Classes, SharedInterference, Watch, simulate};
use rayon::prelude::*;
use std::fmt::Write;

/// GPUs for everybody: so many times the published nodes.
const UNLIMITED: usize = 16;

/// The runs of one line, by seed.
pub struct Line {
    /// What was run.
    pub case: Case,
    /// One a seed; a single one where nothing is drawn.
    pub runs: Vec<Summary>,
}

impl Line {
    /// Mean, least and most of a figure.
    pub fn range(&self, get: fn(&Summary) -> Option<f64>) -> Option<Range> {
        Range::of(self.runs.iter().map(get))
    }

    /// A figure of a seed, counted from 0.
    pub fn of_seed(&self, get: fn(&Summary) -> Option<f64>, seed: usize) -> Option<f64> {
        get(self.runs.get(seed).or(self.runs.first())?)
    }
}

/// One table: cases under the same load.
pub struct Table {
    /// What it is called.
    pub title: String,
    columns: &'static [Column],
    /// Its lines.
    pub lines: Vec<Line>,
}

impl Table {
    /// The line of a case's name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.case.name == name)
    }

    /// Appends the table to a page.
    pub fn show(&self, text: &mut String) {
        say(text, format!("\n### {}\n\n| | capacity | estimates |", self.title));
        for column in self.columns {
            say(text, format!(" {} |", column.title));
        }
        say(text, format!("\n| --- | --- | --- |{}\n", " ---: |".repeat(self.columns.len())));
        for line in &self.lines {
            let (capacity, estimates) = (line.case.capacity.name(), &line.runs[0].estimates);
            say(text, format!("| {} | {capacity} | {estimates} |", line.case.name));
            for column in self.columns {
                let range = line.range(column.get);
                let cell = range.map_or("–".to_owned(), |range| range.show(column.digits));
                say(text, format!(" {cell} |"));
            }
            say(text, "\n");
        }
    }
}

/// Appends to a page.
pub fn say(text: &mut String, more: impl std::fmt::Display) {
    write!(text, "{more}").expect("writing to a string cannot fail");
}

/// Classes by a coin.
pub fn coin(percent: u32) -> Classes {
    Classes::Coin { best_effort_milli: percent * 10 }
}

/// What all runs of a table have in common.
pub struct Load<'a> {
    /// Jobs and quotas.
    pub month: &'a Month,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Where classes come from.
    pub classes: Classes,
    /// Seeds 1 to this.
    pub seeds: u64,
    /// What jobs that share do to each other, by seed; empty = nobody shares.
    pub interference: &'a [SharedInterference],
    /// Figures to show.
    pub columns: &'static [Column],
}

/// Runs every case under a load.
///
/// # Errors
/// If a run fails.
pub fn run(title: &str, load: &Load<'_>, cases: Vec<Case>) -> Result<Table, ExperimentError> {
    let limited = load.month.with_nodes(load.nodes);
    let unlimited = load.month.with_nodes(load.month.cluster.nodes.len() * UNLIMITED);
    let line = |case: Case| {
        let month = if case.unlimited { &unlimited } else { &limited };
        let seeds = if case.draws_nothing { 1 } else { load.seeds };
        let runs: Result<Vec<Summary>, ExperimentError> = (1..=seeds)
            .into_par_iter()
            .map(|seed| {
                let mut settings = case.settings(load.classes, seed);
                settings.interference = load.interference.get(seed as usize - 1).cloned();
                let run = simulate(&month.trace, &month.cluster, &settings, &Watch::default());
                let failed = |why: deepshare_sim::SimError| ExperimentError::Run {
                    case: format!("{title}, {}", case.name),
                    seed,
                    why: Box::new(why),
                };
                Ok(Summary::of(&run.map_err(failed)?, &month.trace.tenants))
            })
            .collect();
        Ok(Line { runs: runs?, case })
    };
    let lines: Result<Vec<Line>, ExperimentError> = cases.into_iter().map(line).collect();
    Ok(Table { title: title.to_owned(), columns: load.columns, lines: lines? })
}
