//! The tables of the page.

use super::Table;
use super::cells::{Cell, LENGTHS_S, Line, UNLIMITED_AT};
use super::queue::Lengths;
use super::rivals::{PREDICTED, REACTIVE};
use crate::tables::say;

fn limit(cell: &Cell) -> f64 {
    f64::from(cell.limit_milli) / 1_000.0
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// What was run, and what the tables of pairs are like.
pub fn set_up(text: &mut String, lengths: &Lengths, tables: &[Table], off: f64) {
    say(text, format!("\n### The queue and the tables\n\n{}", lengths.describe()));
    say(
        text,
        format!(
            " Run times are known where nothing else is said. Restarts cost 40 s; readings of a \
             pair come every 10 s with 3 % noise. Jobs draw one of the pool's 29 configurations, \
             for Lucid's table one of those that it has measured. The auditor is on in seed 1. \
             The pool's own pairs are Gavel's on V100 (largest difference to the file in the data \
             folder: {off:.4}).\n\n\
             Slowest over fastest partner: of each configuration, over partners that fit into \
             memory beside it. The paper's 3.7 is such a figure of its own table.\n\n\
             | table | configurations | measured pairs, % | slowest / fastest partner: most | \
             median | pairs within 1.1, % | 1.3, % | 2.0, % |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        ),
    );
    for Table { world, .. } in tables {
        let (classes, measured) = world.size();
        let (most, median) = world.largest_and_median_spread();
        let within = [1.1, 1.3, 2.0].map(|limit| format!("{:.0}", world.within(limit)));
        say(
            text,
            format!(
                "| {} | {classes} | {measured:.0} | {most:.2} | {median:.2} | {} |\n",
                world.name,
                within.join(" | ")
            ),
        );
    }
}

const COLUMNS: &str = "| limit | | over, % of sharing | with waiting after a stop | over, % of \
    all | with waiting after a stop | GPU time saved, % | of the saving of true slowdowns, % | \
    pairs | parted | JCT increase, % | of jobs that shared, % | inconsistency, max / min | \
    variation | makespan, h | mean JCT, h |\n| ---: | --- |";

/// Every line of every limit of a table.
pub fn table(text: &mut String, table: &Table) {
    say(text, format!("\n### {}\n\n{COLUMNS}{}\n", table.world.name, " ---: |".repeat(14)));
    for cell in &table.cells {
        for line in cell.lines.iter().filter(|line| shown(line, cell)) {
            row(text, cell, line);
        }
    }
}

/// Policies that know no limits stand beside the others at one of them.
fn shown(line: &Line, cell: &Cell) -> bool {
    use super::rivals::{BSBF, GANDIVA};
    cell.limit_milli == UNLIMITED_AT || ![GANDIVA, BSBF].contains(&line.name)
}

fn row(text: &mut String, cell: &Cell, line: &Line) {
    let shared = line.count(|o| o.shared);
    let of_shared = |value: f64| match shared.jobs {
        0 => "–".to_owned(),
        _ => format!("{value:.2}"),
    };
    let percents = [
        of_shared(shared.percent()),
        of_shared(line.count(|o| o.shared_requeued).percent()),
        format!("{:.2}", line.count(|o| o.everybody).percent()),
        format!("{:.2}", line.count(|o| o.everybody_requeued).percent()),
        format!("{:.1}", line.saved()),
        number(cell.of_possible(line.name), 0),
    ];
    let figures = [
        ("pairs_formed", 0),
        ("pairs_revoked", 0),
        ("jct_increase_mean", 1),
        ("jct_increase_sharing_mean", 1),
        ("jct_inconsistency_max_over_min", 2),
        ("jct_inconsistency_variation", 3),
        ("makespan_s", 1),
        ("jct_mean_s", 2),
    ];
    let figures = figures.map(|(name, digits)| number(line.mean(name), digits));
    let (percents, figures) = (percents.join(" | "), figures.join(" | "));
    say(text, format!("| {:.1} | {} | {percents} | {figures} |\n", limit(cell), line.name));
}

/// Who is over the limit, by length, where pairs are parted after the fact.
pub fn reactive_by_length(text: &mut String, tables: &[Table]) {
    let [short, long] = LENGTHS_S.map(|s| s / 60);
    say(
        text,
        format!(
            "\n### Over the limit by length\n\nPer cent of the jobs of a length that shared. A \
             minute of readings and a restart are much of a short job. *Stopped*: of those over \
             the limit, the jobs that were stopped at least once.\n\n\
             | table | limit | reactive: < {short} min | {short}–{long} min | > {long} min | \
             stopped, % | the default: < {short} min | {short}–{long} min | > {long} min | over, \
             jobs | of them stopped |\n| --- |{}\n",
            " ---: |".repeat(10)
        ),
    );
    for table in tables {
        for cell in &table.cells {
            say(text, format!("| {} | {:.1} |", table.world.name, limit(cell)));
            for name in [REACTIVE, PREDICTED] {
                let line = cell.line(name);
                for group in 0..3 {
                    say(text, format!(" {:.1} |", line.count(|o| o.by_length[group]).percent()));
                }
                let over = line.count(|o| o.shared).over;
                let stopped: u64 = line.outcomes.iter().map(|o| o.over_and_stopped).sum();
                match name {
                    REACTIVE => {
                        say(text, format!(" {:.0} |", 100.0 * stopped as f64 / over.max(1) as f64));
                    }
                    _ => say(text, format!(" {over} | {stopped} |")),
                }
            }
            say(text, "\n");
        }
    }
}

/// Pairs that were refused, by reason.
pub fn refusals(text: &mut String, tables: &[Table]) {
    say(
        text,
        "\n### Refused pairs\n\nTimes that a job asked for a partner in vain, by the reason of \
         the first that refused it; the default, mean over seeds.\n\n",
    );
    let names: Vec<&String> = {
        let refused = tables.iter().flat_map(|table| &table.cells);
        let refused = refused.flat_map(|cell| &cell.line(PREDICTED).outcomes);
        let mut names: Vec<&String> = refused
            .flat_map(|o| o.refused.iter().filter(|(_, n)| *n > 0).map(|(n, _)| n))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    say(text, "| table | limit |");
    names.iter().for_each(|name| say(text, format!(" {name} |")));
    say(text, format!("\n| --- | ---: |{}\n", " ---: |".repeat(names.len())));
    for table in tables {
        for cell in &table.cells {
            say(text, format!("| {} | {:.1} |", table.world.name, limit(cell)));
            let outcomes = &cell.line(PREDICTED).outcomes;
            for name in &names {
                let of = |outcome: &super::cells::Outcome| {
                    outcome.refused.iter().find(|(n, _)| n == *name).map_or(0, |(_, count)| *count)
                };
                let sum: u64 = outcomes.iter().map(of).sum();
                say(text, format!(" {:.0} |", sum as f64 / outcomes.len().max(1) as f64));
            }
            say(text, "\n");
        }
    }
}
