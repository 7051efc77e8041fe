//! What the lines of several files have in common: their start `Node 0, zone   Normal`, and numbers
//! between spaces.

use crate::ParseError;

/// A text, line by line, with the place for the error.
pub(crate) struct Lines<'a> {
    file: &'static str,
    lines: core::str::Lines<'a>,
    number: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'static str, text: &'a str) -> Self {
        Self {
            file,
            lines: text.lines(),
            number: 0,
        }
    }

    /// The next line, as it is.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.lines.next()
    }

    /// Something is wrong with the line that was given last.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> ParseError {
        ParseError {
            file: self.file,
            line: self.number,
            what: what.into(),
        }
    }

    /// A number of the line that was given last.
    pub(crate) fn number(&self, text: &str) -> Result<u64, ParseError> {
        let number = text.parse();
        number.map_err(|_| self.wrong(format!("`{}` is no number", shortened(text))))
    }

    /// All numbers of a part of the line that was given last.
    pub(crate) fn numbers(&self, part: &str) -> Result<Vec<u64>, ParseError> {
        let numbers = part.split_whitespace().map(|text| self.number(text));
        numbers.collect()
    }
}

/// Node, zone and what comes after them, of a line that starts so.
pub(crate) fn node_and_zone(line: &str) -> Option<(u32, &str, &str)> {
    let rest = line.trim_start().strip_prefix("Node")?;
    let (node, rest) = rest.split_once(',')?;
    let rest = rest.trim_start().strip_prefix("zone")?.trim_start();
    let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() {
        return None;
    }
    Some((node.trim().parse().ok()?, name, rest))
}

/// Enough of a text to find it again.
fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(end, _)| &text[..end])
}
