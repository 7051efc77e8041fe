//! Output to the terminal. A closed pipe ends neither the run nor the checks that follow it.

use core::fmt;
use std::io::{self, Write as _};

/// Writes a line to standard error, ignoring failure.
pub fn tell(line: impl fmt::Display) {
    // In a single write, so that lines of several threads do not mix.
    let line = format!("{line}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Writes a text to standard output.
///
/// # Errors
/// Those of the write, except a closed pipe.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
