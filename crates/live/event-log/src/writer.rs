//! Appending to a log.

use crate::error::WriteError;
use crate::frames::Packer;
use crate::record::{Begins, Header, LineRef, Name, StepRef};
use crate::segments;
use deepshare_engine::{Command, Event, Illegal, Snapshot};
use deepshare_model::{Span, Time};
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What failed is tried again this much later: to begin a segment, or to remove one.
const RETRY_AFTER: Span = Span::from_secs(10);

/// How large a log may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A new segment is due when the steps of one take so many bytes on disk.
    pub segment_bytes: u64,
    /// The oldest segments are removed while all take more. The current one never is, whatever the
    /// size of the snapshot at its head.
    pub max_bytes: u64,
    /// A frame is written when so many bytes of lines have gathered: at most this much is lost when
    /// the process is killed.
    pub frame_bytes: usize,
}

impl Default for Limits {
    /// Segments of 64 MiB, 1 GiB in all, frames of 64 KiB.
    fn default() -> Limits {
        Limits { segment_bytes: 64 << 20, max_bytes: 1 << 30, frame_bytes: 64 << 10 }
    }
}

/// What a segment in the middle of a log begins with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The engine, after the last step that was passed to [`Writer::step`].
    pub snapshot: Snapshot,
    /// What the ids in it stand for.
    pub names: Vec<Name>,
}

/// Appends to a log. A failed write is told once; the writer then drops what it is given, and
/// [`Writer::rotate_if_due`] begins a new segment, which says how many steps are missing. A segment
/// that cannot be removed stays, and all after it: the log is too large then, and nothing else.
pub struct Writer {
    dir: PathBuf,
    header: Header,
    limits: Limits,
    packer: Packer,
    /// Lines of the next frame, and the steps among them.
    lines: Vec<u8>,
    steps: u64,
    current: Option<Current>,
    /// Segments before it, oldest first: number and size.
    older: VecDeque<(u32, u64)>,
    /// Steps dropped since the last one that was written.
    lost: u64,
    now: Time,
    /// When a segment is tried again after a failed write, and to remove one after it failed.
    retry_at: Time,
    remove_at: Time,
}

/// The segment that is written to.
struct Current {
    file: File,
    number: u32,
    /// Its size, and that of its header, snapshot and names.
    bytes: u64,
    opening_bytes: u64,
}

impl Writer {
    /// Begins a segment in `dir`, which is made if need be, for an engine that knows nothing yet.
    /// What is in the folder stays, within the limits.
    ///
    /// # Errors
    /// If the limits make no sense or the folder cannot be written.
    pub fn create(dir: &Path, header: Header, limits: Limits) -> Result<Writer, WriteError> {
        let Limits { segment_bytes, max_bytes, .. } = limits;
        if max_bytes / 2 < segment_bytes {
            return Err(WriteError::Limits { segment_bytes, max_bytes });
        }
        let folder = |source| WriteError::Folder { dir: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(folder)?;
        let older = segments::list(dir).map_err(folder)?.into();
        let packer = Packer::new().map_err(folder)?;
        let mut writer = Writer {
            dir: dir.to_owned(),
            header: Header { begins: Begins::Empty, ..header },
            limits,
            packer,
            lines: Vec::new(),
            steps: 0,
            current: None,
            older,
            lost: 0,
            now: Time::ZERO,
            retry_at: Time::ZERO,
            remove_at: Time::ZERO,
        };
        writer.begin(Begins::Empty, None)?;
        Ok(writer)
    }

    /// Adds a step: what the engine was told at `now`, what it asked for, and the proposal that it
    /// refused, if any.
    ///
    /// # Errors
    /// If a frame was due and could not be written.
    pub fn step(
        &mut self,
        now: Time,
        event: &Event,
        commands: &[Command],
        illegal: Option<&Illegal>,
    ) -> Result<(), WriteError> {
        self.now = now;
        if self.current.is_none() {
            self.lost += 1;
            return Ok(());
        }
        let words = illegal.map(Illegal::to_string);
        let step = StepRef { at: now, event, illegal: words.as_deref() };
        self.steps += 1;
        let before = self.lines.len();
        let pushed = push(&mut self.lines, &LineRef::Step(step)).and_then(|()| match commands {
            [] => Ok(()),
            _ => push(&mut self.lines, &commands),
        });
        self.pushed(pushed, before)
    }

    /// Says what an id stands for. Best said before the id is used.
    ///
    /// # Errors
    /// As [`Writer::step`].
    pub fn name(&mut self, name: &Name) -> Result<(), WriteError> {
        match self.current {
            Some(_) => {
                let before = self.lines.len();
                let pushed = push(&mut self.lines, &LineRef::Name(name));
                self.pushed(pushed, before)
            }
            None => Ok(()),
        }
    }

    /// Writes what has gathered. The system keeps it from then on, whatever becomes of this
    /// process; a power cut may still lose it.
    ///
    /// # Errors
    /// If it cannot be written, or the log is too large and its oldest segment cannot be removed.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.write_gathered()?;
        self.shorten()
    }

