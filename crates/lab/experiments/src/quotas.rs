//! What quota assurance is worth: DeepShare, its ablations and its rivals on the Venus month.

mod bars;

use crate::ExperimentError;
use crate::cases::{self, Case};
use crate::figures::{COLUMNS, Range};
use crate::venus::{Month, NODES};
use deepshare_metrics::Summary;
use deepshare_sim::{Classes, Watch, simulate};
use rayon::prelude::*;
use std::fmt::Write;

/// GPUs for everybody: so many times the published cluster.
const UNLIMITED: usize = 16;

/// The runs of one line, by seed.
pub struct Line {
    /// What was run.
    pub case: Case,
    /// One a seed.
    pub runs: Vec<Summary>,
}

impl Line {
    /// Mean, least and most of a figure.
    pub fn range(&self, get: fn(&Summary) -> Option<f64>) -> Option<Range> {
        Range::of(self.runs.iter().map(get))
    }
}

/// One table: cases under the same load.
pub struct Table {
    title: String,
    lines: Vec<Line>,
}

impl Table {
    /// The line of a case's name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.case.name == name)
    }

    fn show(&self, text: &mut String) {
        say(text, format!("\n### {}\n\n| | capacity | estimates |", self.title));
        for column in COLUMNS {
            say(text, format!(" {} |", column.title));
        }
        say(text, format!("\n| --- | --- | --- |{}\n", " ---: |".repeat(COLUMNS.len())));
        for line in &self.lines {
            let (capacity, estimates) = (line.case.capacity.name(), &line.runs[0].estimates);
            say(text, format!("| {} | {capacity} | {estimates} |", line.case.name));
            for column in COLUMNS {
                let range = line.range(column.get);
                let cell = range.map_or("–".to_owned(), |range| range.show(column.digits));
                say(text, format!(" {cell} |"));
            }
            say(text, "\n");
        }
    }
}

pub(crate) fn say(text: &mut String, more: impl std::fmt::Display) {
    write!(text, "{more}").expect("writing to a string cannot fail");
}

fn coin(percent: u32) -> Classes {
    Classes::Coin { best_effort_milli: percent * 10 }
}

fn run(
    title: &str,
    month: &Month,
    nodes: usize,
    classes: Classes,
    seeds: u64,
    cases: Vec<Case>,
) -> Result<Table, ExperimentError> {
    let limited = month.with_nodes(nodes);
    let unlimited = month.with_nodes(NODES * UNLIMITED);
    let lines: Result<Vec<Line>, ExperimentError> = cases
        .into_iter()
        .map(|case| {
            let month = if case.unlimited { &unlimited } else { &limited };
            let runs: Result<Vec<Summary>, ExperimentError> = (1..=seeds)
                .into_par_iter()
                .map(|seed| {
                    let settings = case.settings(classes, seed);
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
        })
        .collect();
    Ok(Table { title: title.to_owned(), lines: lines? })
}

/// The page's tables and judgements, as Markdown.
///
/// # Errors
/// See [`ExperimentError`].
pub fn page(data: &std::path::Path, seeds: u64) -> Result<String, ExperimentError> {
    let venus = Month::venus(data)?;
    let main =
        run("135 nodes, best-effort share 0.4", &venus, NODES, coin(40), seeds, cases::all())?;
    let mut shares = Vec::new();
    for percent in [20, 60] {
        let title = format!("135 nodes, best-effort share 0.{}", percent / 10);
        shares.push(run(&title, &venus, NODES, coin(percent), seeds, cases::few())?);
    }
    let title = "135 nodes, best-effort beyond quota (`overflow`; one run, nothing is drawn)";
    shares.push(run(title, &venus, NODES, Classes::Overflow, 1, cases::few())?);
    let mut loads = Vec::new();
    for nodes in [120, 100, 85] {
        let title = format!("{nodes} nodes, quotas of 135, best-effort share 0.4");
        loads.push(run(&title, &venus, nodes, coin(40), seeds, cases::few())?);
    }
    let hashed = venus.with_hashed_tenants(12);
    let quotas: Vec<String> =
        hashed.cluster.tenants.iter().map(|t| t.quota.total().to_string()).collect();
    let title = format!("12 tenants by a hash of the user, quotas {}", quotas.join(", "));
    let twelve = run(&title, &hashed, NODES, coin(40), seeds, cases::few())?;
    let title = "12 tenants by a hash of the user, the same quotas on 100 nodes".to_owned();
    let twelve_loaded = run(&title, &hashed, 100, coin(40), seeds, cases::few())?;

    let mut text = bars::judge(&main, &shares, &loads);
    for table in [&main].into_iter().chain(&shares).chain(&loads).chain([&twelve, &twelve_loaded]) {
        table.show(&mut text);
    }
    Ok(text)
}
