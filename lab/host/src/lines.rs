//! The parts that lines of several files have in common: their start `Node 0, zone   Normal`, and
//! numbers separated by spaces.

use crate::ParseError;

/// The lines of a text, with the current line's number for errors.
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

    /// Returns the next line, unchanged.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.lines.next()
    }

    /// Returns an error for the current line.
    pub(crate) fn error(&self, what: impl Into<String>) -> ParseError {
        ParseError {
            file: self.file,
            line: self.number,
            what: what.into(),
        }
    }

    /// Parses a number of the current line.
    pub(crate) fn number(&self, text: &str) -> Result<u64, ParseError> {
        let number = text.parse();
        number.map_err(|_| self.error(format!("`{}` is not a number", shortened(text))))
    }

    /// Parses all numbers in a part of the current line.
    pub(crate) fn numbers(&self, part: &str) -> Result<Vec<u64>, ParseError> {
        let numbers = part.split_whitespace().map(|text| self.number(text));
        numbers.collect()
    }
}

/// Splits a line that begins with a node and a zone: the node's number, the zone's name, and the
/// rest.
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

/// Returns the first 40 characters of a text, enough to find it.
fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(end, _)| &text[..end])
}
