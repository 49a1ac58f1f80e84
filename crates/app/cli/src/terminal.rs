//! Standard output and error, which may be gone.

use crate::failure::Failure;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Columns assumed where there is no terminal.
const NO_TERMINAL_WIDTH: usize = 100;

/// Prints data to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::Stdout(error),
    })
}

/// Says a line on standard error. Nothing can be done if nobody listens.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Columns of the terminal that standard output goes to.
pub fn width() -> usize {
    if !io::stdout().is_terminal() {
        return NO_TERMINAL_WIDTH;
    }
    terminal_size::terminal_size().map_or(NO_TERMINAL_WIDTH, |(width, _)| usize::from(width.0))
}
