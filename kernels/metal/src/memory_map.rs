//! The memory map: ranges of bytes that are memory, ranges of it that are in use, and what that
//! leaves. Uses only `core`, so that the host tests it.

use core::fmt;

/// The bytes of a page, and of a frame.
pub const PAGE: usize = 4096;

/// The most ranges of a kind.
const MOST: usize = 64;

/// A few ranges of bytes, each from its first byte to the one after its last.
#[derive(Debug, Clone, Copy)]
pub struct Ranges {
    list: [(usize, usize); MOST],
    len: usize,
}

/// The map has more ranges than there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the memory map has more than {MOST} ranges")
    }
}

impl Ranges {
    /// Returns no ranges.
    pub const fn new() -> Self {
        Self {
            list: [(0, 0); MOST],
            len: 0,
        }
    }

    /// Adds a range of `bytes` bytes. An empty one is left out, and one that goes beyond the
    /// addresses is cut there.
    pub fn push(&mut self, from: usize, bytes: usize) -> Result<(), TooMany> {
        let to = from.saturating_add(bytes);
        if from >= to {
            return Ok(());
        }
        *self.list.get_mut(self.len).ok_or(TooMany)? = (from, to);
        self.len += 1;
        Ok(())
    }

    /// Returns the ranges.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.list[..self.len].iter().copied()
    }
}

/// What the firmware tells of memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryMap {
    /// Memory.
    pub memory: Ranges,
    /// Parts of it that are in use.
    pub reserved: Ranges,
}

impl MemoryMap {
    /// Returns an empty map.
    pub const fn new() -> Self {
        Self {
            memory: Ranges::new(),
            reserved: Ranges::new(),
        }
    }

    /// Returns the pages from the first one of memory to the one after the last; `None` without
    /// memory.
    pub fn pages(&self) -> Option<(usize, usize)> {
        let first = self
            .memory
            .iter()
            .map(|(from, _)| from.div_ceil(PAGE))
            .min();
        let last = self.memory.iter().map(|(_, to)| to / PAGE).max();
        first.zip(last).filter(|(first, last)| first < last)
    }

    /// Calls `each` for the whole pages of memory that are not reserved, from the first to the one
    /// after the last.
    pub fn free(&self, mut each: impl FnMut(usize, usize)) {
        for (from, to) in self.memory.iter() {
            let (mut at, end) = (from.div_ceil(PAGE), to / PAGE);
            while at < end {
                let next = self
                    .reserved
                    .iter()
                    .map(|(from, to)| (from / PAGE, to.div_ceil(PAGE)))
                    .filter(|&(_, to)| to > at)
                    .min_by_key(|&(from, _)| from);
                match next {
                    Some((from, to)) if from <= at => at = to,
                    Some((from, _)) if from < end => {
                        each(at, from);
                        at = from;
                    }
                    _ => {
                        each(at, end);
                        at = end;
                    }
                }
            }
        }
    }

    /// Reserves `bytes` of the first free part that is large enough, and returns its address.
    pub fn carve(&mut self, bytes: usize) -> Result<Option<usize>, TooMany> {
        let pages = bytes.div_ceil(PAGE);
        let mut found = None;
        self.free(|from, to| {
            if found.is_none() && to - from >= pages {
                found = Some(from * PAGE);
            }
        });
        if let Some(at) = found {
            self.reserved.push(at, pages * PAGE)?;
        }
        Ok(found)
    }
}
