//! What can go wrong with a log.

use deepshare_engine::SnapshotError;
use std::io;
use std::path::PathBuf;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system would not let us.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder without a log.
    #[error(
        "{} holds no event log: no file in it is named like 00000001.dslog; \
         name the folder that the scheduler logs to",
        dir.display()
    )]
    NoLog {
        /// The folder.
        dir: PathBuf,
    },
    /// Somebody removed a segment from the middle.
    #[error(
        "{} lacks segment {number:08}.dslog between others: put it back, or move those before it \
         away",
        dir.display()
    )]
    Missing {
        /// The folder.
        dir: PathBuf,
        /// The segment.
        number: u32,
    },
    /// Another kind of file.
    #[error("{} is no segment of an event log: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it has instead.
        why: String,
    },
    /// Another release wrote it.
    #[error(
        "{} has format version {found}, this release reads version {expected}: read it with the \
         release that wrote it",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// In the file.
        found: u32,
        /// Of this release.
        expected: u32,
    },
    /// Bytes are not what was written.
    #[error(
        "{}: damaged at byte {offset}: {why}; the segments before it can be read without it",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged frame begins.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// A segment ends early, though the next one goes on where it should have ended.
    #[error(
        "{}: cut at byte {offset}, but the next segment continues it: steps are missing",
        path.display()
    )]
    CutShort {
        /// The file.
        path: PathBuf,
        /// Where its last whole frame ends.
        offset: u64,
    },
    /// A line does not say what it should.
    #[error("{}: record {record}: {why}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Which line, from 1, the header.
        record: u64,
        /// What is wrong.
        why: String,
    },
    /// The engine of this release cannot go on from the snapshot.
    #[error("{}: {source}: read it with the release that wrote it", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: SnapshotError,
    },
}

/// Why something was not written or removed. The writer goes on: it tries again later, and a segment
/// begun after a failed write says how many steps are missing.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The limits contradict each other.
    #[error(
        "an event log of at most {max_bytes} bytes cannot hold two segments of {segment_bytes}: \
         allow more in all, or make segments smaller"
    )]
    Limits {
        /// Of one segment.
        segment_bytes: u64,
        /// In all.
        max_bytes: u64,
    },
    /// The folder cannot be used.
    #[error("cannot use {} for the event log: {source}", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system would not let us.
    #[error("cannot write {}: {source}; steps from here on are missing in the log", path.display())]
    Write {
        /// The segment.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An old segment stays although the log is over its bound.
    #[error(
        "cannot remove {}: {source}; the log is larger than it may be until that is mended",
        path.display()
    )]
    Remove {
        /// The segment.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