    fn write_gathered(&mut self) -> Result<(), WriteError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        let written = append(&mut self.packer, &self.lines, &mut current.file);
        self.lines.clear();
        let steps = std::mem::take(&mut self.steps);
        match written {
            Ok(bytes) => {
                current.bytes += bytes;
                Ok(())
            }
            Err(source) => {
                // Half a frame may be there: a reader would take what follows for damage.
                let _ = current.file.set_len(current.bytes);
                Err(self.give_up(source, steps))
            }
        }
    }

    /// True if [`Writer::rotate_if_due`] would begin a new segment.
    pub fn is_due(&self) -> bool {
        match &self.current {
            Some(segment) => segment.bytes - segment.opening_bytes >= self.limits.segment_bytes,
            None => self.now >= self.retry_at,
        }
    }

    /// Begins a new segment if the current one is full, or if writing failed some time ago. Call it
    /// between two steps, as often as after each; `opening` is asked only if it is needed.
    ///
    /// # Errors
    /// If the segment cannot be written, or an old one not removed; it is tried again later.
    pub fn rotate_if_due(&mut self, opening: impl FnOnce() -> Opening) -> Result<(), WriteError> {
        if !self.is_due() {
            return Ok(());
        }
        self.write_gathered()?;
        let begins = match self.lost {
            0 => Begins::Continued,
            lost => Begins::AfterGap { lost },
        };
        if let Some(full) = self.current.take() {
            self.older.push_back((full.number, full.bytes));
        }
        self.begin(begins, Some(opening()))?;
        self.shorten()
    }

    /// Begins the next segment.
    fn begin(&mut self, begins: Begins, opening: Option<Opening>) -> Result<(), WriteError> {
        let number = self.older.back().map_or(1, |&(number, _)| number.saturating_add(1));
        self.header.begins = begins;
        let opened = self.open(number, opening.as_ref());
        self.lines.clear();
        match opened {
            Ok(current) => {
                self.current = Some(current);
                self.lost = 0;
                Ok(())
            }
            Err(source) => {
                // The next attempt takes the same number, so nothing half written may stay; what
                // was there before is another's, and stays.
                if source.kind() != io::ErrorKind::AlreadyExists {
                    let _ = std::fs::remove_file(segments::path(&self.dir, number));
                }
                self.current = None;
                self.retry_at = self.now + RETRY_AFTER;
                Err(WriteError::Write { path: segments::path(&self.dir, number), source })
            }
        }
    }

    fn open(&mut self, number: u32, opening: Option<&Opening>) -> io::Result<Current> {
        let path = segments::path(&self.dir, number);
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        self.lines.clear();
        push(&mut self.lines, &LineRef::Header(&self.header))?;
        if let Some(Opening { snapshot, names }) = opening {
            push(&mut self.lines, &LineRef::Snapshot(snapshot))?;
            for name in names {
                push(&mut self.lines, &LineRef::Name(name))?;
            }
        }
        let bytes = append(&mut self.packer, &self.lines, &mut file)?;
        // A snapshot is large: its memory is not kept for small frames.
        self.lines = Vec::with_capacity(self.limits.frame_bytes + 4_096);
        Ok(Current { file, number, bytes, opening_bytes: bytes })
    }

    /// Ends a record that began at `before`: a record is whole in its frame.
    fn pushed(&mut self, pushed: io::Result<()>, before: usize) -> Result<(), WriteError> {
        if let Err(source) = pushed {
            self.lines.truncate(before);
            let steps = std::mem::take(&mut self.steps);
            return Err(self.give_up(source, steps));
        }
        if self.lines.len() < self.limits.frame_bytes {
            return Ok(());
        }
        self.flush()
    }

    /// Writes no more for a while; `steps` were on their way.
    fn give_up(&mut self, source: io::Error, steps: u64) -> WriteError {
        self.lines.clear();
        self.lost += steps;
        self.retry_at = self.now + RETRY_AFTER;
        let last = self.current.take().map(|current| (current.number, current.bytes));
        self.older.extend(last);
        let number = last.map_or(0, |(number, _)| number);
        WriteError::Write { path: segments::path(&self.dir, number), source }
    }

    /// Removes the oldest segments beyond the bound. One that stays is the oldest still: what is
    /// after it is never removed before it, or a reader would find a hole.
    fn shorten(&mut self) -> Result<(), WriteError> {
        if self.now < self.remove_at {
            return Ok(());
        }
        let older: u64 = self.older.iter().map(|&(_, bytes)| bytes).sum();
        let mut total = older + self.current.as_ref().map_or(0, |current| current.bytes);
        while total > self.limits.max_bytes {
            let Some(&(number, bytes)) = self.older.front() else { break };
            let path = segments::path(&self.dir, number);
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    self.remove_at = self.now + RETRY_AFTER;
                    return Err(WriteError::Remove { path, source });
                }
                _ => {}
            }
            self.older.pop_front();
            total -= bytes;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.flush();
    }
}

fn push(lines: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, line)?;
    lines.push(b'\n');
    Ok(())
}

/// Appends a frame and returns its size.
fn append(packer: &mut Packer, lines: &[u8], file: &mut File) -> io::Result<u64> {
    let frame = packer.pack(lines)?;
    file.write_all(frame)?;
    Ok(frame.len() as u64)
}
