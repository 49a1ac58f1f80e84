//! The program as a whole, run as its users run it.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod compare_and_generate;
mod errors;
mod event_log;
mod interrupting;
mod lucid;
mod reproduction;
mod results;
mod running;
mod training;
