//! A finding, in full. Printed, it tells which object of which cache is concerned, what is wrong
//! with it, and who allocated and freed it.

use core::fmt;

use super::track::{Track, User};
use crate::error::FreeFault;

/// The fault that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An address was freed that lies in no slab.
    NotASlab,
    /// An object was freed to a cache that it does not belong to.
    OtherCache {
        /// The name of the one that it belongs to.
        owner: &'static str,
    },
    /// An address was freed at which no object begins.
    OffGrid {
        /// The object whose place it lies in; `None` if it lies in no object's place.
        inside: Option<usize>,
    },
    /// An object was freed that is free.
    DoubleFree,
    /// Bytes just before an object were written, by its user or by its neighbour's.
    WrittenBefore(Damage),
    /// Bytes behind an object's end were written.
    WrittenBehind(Damage),
    /// A free object was written to.
    UseAfterFree(Damage),
    /// The design's data in a free object was written over: most likely a use after free.
    Overwritten {
        /// The text that the report begins with.
        title: &'static str,
        /// The number of free objects that hung on it. They are left out for good.
        lost: u32,
    },
}

/// The moment at which a fault was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// When the object was to be handed out. It is left out, and another one is given.
    Alloc,
    /// When the object was freed. The free is refused.
    Free,
    /// When the object was put back from a queue into its slab, which refuses it. The caller that
    /// freed it has long gone on.
    Flush,
    /// When the pages of the object's slab were given back. All of its objects were free.
    Return,
    /// When the object was met in a list of free objects. What hung on it is left out.
    Queue,
}

/// The most bytes that a [`Damage`] shows.
pub const SHOWN: usize = 16;

/// Bytes that differ from what was put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The distance from the object's first byte to the first wrong one; negative before the
    /// object.
    pub offset: isize,
    /// The number of bytes from the first wrong one to the last one.
    pub bytes: usize,
    /// The bytes found there: the first `bytes` of them, at most [`SHOWN`].
    pub found: [u8; SHOWN],
    /// The bytes that were put there.
    pub expected: [u8; SHOWN],
}

impl Damage {
    /// Compares `bytes` bytes, of which the first is `offset` from the object's begin. `None` if
    /// all are right.
    pub(crate) fn between(
        offset: isize,
        bytes: usize,
        found: impl Fn(usize) -> u8,
        expected: impl Fn(usize) -> u8,
    ) -> Option<Self> {
        let wrong = |&i: &usize| found(i) != expected(i);
        let first = (0..bytes).find(wrong)?;
        let last = (0..bytes).rfind(wrong)?;
        let mut damage = Self {
            offset: offset + first as isize,
            bytes: last - first + 1,
            found: [0; SHOWN],
            expected: [0; SHOWN],
        };
        for i in 0..damage.shown() {
            damage.found[i] = found(first + i);
            damage.expected[i] = expected(first + i);
        }
        Some(damage)
    }

    fn shown(&self) -> usize {
        self.bytes.min(SHOWN)
    }
}

/// Bytes as hexadecimal digits.
struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

/// `1 byte`, `2 bytes`.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} byte{plural}", self.0)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.shown();
        write!(
            f,
            "{} wrong from offset {} on: found{}, expected{}",
            Bytes(self.bytes),
            self.offset,
            Hex(&self.found[..shown]),
            Hex(&self.expected[..shown])
        )?;
        if shown < self.bytes {
            write!(f, " (the first {shown})")?;
        }
        Ok(())
    }
}

