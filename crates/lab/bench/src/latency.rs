//! How long the engine takes to decide, under DeepShare with guarantees on one pool.
//!
//! The engine is driven by itself, on one thread; all of the time of its steps in one instant is
//! counted, and nothing else: not the simulator, not the driver's own books.

mod inputs;
mod plot;
mod steady;
mod world;
mod worst;

use deepshare_policies::PolicyConfig;
use deepshare_sim::SimSettings;
pub use inputs::{ALL_GPUS, Inputs};
use plot::{Panel, Point};
use std::fmt::Write;
pub use steady::Steady;
use steady::{Figures, SEED};
pub use world::{STEP, World};
pub use worst::gang;
use worst::{REPETITIONS, Worst};

/// Waiting jobs of the usual state.
const WAITING: u32 = 100_000;
/// Bars: the 99th percentile of the usual state, and each of the worst cases, in microseconds.
const BAR: (f64, f64) = (1_000.0, 20_000.0);
/// Sizes that growth is shown for: GPUs with [`FEWER_WAITING`], and waiting jobs on all GPUs.
const GPUS: [u32; 4] = [1_000, 2_000, 5_000, ALL_GPUS];
const FEWER_WAITING: u32 = 10_000;
const QUEUES: [u32; 3] = [1_000, FEWER_WAITING, WAITING];

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

/// Measures the usual state over so many instants, growth over half as many, and the worst cases.
pub fn report(instants: u32) -> Report {
    let (literal, of_literal) = usual(false, ALL_GPUS, WAITING, instants);
    let worst = worst::measure(&literal);
    drop(literal);
    let (_, of_spill) = usual(true, ALL_GPUS, WAITING, instants);
    let mut text = usual_table(&[("off", &of_literal), ("on", &of_spill)], instants);
    text.push_str(&worst_table(&worst));
    let grown = |gpus, waiting| usual(false, gpus, waiting, (instants / 2).max(1)).1;
    let by_gpus: Vec<Figures> = GPUS.iter().map(|&gpus| grown(gpus, FEWER_WAITING)).collect();
    let by_queue: Vec<Figures> = QUEUES.iter().map(|&queue| grown(ALL_GPUS, queue)).collect();
    text.push_str(&growth_table(by_gpus.iter().zip(GPUS.map(|_| FEWER_WAITING))));
    text.push_str(&growth_rows(by_queue.iter().zip(QUEUES)));
    let point = |size: u32, figures: &Figures| Point {
        size: f64::from(size),
        median: figures.instants.micros(500),
        p99: figures.instants.micros(990),
    };
    let svg = plot::svg(&[
        Panel {
            title: "10,000 jobs waiting",
            size: "GPUs",
            points: GPUS.iter().zip(&by_gpus).map(|(&gpus, of)| point(gpus, of)).collect(),
        },
        Panel {
            title: "10,000 GPUs",
            size: "waiting jobs",
            points: QUEUES.iter().zip(&by_queue).map(|(&queue, of)| point(queue, of)).collect(),
        },
    ]);
    Report { text, svg }
}

/// The usual state, warmed over half as many instants as are measured.
fn usual(spill: bool, gpus: u32, waiting: u32, instants: u32) -> (Steady, Figures) {
    let mut steady = Steady::warmed(&settings(spill), gpus, waiting, instants / 2);
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
        "The usual state: {instants} instants at which jobs end or come, history seed {SEED}.\n\n\
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

fn growth_table<'a>(rows: impl Iterator<Item = (&'a Figures, u32)>) -> String {
    let head = "Growth of the usual state, spill off:\n\n\
                | GPUs | waiting | P50 µs | P99 µs | reclaims |\n\
                | ---: | ---: | ---: | ---: | ---: |\n";
    format!("{head}{}", growth_rows(rows))
}

fn growth_rows<'a>(rows: impl Iterator<Item = (&'a Figures, u32)>) -> String {
    let row = |(figures, waiting): (&Figures, u32)| {
        let (p50, p99) = (figures.instants.micros(500), figures.instants.micros(990));
        let (gpus, reclaims) = (figures.gpus, figures.reclaims.0);
        format!("| {gpus} | {waiting} | {p50:.0} | {p99:.0} | {reclaims} |\n")
    };
    rows.map(row).collect()
}

#[cfg(test)]
mod tests;
