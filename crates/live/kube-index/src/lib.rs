//! Watched Kubernetes objects into engine events, engine commands into writes.
//!
//! No I/O, no clock, no async: the control loop feeds it what the watches deliver, and a test feeds it
//! whatever it likes. It decides nothing that a policy or the engine decides.
//!
//! Read in this order: [`Driver`] (the engine and the index, stepped together), [`Index`] (objects in,
//! events and writes out), `submit.rs` (pods into jobs), `attempts.rs` (what becomes of commands),
//! `observe.rs` and `outcomes.rs` (what becomes of pods and of writes), `review.rs` (what of it the engine
//! is told), `awaiting.rs` (volumes that come before the Binding), `adopt.rs` (what another scheduler
//! left), `sites.rs` (what a node check honours). The tests in `tests/world` show all of it against a
//! cluster in memory.

pub mod accounting;
mod action;
mod adopt;
mod attempts;
mod awaiting;
mod cluster;
mod devices;
mod driver;
mod gangs;
mod index;
mod interner;
mod jobs;
mod observe;
mod outcomes;
mod pairs;
mod places;
mod pods;
mod provision;
mod read;
pub mod refusal;
pub mod requirements;
mod resize;
mod review;
pub mod selector;
pub mod sites;
mod submit;
mod tenants;
pub mod watched;
mod why;
mod words;

pub use action::{Action, ClaimRef, Outcome, PodRef};
use deepshare_kube_api::quantity;
pub use devices::GpuKind;
pub use driver::{Driver, Record};
pub use gangs::GroupSource;
pub use index::{Change, Config, Index, Named};
pub use jobs::Patience;
