//! Where a table of workloads says which one a row is of.

use crate::workload::Workload;
use deepshare_trace::Problem;
use deepshare_trace::tables::{Column, Row};

/// The columns that tell workloads apart.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadColumns {
    /// Name of the model; must not be empty.
    pub model: Column,
    /// Name of the data set; may be empty, or not there.
    pub dataset: Option<Column>,
    /// Samples in a batch.
    pub batch: Column,
    /// 1 for mixed precision, else 0; may not be there.
    pub amp: Option<Column>,
}

impl WorkloadColumns {
    /// The workload of a row.
    ///
    /// # Errors
    /// What is wrong with the row, if anything is.
    pub fn workload(&self, row: &Row<'_>) -> Result<Workload, Problem> {
        let dataset = match self.dataset {
            Some(column) => row.optional_name(column)?.unwrap_or_default(),
            None => "",
        };
        Ok(Workload {
            model: row.name(self.model, "name what the job runs")?.to_owned(),
            dataset: dataset.to_owned(),
            batch: batch(row, self.batch)?,
            mixed_precision: self.amp.map_or(Ok(false), |column| flag(row, column))?,
        })
    }
}

/// A batch size.
pub(crate) fn batch(row: &Row<'_>, column: Column) -> Result<u32, Problem> {
    let value = row.whole(column, u64::from(u32::MAX), "give samples in a batch, 0 if unknown")?;
    Ok(u32::try_from(value).expect("limited just above"))
}

/// 0 or 1.
pub(crate) fn flag(row: &Row<'_>, column: Column) -> Result<bool, Problem> {
    let text = row.text(column);
    match text {
        _ if text == "0" || text.eq_ignore_ascii_case("false") => Ok(false),
        _ if text == "1" || text.eq_ignore_ascii_case("true") => Ok(true),
        _ => Err(row.problem(column, "is neither 0 nor 1", "say 1 for mixed precision, else 0")),
    }
}

/// Per cent as a share.
pub(crate) fn share(row: &Row<'_>, column: Column) -> Result<f64, Problem> {
    let remedy = "give per cent, 0 to 100";
    Ok(row.scaled(column, 4, 1_000_000, remedy)? as f64 / 1e6)
}
