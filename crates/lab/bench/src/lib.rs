//! What the simulator and the engine cost, and whether their results repeat.
//!
//! Three kinds of evidence, each behind a chore of `cargo xtask`:
//!
//! - [`replays`]: CPU time of whole months under every policy (`bench`). Depends on the machine.
//! - [`hot_paths`]: small, repeatable pieces of work whose instructions can be counted
//!   (`instructions`). Depends on the compiler and hardly on the machine.
//! - [`determinism`]: the same inputs on any number of threads, the same results (`determinism`).

pub mod determinism;
pub mod hot_paths;
pub mod replays;
