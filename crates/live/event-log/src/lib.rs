//! Everything a live engine was told and answered, on disk.
//!
//! A log is a folder of numbered segments. A segment is a row of zstd frames with checksums; inside
//! are JSON lines: a header with the policy, the settings and where the segment begins, a snapshot
//! of the engine unless it begins with an empty one, the names that ids stand for, and then every
//! step: its instant, its event, its commands. `docs/event-log.md` has the format.
//!
//! - [`Writer`] appends, starts new segments, and removes the oldest beyond a bound. It is made for
//!   the engine's loop: it never waits for the disk's cache to be written, and never panics.
//! - [`Log`] reads. A tail cut by a kill ends the log; anything else that is damaged is an error
//!   that names the file and the place in it.
//! - [`replay`] steps an engine through the events once more and compares every command.
//! - [`History`] makes of a log what a simulation needs: the jobs, the nodes, the tenants.

mod error;
mod frames;
mod history;
mod reader;
mod record;
mod replay;
mod segments;
mod writer;

pub use error::{LogError, WriteError};
pub use history::{History, PastJob, PastNode, PastTenant};
pub use reader::{Ended, Log, Segment};
pub use record::{Begins, Header, Name, Named, Record, Step, VERSION};
pub use replay::{AuditorFor, Difference, Mismatch, Replay, replay};
pub use writer::{Limits, Opening, Writer};
