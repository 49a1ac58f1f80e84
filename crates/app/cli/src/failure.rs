//! How a command can fail, and the exit status that says so.

use crate::settings::Problem;
use deepshare_event_log::LogError;
use deepshare_lucid::LucidError;
use deepshare_metrics::JobsCsvError;
use deepshare_sim::SimError;
use deepshare_trace::TraceError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How a command can fail.
#[derive(Debug, Error)]
pub enum Failure {
    /// The settings do not make sense.
    #[error("{}", list(.0))]
    Settings(Vec<Problem>),
    /// The command line does not make sense, or a file is not there or not what it should be.
    #[error("{0}")]
    Usage(String),
    /// An input file cannot be used.
    #[error("{0}")]
    Input(#[from] TraceError),
    /// A file of results cannot be used.
    #[error("{0}")]
    Results(#[from] JobsCsvError),
    /// An event log cannot be read.
    #[error("{0}")]
    Log(#[from] LogError),
    /// A run could not begin or did not end well.
    #[error("{0}")]
    Run(#[from] SimError),
    /// Lucid's artifact could not have run this.
    #[error("{0}")]
    Lucid(#[from] LucidError),
    /// Runs ended well and did not show what they should.
    #[error("{0}")]
    Differs(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}; check the disk and the permissions", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output failed.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// Whoever read standard output has had enough.
    #[error("nobody reads standard output any more")]
    Pipe,
}

impl Failure {
    /// A file could not be written.
    pub fn write(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_owned();
        move |source| Failure::Write { path, source }
    }

    /// What to tell the user; nothing where the reader of our output has gone.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Pipe => None,
            Failure::Run(SimError::Interrupted) => {
                Some("interrupted; nothing was written".to_owned())
            }
            other => Some(other.to_string()),
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Pipe => 0,
            Failure::Run(SimError::Interrupted) => 130,
            Failure::Settings(_)
            | Failure::Usage(_)
            | Failure::Input(_)
            | Failure::Log(_)
            | Failure::Results(_) => 2,
            Failure::Run(
                SimError::NoPartitions
                | SimError::NoQuotas { .. }
                | SimError::Oversize { .. }
                | SimError::Outages { .. },
            ) => 2,
            Failure::Lucid(LucidError::Stuck { .. }) => 1,
            Failure::Lucid(_) => 2,
            Failure::Run(_) | Failure::Differs(_) | Failure::Write { .. } | Failure::Stdout(_) => 1,
        }
    }
}

fn list(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        all => {
            let lines: Vec<String> = all.iter().map(|problem| format!("\n  {problem}")).collect();
            format!("{} problems with the settings:{}", all.len(), lines.concat())
        }
    }
}
