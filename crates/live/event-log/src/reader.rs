//! Reading a log.

use crate::error::LogError;
use crate::frames::{Front, front};
use crate::record::{AnyHeader, Begins, FORMAT, Header, Line, Record, VERSION};
use crate::segments;
use deepshare_engine::{Engine, Snapshot};
use std::path::{Path, PathBuf};

/// The segments of a folder, oldest first.
#[derive(Clone, Debug)]
pub struct Log {
    dir: PathBuf,
    numbers: Vec<u32>,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a whole frame.
    Whole,
    /// In the middle of a frame, as after a kill: what was in it is lost.
    Cut {
        /// The segment.
        segment: u32,
        /// The byte at which the cut frame begins.
        offset: u64,
    },
}

impl Log {
    /// Finds the segments of a folder.
    ///
    /// # Errors
    /// If there are none, or one is missing between others.
    pub fn open(dir: &Path) -> Result<Log, LogError> {
        let found = segments::list(dir);
        let found = found.map_err(|source| LogError::Read { path: dir.to_owned(), source })?;
        let numbers: Vec<u32> = found.into_iter().map(|(number, _)| number).collect();
        if numbers.is_empty() {
            return Err(LogError::NoLog { dir: dir.to_owned() });
        }
        match numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]) {
            Some(pair) => Err(LogError::Missing { dir: dir.to_owned(), number: pair[0] + 1 }),
            None => Ok(Log { dir: dir.to_owned(), numbers }),
        }
    }

    /// Reads every segment in order. `visit` reads the records of each; what it leaves is skipped.
    /// A cut segment is fine where the log ends or the next one does not go on from it.
    ///
    /// # Errors
    /// What is wrong with a segment, or what `visit` finds.
    pub fn read(
        &self,
        mut visit: impl FnMut(&mut Segment) -> Result<(), LogError>,
    ) -> Result<Ended, LogError> {
        let mut ended = Ended::Whole;
        for (index, &number) in self.numbers.iter().enumerate() {
            let path = segments::path(&self.dir, number);
            let opened = Segment::open(path, number)?;
            let (cut, begins) = match opened {
                Ok(mut segment) => {
                    let begins = segment.header.begins;
                    if let (Ended::Cut { segment, offset }, Begins::Continued) = (ended, begins) {
                        let path = segments::path(&self.dir, segment);
                        return Err(LogError::CutShort { path, offset });
                    }
                    visit(&mut segment)?;
                    while segment.next_record()?.is_some() {}
                    (segment.cut, Some(begins))
                }
                Err(cut) => (Some(cut), None),
            };
            // One whose very header is cut holds nothing: the one before still ends as it did.
            let last = index + 1 == self.numbers.len();
            match (cut, begins) {
                (Some(offset), Some(_)) => ended = Ended::Cut { segment: number, offset },
                (Some(offset), None) if last => ended = Ended::Cut { segment: number, offset },
                (Some(_), None) => {}
                (None, _) => ended = Ended::Whole,
            }
        }
        Ok(ended)
    }
}

/// One segment, its header read, its records to come.
pub struct Segment {
    /// Its number.
    pub number: u32,
    /// Its header.
    pub header: Header,
    snapshot: Option<Box<Snapshot>>,
    path: PathBuf,
    bytes: Vec<u8>,
    offset: usize,
    lines: Vec<u8>,
    at: usize,
    record: u64,
    cut: Option<u64>,
}

impl Segment {
    /// Opens a segment; the inner error is one that is cut before its header ends, and where.
    fn open(path: PathBuf, number: u32) -> Result<Result<Segment, u64>, LogError> {
        let bytes = std::fs::read(&path);
        let bytes = bytes.map_err(|source| LogError::Read { path: path.clone(), source })?;
        let (offset, lines) = match front(&bytes) {
            Front::End | Front::Cut => return Ok(Err(0)),
            Front::Frame(size, lines) => (size, lines),
            Front::Damaged(why) => return Err(LogError::Damaged { path, offset: 0, why }),
        };
        let end = lines.iter().position(|&byte| byte == b'\n').unwrap_or(lines.len());
        let header = header(&lines[..end]).map_err(|fault| fault.at(&path))?;
        let at = (end + 1).min(lines.len());
        let mut segment = Segment {
            number,
            header,
            snapshot: None,
            path,
            bytes,
            offset,
            lines,
            at,
            record: 1,
            cut: None,
        };
        if segment.header.begins != Begins::Empty {
            match segment.line()? {
                Some(Line::Snapshot(snapshot)) => segment.snapshot = Some(snapshot),
                _ => return Err(segment.fault("a snapshot should follow the header")),
            }
        }
        Ok(Ok(segment))
    }

