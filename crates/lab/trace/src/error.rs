//! What can be wrong with a file, said so that its owner can put it right.

use std::fmt;
use std::io;

/// Most problems listed of one file; the rest are counted.
const SHOWN: usize = 20;

/// Why a file could not be used. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be opened.
    #[error("cannot open {file}: {source}; check the path and its permissions")]
    Open {
        /// The file as it was named.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file could be opened but not read to its end.
    #[error("cannot read {file} beyond line {line}: {source}; {remedy}")]
    Read {
        /// The file as it was named.
        file: String,
        /// Whole lines read before.
        line: u64,
        /// What the system or the decompressor said.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The contents are not usable.
    #[error("{0}")]
    Invalid(Problems),
}

/// One thing that is wrong at one place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the file, from 1; `None` if it concerns the whole file.
    pub line: Option<u64>,
    /// Column: its number from 1 (of the table's fields, or of the characters of a TOML line), and
    /// its name if it has one.
    pub column: Option<(usize, String)>,
    /// What is wrong, and why.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Everything that is wrong with one file, in order of line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file as it was named.
    pub file: String,
    /// The first of them.
    pub shown: Vec<Problem>,
    /// How many more there are.
    pub more: u64,
}

impl Problem {
    /// A problem of the file as a whole.
    pub fn of_file(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { line: None, column: None, what: what.into(), remedy: remedy.into() }
    }

    /// A problem of one line.
    pub fn at(line: u64, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { line: Some(line), ..Problem::of_file(what, remedy) }
    }

    /// The same problem, in the column with this index (from 0) and name.
    pub fn in_column(mut self, index: usize, name: &str) -> Problem {
        self.column = Some((index + 1, shorten(name)));
        self
    }
}

impl Problems {
    /// No problem yet.
    pub fn of(file: &str) -> Problems {
        Problems { file: file.to_owned(), shown: Vec::new(), more: 0 }
    }

    /// Notes one more problem.
    pub fn push(&mut self, problem: Problem) {
        if self.shown.len() < SHOWN {
            self.shown.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// True if nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// `Ok` if nothing is wrong.
    pub fn check(mut self) -> Result<(), TraceError> {
        if self.is_empty() {
            return Ok(());
        }
        self.shown.sort_by_key(|p| p.line);
        Err(TraceError::Invalid(self))
    }

    /// The error that says this, after all that was found before.
    pub fn fatal(mut self, problem: Problem) -> TraceError {
        self.push(problem);
        self.shown.sort_by_key(|p| p.line);
        TraceError::Invalid(self)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
        }
        if let Some((number, name)) = &self.column {
            write!(f, "{}column {number}", if self.line.is_some() { ", " } else { "" })?;
            if !name.is_empty() {
                write!(f, " ({name})")?;
            }
        }
        if self.line.is_some() || self.column.is_some() {
            f.write_str(": ")?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.shown.len() as u64 + self.more;
        if let ([only], 0) = (self.shown.as_slice(), self.more) {
            return write!(f, "{}: {only}", self.file);
        }
        write!(f, "{}: {total} problems", self.file)?;
        for problem in &self.shown {
            write!(f, "\n  {problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}

/// A value as an error message shows it: quoted, escaped and of bounded length.
pub fn quote(value: &str) -> String {
    format!("{:?}", shorten(value))
}

/// At most 40 characters of `value`, without control characters.
pub fn shorten(value: &str) -> String {
    const MOST: usize = 40;
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = value.chars().take(MOST).map(clean).collect();
    if value.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}
