//! How long the engine takes to decide, under DeepShare with guarantees on one pool.
//!
//! The engine is driven by itself, on one thread; all of the time of its steps in one instant is
//! counted, and nothing else: not the simulator, not the driver's own books.

mod inputs;
mod plot;
mod steady;
mod world;
mod worst;

use crate::interference::drawn_interference;
use deepshare_policies::PolicyConfig;
use deepshare_sim::SimSettings;
use deepshare_trace::generate::{GeneratorOptions, venus_like};
pub use inputs::{ALL_GPUS, Inputs};
use plot::{Panel, Point};
use std::fmt::Write;
pub use steady::Steady;
use steady::{Figures, RUNS, SEED};
pub use world::{STEP, World};
use worst::{REPETITIONS, Worst};
pub use worst::{array, gang};

/// Waiting jobs of the usual state.
const WAITING: u32 = 100_000;
/// Bars: the 99th percentile of the usual state, and each of the worst cases, in microseconds.
const BAR: (f64, f64) = (1_000.0, 20_000.0);
/// Waiting jobs while the number of GPUs grows.
const FEWER_WAITING: u32 = 10_000;
/// GPUs and waiting jobs that growth is shown for, beside those of the usual state.
const SIZES: [(u32, u32); 5] = [
    (1_000, FEWER_WAITING),
    (2_000, FEWER_WAITING),
    (5_000, FEWER_WAITING),
    (ALL_GPUS, FEWER_WAITING),
    (ALL_GPUS, 1_000),
];

/// What was found.
pub struct Report {
    /// Markdown.
    pub text: String,
    /// Growth, drawn.
    pub svg: String,
}

/// DeepShare's own settings on one pool with guarantees.
pub fn settings(spill: bool) -> SimSettings {
    let mut settings = crate::preset::settings();
    if let PolicyConfig::DeepShare(of) = &mut settings.policy {
        of.spill = spill;
    }
    settings
}

/// Measures the usual state over so many instants, the worst cases, and growth.
pub fn report(instants: u32) -> Report {
    let (literal, of_literal) = usual(false, (ALL_GPUS, WAITING), instants);
    let worst = worst::measure(&literal);
    drop(literal);
    let (_, of_spill) = usual(true, (ALL_GPUS, WAITING), instants);
    let any = venus_like(SEED, &GeneratorOptions { jobs: 1, ..GeneratorOptions::days(1) }).0;
    let shared = drawn_interference(&any, SEED);
    let sharing = SimSettings { interference: Some(shared), ..settings(false) };
    let of_sharing = usual_of(&sharing, (ALL_GPUS, WAITING), instants).1;
    let cases = [("off", &of_literal), ("on", &of_spill), ("off, two jobs a GPU", &of_sharing)];
    let mut text = usual_table(&cases, instants);
    text.push_str(&worst_table(&worst));
    let measured = SIZES.map(|size| (size, usual(false, size, instants).1));
    let mut growth: Vec<((u32, u32), &Figures)> =
        measured.iter().map(|(size, figures)| (*size, figures)).collect();
    growth.push(((ALL_GPUS, WAITING), &of_literal));
    growth.sort_by_key(|&(size, _)| size);
    text.push_str(&growth_table(&growth));
    Report { text, svg: plot::svg(&panels(&growth)) }
}

/// Growth with the number of GPUs, and with that of waiting jobs.
fn panels(growth: &[((u32, u32), &Figures)]) -> [Panel; 2] {
    let point = |size: u32, figures: &Figures| Point {
        size: f64::from(size),
        median: figures.instants.micros(500),
        p99: figures.instants.micros(990),
    };
    let by_gpus = growth.iter().filter(|((_, waiting), _)| *waiting == FEWER_WAITING);
    let by_queue = growth.iter().filter(|((gpus, _), _)| *gpus == ALL_GPUS);
    [
        Panel {
            title: "10,000 jobs waiting",
            size: "GPUs",
            points: by_gpus.map(|((gpus, _), figures)| point(*gpus, figures)).collect(),
        },
        Panel {
            title: "10,000 GPUs",
            size: "waiting jobs",
            points: by_queue.map(|((_, waiting), figures)| point(*waiting, figures)).collect(),
        },
    ]
}