    /// The next record; `None` at the segment's end.
    ///
    /// # Errors
    /// If it is damaged or says something else.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        match self.line()? {
            None => Ok(None),
            Some(Line::Name(name)) => Ok(Some(Record::Name(name))),
            Some(Line::Step(step)) => Ok(Some(Record::Step(step))),
            Some(Line::Header(_)) => Err(self.fault("a second header")),
            Some(Line::Snapshot(_)) => Err(self.fault("a snapshot in the middle of a segment")),
        }
    }

    /// The snapshot at the segment's head, once.
    pub fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take().map(|snapshot| *snapshot)
    }

    /// The engine with which the segment begins.
    ///
    /// # Errors
    /// If the engine of this release cannot go on from the snapshot.
    pub fn engine(&mut self) -> Result<Engine, LogError> {
        let policy = self.header.policy.build();
        match self.take_snapshot() {
            None => Ok(Engine::new(self.header.settings, policy)),
            Some(snapshot) => Engine::restore(snapshot, policy)
                .map_err(|source| LogError::Snapshot { path: self.path.clone(), source }),
        }
    }

    /// Number of the record read last, from 1, the header.
    pub fn record(&self) -> u64 {
        self.record
    }

    /// The error of the record read last.
    pub fn fault(&self, why: impl ToString) -> LogError {
        LogError::Record { path: self.path.clone(), record: self.record, why: why.to_string() }
    }

    fn line(&mut self) -> Result<Option<Line>, LogError> {
        while self.at >= self.lines.len() {
            match front(&self.bytes[self.offset..]) {
                Front::End => return Ok(None),
                Front::Cut => {
                    self.cut = Some(self.offset as u64);
                    return Ok(None);
                }
                Front::Frame(size, lines) => {
                    self.offset += size;
                    (self.lines, self.at) = (lines, 0);
                }
                Front::Damaged(why) => {
                    let (path, offset) = (self.path.clone(), self.offset as u64);
                    return Err(LogError::Damaged { path, offset, why });
                }
            }
        }
        let parsed = serde_json::from_slice(self.take_line());
        self.record += 1;
        let mut line = parsed.map_err(|error| self.fault(error))?;
        if let Line::Step(step) = &mut line
            && self.lines.get(self.at) == Some(&b'[')
        {
            let commands = String::from_utf8(self.take_line().to_owned());
            self.record += 1;
            step.commands = Some(commands.map_err(|error| self.fault(error))?);
        }
        Ok(Some(line))
    }

    /// The next line of the frame at hand.
    fn take_line(&mut self) -> &[u8] {
        let rest = &self.lines[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let from = self.at;
        self.at += end + 1;
        &self.lines[from..from + end]
    }
}

/// What is wrong with a header.
enum HeaderFault {
    Foreign(String),
    Version(u32),
    Shape(String),
}

impl HeaderFault {
    fn at(self, path: &Path) -> LogError {
        let path = path.to_owned();
        match self {
            HeaderFault::Foreign(why) => LogError::Foreign { path, why },
            HeaderFault::Version(found) => LogError::Version { path, found, expected: VERSION },
            HeaderFault::Shape(why) => LogError::Record { path, record: 1, why },
        }
    }
}

fn header(line: &[u8]) -> Result<Header, HeaderFault> {
    let any: AnyHeader = serde_json::from_slice(line)
        .map_err(|_| HeaderFault::Foreign("it does not begin with a header".to_owned()))?;
    if any.header.format != FORMAT {
        let why = format!("its format is called {:?}", any.header.format);
        return Err(HeaderFault::Foreign(why));
    }
    if any.header.version != VERSION {
        return Err(HeaderFault::Version(any.header.version));
    }
    match serde_json::from_slice(line) {
        Ok(Line::Header(header)) => Ok(header),
        Ok(_) => Err(HeaderFault::Foreign("it does not begin with a header".to_owned())),
        Err(error) => Err(HeaderFault::Shape(error.to_string())),
    }
}