/// Something that is not as it must be.
///
/// Printed, it is a report of several lines, without a newline at the end:
///
/// ```text
/// slab: written behind an object's end: cache `inode`, object 0x7f0012c48010 of 600 bytes
///   1 byte wrong from offset 600 on: found 41, expected cc
///   found when freed: fs/close.rs:81:14, CPU 1, task 812, time 9120034; the free is refused
///   allocated by: fs/open.rs:40:9, CPU 0, task 812, time 9120002
///   last freed by: fs/close.rs:81:14, CPU 3, task 35, time 9020044
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The cache's name.
    pub cache: &'static str,
    /// Bytes of its objects.
    pub size: usize,
    /// The address of the object, or the address that was freed as one.
    pub object: usize,
    /// The fault that was found.
    pub fault: Fault,
    /// The moment at which it was noticed.
    pub moment: Moment,
    /// The allocation or free in which it was noticed.
    pub noticed: Track,
    /// The caller that allocated the object last.
    pub allocated: User,
    /// The caller that freed the object last.
    pub freed: User,
}

impl Fault {
    /// Returns the fault of a refused free. `owner` is the name of the cache that the address
    /// belongs to. `inside` is the object whose place it lies in, if any.
    pub(crate) const fn of(
        fault: FreeFault,
        owner: &'static str,
        inside: Option<usize>,
    ) -> Option<Self> {
        match fault {
            FreeFault::NotASlab => Some(Self::NotASlab),
            FreeFault::WrongCache { .. } => Some(Self::OtherCache { owner }),
            FreeFault::OffGrid => Some(Self::OffGrid { inside }),
            FreeFault::DoubleFree => Some(Self::DoubleFree),
            FreeFault::Damaged | FreeFault::TaskOnly => None,
        }
    }

    const fn title(&self, moment: Moment) -> &'static str {
        match (self, moment) {
            (Self::NotASlab, _) => "freed what lies in no slab",
            (Self::OtherCache { .. }, _) => "freed to the wrong cache",
            (Self::OffGrid { .. }, _) => "freed where no object begins",
            (Self::DoubleFree, _) => "double free",
            (Self::WrittenBefore(_), Moment::Free | Moment::Flush | Moment::Queue) => {
                "written before an object's begin"
            }
            (Self::WrittenBefore(_), Moment::Alloc | Moment::Return) => {
                "written before a free object's begin"
            }
            (Self::WrittenBehind(_), Moment::Free | Moment::Flush | Moment::Queue) => {
                "written behind an object's end"
            }
            (Self::WrittenBehind(_), Moment::Alloc | Moment::Return) => {
                "written behind a free object's end"
            }
            (Self::UseAfterFree(_), _) => "use after free",
            (Self::Overwritten { title, .. }, _) => title,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title(Moment::Free))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.fault.title(self.moment);
        let (cache, object, size) = (self.cache, self.object, self.size);
        write!(
            f,
            "slab: {title}: cache `{cache}`, object {object:#x} of {}",
            Bytes(size)
        )?;
        match self.fault {
            Fault::OtherCache { owner } => write!(f, "\n  it belongs to cache `{owner}`")?,
            Fault::OffGrid {
                inside: Some(inside),
            } => {
                let offset = object as isize - inside as isize;
                write!(f, "\n  it is at offset {offset} of the object {inside:#x}")?;
            }
            Fault::WrittenBefore(damage)
            | Fault::WrittenBehind(damage)
            | Fault::UseAfterFree(damage) => {
                write!(f, "\n  {damage}")?;
            }
            Fault::Overwritten { lost, .. } => write!(f, "\n  {lost} free objects hung on it")?,
            Fault::NotASlab | Fault::OffGrid { inside: None } | Fault::DoubleFree => {}
        }
        let noticed = self.noticed;
        match self.moment {
            Moment::Alloc => write!(
                f,
                "\n  found when allocated: {noticed}; the object is left out"
            )?,
            Moment::Free => write!(f, "\n  found when freed: {noticed}; the free is refused")?,
            Moment::Flush => write!(
                f,
                "\n  found when put back into its slab, some time after it was freed: {noticed}"
            )?,
            Moment::Return => write!(f, "\n  found when its slab was given back: {noticed}")?,
            Moment::Queue => write!(
                f,
                "\n  found in a list of free objects: {noticed}; what hung on it is left out"
            )?,
        }
        write!(
            f,
            "\n  allocated by: {}\n  last freed by: {}",
            self.allocated, self.freed
        )
    }
}
