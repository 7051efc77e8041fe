//! Errors of mapping memory, and of changing a part of it.

use std::io;

use brickyard::FrameRange;
use thiserror::Error;

/// Why memory could not be mapped. Nothing is mapped then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// A length of zero.
    #[error("a mapping of no bytes was asked for")]
    Empty,
    /// An alignment that is not a power of two.
    #[error("{align} bytes are no alignment: it must be a power of two")]
    Alignment {
        /// The alignment that was asked for, in bytes.
        align: usize,
    },
    /// More than can be addressed.
    #[error("{bytes} bytes aligned to {align} are more than can be addressed")]
    TooLong {
        /// The length that was asked for, in bytes.
        bytes: usize,
        /// The alignment that was asked for, in bytes.
        align: usize,
    },
    /// The system has no room for it.
    #[error(
        "the system maps no {bytes} bytes: ask for less, reserve them with MapPlan::reserve and commit by parts, or see /proc/sys/vm/overcommit_memory and `ulimit -v`"
    )]
    Refused {
        /// The length, rounded up to pages, in bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The pool of explicit huge pages is too small.
    #[error(
        "{pages} huge pages of 2 MiB are not free: as root, add {pages} to the number in /proc/sys/vm/nr_hugepages, or ask for Huge::Transparent"
    )]
    TooFewHugePages {
        /// The number of huge pages that are needed.
        pages: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel has no explicit huge pages of 2 MiB.
    #[error(
        "this kernel has no explicit huge pages of 2 MiB (CONFIG_HUGETLBFS, and a processor that has them): ask for Huge::Transparent or Huge::No"
    )]
    NoExplicit {
        /// The system's error.
        source: io::Error,
    },
    /// Explicit huge pages cannot be only reserved: they are taken from their pool at once.
    #[error(
        "explicit huge pages cannot be only reserved: map them with MapPlan::map, or ask for Huge::Transparent"
    )]
    ExplicitReserved,
    /// The kernel has no transparent huge pages.
    #[error(
        "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE): ask for Huge::Explicit or Huge::No"
    )]
    NoTransparent {
        /// The system's error.
        source: io::Error,
    },
}

/// Why a part of mapped memory could not be committed, released or withdrawn.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartError {
    /// Not all of the part is in the mapping.
    #[error("bytes {start:#x}..{end:#x} are not a part of a mapping of {bytes:#x} bytes")]
    Outside {
        /// The first byte asked for.
        start: usize,
        /// The byte behind the last one asked for.
        end: usize,
        /// The length of the mapping, in bytes.
        bytes: usize,
    },
    /// Not all of the frames are the arena's.
    #[error("frames {range:?} are not a part of the arena's {all:?}")]
    OutsideArena {
        /// The frames asked for.
        range: FrameRange,
        /// The arena's frames.
        all: FrameRange,
    },
    /// The part does not begin and end at a page boundary.
    #[error("bytes {start:#x}..{end:#x} do not begin and end with a page of {page_bytes} bytes")]
    Misaligned {
        /// The first byte asked for.
        start: usize,
        /// The byte behind the last one asked for.
        end: usize,
        /// The size of a page, in bytes.
        page_bytes: usize,
    },
    /// Explicit huge pages stay until the whole mapping goes. One that was given back could be gone
    /// from the pool when it is touched again, and the process would be killed.
    #[error("explicit huge pages are given back only by dropping the whole mapping")]
    Explicit,
    /// The system refuses.
    #[error(
        "the system does not change bytes {start:#x}..{end:#x}: it is out of memory, or the process has more than /proc/sys/vm/max_map_count mappings (commit larger parts), or the memory is locked"
    )]
    Refused {
        /// The first byte asked for.
        start: usize,
        /// The byte behind the last one asked for.
        end: usize,
        /// The system's error.
        source: io::Error,
    },
}
