//! What came out of a simulation: a table, a JSON object, a folder.

mod document;
mod folder;
mod limits;
mod numbers;
mod quotas;
mod sharing;
mod table;

pub use document::line as json_line;
pub use folder::write_folder;
pub use numbers::{grouped, with_decimals};
pub use table::{plain_table, table};

use crate::inputs::Inputs;
use crate::settings::Settings;
use deepshare_metrics::{RunRecord, Summary};
use deepshare_sim::SimSettings;
use serde::Serialize;

/// A finished simulation.
pub struct Report<'a> {
    /// The settings, with nothing left to be decided.
    pub settings: &'a Settings,
    /// Jobs and cluster.
    pub inputs: &'a Inputs,
    /// What decided each run, by policy.
    pub runs: &'a [SimSettings],
    /// What became of every job, by policy.
    pub records: &'a [RunRecord],
    /// The figures of each of `records`.
    pub summaries: Vec<Summary>,
}

/// The figures of a run and what they were got under.
#[derive(Serialize)]
pub struct Run<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// The capacity mode.
    capacity: &'static str,
    /// Where the classes of jobs come from.
    classes: String,
}

impl Report<'_> {
    /// Every run, in the order of the policies asked for.
    pub fn runs(&self) -> Vec<Run<'_>> {
        let run = |(settings, summary): (&SimSettings, _)| Run {
            summary,
            capacity: settings.engine.capacity.name(),
            classes: settings.classes.name(),
        };
        self.runs.iter().zip(&self.summaries).map(run).collect()
    }
}
