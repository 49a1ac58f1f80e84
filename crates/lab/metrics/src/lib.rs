//! Every figure of a run, with its definition and unit.
//!
//! A simulator leaves a [`RunRecord`]; everything else is computed from it here, so that two
//! programs that agree on the records agree on every figure.

mod assurance;
mod bootstrap;
mod bound;
mod comparison;
mod distribution;
mod figures;
mod job_record;
mod jobs_csv;
mod quota_record;
mod result_hash;
mod run_record;
#[cfg(test)]
mod sample;
mod seconds;
mod size_bucket;
mod summary;
mod usage;

pub use assurance::{ASSURANCE_LEVELS, AssuranceMeter, Assured, Standing, TenantAssurance};
pub use bound::{Bound, BoundJob};
pub use comparison::{Change, ClassChanges, Comparison, PairedDifference, Pairs};
pub use distribution::Distribution;
pub use figures::{
    Better, Consistency, Figure, JobFigures, LimitFigures, Limited, QuotaFigures, RunFigures,
    Scope, SharedJobFigures, SharingFigures, Value, Valued, registry,
};
pub use job_record::JobRecord;
pub use jobs_csv::{
    JOB_COLUMNS, JobColumn, JobTable, JobsCsvError, Names, read_jobs_csv, write_jobs_csv,
};
pub use quota_record::{Avoidable, PreemptionDecision, PreemptionRecord, QuotaRecord};
pub use result_hash::result_hash;
pub use run_record::{Counters, PairRecord, RunRecord};
pub use seconds::{ExactSeconds, NotSeconds, parse_seconds};
pub use size_bucket::SizeBucket;
pub use summary::{Group, Summary};
pub use usage::{ArrivalWindow, SharingLevels, Usage, UsageMeter};
