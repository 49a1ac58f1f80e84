//! What the project promises of SJF-BSBF, and whether it holds.

use super::grid::Grid;
use super::lines::{Cell, Key, Line};
use super::truth::{Pairs, TABLES};
use super::{DECLARED, JOBS};
use crate::figures::Interval;
use crate::tables::say;

/// How far below Tiresias it is to be, per cent, and what the paper says.
const BELOW_TIRESIAS: f64 = 20.0;
const PAPER: [f64; 2] = [27.0, 33.0];

/// Whether an interval is at least a bar.
fn verdict(interval: Interval, least: f64) -> &'static str {
    let Interval { mean, half } = interval;
    match () {
        () if mean - half >= least => "met",
        () if mean >= least => "met on average",
        () => "**missed**",
    }
}

/// How much sooner jobs end on average than under another line, per cent.
fn below(grid: &Grid, ours: Key, theirs: Key) -> Interval {
    grid.paired([ours, theirs], |[ours, theirs]| 100.0 * (1.0 - ours / theirs))
}

/// Every promise.
pub(super) fn judge(grid: &Grid) -> String {
    let mut text = String::new();
    say(&mut text, "\n### What was promised\n\n| | measured | |\n| --- | ---: | --- |\n");
    below_ffs(&mut text, grid);
    below_tiresias(&mut text, grid);
    rules(&mut text, grid);
    say(
        &mut text,
        "\nMeans over the seeds of figures paired by seed, with their 95 % intervals (Student's t). A bar \
         is met if the whole interval keeps it, on average if only the mean does.\n",
    );
    text
}

fn below_ffs(text: &mut String, grid: &Grid) {
    for (table, (_, name)) in TABLES.iter().enumerate() {
        for cell in Cell::all() {
            let key = |line| cell.key(Pairs::Table(table), line);
            let gain = below(grid, key(Line::Bsbf), key(Line::Ffs));
            let Cell { jobs, .. } = cell;
            let (load, shown, kept) = (cell.load(), gain.show(1), verdict(gain, 0.0));
            let bar = format!("{name}, {jobs} jobs, load {load}: mean JCT below SJF-FFS");
            say(text, format!("| {bar} | {shown} % | {kept} |\n"));
        }
    }
}

fn below_tiresias(text: &mut String, grid: &Grid) {
    for (table, (_, name)) in TABLES.iter().enumerate() {
        for (jobs, load_milli) in JOBS.into_iter().zip(DECLARED) {
            let cell = Cell { jobs, load_milli };
            let key = |line| cell.key(Pairs::Table(table), line);
            let gain = below(grid, key(Line::Bsbf), key(Line::Tiresias));
            let (load, shown, kept) = (cell.load(), gain.show(1), verdict(gain, BELOW_TIRESIAS));
            let at = format!("{name}, {jobs} jobs, declared load {load}");
            let bar = format!("{at}: mean JCT ≥ {BELOW_TIRESIAS} % below Tiresias");
            say(text, format!("| {bar} | {shown} % | {kept} |\n"));
            let bar = "for the record: the paper's 27 to 33 %";
            say(text, format!("| {at}, {bar} | {shown} % | {} |\n", against_paper(gain)));
            let most = grid.most_to_gain(key(Line::Tiresias)).show(1);
            let bar = "for the record: what there is to gain, were nobody to wait";
            say(text, format!("| {at}, {bar} | {most} % | |\n"));
        }
    }
}

fn against_paper(Interval { mean, half }: Interval) -> &'static str {
    match () {
        () if mean - half > PAPER[1] => "more",
        () if mean + half < PAPER[0] => "less",
        () => "the intervals meet",
    }
}

fn rules(text: &mut String, grid: &Grid) {
    let (mut runs, mut audited, mut preempted, mut revoked) = (0, 0, 0, 0);
    for (_, outcome) in grid.all().filter(|(key, _)| key.line.shares()) {
        runs += 1;
        audited += u32::from(outcome.audited);
        preempted += outcome.preemptions;
        revoked += outcome.revoked;
    }
    let kept = |kept| if kept { "met" } else { "**missed**" };
    // The auditor ends a run that breaks a rule, and with it the experiment.
    let memory = "memory of a GPU is never exceeded: violations found by the auditor";
    say(text, format!("| {memory} | 0 in {audited} runs | {} |\n", kept(audited > 0)));
    let nobody = "nobody who shares is preempted, and no pair broken up";
    let held = kept(preempted + revoked == 0);
    say(text, format!("| {nobody} | {preempted} and {revoked} in {runs} runs | {held} |\n"));
}
