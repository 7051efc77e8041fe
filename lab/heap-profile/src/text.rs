//! The text of a profile: a line of totals, a line per call stack, and the process' mappings.
//!
//! ```text
//! heap profile:      3:     1200 [    10:     5000] @ heap_v2/524288
//!      1:      400 [     4:     1600] @ 0x55d0c0a1b2c3 0x7f0011223344
//!
//! MAPPED_LIBRARIES:
//! 55d0c0a1b000-55d0c0a1f000 r-xp 00002000 08:01 131      /usr/bin/cat
//! ```
//!
//! Numbers are of samples: live objects, their bytes; in brackets all objects that there ever were.
//! Behind `heap_v2/` is the mean number of bytes between two samples. Addresses are where calls
//! return to, the leaf's first. This is the format that pprof calls legacy.
//!
//! A file may hold anything. Memory is bounded by its size: an address takes two bytes of text at
//! least, and 8 bytes here.

use crate::amount::Amount;
use crate::mapping::{Mapping, Said, said};

/// The most addresses of a stack.
pub const STACK_MOST: usize = 4096;

/// A profile, as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// The mean number of bytes from one sample to the next; 1 if every object was taken.
    pub period: u64,
    /// The call stacks in the file's order. A stack may occur more than once.
    pub samples: Vec<Sample>,
    /// The mappings of code, by address; none overlap.
    pub mappings: Vec<Mapping>,
    /// The number of lines in the section of mappings that are none, or that overlap another;
    /// `None` if the file has no such section.
    pub odd_mappings: Option<usize>,
}

/// The samples of a call stack. Not scaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Those of objects that are live.
    pub live: Amount,
    /// Those of all objects, live or not.
    pub all: Amount,
    /// Where the calls return to, the leaf's first.
    pub stack: Vec<u64>,
}

/// Which objects are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Those that are not freed.
    Live,
    /// All that there ever were.
    All,
}

