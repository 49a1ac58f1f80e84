//! The truth about two jobs on one device, which policies never see.
//!
//! An [`Assignment`] says which [`Profile`] each job of a trace has. [`RetentionMatrix::truth`]
//! says what each profile keeps of its solo speed beside each other one: as measured in a
//! [`PairTable`], and where the table has no such pair, by the [`ContentionModel`].
//! [`RetentionMatrix::predicted`] is what a predictor of a given quality would have said instead.
//!
//! *Retention* is a speed: shared throughput over solo throughput, 1 if the partner is not felt.
//!
//! Formats are described in `docs/formats/profiles.md`, `configurations.md` and `pairs.md`; the
//! model and its quality in `docs/results/contention.md`.

mod assignment;
mod catalogue;
mod configurations;
mod contention;
mod drawn;
mod estimate;
mod matrix;
mod pairs;
mod pool;
mod profiles;
mod random;
mod shipped;
mod workload;
mod workload_columns;

pub use assignment::{Assignment, ProfileSource};
pub use catalogue::Catalogue;
pub use configurations::{
    Configuration, ConfigurationsFile, TrainingProfile, read_configurations,
    read_configurations_from,
};
pub use contention::{Coefficients, ContentionModel, Mechanism};
pub use drawn::built_in_profiles;
pub use estimate::PredictionQuality;
pub use matrix::{Coverage, NotRetention, PairSource, RetentionMatrix};
pub use pairs::{
    Measured, PairFormat, PairOptions, PairRow, PairTable, read_pairs, read_pairs_from,
};
pub use profiles::{ProfilesFile, read_profiles, read_profiles_from};
pub use shipped::{SHIPPED_CONFIGURATIONS, SHIPPED_PAIRS, Shipped};
pub use workload::{Profile, Workload};
pub use workload_columns::WorkloadColumns;
