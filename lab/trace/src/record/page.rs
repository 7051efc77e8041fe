//! A sub-buffer of the kernel's ring buffer, as `trace_pipe_raw` gives it: a header (see
//! `events/header_page`), then records.
//!
//! A record begins with a word of 32 bits (see `events/header_event`): 5 bits of type, 27 bits of
//! time since the previous record.
//!
//! | type | what follows | bytes in all |
//! |---|---|---|
//! | 0 | a word with the length, which includes this word; then data | 4 + length |
//! | 1 to 28 | that many words of data | 4 + 4 * type |
//! | 29 | time 0: the end of the page; else a word with the length of a discarded record | 4 + length |
//! | 30 | a word: upper bits of a longer time | 8 |
//! | 31 | a word: upper bits of an absolute time | 8 |
//!
//! The field of the header called `commit` has the length of the data. Its bit 31 is set if records
//! before this page were lost, bit 30 if their number is stored after the data. Nothing in these
//! bytes is trusted: whatever is inconsistent is an error, never a panic.

use super::format::{Field, FormatError, fields};

/// The bits of `commit` that hold the length.
const LENGTH: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a record's own time.
const TIME_BITS: u32 = 27;
/// Absolute times have 59 bits; the upper ones are those of the page's time stamp.
const ABSOLUTE_BITS: u32 = TIME_BITS + 32;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Why bytes are not a valid sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// They are shorter than a header.
    #[error("{0} bytes are too few for a sub-buffer")]
    Short(usize),
    /// The header declares more data than there is.
    #[error("a sub-buffer declares {declared} bytes of data, and has {present}")]
    Commit {
        /// The length in the header.
        declared: usize,
        /// The bytes after the header.
        present: usize,
    },
    /// A record extends past the end.
    #[error("the record at byte {0} of a sub-buffer extends past its end")]
    Record(usize),
}

/// The layout of a sub-buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    time: Field,
    commit: Field,
    data: usize,
    bytes: usize,
}

impl Layout {
    /// Parses `events/header_page`.
    ///
    /// # Errors
    ///
    /// If the text lacks one of the fields.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let fields = fields(text)?;
        let field = |name: &'static str| {
            let field = fields.iter().find(|field| field.name == name);
            field.cloned().ok_or(FormatError::Missing(name))
        };
        let data = field("data")?;
        let bytes = data.offset.checked_add(data.size);
        Ok(Self {
            time: field("timestamp")?,
            commit: field("commit")?,
            data: data.offset,
            bytes: bytes
                .filter(|&bytes| bytes <= LENGTH as usize)
                .ok_or_else(|| FormatError::Line(format!("data: {} bytes", data.size)))?,
        })
    }

    /// Returns the size of a whole sub-buffer, which is what a read of `trace_pipe_raw` returns at
    /// most.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Opens the sub-buffer in `bytes`.
    ///
    /// # Errors
    ///
    /// If they are not a valid one.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<SubBuffer<'a>, PageError> {
        let short = PageError::Short(bytes.len());
        let time = self.time.unsigned(bytes).ok_or(short)?;
        let commit = self.commit.unsigned(bytes).ok_or(short)?;
        let rest = bytes.get(self.data..).ok_or(short)?;
        let length = (commit & LENGTH) as usize;
        let data = rest.get(..length).ok_or(PageError::Commit {
            declared: length,
            present: rest.len(),
        })?;
        let missed = if commit & MISSED == 0 {
            Missed::Nothing
        } else if commit & MISSED_STORED == 0 {
            Missed::Some
        } else {
            // The number is a `long`, like `commit` itself.
            let count = Field {
                offset: self.data + length,
                ..self.commit.clone()
            };
            count.unsigned(bytes).map_or(Missed::Some, Missed::Count)
        };
        Ok(SubBuffer { time, missed, data })
    }
}

/// What was lost before a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Nothing.
    Nothing,
    /// Some records; their number is not stored.
    Some,
    /// This number of records.
    Count(u64),
}

/// A sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubBuffer<'a> {
    /// The time that its records count from.
    pub time: u64,
    /// What was lost before it.
    pub missed: Missed,
    data: &'a [u8],
}

impl<'a> SubBuffer<'a> {
    /// Returns an iterator over its records, which ends after an error.
    #[must_use]
    pub const fn records(&self) -> Records<'a> {
        Records {
            began: self.time,
            time: self.time,
            data: self.data,
            at: 0,
        }
    }
}

/// A record with data: an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its time, by the clock of the trace.
    pub time: u64,
    /// Its fields.
    pub data: &'a [u8],
}

/// The records of a sub-buffer.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    began: u64,
    time: u64,
    data: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Returns `length` bytes from `start`, and moves on to the next word after them.
    fn take(&mut self, start: usize, length: usize) -> Option<&'a [u8]> {
        let end = start.checked_add(length)?;
        let data = self.data.get(start..end)?;
        self.at = end.checked_next_multiple_of(4)?;
        Some(data)
    }

    /// Returns the next record with data; `Ok(None)` at the end, `Err` if the record at `self.at`
    /// is invalid.
    fn step(&mut self) -> Result<Option<RawRecord<'a>>, ()> {
        while self.at < self.data.len() {
            let at = self.at;
            let head = self.word(at).ok_or(())?;
            let (kind, delta) = split(head);
            if kind == PADDING && delta == 0 {
                return Ok(None);
            }
            // For all types but 1 to 28, the next word is a number.
            let data = if (1..PADDING).contains(&kind) {
                self.take(at + 4, 4 * kind as usize).ok_or(())?
            } else {
                let word = self.word(at + 4).ok_or(())?;
                match kind {
                    TIME_EXTEND | TIME_STAMP => {
                        self.at = at + 8;
                        self.set_time(kind, u64::from(word) << TIME_BITS | u64::from(delta));
                        continue;
                    }
                    PADDING => {
                        self.take(at + 4, (word as usize).max(4)).ok_or(())?;
                        // A time of 1 is stored for 0, which would have ended the page.
                        let delta = if delta == 1 { 0 } else { delta };
                        self.time = self.time.wrapping_add(u64::from(delta));
                        continue;
                    }
                    _ => {
                        let length = (word as usize).checked_sub(4).ok_or(())?;
                        self.take(at + 8, length).ok_or(())?
                    }
                }
            };
            self.time = self.time.wrapping_add(u64::from(delta));
            return Ok(Some(RawRecord {
                time: self.time,
                data,
            }));
        }
        Ok(None)
    }

    fn set_time(&mut self, kind: u32, time: u64) {
        self.time = if kind == TIME_EXTEND {
            self.time.wrapping_add(time)
        } else {
            self.began >> ABSOLUTE_BITS << ABSOLUTE_BITS | time
        };
    }
}

/// Splits a record's first word into type and time: they are C bit fields, so their positions
/// depend on the byte order.
const fn split(head: u32) -> (u32, u32) {
    if cfg!(target_endian = "big") {
        (head >> TIME_BITS, head & ((1 << TIME_BITS) - 1))
    } else {
        (head & 31, head >> 5)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>, PageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        self.step()
            .map_err(|()| {
                self.data = &[];
                PageError::Record(at)
            })
            .transpose()
    }
}
