//! DeepShare on a real API server. One program for all of it, so that what waits runs side by side.

mod coexistence;
mod complaints;
mod failover;
mod getting_started;
mod random;
mod scenarios;

/// The scheduler, built as it is shipped.
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler-under-test");
