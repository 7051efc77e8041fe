//! What a loop has measured, by name. A process prints it, and its parent reads it.

use core::fmt;
use std::collections::HashMap;

/// Values by name.
#[derive(Debug, Clone, Default)]
pub struct Taken(Vec<(&'static str, f64)>);

impl Taken {
    /// Adds a value.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

/// Writes a line per value: its name and the number.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.0.iter();
        values.try_for_each(|(name, value)| writeln!(f, "{name} {value}"))
    }
}

/// Reads what was so written; `None` if it is something else.
#[must_use]
pub fn read(text: &str) -> Option<HashMap<String, f64>> {
    let value = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut taken = Taken::default();
        taken.push("pair", 12.5);
        taken.push("rest", -1.0);
        let read = read(&taken.to_string()).unwrap();
        assert_eq!((read["pair"], read["rest"], read.len()), (12.5, -1.0, 2));
        assert!(super::read("a panic").is_none());
    }
}
