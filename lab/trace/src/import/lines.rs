//! Lines of an input that may not be text: a line longer than any of a trace is skipped.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

/// Bytes of a line, at most. Lines of a trace have a few hundred.
const LONGEST: u64 = 1 << 14;

/// The next line.
pub(super) enum Line<'a> {
    Text(Cow<'a, str>),
    TooLong,
    End,
}

/// Reads an input line by line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
        }
    }

    pub(super) fn next_line(&mut self) -> io::Result<Line<'_>> {
        self.line.clear();
        self.input
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(Line::End);
        }
        if self.line.len() as u64 == LONGEST && self.line.last() != Some(&b'\n') {
            self.input.skip_until(b'\n')?;
            return Ok(Line::TooLong);
        }
        Ok(Line::Text(String::from_utf8_lossy(&self.line)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_passed_over() {
        let mut text = b"one\n".to_vec();
        text.extend(vec![b'x'; 100_000]);
        text.extend(b"\ntwo");
        let mut lines = Lines::new(text.as_slice());
        assert!(matches!(lines.next_line().unwrap(), Line::Text(text) if text == "one\n"));
        assert!(matches!(lines.next_line().unwrap(), Line::TooLong));
        assert!(matches!(lines.next_line().unwrap(), Line::Text(text) if text == "two"));
        assert!(matches!(lines.next_line().unwrap(), Line::End));
    }
}
