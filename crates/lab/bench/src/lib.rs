//! What the simulator and the engine cost, and whether their results repeat.
//!
//! Five kinds of evidence, each behind a chore of `cargo xtask`:
//!
//! - [`replays`]: CPU time of whole months under every policy (`bench`). Depends on the machine.
//! - [`hot_paths`]: small, repeatable pieces of work whose instructions can be counted
//!   (`instructions`). Depends on the compiler and hardly on the machine.
//! - [`latency`]: how long the engine takes for one decision of DeepShare on 10,000 GPUs (`bench
//!   --latency`), in its usual state and where it is worst. Depends on the machine.
//! - [`preset`]: what a million jobs on as many GPUs cost in all (`bench --latency`, too).
//! - [`determinism`]: the same inputs on any number of threads, the same results (`determinism`).

pub mod determinism;
pub mod hot_paths;
mod interference;
pub mod latency;
pub mod preset;
pub mod replays;
