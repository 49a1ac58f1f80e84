//! The scheduler process: lease, watches, engine loop, binder, evictor, status writer.
//!
//! Everything here does I/O and decides nothing: the engine decides, and
//! [`deepshare_kube_index`] translates. Read `process.rs` first, then `run_loop.rs`, what feeds it
//! (`feeds.rs`, `watch.rs`), what it feeds (`writes.rs`), and what may stop both at any time
//! (`lease.rs`, `leadership.rs`).

pub mod api;
mod command;
pub mod feeds;
pub mod health;
pub mod leadership;
pub mod lease;
pub mod metrics;
pub mod process;
pub mod recorder;
pub mod retentions;
pub mod run_loop;
pub mod settings;
pub mod watch;
pub mod writes;

pub use command::main;
