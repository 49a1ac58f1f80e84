//! Job arrays: rows that stand for several jobs.

use crate::error::{Problem, Problems, TraceError, quote};
use crate::report::ImportReport;
use crate::trace::TraceJob;
use std::collections::{BTreeMap, BTreeSet};

/// The ids of the jobs that a row stands for.
pub(super) fn ids(row: &TraceJob, arrays: &BTreeMap<u64, u32>) -> Vec<String> {
    match arrays.get(&row.row) {
        Some(&tasks) => (0..tasks).map(|number| format!("{}_{number}", row.id)).collect(),
        None => vec![row.id.clone()],
    }
}

/// The jobs that `rows` stand for, at most `most`, in the same order. Those of an array are called
/// by its id and their number, `ID_0` and on, and keep its line.
pub(super) fn expand(
    rows: Vec<TraceJob>,
    arrays: &BTreeMap<u64, u32>,
    most: u64,
    report: &mut ImportReport,
) -> Result<Vec<TraceJob>, TraceError> {
    if arrays.is_empty() {
        return Ok(rows);
    }
    let mut problems = Problems::of(&report.file);
    let tasks = |row: &TraceJob| arrays.get(&row.row).copied();
    let all: u64 = rows.iter().map(|row| u64::from(tasks(row).unwrap_or(1))).sum();
    if all > most {
        let what = format!("its job arrays make {all} jobs, more than {most}");
        return Err(problems.fatal(Problem::of_file(what, "give a smaller trace")));
    }
    let of_arrays = || rows.iter().filter_map(tasks);
    report.notes.push(format!(
        "{} rows are job arrays, of {} jobs in all",
        of_arrays().count(),
        of_arrays().map(u64::from).sum::<u64>()
    ));
    clashes(&rows, arrays, &mut problems);
    problems.check()?;
    let jobs = rows.into_iter().flat_map(|row| {
        let names = ids(&row, arrays);
        names.into_iter().map(move |id| TraceJob { id, ..row.clone() })
    });
    Ok(jobs.collect())
}

/// Reports ids that both a row and a job of an array have.
fn clashes(rows: &[TraceJob], arrays: &BTreeMap<u64, u32>, problems: &mut Problems) {
    let single = |row: &&TraceJob| !arrays.contains_key(&row.row);
    let plain: BTreeSet<&str> = rows.iter().filter(single).map(|row| row.id.as_str()).collect();
    for row in rows.iter().filter(|row| arrays.contains_key(&row.row)) {
        if let Some(id) = ids(row, arrays).iter().find(|id| plain.contains(id.as_str())) {
            let what = format!("a job of this array is called {}, as another row is", quote(id));
            problems.push(Problem::at(row.row, what, "give one of the two another id"));
        }
    }
}