/// The usual state of so many GPUs and waiting jobs, warmed over half as many instants as are
/// measured, and its figures.
fn usual(spill: bool, (gpus, waiting): (u32, u32), instants: u32) -> (Steady, Figures) {
    usual_of(&settings(spill), (gpus, waiting), instants)
}

fn usual_of(
    settings: &SimSettings,
    (gpus, waiting): (u32, u32),
    instants: u32,
) -> (Steady, Figures) {
    let steady = Steady::warmed(settings, gpus, waiting, instants / 2);
    let figures = steady.measure(instants);
    (steady, figures)
}

fn say(text: &mut String, more: impl std::fmt::Display) {
    write!(text, "{more}").expect("writing to a string cannot fail");
}

fn judged(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn usual_table(cases: &[(&str, &Figures)], instants: u32) -> String {
    let mut text = format!(
        "The usual state: {instants} instants at which jobs end or come, history seed {SEED}, \
         each timed in {RUNS} equal runs of which the median counts.\n\n\
         | spill | GPUs | waiting | P50 µs | P99 µs | P99.9 µs | max µs | rounds | started \
         | reclaims | victims | other wakes | their P99 µs | their max µs |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: \
         | ---: | ---: |\n"
    );
    let mut met = true;
    for (spill, figures) in cases {
        let Figures { gpus, waiting: (least, most), instants, between, .. } = figures;
        let [p50, p99, p999] = [500, 990, 999].map(|milli| instants.micros(milli));
        met &= p99 < BAR.0;
        let (max, (reclaims, victims)) = (instants.max(), figures.reclaims);
        let Figures { rounds, starts, .. } = figures;
        say(
            &mut text,
            format_args!(
                "| {spill} | {gpus} | {least}–{most} | {p50:.0} | {p99:.0} | {p999:.0} | {max:.0} \
                 | {rounds} | {starts} | {reclaims} | {victims} | {} | {:.0} | {:.0} |\n",
                between.count(),
                between.micros(990),
                between.max()
            ),
        );
    }
    let verdict = judged(met);
    say(&mut text, format_args!("\nBar: P99 below {} µs: {verdict}.\n\n", BAR.0));
    text
}

fn worst_table(cases: &[Worst]) -> String {
    let mut text = format!(
        "The worst instants, each {REPETITIONS} times from one such state with {WAITING} waiting, \
         spill off:\n\n| what happens | median µs | max µs | what comes of it (the last time) |\n\
         | --- | ---: | ---: | --- |\n"
    );
    let mut missed = Vec::new();
    for Worst { what, times, came_of_it } in cases {
        let (median, max) = (times.micros(500), times.max());
        say(&mut text, format_args!("| {what} | {median:.0} | {max:.0} | {came_of_it} |\n"));
        if max > BAR.1 {
            missed.push(format!("“{what}”"));
        }
    }
    let verdict = match missed.is_empty() {
        true => "met by each".to_owned(),
        false => format!("missed by {}", missed.join(", ")),
    };
    say(&mut text, format_args!("\nBar: at most {} µs: {verdict}.\n\n", BAR.1));
    text
}

fn growth_table(growth: &[((u32, u32), &Figures)]) -> String {
    let row = |((gpus, waiting), figures): &((u32, u32), &Figures)| {
        let (p50, p99) = (figures.instants.micros(500), figures.instants.micros(990));
        let reclaims = figures.reclaims.0;
        format!("| {gpus} | {waiting} | {p50:.0} | {p99:.0} | {reclaims} |\n")
    };
    let rows: String = growth.iter().map(row).collect();
    format!(
        "Growth of the usual state, spill off:\n\n\
         | GPUs | waiting | P50 µs | P99 µs | reclaims |\n\
         | ---: | ---: | ---: | ---: | ---: |\n{rows}"
    )
}

#[cfg(test)]
mod tests;
