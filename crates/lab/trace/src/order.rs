//! The order of simultaneous jobs from a file.
//!
//! Published replays break ties with an unstable sort, so which of two jobs submitted in the same
//! second goes first is an input of its own.

use crate::error::{Problem, Problems, TraceError, quote};
use crate::source::Lines;
use crate::table::Table;
use crate::trace::Trace;
use std::collections::BTreeSet;
use std::path::Path;

/// Sorts the jobs of `trace` by submission and then by their position in the file at `path`. Ids
/// of rows that did not become jobs are passed over.
pub(crate) fn apply(
    trace: &mut Trace,
    path: &Path,
    max_lines: u64,
    dropped_ids: &BTreeSet<String>,
) -> Result<(), TraceError> {
    let mut table = Table::new(Lines::open(path, max_lines)?)?;
    let mut problems = Problems::of(table.file());
    let Some(column) = table.column("job_id", &mut problems) else {
        return Err(problems.fatal(Problem::at(
            1,
            "the header lacks the column job_id",
            "give a CSV file with that column, one job of the trace a line",
        )));
    };
    let by_id = trace.by_id();
    let mut position: Vec<Option<u64>> = vec![None; trace.jobs.len()];
    while let Some(row) = table.next_row(&mut problems)? {
        let id = row.text(column);
        let found = by_id.binary_search_by(|&at| trace.jobs[at].id.as_str().cmp(id));
        match found.map(|at| &mut position[by_id[at]]) {
            Ok(slot @ None) => *slot = Some(row.line),
            Ok(Some(first)) => {
                let why = format!("is on line {first} too");
                problems.push(row.problem(column, &why, "name every job once"));
            }
            Err(_) if dropped_ids.contains(id) => {}
            Err(_) => {
                let remedy = "remove the row, or give the order file of this trace";
                problems.push(row.problem(column, "is not a job of the trace", remedy));
            }
        }
    }
    missing(trace, &position, &mut problems);
    problems.check()?;
    let mut order: Vec<usize> = (0..trace.jobs.len()).collect();
    order.sort_by_key(|&at| (trace.jobs[at].submit, position[at]));
    let mut jobs: Vec<_> = std::mem::take(&mut trace.jobs).into_iter().map(Some).collect();
    trace.jobs =
        order.into_iter().map(|at| jobs[at].take().expect("each position occurs once")).collect();
    Ok(())
}

/// Reports the jobs that the order file leaves out, by their line in the trace.
fn missing(trace: &Trace, position: &[Option<u64>], problems: &mut Problems) {
    let absent: Vec<_> =
        trace.jobs.iter().zip(position).filter(|(_, p)| p.is_none()).map(|(job, _)| job).collect();
    let Some(first) = absent.first() else { return };
    problems.push(Problem::of_file(
        format!(
            "it leaves out {} of the trace's jobs, the first {} (line {} of {})",
            absent.len(),
            quote(&first.id),
            first.row,
            trace.report.file
        ),
        "name every job once",
    ));
}
