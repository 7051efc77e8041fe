//! `/proc/vmstat` and `/proc/meminfo`: names, each with a number.

use crate::ParseError;
use crate::lines::Lines;

/// Named numbers, in the order of their text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(pub Vec<(String, u64)>);

impl Counters {
    /// Returns the number of this name; `None` if the kernel does not report it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|&(_, value)| value)
    }
}

/// Parses `/proc/vmstat`: `name number` in each line.
///
/// # Errors
/// If a line has no number.
pub fn parse_vmstat(text: &str) -> Result<Counters, ParseError> {
    parse("vmstat", text)
}

/// Parses `/proc/meminfo`: `Name:   number kB` in each line. The numbers are not converted; most
/// are in KiB.
///
/// # Errors
/// If a line has no number.
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
