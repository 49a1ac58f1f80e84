//! Lines of an answer that comes in pieces.

use crate::api::Refusal;
use http_body_util::BodyExt;
use kube::client::Body;
use std::ops::Range;

/// The lines of a body, without holding more of it than one line and one piece.
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// Where the next line starts.
    start: usize,
}

impl Lines {
    /// The lines of this body.
    pub fn new(body: Body) -> Lines {
        Lines { body, buffer: Vec::new(), start: 0 }
    }

    /// The next line, to be read with [`Lines::text`] before the one after it is asked for; `None` at the
    /// end. What follows the last line break is no line: the connection broke there.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn next(&mut self) -> Result<Option<Range<usize>>, Refusal> {
        let mut scanned = self.start;
        loop {
            if let Some(at) = self.buffer[scanned..].iter().position(|&byte| byte == b'\n') {
                let line = self.start..scanned + at;
                self.start = line.end + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            scanned = self.buffer.len();
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Refusal::silence(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// The text of a line.
    pub fn text(&self, line: &Range<usize>) -> &[u8] {
        &self.buffer[line.clone()]
    }
}
