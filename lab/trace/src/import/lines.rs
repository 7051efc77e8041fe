//! Lines of an input that may not be text: a line longer than any of a trace is skipped.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

use memchr::memchr;

/// Bytes of a line, at most. Lines of a trace have a few hundred.
const LONGEST: usize = 1 << 14;

/// The next line.
pub(super) enum TextLine<'a> {
    Text(Cow<'a, str>),
    TooLong,
    End,
}

/// Reads an input line by line.
pub(super) struct Lines<R> {
    input: R,
    /// Bytes at the front of the input's buffer that were returned already.
    returned: usize,
    /// A line that is not in the input's buffer as a whole.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            returned: 0,
            line: Vec::new(),
        }
    }

    pub(super) fn next_line(&mut self) -> io::Result<TextLine<'_>> {
        self.input.consume(core::mem::take(&mut self.returned));
        if let Some(end) = memchr(b'\n', self.input.fill_buf()?)
            && end < LONGEST
        {
            self.returned = end + 1;
            return Ok(TextLine::Text(text_of(&self.input.fill_buf()?[..=end])));
        }
        self.line.clear();
        self.input
            .by_ref()
            .take(LONGEST as u64)
            .read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(TextLine::End);
        }
        if self.line.len() == LONGEST && self.line.last() != Some(&b'\n') {
            self.input.skip_until(b'\n')?;
            return Ok(TextLine::TooLong);
        }
        Ok(TextLine::Text(text_of(&self.line)))
    }
}

/// Returns bytes as text, which they are but for the names of some tasks.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn long_lines_are_passed_over() {
        let mut text = b"one\n".to_vec();
        text.extend(vec![b'x'; 100_000]);
        text.extend(b"\ntwo");
        // Whole, and through a buffer in which no line fits.
        for size in [1 << 20, 3] {
            let buffered = BufReader::with_capacity(size, text.as_slice());
            passed_over(Lines::new(buffered));
        }
    }

    fn passed_over(mut lines: Lines<impl BufRead>) {
        assert!(matches!(lines.next_line().unwrap(), TextLine::Text(text) if text == "one\n"));
        assert!(matches!(lines.next_line().unwrap(), TextLine::TooLong));
        assert!(matches!(lines.next_line().unwrap(), TextLine::Text(text) if text == "two"));
        assert!(matches!(lines.next_line().unwrap(), TextLine::End));
    }
}
