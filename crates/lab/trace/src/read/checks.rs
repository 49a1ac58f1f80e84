//! Checks that need the whole file.

use super::columns::Columns;
use super::{RawJob, UNIT_HINT};
use crate::error::{Problem, Problems, TraceError, quote};
use crate::options::ReadOptions;
use crate::report::ImportReport;

/// Epoch milliseconds of 1973; as seconds, the year 5138.
const LATEST_SUBMIT_S: i64 = 100_000_000_000;
/// Half of the jobs running longer than this is no cluster but another unit: 11.6 days.
const LONGEST_MEDIAN_S: u64 = 1_000_000;
const MICROS: i64 = 1_000_000;

/// Reports a file without rows, ids given twice, and figures in what looks like another unit.
pub(super) fn whole_file(
    jobs: &[RawJob],
    rows: u64,
    columns: &Columns,
    options: &ReadOptions,
    problems: &mut Problems,
) {
    if rows == 0 && problems.is_empty() {
        problems.push(Problem::at(1, "there are no rows below the header", "give one job a line"));
    }
    duplicate_ids(jobs, columns, problems);
    let types = jobs.iter().filter_map(|raw| raw.job.gpu_type).max();
    if types.is_some_and(|t| t.0 == u16::MAX) {
        problems.push(Problem::of_file("more than 65535 GPU types", "check the column gpu_type"));
    }
    if options.time_unit.is_none() {
        suspicious_units(jobs, columns, problems);
    }
}

/// The error of a log whose every row was dropped.
pub(super) fn nothing_left(report: &ImportReport) -> TraceError {
    let reasons: Vec<String> =
        report.dropped.iter().map(|(reason, n)| format!("{n} {}", reason.words())).collect();
    Problems::of(&report.file).fatal(Problem::of_file(
        format!("none of its {} rows is a job to replay ({})", report.rows, reasons.join(", ")),
        "check that cluster and time window belong to this log",
    ))
}

fn duplicate_ids(jobs: &[RawJob], columns: &Columns, problems: &mut Problems) {
    let mut sorted: Vec<&RawJob> = jobs.iter().collect();
    sorted.sort_by(|a, b| (&a.job.id, a.job.row).cmp(&(&b.job.id, b.job.row)));
    let mut twice: Vec<(u64, u64, &str)> = (sorted.windows(2))
        .filter(|pair| pair[0].job.id == pair[1].job.id)
        .map(|pair| (pair[1].job.row, pair[0].job.row, pair[1].job.id.as_str()))
        .collect();
    twice.sort_unstable();
    for (line, first, id) in twice {
        let problem = Problem::at(
            line,
            format!("job {} is on line {first} too", quote(id)),
            "give every job a name of its own, or remove one of the two rows",
        );
        problems.push(match columns.id {
            Some(id) => problem.in_column(id.index(), "job_id"),
            None => problem,
        });
    }
}

fn suspicious_units(jobs: &[RawJob], columns: &Columns, problems: &mut Problems) {
    if let Some(late) = jobs.iter().find(|raw| raw.submit >= LATEST_SUBMIT_S * MICROS) {
        let seconds = late.submit / MICROS;
        let what = format!("submission at {seconds} s looks like milliseconds");
        let problem = Problem::at(late.job.row, what, UNIT_HINT);
        problems.push(problem.in_column(columns.submit.index(), columns.submit_name()));
    }
    let mut durations: Vec<u64> = jobs.iter().map(|raw| raw.job.duration.0).collect();
    if durations.is_empty() {
        return;
    }
    let middle = durations.len() / 2;
    let median_s = *durations.select_nth_unstable(middle).1 / MICROS as u64;
    if median_s > LONGEST_MEDIAN_S {
        problems.push(Problem::of_file(
            format!(
                "half of the durations are {median_s} s or longer, which looks like milliseconds"
            ),
            "name the unit with --set trace.time-unit=ms (or us, or s if these are seconds)",
        ));
    }
}
