//! Every figure of a run, with its definition and unit.
//!
//! A simulator leaves a [`RunRecord`]; everything else is computed from it here, so that two
//! programs that agree on the records agree on every figure.

mod job_record;
mod run_record;
mod usage;

pub use job_record::JobRecord;
pub use run_record::{Counters, RunRecord};
pub use usage::{ArrivalWindow, Usage, UsageMeter};
