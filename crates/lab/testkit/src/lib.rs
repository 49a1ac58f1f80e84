//! What the rest of DeepShare is tested with.
//!
//! - [`run_scenario`]: readable scripts that drive an engine event by event, with the replies
//!   committed beside the script (`scenarios/`, `docs/formats/scenario.md`).
//!
//! The independent auditor watches every step in all of it.

mod scenario;

pub use scenario::{ScenarioError, Strain, run_scenario, run_scenario_under};
