//! A second opinion on every scheduling decision.
//!
//! [`Auditor`] watches the stream that a driver and the engine exchange, events in and commands
//! out, and re-derives from it alone who holds what. It shares the engine's *vocabulary* (what an
//! event or a command says) and none of its bookkeeping, so a mistake in the engine's books cannot
//! hide in the auditor's. The first rule that does not hold is returned as a [`Violation`].
//!
//! # How to drive it
//!
//! ```text
//! auditor.event(now, &event)?;           // before the step
//! engine.step(now, &event, &mut out)?;
//! for command in &out {
//!     auditor.command(now, command)?;    // each, in order
//! }
//! auditor.compare(engine.state())?;      // after the step
//! ...
//! auditor.work(job, &ledger)?;           // what truly became of a job, once it is over
//! auditor.finish(end)?;                  // conservation of GPU time over the whole run
//! ```
//!
//! # What it takes for granted
//!
//! Events that are doubled, late or name a past attempt are part of life: they change no book and
//! break no rule. Events about things that never existed are the driver's mistake, and are said.
//!
//! # Where to read next
//!
//! `violation.rs` lists every rule. `books.rs` is what the auditor believes, `books/events.rs` how
//! the world changes it, `books/assurance.rs` the quota assurance degrees that follow, `checks/`
//! what a command must satisfy, `feasible.rs` whether a demand fits, `compare.rs` how its belief is
//! held against the engine's.

mod auditor;
mod books;
mod checks;
mod compare;
mod feasible;
mod report;
mod share_rules;
mod violation;
mod work_ledger;

pub use auditor::{Auditor, ReclaimRules};
pub use report::{AuditReport, GpuTimeShares, JobCounts};
pub use share_rules::{PressureOf, ShareRules, ToleranceRules};
pub use violation::{Duty, HostUse, Standing, Unstartable, Violation};
pub use work_ledger::WorkLedger;
