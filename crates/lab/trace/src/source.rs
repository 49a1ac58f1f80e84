//! Lines of a file, whatever it is compressed with, and never more of it in memory than one line.

use crate::error::{Problem, Problems, TraceError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// Longest line accepted, in bytes. A longer one is no table of jobs: it would only fill memory.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A file being read line by line.
pub struct Lines {
    file: String,
    input: Box<dyn BufRead>,
    buffer: Vec<u8>,
    line: u64,
    max_lines: u64,
    compressed: bool,
    cut_short: bool,
}

impl Lines {
    /// Opens `path`.
    pub fn open(path: &Path, max_lines: u64) -> Result<Lines, TraceError> {
        let file = path.display().to_string();
        let open = || {
            let raw = File::open(path)?;
            if raw.metadata()?.is_dir() {
                return Err(io::Error::other("it is a folder"));
            }
            Ok(raw)
        };
        match open() {
            Ok(raw) => Lines::new(file, raw, max_lines),
            Err(source) => Err(TraceError::Open { file, source }),
        }
    }

    /// Reads from `raw`, which messages call `file`; gzip and zstd are recognised by their first
    /// bytes.
    pub fn new(
        file: String,
        mut raw: impl Read + 'static,
        max_lines: u64,
    ) -> Result<Lines, TraceError> {
        let mut lines = Lines {
            file,
            input: Box::new(io::empty()),
            buffer: Vec::new(),
            line: 0,
            max_lines,
            compressed: false,
            cut_short: false,
        };
        let head = read_head(&mut raw, 4).map_err(|e| lines.failed(e))?;
        if let Some(problem) = unsupported(&head) {
            return Err(Problems::of(&lines.file).fatal(problem));
        }
        let gzip = head.starts_with(&[0x1f, 0x8b]);
        let zstd = head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        lines.compressed = gzip || zstd;
        let whole = Cursor::new(head).chain(raw);
        let plain: Box<dyn Read> = if gzip {
            Box::new(flate2::read::MultiGzDecoder::new(whole))
        } else if zstd {
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(|e| lines.failed(e))?)
        } else {
            Box::new(whole)
        };
        let mut input = BufReader::with_capacity(1 << 16, plain);
        let start = read_head(&mut input, 3).map_err(|e| lines.failed(e))?;
        // A byte order mark is not part of the first column's name.
        let kept = if start == [0xef, 0xbb, 0xbf] { Vec::new() } else { start };
        lines.input = Box::new(Cursor::new(kept).chain(input));
        Ok(lines)
    }

    /// The file as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The number of the last line given, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// True if the last line read has no line break: the file may have lost its end.
    pub fn cut_short(&self) -> bool {
        self.cut_short
    }

    /// The last line given.
    pub fn current(&self) -> &[u8] {
        &self.buffer
    }

    /// The next line that is not blank, without its end; `None` at the end of the file. The line
    /// may hold any bytes.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.buffer);
            if read.map_err(|e| self.failed(e))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line > self.max_lines {
                return Err(self.fatal(
                    format!("more than {} lines", self.max_lines),
                    "cut the file to the jobs to be replayed",
                ));
            }
            self.cut_short = self.buffer.last() != Some(&b'\n');
            if !self.cut_short {
                self.buffer.pop();
            } else if self.buffer.len() > MAX_LINE_BYTES {
                return Err(self.fatal(
                    "more than 1 MiB without a line break".to_owned(),
                    "give a text file with one job a line",
                ));
            }
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
            if !self.buffer.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(&self.buffer));
            }
        }
    }

    fn fatal(&self, what: String, remedy: &str) -> TraceError {
        Problems::of(&self.file).fatal(Problem::at(self.line, what, remedy))
    }

    fn failed(&self, source: io::Error) -> TraceError {
        let remedy = if self.compressed {
            "the compressed file is truncated or damaged: fetch it again"
        } else {
            "check the disk"
        };
        TraceError::Read { file: self.file.clone(), line: self.line, source, remedy }
    }
}

/// The whole text of a small file, decompressed, without a byte order mark.
pub fn read_text(mut lines: Lines, max_bytes: usize) -> Result<String, TraceError> {
    let mut bytes = Vec::new();
    let mut limited = (&mut lines.input).take(max_bytes as u64 + 1);
    let read = limited.read_to_end(&mut bytes);
    read.map_err(|e| lines.failed(e))?;
    if bytes.len() > max_bytes {
        let what = format!("more than {max_bytes} bytes");
        return Err(Problems::of(&lines.file)
            .fatal(Problem::of_file(what, "check that this is the file that was meant")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&b| b == b'\n').count();
        let column = valid.iter().rev().take_while(|&&b| b != b'\n').count();
        Problems::of(&lines.file).fatal(not_utf8(line as u64).in_column(column, ""))
    })
}

/// The problem of a line that is not text.
pub fn not_utf8(line: u64) -> Problem {
    Problem::at(line, "not valid UTF-8", "save the file as UTF-8 text")
}

/// The first `n` bytes, or all if there are fewer.
fn read_head(input: &mut dyn Read, n: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(n).read_to_end(&mut head)?;
    Ok(head)
}

/// Files that are often tried and cannot be read.
fn unsupported(head: &[u8]) -> Option<Problem> {
    let named: [(&[u8], &str, &str); 7] = [
        (b"PK\x03\x04", "a zip archive or a spreadsheet", "give the CSV file inside or export one"),
        (b"BZh", "compressed with bzip2", "decompress it, or recompress with gzip or zstd"),
        (b"\xfd7zX", "compressed with xz", "decompress it, or recompress with gzip or zstd"),
        (b"PAR1", "a Parquet file", "convert it to CSV"),
        (b"SQLi", "an SQLite database", "export a table as CSV"),
        (b"\xff\xfe", "UTF-16 text", "save the file as UTF-8 text"),
        (b"\xfe\xff", "UTF-16 text", "save the file as UTF-8 text"),
    ];
    named.iter().find(|(magic, ..)| head.starts_with(magic)).map(|(_, what, remedy)| Problem {
        column: Some((1, String::new())),
        ..Problem::at(1, *what, *remedy)
    })
}
