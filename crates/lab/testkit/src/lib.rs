//! What the rest of DeepShare is tested with.
//!
//! - [`run_scenario`]: readable scripts that drive an engine event by event, with the replies
//!   committed beside the script (`scenarios/`, `docs/formats/scenario.md`).
//! - [`picture`]: the schedule of a script or of anything else, drawn (`cargo xtask pictures`).
//! - [`RandomWorld`]: a seed stands for a cluster, a load, a policy and faults; properties hold in
//!   all of them, and a world that fails can be made smaller.
//! - [`Storm`]: random events straight on an engine, in and out of order, with a twin restored from
//!   snapshots.
//!
//! The independent auditor watches every step in all of it.

mod chance;
mod pairing;
mod picture;
mod scenario;
mod storm;
mod told;
mod traces;
mod worlds;

pub use picture::{Pictures, Recorder, Schedule, ShownJob, Stay, Wait, picture};
pub use scenario::{
    ScenarioError, Strain, record_scenario, run_scenario, run_scenario_under, scenario_files,
};
pub use storm::{Storm, StormDamage};
pub use told::{Told, told_in_scenario};
pub use traces::{plain_job, trace_of};
pub use worlds::{RandomWorld, Trouble};
