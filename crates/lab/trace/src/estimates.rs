//! Run-time estimates from a file: `job_id,priority`, in seconds.

use crate::error::{Problem, Problems, TraceError, quote};
use crate::number::{BadNumber, parse_scaled};
use crate::source::Lines;
use crate::table::Table;
use crate::trace::Trace;
use deepshare_model::Span;
use std::io::Read;
use std::path::Path;

/// Most lines of an estimates file.
const MAX_LINES: u64 = 50_000_000;

/// One estimate for each job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimates {
    /// The estimates, in trace order.
    pub values: Vec<Span>,
    /// Rows about jobs that are not in the trace.
    pub ignored: u64,
    /// Negative estimates of jobs of the trace that were replaced.
    pub replaced: u64,
}

/// Reads an estimate for every job of `trace` from `path`. A negative one is replaced by
/// `negative_as`, or refused if that is `None`.
///
/// # Errors
/// If the file cannot be read, an estimate is not a number, given twice, negative and not to be
/// replaced, or a job has none.
pub fn read_estimates(
    path: &Path,
    trace: &Trace,
    negative_as: Option<Span>,
) -> Result<Estimates, TraceError> {
    read(Lines::open(path, MAX_LINES)?, trace, negative_as)
}

/// As [`read_estimates`], from something open that messages call `name`.
///
/// # Errors
/// As [`read_estimates`].
pub fn read_estimates_from(
    name: &str,
    input: impl Read + 'static,
    trace: &Trace,
    negative_as: Option<Span>,
) -> Result<Estimates, TraceError> {
    read(Lines::new(name.to_owned(), input, MAX_LINES)?, trace, negative_as)
}

fn read(lines: Lines, trace: &Trace, negative_as: Option<Span>) -> Result<Estimates, TraceError> {
    let mut table = Table::new(lines)?;
    let mut problems = Problems::of(table.file());
    let id = table.column("job_id", &mut problems);
    let estimate = table.column("priority", &mut problems);
    let (Some(id), Some(estimate)) = (id, estimate) else {
        let absent = [("job_id", id), ("priority", estimate)];
        let names: Vec<_> = absent.iter().filter(|c| c.1.is_none()).map(|c| c.0).collect();
        let what = format!("the header lacks {}", names.join(" and "));
        return Err(problems.fatal(Problem::at(
            1,
            what,
            "give a CSV file with the columns job_id,priority (seconds)",
        )));
    };
    let by_id = trace.by_id();
    let mut values: Vec<Option<(Span, u64)>> = vec![None; trace.jobs.len()];
    let (mut ignored, mut replaced) = (0, 0);
    while let Some(row) = table.next_row(&mut problems)? {
        let name = row.text(id);
        let found = by_id.binary_search_by(|&at| trace.jobs[at].id.as_str().cmp(name));
        let Ok(at) = found.map(|at| by_id[at]) else {
            ignored += 1;
            continue;
        };
        if let Some((_, line)) = values[at] {
            let why = format!("is on line {line} too");
            problems.push(row.problem(id, &why, "give one estimate a job"));
            continue;
        }
        let value = match (parse_scaled(row.text(estimate), 6), negative_as) {
            (Err(BadNumber::Negative), Some(instead)) => {
                replaced += 1;
                Ok(instead)
            }
            (Err(BadNumber::Negative), None) => Err("is a negative estimate"),
            // Half the range leaves room for sums.
            (Ok(micros), _) if micros > u64::MAX / 2 => Err(BadNumber::TooLarge.why()),
            (Ok(micros), _) => Ok(Span(micros)),
            (Err(bad), _) => Err(bad.why()),
        };
        match value {
            Ok(span) => values[at] = Some((span, row.line)),
            Err(why) => {
                problems.push(row.problem(estimate, why, "give an estimate in seconds, 0 or more"));
                // Known to be there, so that it is not reported as missing as well.
                values[at] = Some((Span::ZERO, row.line));
            }
        }
    }
    missing(trace, &values, &mut problems);
    problems.check()?;
    let values = values.into_iter().flatten().map(|(span, _)| span).collect();
    Ok(Estimates { values, ignored, replaced })
}

/// Reports jobs without an estimate, naming the first few.
fn missing(trace: &Trace, values: &[Option<(Span, u64)>], problems: &mut Problems) {
    let absent: Vec<String> = (trace.jobs.iter().zip(values))
        .filter(|(_, value)| value.is_none())
        .map(|(job, _)| quote(&job.id))
        .collect();
    if absent.is_empty() {
        return;
    }
    let first = absent[..absent.len().min(5)].join(", ");
    let dots = if absent.len() > 5 { ", …" } else { "" };
    problems.push(Problem::of_file(
        format!("no estimate for {} jobs of the trace: {first}{dots}", absent.len()),
        "add a row for each, or use another source of estimates",
    ));
}
