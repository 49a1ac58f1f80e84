//! Our own table of pairs.

use super::{PairRow, PairTable, both, columns};
use crate::contention::Mechanism;
use crate::workload::Workload;
use crate::workload_columns::WorkloadColumns;
use deepshare_trace::tables::{Column, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};

pub(super) const COLUMNS: [&str; 10] = [
    "model_a",
    "dataset_a",
    "batch_a",
    "amp_a",
    "retention_a",
    "model_b",
    "dataset_b",
    "batch_b",
    "amp_b",
    "retention_b",
];

pub(super) fn read(
    table: &mut Table,
    pairs: &mut PairTable,
    problems: &mut Problems,
) -> Result<(), TraceError> {
    let at = columns(table, COLUMNS, problems)?;
    let mechanism = table.column("mechanism", problems);
    while let Some(row) = table.next_row(problems)? {
        let said = mechanism.map_or(Ok(None), |column| said_mechanism(&row, column));
        match (pair(&row, &at), said) {
            (Ok(pair), Ok(said)) => {
                if pairs.rows().is_empty() {
                    pairs.mechanism = said;
                } else if let Some(column) = mechanism.filter(|_| pairs.mechanism != said) {
                    let remedy = "give one file for each mechanism";
                    problems.push(row.problem(column, "is not what rows before say", remedy));
                }
                pairs.push(pair);
            }
            (pair, said) => {
                problems_of(pair.err(), said.err(), problems);
            }
        }
    }
    Ok(())
}

fn problems_of(one: Option<Problem>, other: Option<Problem>, problems: &mut Problems) {
    one.into_iter().chain(other).for_each(|problem| problems.push(problem));
}

fn pair(row: &Row<'_>, at: &[Column; 10]) -> Result<PairRow, Problem> {
    Ok(PairRow {
        one: workload(row, &at[..4])?,
        other: workload(row, &at[5..9])?,
        retention: both(row, [at[4], at[9]])?,
        line: row.line,
    })
}

fn workload(row: &Row<'_>, at: &[Column]) -> Result<Workload, Problem> {
    let [model, dataset, batch, amp] = [at[0], at[1], at[2], at[3]];
    WorkloadColumns { model, dataset: Some(dataset), batch, amp: Some(amp) }.workload(row)
}

fn said_mechanism(row: &Row<'_>, column: Column) -> Result<Option<Mechanism>, Problem> {
    match row.text(column) {
        "" => Ok(None),
        "mps" => Ok(Some(Mechanism::Mps)),
        "time-slicing" => Ok(Some(Mechanism::TimeSlicing)),
        _ => Err(row.problem(column, "is no mechanism", "say mps, time-slicing, or nothing")),
    }
}
