//! DeepShare on a real API server: what tests in `tests/` share.
//!
//! - [`Beds`]: control planes on which tests take turns.
//! - [`Bed`]: one of them, with simulated nodes on demand.
//! - [`Scheduler`]: the scheduler as a process, to be stopped, paused or killed.
//! - [`Gate`]: what it asks of the API server, request by request, and a trap for one of them.
//! - [`Stage`]: nodes and tenants of one test, and what is true at its end whatever happened.
//! - [`play`]: a script of `scenarios/kubernetes/` on that cluster; the lab runs the same file.
//! - [`Evidence`]: what the API server's objects alone say, for whoever does not trust our memory.

mod bed;
mod beds;
mod decisions;
mod evidence;
mod gate;
mod objects;
mod player;
mod scheduler;
mod script;
mod stage;

pub use bed::{Bed, root, wait};
pub use beds::Beds;
pub use decisions::{Decided, decided, expected, matches};
pub use evidence::{Evidence, PodSeen};
pub use gate::{Gate, Moment, Write};
pub use objects::{JobDraft, PodDraft, quota_with};
pub use player::{Played, play};
pub use scheduler::Scheduler;
pub use stage::{Stage, replayed};
