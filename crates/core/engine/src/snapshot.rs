//! Saving and restoring an engine.

use crate::settings::EngineSettings;
use crate::state::State;
use serde::{Deserialize, Serialize};

/// An engine between two steps. Serialise it with any serde format; the version travels inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub(crate) version: u32,
    pub(crate) policy: String,
    pub(crate) settings: EngineSettings,
    pub(crate) state: State,
}

/// Why a snapshot was not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Written by a release with another layout.
    #[error("snapshot has version {found}, this release reads version {expected}")]
    Version {
        /// In the snapshot.
        found: u32,
        /// Of this release.
        expected: u32,
    },
    /// Written under another policy.
    #[error("snapshot was taken under policy `{found}`, not `{given}`")]
    Policy {
        /// In the snapshot.
        found: String,
        /// Given to restore.
        given: String,
    },
}

impl Snapshot {
    /// The layout this release writes and reads. Raised by every change of the state's fields.
    pub const VERSION: u32 = 4;
}
