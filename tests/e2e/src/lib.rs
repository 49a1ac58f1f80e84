//! DeepShare on a real API server: what tests in `tests/` share.
//!
//! - [`Bed`]: one control plane for a test binary, with simulated nodes on demand.
//! - [`Scheduler`]: the scheduler as a process, to be stopped or killed.
//! - [`play`]: a script of `scenarios/kubernetes/` on that cluster; the lab runs the same file.
//! - [`Evidence`]: what the API server's objects alone say, for whoever does not trust our memory.

mod bed;
mod decisions;
mod evidence;
mod objects;
mod player;
mod scheduler;
mod script;

pub use bed::{Bed, root, wait};
pub use decisions::{Decided, decided, expected, matches};
pub use evidence::{Evidence, PodSeen};
pub use objects::{JobDraft, PodDraft, quota, quota_with};
pub use player::{Played, play};
pub use scheduler::Scheduler;
