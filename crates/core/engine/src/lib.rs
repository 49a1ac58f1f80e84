//! The scheduler as a value: events in, commands out.
//!
//! # The contract
//!
//! 1. **Serial.** One call of [`Engine::step`] at a time; the engine owns its state and shares none.
//! 2. **Time is told.** `now` never runs backwards. Nothing here reads a clock, a file, a socket,
//!    the environment or unseeded chance, so the same events give the same commands anywhere.
//! 3. **Commands in order.** The driver applies every command of a step, in order, before the
//!    next step.
//! 4. **The instant ends with a wake.** When all events of one instant have been applied and
//!    [`Engine::next_wakeup`] is not later than that instant, the driver sends [`Event::Wake`].
//!    Decisions are taken only there, so a round sees everything that happened at its instant.
//! 5. **Events are idempotent.** A doubled event, one that arrives late, or one that names a past
//!    attempt changes nothing; states only move forward (see [`AttemptState`]).
//! 6. **Estimates are events.** A run-time prediction arrives as [`Event::Estimated`]; no policy
//!    sees a true duration unless an oracle put it there, and a replay needs no model.
//!
//! # One step
//!
//! [`Engine::step`] applies an event to the books ([`State`]). On a wake it gives each pool that
//! changed (and no other: cost follows change) to the [`Policy`], which proposes on a [`Draft`]:
//! place, evict, refuse with a [`Reason`]. The engine enforces capacity, quotas and gangs inside
//! the draft; a proposal that breaks a rule is an [`Illegal`] error, never a wrong figure.
//!
//! # Where to read next
//!
//! `policy.rs` (what a policy may do), then `deepshare-policies`' `fifo.rs` (the smallest one),
//! then `event.rs` and `command.rs`. Jobs that are interchangeable for placement share a
//! [`SchedulingKey`]; what is true of one waiting job of a key is true of all, which is what keeps
//! rounds and explanations from costing O(waiting jobs).

mod admit;
mod attempt;
mod books;
mod command;
mod draft;
mod engine;
mod event;
mod forecast;
mod job;
mod placement;
mod policy;
mod pool;
mod qad;
mod queue;
mod reason;
mod resize;
mod settings;
mod sharing;
mod site;
mod sleepers;
mod snapshot;
mod state;
mod transitions;

pub use attempt::{Attempt, AttemptState, Placement, Slice};
pub use books::{FreeIndex, Node, NodeCondition};
pub use command::{Command, EvictReason, Preemption};
pub use draft::{Draft, Mark};
pub use engine::Engine;
pub use event::{BindFailure, Event};
pub use forecast::{Contents, Forecast};
pub use job::{Job, JobState};
pub use placement::Placer;
pub use policy::{Policy, Rank};
pub use pool::{Guard, Pool};
pub use qad::Degree;
pub use queue::{KeyId, SchedulingKey, Walk};
pub use reason::{Illegal, Names, PairBound, PairRefusal, PairTest, Reason};
pub use settings::{CapacityMode, EngineSettings};
pub use sharing::asks::{AskId, AskKind, Hope, Listed, Nearest, Waiting};
pub use sharing::hosts::HostKind;
pub use sharing::{Beside, PairBar, PairCounts, PairTerms, RetentionTable};
pub use snapshot::{Snapshot, SnapshotError};
pub use state::State;
