//! What reading a trace dropped and assumed, so that nothing happens in silence.

use crate::options::Format;
use std::fmt;

/// An account of how a file became a trace.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ImportReport {
    /// The file as it was named; empty for a generated trace.
    pub file: String,
    /// The format it was read as; `None` for a generated trace.
    pub format: Option<Format>,
    /// Rows of the file, without the header.
    pub rows: u64,
    /// Rows that became jobs.
    pub kept: u64,
    /// Rows left out, by reason, in the order of [`DropReason::ALL`]; only reasons that occurred.
    pub dropped: Vec<(DropReason, u64)>,
    /// Columns that the file lacks and what was assumed instead.
    pub imputed: Vec<Imputed>,
    /// The civil date and time that became time zero; `None` if the file has numeric times.
    pub origin: Option<String>,
    /// Jobs that run for no time at all.
    pub zero_durations: u64,
    /// Anything else a reader of results should know.
    pub notes: Vec<String>,
}

/// Why a row is not a job of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// It asks for no GPU.
    NoGpu,
    /// Its tenant is not one of the cluster's.
    UnknownTenant,
    /// It was submitted before the earliest time kept, or before time zero.
    TooEarly,
    /// It was submitted outside the window.
    OutsideWindow,
}

/// A column the file lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Imputed {
    /// The column.
    pub column: &'static str,
    /// What was assumed for every job.
    pub assumed: &'static str,
}

impl DropReason {
    /// Every reason, in the order they are checked.
    pub const ALL: [DropReason; 4] = [
        DropReason::NoGpu,
        DropReason::UnknownTenant,
        DropReason::TooEarly,
        DropReason::OutsideWindow,
    ];

    /// The reason in words, to follow a number of rows.
    pub fn words(self) -> &'static str {
        match self {
            DropReason::NoGpu => "ask for no GPU",
            DropReason::UnknownTenant => "tenant not in cluster",
            DropReason::TooEarly => "submitted before the start",
            DropReason::OutsideWindow => "submitted outside the window",
        }
    }
}

impl ImportReport {
    /// The report of a file nothing has been read of yet.
    pub(crate) fn of(file: &str, format: Option<Format>) -> ImportReport {
        ImportReport {
            file: file.to_owned(),
            format,
            rows: 0,
            kept: 0,
            dropped: Vec::new(),
            imputed: Vec::new(),
            origin: None,
            zero_durations: 0,
            notes: Vec::new(),
        }
    }

    /// Counts `n` rows left out for `reason`.
    pub(crate) fn drop_rows(&mut self, reason: DropReason, n: u64) {
        if n == 0 {
            return;
        }
        match self.dropped.binary_search_by_key(&reason, |&(r, _)| r) {
            Ok(at) => self.dropped[at].1 += n,
            Err(at) => self.dropped.insert(at, (reason, n)),
        }
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.file.is_empty() { "generated trace" } else { &self.file };
        write!(f, "{name}: {} of {} rows are jobs", self.kept, self.rows)?;
        for (reason, n) in &self.dropped {
            write!(f, "\n  {n} dropped: {}", reason.words())?;
        }
        if let Some(origin) = &self.origin {
            write!(f, "\n  time zero is {origin}")?;
        }
        for imputed in &self.imputed {
            write!(f, "\n  no column {}: {}", imputed.column, imputed.assumed)?;
        }
        if self.zero_durations > 0 {
            write!(f, "\n  {} jobs have a duration of 0", self.zero_durations)?;
        }
        for note in &self.notes {
            write!(f, "\n  {note}")?;
        }
        Ok(())
    }
}
