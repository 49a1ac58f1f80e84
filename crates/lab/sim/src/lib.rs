//! Drives the engine faster than real time.
//!
//! [`simulate`] replays a trace on a cluster under one policy. The simulator owns the truth (how
//! long jobs really run, when nodes fail, what becomes of a command) and feeds the engine events;
//! it holds no scheduling rule. Time is in whole microseconds and events at one instant have a
//! total order, so a run depends on its inputs and seed alone.
//!
//! Order of one instant: ends of jobs, then changes of nodes, then arrivals, then what the world
//! has to say about commands, each in the order they were caused; last the wake, in which the
//! policy decides.

mod actuation;
mod auditing;
mod classes;
pub mod compat;
mod error;
mod estimates;
mod interference;
mod outages;
mod pace;
mod queue;
mod quota_meter;
mod restart;
mod settings;
mod simulation;
mod sweep;
mod telemetry;
mod workload;
mod world;

pub use actuation::{Actuation, Delay};
pub use auditing::auditor_of;
pub use classes::Classes;
pub use error::SimError;
pub use estimates::Estimator;
pub use interference::{ClassUse, Interference, SharedInterference};
pub use outages::{Outage, OutageKind, OutageModel, Outages, read_outages};
pub use restart::Restart;
pub use settings::{Oversize, SimSettings};
pub use simulation::{Watch, simulate};
pub use sweep::simulate_all;
pub use workload::Workload;
