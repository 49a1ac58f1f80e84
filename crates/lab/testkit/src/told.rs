//! What an engine was made of and told, to be told to another.

use crate::scenario::{ScenarioError, Strain, play};
use deepshare_engine::{EngineSettings, Event};
use deepshare_model::Time;
use deepshare_policies::PolicyConfig;

/// An engine's whole life, from nothing on.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its policy.
    pub policy: PolicyConfig,
    /// Its settings.
    pub settings: EngineSettings,
    /// All that it was told, in order.
    pub events: Vec<(Time, Event)>,
}

/// What the engine of a script is told.
///
/// # Errors
/// As [`crate::run_scenario`].
pub fn told_in_scenario(text: &str) -> Result<Told, ScenarioError> {
    play(text, Strain::None).map(|(_, story)| story.told())
}
