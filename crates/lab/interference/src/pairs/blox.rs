//! `norm_speed.csv` of Blox: large language models cut over GPUs, beside smaller jobs.

use super::{PairRow, PairTable, both, columns, on_gpus};
use crate::workload::Workload;
use deepshare_trace::tables::{Column, Row, Table};
use deepshare_trace::{Problem, Problems, TraceError};

const COLUMNS: [&str; 11] = [
    "model1",
    "dataset1",
    "gpu_num1",
    "batch_size1",
    "speed1",
    "pipeline_strategy",
    "model2",
    "dataset2",
    "gpu_num2",
    "batch_size2",
    "speed2",
];

pub(super) fn read(
    table: &mut Table,
    pairs: &mut PairTable,
    problems: &mut Problems,
) -> Result<(), TraceError> {
    let at = columns(table, COLUMNS, problems)?;
    while let Some(row) = table.next_row(problems)? {
        if row.text(at[6]) == "Empty" {
            pairs.left_out += 1;
            continue;
        }
        match pair(&row, &at) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn pair(row: &Row<'_>, at: &[Column; 11]) -> Result<PairRow, Problem> {
    Ok(PairRow {
        one: workload(row, &at[..4], row.text(at[5]))?,
        other: workload(row, &at[6..10], "NA")?,
        retention: both(row, [at[4], at[10]])?,
        line: row.line,
    })
}

/// A workload whose name tells how it is cut over GPUs: `Bert-Large (2 GPUs, 10,14, micro-batch
/// 16)`.
fn workload(row: &Row<'_>, at: &[Column], strategy: &str) -> Result<Workload, Problem> {
    let name = row.name(at[0], "name what the job runs")?;
    let gpus = row.whole(at[2], 1 << 20, "give the number of GPUs")?;
    let text = row.text(at[3]);
    let (whole, micro) = match text.split_once('/') {
        Some((whole, micro)) => (whole, Some(micro)),
        None => (text, None),
    };
    let number = |text: &str| {
        let remedy = "give samples in a batch, or batch/micro-batch";
        text.parse::<u32>().map_err(|_| row.problem(at[3], "is no batch size", remedy))
    };
    let batch = number(whole)?;
    let model = match micro {
        None if strategy == "NA" => on_gpus(name, gpus),
        None => format!("{name} ({gpus} GPUs, {strategy})"),
        Some(micro) => format!("{name} ({gpus} GPUs, {strategy}, micro-batch {})", number(micro)?),
    };
    let dataset = row.optional_name(at[1])?.unwrap_or_default().to_owned();
    Ok(Workload { model, dataset, batch, mixed_precision: false })
}
