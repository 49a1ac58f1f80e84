//! Pools and tables of pairs that come with the program, by name. Sources and licences of every
//! figure are in `examples/training/README.md`.

use crate::configurations::{ConfigurationsFile, read_configurations_from};
use crate::pairs::{PairOptions, PairTable, read_pairs_from};
use deepshare_trace::TraceError;
use std::io::Cursor;

/// A file that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// What to call it by.
    pub name: &'static str,
    /// Its path in the repository.
    pub path: &'static str,
    /// What it holds.
    pub text: &'static str,
}

macro_rules! shipped {
    ($name:literal, $file:literal) => {
        Shipped {
            name: $name,
            path: concat!("examples/training/", $file),
            text: include_str!(concat!("../../../../examples/training/", $file)),
        }
    };
}

/// Pools of training configurations.
pub const SHIPPED_CONFIGURATIONS: [Shipped; 2] =
    [shipped!("six-models", "six-models.csv"), shipped!("pool-29", "pool-29.csv")];

/// Tables of pairs of those.
pub const SHIPPED_PAIRS: [Shipped; 3] = [
    shipped!("six-models", "six-models-pairs.csv"),
    shipped!("six-models-p100", "six-models-pairs-p100.csv"),
    shipped!("pool-29", "pool-29-pairs.csv"),
];

impl Shipped {
    /// Reads it as a pool of training configurations.
    ///
    /// # Errors
    /// If it is none.
    pub fn configurations(&self) -> Result<ConfigurationsFile, TraceError> {
        read_configurations_from(self.path, Cursor::new(self.text.as_bytes()))
    }

    /// Reads it as a table of pairs.
    ///
    /// # Errors
    /// If it is none.
    pub fn pairs(&self) -> Result<PairTable, TraceError> {
        read_pairs_from(self.path, self.text.as_bytes(), &PairOptions::default())
    }
}