/// Why a profile cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what is expected there.
    pub what: String,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ReadError`] with the first line that is not of this format. Lines of mappings that make no
    /// sense are only counted: some programs cut that section short.
    pub fn read(text: &[u8]) -> Result<Self, ReadError> {
        let lines = text.split(|&byte| byte == b'\n').enumerate();
        let lines = lines.map(|(index, line)| (index + 1, line.trim_ascii()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty());
        let wrong = |line: usize, what: String| ReadError { line, what };
        let (line, first) = lines.next().ok_or_else(|| wrong(1, BEGINS.to_owned()))?;
        let mut profile = Self {
            period: header(first).map_err(|what| wrong(line, what))?,
            ..Self::default()
        };
        for (line, text) in lines.by_ref() {
            if matches!(text, b"MAPPED_LIBRARIES:" | b"--- Memory map: ---") {
                profile.odd_mappings = Some(0);
                break;
            }
            if text[0] == b'#' {
                continue;
            }
            let sample = Words::of(text).and_then(|mut words| words.sample());
            let sample = sample.map_err(|what| wrong(line, what))?;
            profile.samples.push(sample);
        }
        for (_, line) in lines {
            profile.map(&String::from_utf8_lossy(line));
        }
        profile.put_in_order();
        Ok(profile)
    }

    fn map(&mut self, line: &str) {
        match said(line) {
            Said::Code(mapping) => self.mappings.push(mapping),
            // gperftools begins with such lines, for paths that begin with `$build`.
            Said::Nothing if line.starts_with("build=") => (),
            Said::Nothing => *self.odd_mappings.get_or_insert(0) += 1,
            Said::Other => (),
        }
    }

    /// Sorts the mappings, and leaves out those that overlap another.
    fn put_in_order(&mut self) {
        self.mappings.sort_by_key(|mapping| mapping.start);
        let mut end = 0;
        let before = self.mappings.len();
        self.mappings.retain(|mapping| {
            let apart = mapping.start >= end;
            end = end.max(mapping.end);
            apart
        });
        if let Some(odd) = &mut self.odd_mappings {
            *odd += before - self.mappings.len();
        }
    }

    /// Returns the mapping that an address is in, by its index.
    #[must_use]
    pub fn mapping_of(&self, address: u64) -> Option<usize> {
        let behind = self.mappings.partition_point(|of| of.start <= address);
        let index = behind.checked_sub(1)?;
        self.mappings[index].holds(address).then_some(index)
    }

    /// Returns true if the profile tells of all objects that there ever were.
    #[must_use]
    pub fn has_all(&self) -> bool {
        self.samples.iter().any(|sample| !sample.all.is_zero())
    }
}

impl Sample {
    /// Returns the samples of this space.
    #[must_use]
    pub const fn of(&self, space: Space) -> Amount {
        match space {
            Space::Live => self.live,
            Space::All => self.all,
        }
    }
}

const BEGINS: &str = "a heap profile begins with \
    `heap profile: OBJECTS: BYTES [OBJECTS: BYTES] @ heap_v2/PERIOD`";

/// Returns the period that the first line names.
fn header(line: &[u8]) -> Result<u64, String> {
    let line = str::from_utf8(line).map_err(|_| BEGINS.to_owned())?;
    let (before, kind) = line.rsplit_once('@').ok_or(BEGINS)?;
    let counts = before.strip_prefix("heap profile:").ok_or(BEGINS)?;
    let mut words = Words(counts);
    let _totals = words.amounts()?;
    let kind = kind.trim();
    match kind.split_once('/') {
        Some(("heap_v2" | "heapz_v2", period)) => match period.parse() {
            Ok(period) if (1..=i64::MAX as u64).contains(&period) => Ok(period),
            _ => Err(format!("`{period}` is no period: a number of bytes from 1")),
        },
        // Of gperftools' HEAPPROFILE, which takes every object.
        None if kind == "heapprofile" => Ok(1),
        _ => Err(format!(
            "a profile of the kind `{kind}` cannot be read, only `heap_v2/PERIOD` and `heapprofile`"
        )),
    }
}

/// What is left of a line.
struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    fn of(line: &'t [u8]) -> Result<Self, String> {
        let line = str::from_utf8(line);
        let line = line.ok().filter(|line| line.is_ascii());
        Ok(Self(line.ok_or("it is no text of ASCII characters")?))
    }

    /// Reads `live: bytes [all: bytes] @ addresses`.
    fn sample(&mut self) -> Result<Sample, String> {
        let [live, all] = self.amounts()?;
        self.expect('@')?;
        let mut stack = Vec::new();
        for word in self.0.split_ascii_whitespace() {
            let digits = word.strip_prefix("0x");
            let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let wrong = || format!("`{}` is no address such as 0x55d0c0a1b2c3", short(word));
            stack.push(address.ok_or_else(wrong)?);
            if stack.len() > STACK_MOST {
                return Err(format!("a stack has more than {STACK_MOST} addresses"));
            }
        }
        if stack.is_empty() {
            return Err("a stack has no address behind `@`".to_owned());
        }
        Ok(Sample { live, all, stack })
    }

    fn amounts(&mut self) -> Result<[Amount; 2], String> {
        let live = self.amount()?;
        self.expect('[')?;
        let all = self.amount()?;
        self.expect(']')?;
        Ok([live, all])
    }

    fn amount(&mut self) -> Result<Amount, String> {
        let objects = self.number()?;
        self.expect(':')?;
        let bytes = self.number()?;
        if objects == 0 && bytes != 0 {
            return Err(format!("no object has {bytes} bytes"));
        }
        Ok(Amount { objects, bytes })
    }

    fn number(&mut self) -> Result<u64, String> {
        let text = self.0.trim_ascii_start();
        let end = text.find(|letter: char| !letter.is_ascii_digit());
        let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
        if digits.is_empty() {
            return Err(format!("a number is expected at `{}`", short(text)));
        }
        self.0 = rest;
        let number = digits.parse::<i64>();
        number
            .map(i64::unsigned_abs)
            .map_err(|_| format!("`{}` is too large", short(digits)))
    }

    fn expect(&mut self, mark: char) -> Result<(), String> {
        let text = self.0.trim_ascii_start();
        let wrong = || format!("`{mark}` is expected at `{}`", short(text));
        self.0 = text.strip_prefix(mark).ok_or_else(wrong)?;
        Ok(())
    }
}

/// Returns the beginning of a text, for a message.
fn short(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}
