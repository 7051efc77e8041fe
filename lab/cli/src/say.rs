//! What is said on the terminal, and nobody need listen: a reader that went away ends neither the
//! run nor what is still to be checked.

use core::fmt;
use std::io::{self, Write as _};

/// Says a line on standard error.
pub(crate) fn tell(line: impl fmt::Display) {
    // In one piece, so that lines of several threads do not mix.
    let line = format!("{line}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a text on standard output.
///
/// # Errors
/// Those of the system, but for a reader that went away.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
