//! Lucid (Hu et al., ASPLOS '23) exactly as the simulator of its artifact behaves.
//!
//! It stands beside the engine, not in it: the artifact breaks rules that the engine holds.
//! Profiling is free, for a job waits for its profile and in its virtual cluster at the same time;
//! of a pair whose older half ends first the younger stays slow for good; and pairs that were never
//! measured run as fast as alone. Its figures are what Lucid was published with, so they are worth
//! having to the second, and worth nothing else. The behaviour is described in
//! `docs/compat-lucid.md`.
//!
//! [`LucidInputs::new`] joins a trace with the artifact's tables, [`simulate`] runs it and
//! [`run_record`] puts what came out into the form of every other run.

mod cluster;
mod echo;
mod error;
mod forecast;
mod inputs;
mod outcome;
mod pair_rule;
mod profiler;
mod progress;
mod record;
mod scores;
mod settings;
mod sharing;
mod simulate;
#[cfg(test)]
mod tests;
mod virtual_cluster;

pub use error::LucidError;
pub use forecast::{Forecast, ForecastRow, read_forecast, read_forecast_from};
pub use inputs::{LucidInputs, LucidJob, LucidVc, Tables, place_forecast};
pub use outcome::{Level, LucidOutcome, LucidRecord, Profiled, Scaling};
pub use record::run_record;
pub use scores::{Scores, read_scores, read_scores_from};
pub use settings::{LucidSettings, ProfilerSettings, Sharing};
pub use simulate::simulate;
