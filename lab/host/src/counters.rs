//! `/proc/vmstat` and `/proc/meminfo`: names with a number each.

use crate::ParseError;
use crate::lines::Lines;

/// Named numbers, in the order of their text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(pub Vec<(String, u64)>);

impl Counters {
    /// The number of this name; `None` where the kernel does not tell it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|&(_, value)| value)
    }
}

/// Reads `/proc/vmstat`: `name number` in each line.
///
/// # Errors
/// A line without a number.
pub fn parse_vmstat(text: &str) -> Result<Counters, ParseError> {
    parse("vmstat", text)
}

/// Reads `/proc/meminfo`: `Name:   number kB` in each line. The numbers are as they stand there,
/// most in KiB.
///
/// # Errors
/// A line without a number.
pub fn parse_meminfo(text: &str) -> Result<Counters, ParseError> {
    parse("meminfo", text)
}

fn parse(file: &'static str, text: &str) -> Result<Counters, ParseError> {
    let mut lines = Lines::new(file, text);
    let mut counters = Vec::new();
    while let Some(line) = lines.next() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let number = lines.number(words.next().unwrap_or_default())?;
        counters.push((name.trim_end_matches(':').to_owned(), number));
    }
    Ok(Counters(counters))
}
