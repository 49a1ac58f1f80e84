//! Job histories and clusters from files, and a generated month that needs no file.
//!
//! [`read_trace`] turns a log into a [`Trace`]: jobs in *trace order* (by submission, ties by row
//! or by an order file), with tenants, users and GPU types as dense ids. [`read_cluster`] reads
//! the machines and quotas, [`read_estimates`] run-time estimates, and [`generate`] makes a month
//! with the published statistics of Helios Venus. Nothing is guessed in silence: what was dropped
//! or assumed is in the [`ImportReport`], and what cannot be right is an error that names file,
//! line, column and remedy.
//!
//! Formats are described in `docs/formats/trace.md` and `docs/formats/cluster.md`.

pub mod civil;
pub mod cluster;
mod error;
mod estimates;
pub mod generate;
mod names;
mod number;
mod options;
mod order;
mod proportion;
mod published;
mod read;
mod report;
mod selection;
mod source;
mod table;
mod times;
mod trace;
mod write;

/// What readers of other tables are made of: lines of a file, whatever it is compressed with, rows of
/// named fields, and how a value looks in a message.
pub mod tables {
    pub use crate::error::quote;
    pub use crate::source::{Lines, read_text};
    pub use crate::table::{Column, Row, Table};
}

pub use cluster::{
    Cluster, ClusterOptions, NodeEntry, TenantEntry, cluster_toml, read_cluster, read_cluster_from,
};
pub use error::{Problem, Problems, TraceError};
pub use estimates::{Estimates, read_estimates, read_estimates_from};
pub use options::{Format, Origin, ReadOptions, TimeOptions, TimeUnit};
pub use proportion::{all_in_proportion, in_proportion};
pub use published::{read_philly_window, read_venus_month};
pub use read::{read_trace, read_trace_from};
pub use report::{DropReason, ImportReport, Imputed};
pub use selection::Selection;
pub use trace::{Trace, TraceJob};
pub use write::write_trace;
