//! The tables of the page.

use super::grid::{Grid, Outcome};
use super::jobs::Windows;
use super::lines::{Cell, Line};
use super::truth::{Pairs, TABLES};
use super::{JOBS, LOADS, SLOWDOWNS};
use crate::figures::Interval;
use crate::tables::say;
use std::collections::BTreeMap;

/// The policies of the table of completion times.
const COMPARED: [(Line, &str); 7] = [
    (Line::Fifo, "fifo"),
    (Line::Tiresias, "tiresias"),
    (Line::Sjf, "sjf"),
    (Line::SjfSkip, "sjf, skips"),
    (Line::Srtf, "srtf"),
    (Line::Ffs, "sjf-ffs"),
    (Line::Bsbf, "sjf-bsbf"),
];

/// Rivals of which it shows ratios.
const RIVALS: [Line; 5] = [Line::Ffs, Line::Tiresias, Line::Sjf, Line::SjfSkip, Line::Srtf];

fn head(text: &mut String, title: &str, words: &str, columns: &[&str]) {
    say(text, format!("\n### {title}\n\n{words}\n\n| |"));
    columns.iter().for_each(|column| say(text, format!(" {column} |")));
    say(text, format!("\n| --- |{}\n", " ---: |".repeat(columns.len())));
}

fn row(text: &mut String, name: &str, cells: impl IntoIterator<Item = String>) {
    say(text, format!("| {name} |"));
    cells.into_iter().for_each(|cell| say(text, format!(" {cell} |")));
    say(text, "\n");
}

/// A table's cells with their names.
fn each_cell(mut of: impl FnMut(String, Pairs, Cell)) {
    for (table, (_, name)) in TABLES.iter().enumerate() {
        for cell in Cell::all() {
            let title = format!("{name}, {} jobs, load {}", cell.jobs, cell.load());
            of(title, Pairs::Table(table), cell);
        }
    }
}

/// What the windows are like.
pub(super) fn setup(text: &mut String, windows: &Windows) {
    let (gpus, hours) = Windows::limits();
    for count in JOBS {
        let busiest = windows.busiest(count);
        let offered: Vec<f64> = busiest.iter().map(|window| window.offered).collect();
        let [most, middle, least] =
            [0, offered.len() / 2, offered.len() - 1].map(|position| offered[position]);
        say(
            text,
            format!(
                "\nThe {} busiest windows of {count} jobs offer 64 GPUs a load of {least:.1} to \
                 {most:.1} (median {middle:.1}), counting jobs of up to {gpus} GPUs and {hours} \
                 GPU-hours.\n",
                offered.len(),
            ),
        );
    }
}

/// Completion times, ratios and whose the gain is, for each table and number of jobs.
pub(super) fn main(text: &mut String, grid: &Grid) {
    let mut names = vec!["duration"];
    names.extend(COMPARED.map(|(_, name)| name));
    let words = "Seconds, means over the seeds; first the mean duration of the jobs, below which no mean \
                 JCT can be.";
    head(text, "Mean JCT", words, &names);
    each_cell(|title, pairs, cell| {
        let jct = |(line, _)| format!("{:.0}", grid.jct(cell.key(pairs, line)).mean);
        let duration = grid.duration(cell.key(pairs, Line::Bsbf)).mean;
        row(text, &title, std::iter::once(format!("{duration:.0}")).chain(COMPARED.map(jct)));
    });
    let words = "Mean JCT of sjf-bsbf over that of each, paired by seed.";
    let names =
        ["sjf-ffs", "tiresias", "sjf", "sjf, skips", "srtf"].map(|name| format!("/ {name}"));
    head(text, "SJF-BSBF against each", words, &names.each_ref().map(String::as_str));
    each_cell(|title, pairs, cell| {
        let key = |line| cell.key(pairs, line);
        row(text, &title, RIVALS.map(|line| grid.ratio(key(Line::Bsbf), key(line)).show(3)));
    });
    sharing_of_gap(text, grid);
}

fn sharing_of_gap(text: &mut String, grid: &Grid) {
    let words = "Tiresias knows no run times, SJF does. Of the mean JCT of Tiresias, what falls away \
                 with SJF and what falls away beyond that with SJF-BSBF, paired by seed; last, the \
                 second over both, of the means.";
    let columns = ["tiresias − sjf, %", "sjf − sjf-bsbf, %", "of the gap by sharing, %"];
    head(text, "How much of it is sharing's", words, &columns);
    each_cell(|title, pairs, cell| {
        let keys = [Line::Tiresias, Line::Sjf, Line::Bsbf].map(|line| cell.key(pairs, line));
        let sizes = grid.paired(keys, |[tiresias, sjf, _]| 100.0 * (tiresias - sjf) / tiresias);
        let shared = grid.paired(keys, |[tiresias, sjf, bsbf]| 100.0 * (sjf - bsbf) / tiresias);
        let [tiresias, sjf, bsbf] = keys.map(|key| grid.jct(key).mean);
        let share = 100.0 * (sjf - bsbf) / (tiresias - bsbf);
        row(text, &title, [sizes.show(1), shared.show(1), format!("{share:.0}")]);
    });
}

