//! What the project promises of limits, and whether it holds.

use super::Table;
use super::cells::{Cell, Outcome};
use super::rivals::{CAUTIOUS, GUESSED, ORDINARY, PREDICTED, REACTIVE, TIME_AWARE, TRUTH, WEIGHED};
use super::worlds::ERROR;
use crate::tables::say;

/// A limit can be worth something where the true slowdowns save at least this, per cent.
const LEAST_SAVED: f64 = 10.0;
/// And where ordinary sharing violates at least this, per cent of jobs that share.
const LEAST_VIOLATED: f64 = 5.0;
/// Fewer than this may be over their limit, per cent of jobs that share.
const MOST_OVER: f64 = 1.0;
/// At least this part of what can be saved is, per cent.
const LEAST_OF_POSSIBLE: f64 = 70.0;

fn over(cell: &Cell, name: &str) -> f64 {
    cell.line(name).count(|outcome| outcome.shared).percent()
}

fn over_requeued(cell: &Cell, name: &str) -> f64 {
    cell.line(name).count(|outcome| outcome.shared_requeued).percent()
}

fn applies(cell: &Cell) -> bool {
    cell.line(TRUTH).saved() >= LEAST_SAVED && over(cell, ORDINARY) >= LEAST_VIOLATED
}

fn verdict(cell: &Cell, name: &str) -> &'static str {
    let kept = over(cell, name) < MOST_OVER
        && cell.of_possible(name).is_some_and(|part| part >= LEAST_OF_POSSIBLE);
    match (applies(cell), kept) {
        (false, _) => "does not apply",
        (true, true) => "met",
        (true, false) => "**missed**",
    }
}

/// Every promise.
pub fn judge(tables: &[Table]) -> String {
    let mut text = String::new();
    say(
        &mut text,
        format!(
            "\n### What was promised\n\nWhere a scheduler with the true slowdowns saves at least \
             {LEAST_SAVED} % of the GPU time and ordinary sharing takes at least {LEAST_VIOLATED} \
             % of the jobs that share over their limit: fewer than {MOST_OVER} % over it **and** \
             at least {LEAST_OF_POSSIBLE} % of that saving, told slowdowns with a mean error of \
             {ERROR} on pairs not seen before. Clock: time on GPUs. Defaults: steady check, 50 % \
             chance, guard, μ = 0.\n\n\
             | table | limit | true slowdowns save, % | ordinary: over, % | over, % | of the \
             saving, % | | 90 %, no guard: over, % | of the saving, % | |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |\n"
        ),
    );
    for table in tables {
        for cell in &table.cells {
            row(&mut text, &table.world.name, cell);
        }
    }
    held_out(&mut text, tables);
    for_the_record(&mut text, tables);
    text
}

fn row(text: &mut String, table: &str, cell: &Cell) {
    let limit = f64::from(cell.limit_milli) / 1_000.0;
    let (saved, ordinary) = (cell.line(TRUTH).saved(), over(cell, ORDINARY));
    say(text, format!("| {table} | {limit:.1} | {saved:.1} | {ordinary:.1} |"));
    for name in [PREDICTED, CAUTIOUS] {
        let part = cell.of_possible(name).unwrap_or(0.0);
        say(text, format!(" {:.2} | {part:.0} | {} |", over(cell, name), verdict(cell, name)));
    }
    say(text, "\n");
}

fn held_out(text: &mut String, tables: &[Table]) {
    say(
        text,
        "\n| table | mean error of predicted slowdowns | ≤ 0.08 | 70th percentile of held-out \
         errors | 90th |\n| --- | ---: | --- | ---: | ---: |\n",
    );
    for table in tables {
        let ((reached, seventy), (_, ninety)) =
            (table.world.errors(70, 1), table.world.errors(90, 1));
        let kept = if reached <= ERROR + 1e-4 { "met" } else { "**missed**" };
        let name = &table.world.name;
        say(text, format!("| {name} | {reached:.4} | {kept} | {seventy:+.3} | {ninety:+.3} |\n"));
    }
}

/// What is reported, not promised.
fn for_the_record(text: &mut String, tables: &[Table]) {
    say(text, "\n| for the record | least | most |\n| --- | ---: | ---: |\n");
    let cells = || tables.iter().flat_map(|table| table.cells.iter().map(move |c| (table, c)));
    let mut line =
        |what: &str, get: &dyn Fn(&Cell) -> Option<f64>, only: &dyn Fn(&Cell) -> bool| {
            let named = |(table, cell): (&Table, &Cell)| {
                let limit = f64::from(cell.limit_milli) / 1_000.0;
                Some((get(cell)?, format!("{}, {limit:.1}", table.world.name)))
            };
            let mut values: Vec<(f64, String)> =
                cells().filter(|(_, cell)| only(cell)).filter_map(named).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            if let [least, .., most] = values.as_slice() {
                let shown = |(value, at): &(f64, String)| format!("{value:.1} ({at})");
                say(text, format!("| {what} | {} | {} |\n", shown(least), shown(most)));
            }
        };
    let everywhere = |_: &Cell| true;
    let tight = |cell: &Cell| cell.limit_milli == super::cells::LIMITS[0];
    line("ordinary at limit 1.1: over, %", &|c| Some(over(c, ORDINARY)), &tight);
    line("reactive at limit 1.1: over, %", &|c| Some(over(c, REACTIVE)), &tight);
    line("the same with waiting after a stop", &|c| Some(over_requeued(c, REACTIVE)), &tight);
    line(
        "the default: over with waiting after a stop, %",
        &|c| Some(over_requeued(c, PREDICTED)),
        &applies,
    );
    line(
        "guessed run times (σ = 0.3), steady check: over, %",
        &|c| Some(over(c, GUESSED)),
        &applies,
    );
    line("the same, time-aware check: over, %", &|c| Some(over(c, TIME_AWARE)), &applies);
    line(
        "saving that μ = 1 gives up, %",
        &|c| Some(100.0 * (1.0 - c.line(WEIGHED).saved() / c.line(PREDICTED).saved())),
        &applies,
    );
    let all = |c: &Cell, name: &str| c.line(name).count(|o: &Outcome| o.everybody).percent();
    line(
        "ordinary over, of all jobs, over the default's, times",
        &|c| Some(all(c, ORDINARY) / all(c, PREDICTED)).filter(|value| value.is_finite()),
        &applies,
    );
    line(
        "JCT increase below ordinary sharing's, %",
        &|c| {
            let of = |name: &str| c.line(name).mean("jct_increase_mean");
            Some(100.0 * (1.0 - of(PREDICTED)? / of(ORDINARY)?))
        },
        &everywhere,
    );
}
