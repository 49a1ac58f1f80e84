//! The project's own experiments: whole tables of runs, each written by one command as a page of
//! the documentation, with seeds and inputs named.
//!
//! [`quotas`] asks what DeepShare's quota assurance is worth on the published Venus month,
//! [`sharing`] what sharing GPUs is, [`when_to_share`] when it pays (SJF-BSBF), [`slowdown_limits`] what a
//! limit of slowdown for each job is.

mod cases;
#[cfg(test)]
mod data;
mod figures;
mod month;
pub mod quotas;
pub mod sharing;
pub mod slowdown_limits;
mod tables;
pub mod when_to_share;

use deepshare_sim::SimError;
use deepshare_trace::TraceError;

/// Why an experiment has no results.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A file of the data folder cannot be used.
    #[error("{0}; is it the data folder?")]
    Data(#[from] TraceError),
    /// A table of Lucid's artifact does not fit the trace.
    #[error(transparent)]
    Lucid(#[from] deepshare_lucid::LucidError),
    /// A run failed.
    #[error("{case}, seed {seed}: {why}")]
    Run {
        /// Which line of which table.
        case: String,
        /// Of which seed.
        seed: u64,
        /// What went wrong.
        why: Box<SimError>,
    },
}
