//! What the project promises of these runs, and whether it holds.

use crate::cases::{Case, Mode};
use crate::figures::{compliance, delay, wide_p99, wide_p99_9};
use crate::tables::{Line, Table, say};
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

    fn mean_at_least(&mut self, promise: &str, line: &Line, get: Get, least: (f64, usize)) {
        let Some(range) = line.range(get) else { return };
        self.bar(promise, range.show(least.1), range.mean >= least.0);
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
    assurance(&mut judge, main, &shares[0]);
    delays(&mut judge, main);
    gangs(&mut judge, main);
    under_load(&mut judge, main, loads);
    judge.text
}

fn line<'a>(table: &'a Table, case: &Case) -> &'a Line {
    table.line(&case.name).expect("a line of every table")
}

fn assurance(judge: &mut Judge, main: &Table, low_share: &Table) {
    for mode in Mode::BOTH {
        let limit = line(main, &mode.limit());
        for case in [mode.plain(), mode.guarded()] {
            let (name, runs) = (&case.name, line(main, &case));
            judge.mean_at_most(&format!("{name}: avoidable waiting 0 s"), runs, avoidable, 0.0);
            let gap = worst_gap(limit, runs, compliance);
            let promise = format!("{name}: compliance within 0.2 points of its limit on each seed");
            judge.bar(&promise, format!("at most {gap:.2} below"), gap <= 0.2);
            let promise = format!("{name}: compliance ≥ 97 %");
            judge.mean_at_least(&promise, runs, compliance, (97.0, 2));
            let promise = format!("{name}: worst tenant's mean Q̃ ≥ 0.98");
            judge.mean_at_least(&promise, runs, |s| s.quota.worst, (0.98, 3));
        }
    }
    let runs = line(low_share, &Mode::Literal.plain());
    let promise = "literal, best-effort share 0.2: compliance ≥ 95 %";
    judge.mean_at_least(promise, runs, compliance, (95.0, 2));
}

fn delays(judge: &mut Judge, main: &Table) {
    let limit = line(main, &Mode::Literal.limit());
    for case in [Mode::Literal.plain(), Mode::Literal.guarded()] {
        let (name, runs) = (&case.name, line(main, &case));
        judge.mean_at_most(&format!("{name}: delay ≤ 494 s"), runs, delay, 494.0);
        let gap = worst_gap(runs, limit, delay);
        let promise = format!("{name}: delay ≤ its limit + 60 s on each seed");
        judge.bar(&promise, format!("at most {gap:.1} s above"), gap <= 60.0);
    }
    let pooled = mean(main, "sjf, skips, pool", delay);
    let spill = line(main, &Mode::Spill.plain());
    judge.mean_at_most("spill: delay ≤ 75 s", spill, delay, 75.0);
    let promise = format!("spill: delay below that of pooled SJF without quotas, {pooled:.1} s");
    judge.mean_at_most(&promise, spill, delay, pooled);
    let guarded = line(main, &Mode::Spill.guarded());
    judge.mean_at_most("spill, gang guard: delay ≤ 120 s", guarded, delay, 120.0);
    for mode in Mode::BOTH {
        let rivals = [mode.without_ord(), mode.fifo_order()];
        let best = rivals.map(|case| mean(main, &case.name, delay));
        let best = best.into_iter().fold(f64::MAX, f64::min);
        let own = mean(main, mode.name(), delay);
        let promise = format!(
            "{}: delay at most 1.1 × the best of its structure (by time, by submission): {best:.1} s",
            mode.name()
        );
        judge.bar(&promise, format!("{own:.1} s, {:.2} ×", own / best), own <= 1.1 * best);
    }
}

fn gangs(judge: &mut Judge, main: &Table) {
    let fifo = mean(main, "fifo, skips, pool", wide_p99);
    for mode in Mode::BOTH {
        for case in [mode.plain(), mode.guarded()] {
            let name = &case.name;
            let promise = format!("{name}: gangs ≥ 32, P99 of delay ≤ pooled FIFO's {fifo:.0} s");
            judge.mean_at_most(&promise, line(main, &case), wide_p99, fifo);
        }
    }
    let easy = 2.0 * mean(main, "easy-backfill, pool", wide_p99_9);
    let promise =
        format!("spill, gang guard: gangs ≥ 32, P99.9 ≤ twice pooled EASY's: {easy:.0} s");
    judge.mean_at_most(&promise, line(main, &Mode::Spill.guarded()), wide_p99_9, easy);
    let most = 1.1 * mean(main, &Mode::Literal.limit().name, wide_p99_9);
    for case in [Mode::Literal.plain(), Mode::Literal.guarded()] {
        let name = &case.name;
        let promise = format!("{name}: gangs ≥ 32, P99.9 ≤ its limit + 10 %: {most:.0} s");
        judge.mean_at_most(&promise, line(main, &case), wide_p99_9, most);
    }
}

fn under_load(judge: &mut Judge, main: &Table, loads: &[Table]) {
    let (plain, without) = (Mode::Literal.plain(), Mode::Literal.without_rec());
    for (table, (least, points)) in loads.iter().zip([(98.0, 8.0), (97.0, 15.0), (0.0, 15.0)]) {
        let title = &table.title;
        if least > 0.0 {
            let promise = format!("literal, {title}: compliance ≥ {least} %");
            judge.mean_at_least(&promise, line(table, &plain), compliance, (least, 2));
        }
        let gain = mean(table, &plain.name, compliance) - mean(table, &without.name, compliance);
        let promise = format!("literal, {title}: compliance at least {points} points above -rec");
        judge.bar(&promise, format!("{gain:.1}"), gain >= points);
    }
    let flat: Vec<f64> = [main, &loads[0], &loads[1]]
        .map(|table| mean(table, &plain.name, guaranteed_delay))
        .to_vec();
    let steady = flat.iter().all(|value| (value / flat[0] - 1.0).abs() <= 0.1);
    let shown: Vec<String> = flat.iter().map(|value| format!("{value:.0}")).collect();
    judge.bar(
        "literal: delay of guaranteed jobs flat (± 10 %) at 135, 120, 100 nodes",
        format!("{} s", shown.join(", ")),
        steady,
    );
}
