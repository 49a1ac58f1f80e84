//! `deepshare reproduce`: published results, replayed.

mod published;
mod venus;

use crate::args::{ReproduceArgs, Reproduction};
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If the data are not there, or what comes out is not what was published.
pub fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    match &args.what {
        Reproduction::Venus { data, json } => venus::run(data.as_deref(), *json),
    }
}
