//! What came out of a simulation: a table, a JSON object, a folder.

mod document;
mod folder;
mod numbers;
mod quotas;
mod table;

pub use document::line as json_line;
pub use folder::write_folder;
pub use numbers::{grouped, with_decimals};
pub use table::{plain_table, table};

use crate::inputs::Inputs;
use crate::settings::Settings;
use deepshare_metrics::{RunRecord, Summary};

/// A finished simulation.
pub struct Report<'a> {
    /// The settings, with nothing left to be decided.
    pub settings: &'a Settings,
    /// Jobs and cluster.
    pub inputs: &'a Inputs,
    /// What became of every job, by policy.
    pub records: &'a [RunRecord],
    /// The figures of each of `records`.
    pub summaries: Vec<Summary>,
}