/// Ratios over load and slowdown.
pub(super) fn surface(text: &mut String, grid: &Grid) {
    for (rival, name) in [(Line::Ffs, "sjf-ffs"), (Line::SjfSkip, "sjf, skips")] {
        for jobs in JOBS {
            let title = format!("Everybody slowed alike: sjf-bsbf / {name}, {jobs} jobs");
            let words = "Rows: the slowdown ξ of whoever shares; columns: the load. Bold: SJF-BSBF is \
                         worse, the whole interval above 1.";
            let loads = LOADS.map(|load| format!("load {}", f64::from(load) / 1e3));
            head(text, &title, words, &loads.each_ref().map(String::as_str));
            for slowdown in SLOWDOWNS {
                let cells = LOADS.map(|load_milli| {
                    let key = |line| Cell { jobs, load_milli }.key(Pairs::Constant(slowdown), line);
                    bold_if_worse(grid.ratio(key(Line::Bsbf), key(rival)))
                });
                row(text, &format!("ξ = {}", f64::from(slowdown) / 1e3), cells);
            }
        }
    }
}

fn bold_if_worse(ratio: Interval) -> String {
    let shown = ratio.show(3);
    if ratio.mean - ratio.half > 1.0 { format!("**{shown}**") } else { shown }
}

/// Reading B2: in which order partners are tried.
pub(super) fn orders(text: &mut String, grid: &Grid) {
    let words = "`sjf_bsbf.order`: mean JCT over that of `completion`, which is the source's. Bold: worse, \
                 the whole interval above 1.";
    head(text, "Which partner first", words, &["benefit", "benefit-per-gpu"]);
    each_cell(|title, pairs, cell| {
        let ratio = |line| grid.ratio(cell.key(pairs, line), cell.key(pairs, Line::Bsbf));
        let cells = [Line::BsbfBenefit, Line::BsbfPerGpu].map(|line| bold_if_worse(ratio(line)));
        row(text, &title, cells);
    });
}

/// Reading B5: what is known of run times.
pub(super) fn predicted(text: &mut String, grid: &Grid) {
    let words = "Run times are the mean of what has ended (of the same virtual cluster, as Philly here has \
                 no users) instead of exact. Bold: worse, the whole interval above 1.";
    let columns = ["/ exact", "/ sjf-ffs, means", "/ sjf, skips, means", "/ tiresias"];
    head(text, "Run times not known: sjf-bsbf with running means", words, &columns);
    let rivals = [Line::Bsbf, Line::FfsMean, Line::SjfSkipMean, Line::Tiresias];
    each_cell(|title, pairs, cell| {
        let key = |line| cell.key(pairs, line);
        row(
            text,
            &title,
            rivals.map(|line| bold_if_worse(grid.ratio(key(Line::BsbfMean), key(line)))),
        );
    });
}

/// Pairs, and why there were no more.
pub(super) fn refusals(text: &mut String, grid: &Grid) {
    let mut tests: Vec<&str> = Vec::new();
    let refused = grid.all().flat_map(|(_, run)| &run.refused);
    refused.filter(|(_, count)| *count > 0).for_each(|(test, _)| {
        if !tests.contains(&test.as_str()) {
            tests.push(test);
        }
    });
    tests.sort_unstable();
    let words = "A run's pairs formed, and times that a job asked in vain, by the test that its best \
                 partner failed.";
    let columns: Vec<String> = ["sjf-ffs", "sjf-bsbf"]
        .into_iter()
        .flat_map(|name| {
            let refused = tests.iter().map(move |test| format!("{name}, refused: {test}"));
            std::iter::once(format!("{name}, formed")).chain(refused)
        })
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    head(text, "Pairs", words, &columns);
    each_cell(|title, pairs, cell| {
        let cells = [Line::Ffs, Line::Bsbf].map(|line| {
            let runs = grid.of(cell.key(pairs, line));
            mean_counts(runs, &tests)
        });
        row(text, &title, cells.concat());
    });
}

fn mean_counts(runs: &[Outcome], tests: &[&str]) -> Vec<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (test, count) in runs.iter().flat_map(|run| &run.refused) {
        *counts.entry(test).or_default() += count;
    }
    let mean = |sum: u64| format!("{:.1}", sum as f64 / runs.len() as f64);
    let formed = mean(runs.iter().map(|run| run.formed).sum());
    let refused = tests.iter().map(|&test| mean(counts.get(test).copied().unwrap_or(0)));
    std::iter::once(formed).chain(refused).collect()
}
