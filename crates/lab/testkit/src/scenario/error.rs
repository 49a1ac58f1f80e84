//! What can be wrong with a script, or with the engine it drives.

use deepshare_audit::Violation;
use deepshare_engine::Illegal;
use deepshare_model::Time;

/// Why a script did not run to its end. Lines and columns count from 1.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The script cannot be understood.
    #[error("line {line}, column {column}: {why}; {remedy}")]
    Script {
        /// Where.
        line: usize,
        /// Where in the line, in characters.
        column: usize,
        /// What is wrong.
        why: String,
        /// What to write instead.
        remedy: String,
    },
    /// A rule was broken while the script ran: a defect of engine or policy.
    #[error("line {line}, at {at}: {rule}; this is a defect of the engine or its policy")]
    Broken {
        /// The line that was being carried out.
        line: usize,
        /// The instant.
        at: Time,
        /// Which rule.
        rule: BrokenRule,
    },
}

/// The rule that was broken.
#[derive(Debug, thiserror::Error)]
pub enum BrokenRule {
    /// By the auditor's account.
    #[error(transparent)]
    Audit(Box<Violation>),
    /// By the policy.
    #[error(transparent)]
    Policy(Illegal),
    /// The engine could not be saved and restored.
    #[error("the engine does not survive a snapshot: {0}")]
    Snapshot(String),
    /// Too many rounds at one instant.
    #[error("{rounds} rounds at one instant, and the engine asks for more")]
    Livelock {
        /// Rounds held.
        rounds: u32,
    },
}

/// What went wrong, before the line is known.
#[derive(Debug)]
pub(crate) enum Fault {
    Script { column: usize, why: String, remedy: String },
    Broken { at: Time, rule: BrokenRule },
}

impl Fault {
    pub(crate) fn script(column: usize, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault::Script { column, why: why.into(), remedy: remedy.into() }
    }

    pub(crate) fn at(self, line: usize) -> ScenarioError {
        match self {
            Fault::Script { column, why, remedy } => {
                ScenarioError::Script { line, column, why, remedy }
            }
            Fault::Broken { at, rule } => ScenarioError::Broken { line, at, rule },
        }
    }
}
