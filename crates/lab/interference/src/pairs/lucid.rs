//! `colocate_info.csv` of Lucid's artifact: speeds as fractions of each job's solo speed.

use super::{PairRow, PairTable, both, columns, on_gpus};
use crate::contention::Mechanism;
use crate::workload::Workload;
use crate::workload_columns::{batch, flag};
use deepshare_trace::tables::{Column, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};

const COLUMNS: [&str; 12] = [
    "model1",
    "dataset1",
    "gpu_num1",
    "batchsize1",
    "amp1",
    "speed1",
    "model2",
    "dataset2",
    "gpu_num2",
    "batchsize2",
    "amp2",
    "speed2",
];

pub(super) fn read(
    table: &mut Table,
    pairs: &mut PairTable,
    problems: &mut Problems,
) -> Result<(), TraceError> {
    // Its profiling code sets up no MPS.
    pairs.mechanism = Some(Mechanism::TimeSlicing);
    let at = columns(table, COLUMNS, problems)?;
    while let Some(row) = table.next_row(problems)? {
        match pair(&row, &at) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn pair(row: &Row<'_>, at: &[Column; 12]) -> Result<PairRow, Problem> {
    Ok(PairRow {
        one: workload(row, &at[..5])?,
        other: workload(row, &at[6..11])?,
        retention: both(row, [at[5], at[11]])?,
        line: row.line,
    })
}

fn workload(row: &Row<'_>, at: &[Column]) -> Result<Workload, Problem> {
    let gpus = row.whole(at[2], 1 << 20, "give the number of GPUs")?;
    Ok(Workload {
        model: on_gpus(row.name(at[0], "name what the job runs")?, gpus),
        dataset: row.optional_name(at[1])?.unwrap_or_default().to_owned(),
        batch: batch(row, at[3])?,
        mixed_precision: flag(row, at[4])?,
    })
}
