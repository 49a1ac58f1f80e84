//! What the project promises of these runs, and whether it holds.

use super::{Line, Table, say};
use crate::figures::{compliance, delay, wide_p99, wide_p99_9};
use deepshare_metrics::Summary;
use deepshare_model::Class;

type Get = fn(&Summary) -> Option<f64>;

/// Mean delay of guaranteed jobs.
fn guaranteed_delay(summary: &Summary) -> Option<f64> {
    let group = summary.by_class.iter().find(|g| g.name == Class::Guaranteed.name())?;
    Some(group.jobs.jct_minus_duration.as_ref()?.mean)
}

fn avoidable(summary: &Summary) -> Option<f64> {
    Some(summary.quota.avoidable?.time.as_secs_f64())
}

struct Judge {
    text: String,
}

impl Judge {
    /// Adds a promise, what was measured, and whether that keeps it.
    fn bar(&mut self, promise: &str, measured: String, kept: bool) {
        let verdict = if kept { "met" } else { "**missed**" };
        say(&mut self.text, format!("| {promise} | {measured} | {verdict} |\n"));
    }

    fn mean_at_most(&mut self, promise: &str, line: &Line, get: Get, most: f64) {
        let Some(range) = line.range(get) else { return };
        self.bar(promise, range.show(1), range.mean <= most);
    }
}

/// The greatest difference of a figure between two lines, seed by seed.
fn worst_gap(a: &Line, b: &Line, get: Get) -> f64 {
    let gaps = a.runs.iter().zip(&b.runs).filter_map(|(a, b)| Some(get(a)? - get(b)?));
    gaps.fold(f64::NEG_INFINITY, f64::max)
}

fn mean(table: &Table, name: &str, get: Get) -> f64 {
    table.line(name).and_then(|line| line.range(get)).map_or(f64::NAN, |range| range.mean)
}

/// The table of promises.
pub fn judge(main: &Table, shares: &[Table], loads: &[Table]) -> String {
    let mut judge = Judge { text: String::from("| promise | measured | |\n| --- | --- | --- |\n") };
    let line = |name: &str| main.line(name).expect("a line of the main table");
    let (literal, spill) = (line("deepshare"), line("deepshare, spill"));
    let limit = line("its limit: GPUs for everybody");
    let limit_spill = line("its limit, spill");
    for (name, line, limit) in [("literal", literal, limit), ("spill", spill, limit_spill)] {
        judge.mean_at_most(&format!("{name}: avoidable waiting 0 s"), line, avoidable, 0.0);
        let gap = worst_gap(limit, line, compliance);
        let promise = format!("{name}: compliance within 0.2 points of its limit on each seed");
        judge.bar(&promise, format!("at most {gap:.2} below"), gap <= 0.2);
        let range = line.range(compliance).expect("assurance is measured");
        judge.bar(&format!("{name}: compliance ≥ 97 %"), range.show(2), range.least >= 97.0);
        let worst = line.range(|s| s.quota.worst).expect("assurance is measured");
        let promise = format!("{name}: worst tenant's mean Q̃ ≥ 0.98");
        judge.bar(&promise, worst.show(3), worst.least >= 0.98);
    }
    let low = mean(&shares[0], "deepshare", compliance);
    judge.bar("literal, share 0.2: compliance ≥ 95 %", format!("{low:.2}"), low >= 95.0);
    judge.mean_at_most("literal: delay ≤ 494 s", literal, delay, 494.0);
    let gap = worst_gap(literal, limit, delay);
    judge.bar(
        "literal: delay ≤ its limit + 60 s on each seed",
        format!("{gap:+.1} s"),
        gap <= 60.0,
    );
    judge.mean_at_most("spill, with the gang guard: delay ≤ 120 s", spill, delay, 120.0);
    let bare = line("spill, without the gang guard");
    judge.mean_at_most("spill, without it: delay ≤ 75 s", bare, delay, 75.0);
    let pooled = mean(main, "sjf, skips, pool", delay);
    let promise = format!("spill, without it: delay below pooled SJF's {pooled:.1} s");
    judge.mean_at_most(&promise, bare, delay, pooled);
    for (ours, rivals) in [
        ("deepshare", ["-ord", "FIFO order"]),
        ("deepshare, spill", ["spill, -ord", "spill, FIFO order"]),
    ] {
        let best = rivals.map(|name| mean(main, name, delay)).into_iter().fold(f64::MAX, f64::min);
        let own = mean(main, ours, delay);
        let promise = format!("{ours}: at most 1.1 × the best of its structure ({best:.1} s)");
        judge.bar(&promise, format!("{own:.1} s, {:.2} ×", own / best), own <= 1.1 * best);
    }
    let fifo = mean(main, "fifo, skips, pool", wide_p99);
    for (name, line) in [("literal", literal), ("spill", spill)] {
        let promise = format!("{name}: gangs ≥ 32, P99 ≤ pooled FIFO's {fifo:.0} s");
        judge.mean_at_most(&promise, line, wide_p99, fifo);
    }
    let easy = 2.0 * mean(main, "easy-backfill, pool", wide_p99_9);
    let promise = format!("spill: gangs ≥ 32, P99.9 ≤ twice EASY's: {easy:.0} s");
    judge.mean_at_most(&promise, spill, wide_p99_9, easy);
    let most = 1.1 * mean(main, "its limit: GPUs for everybody", wide_p99_9);
    let promise = format!("literal: gangs ≥ 32, P99.9 ≤ its limit + 10 %: {most:.0} s");
    judge.mean_at_most(&promise, literal, wide_p99_9, most);
    for (table, (least, points)) in loads.iter().zip([(98.0, 8.0), (97.0, 15.0), (0.0, 15.0)]) {
        let ours = mean(table, "deepshare", compliance);
        let without = mean(table, "-rec", compliance);
        let title = &table.title;
        if least > 0.0 {
            let promise = format!("{title}: compliance ≥ {least} %");
            judge.bar(&promise, format!("{ours:.2}"), ours >= least);
        }
        let gain = ours - without;
        let promise = format!("{title}: at least {points} points above -rec");
        judge.bar(&promise, format!("{gain:.1}"), gain >= points);
    }
    let flat: Vec<f64> = [main, &loads[0], &loads[1]]
        .map(|table| mean(table, "deepshare", guaranteed_delay))
        .to_vec();
    let steady = flat.iter().all(|value| (value / flat[0] - 1.0).abs() <= 0.1);
    let shown: Vec<String> = flat.iter().map(|value| format!("{value:.0}")).collect();
    judge.bar(
        "literal: guaranteed delay flat (± 10 %) at 135, 120, 100 nodes",
        format!("{} s", shown.join(", ")),
        steady,
    );
    judge.text
}
