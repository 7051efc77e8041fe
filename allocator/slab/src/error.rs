//! Errors, as values: of objects, of caches, and of building slabs.

use core::error::Error;
use core::fmt;

use crate::geometry::ShapeError;
use crate::layout::{CacheId, MAX_CACHES, MAX_PAGES};

/// Why no object was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlabError {
    /// The source has no pages.
    Exhausted,
    /// An interrupt used a task-only cache. Or a cache was used by its number, by another kind of
    /// caller than it was made for.
    TaskOnly,
    /// Zeros were asked for from a cache with a constructor, whose work they would undo.
    Constructed,
}

impl fmt::Display for SlabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exhausted => "no pages can be had for another slab",
            Self::TaskOnly => {
                "an interrupt used a cache for tasks only, or a cache was used as another kind of caller than it was made for: make it a cache for `Everywhere`, and use it as that"
            }
            Self::Constructed => {
                "zeros would undo what the cache's constructor made: use a cache without one"
            }
        })
    }
}

impl Error for SlabError {}

/// Why an object was not taken back. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeFault {
    /// The address lies in no slab.
    NotASlab,
    /// It lies in a slab of another cache.
    WrongCache {
        /// That cache.
        cache: CacheId,
    },
    /// No object begins there.
    OffGrid,
    /// The object is free.
    DoubleFree,
    /// The bytes around the object or in it are not what was put there. The finding has been
    /// reported.
    Damaged,
    /// An interrupt freed to a task-only cache. Or a cache was freed to by its number, by another
    /// kind of caller than it was made for.
    TaskOnly,
}

impl fmt::Display for FreeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASlab => f.write_str("the address lies in no slab"),
            Self::WrongCache { cache } => {
                write!(f, "the object belongs to another cache, number {cache}")
            }
            Self::OffGrid => f.write_str("no object begins at the address"),
            Self::DoubleFree => f.write_str("the object is free already"),
            Self::Damaged => f.write_str("the object was written to while it was not its user's"),
            Self::TaskOnly => SlabError::TaskOnly.fmt(f),
        }
    }
}

impl Error for FreeFault {}

/// Why a cache could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// No slab can hold such objects.
    Shape(ShapeError),
    /// All planned caches are made already. Or fewer consecutive numbers are left than the general
    /// sizes need.
    TooMany {
        /// The number of caches that were planned.
        planned: usize,
        /// The number of caches that were to be made, under consecutive numbers.
        wanted: usize,
    },
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(error) => error.fmt(f),
            Self::TooMany { planned, wanted: 1 } => write!(
                f,
                "all {planned} caches are made: plan more (at most {})",
                MAX_CACHES
            ),
            Self::TooMany { planned, wanted } => write!(
                f,
                "of {planned} caches no {wanted} in a row are left: plan more (at most {}), or make the general sizes first",
                MAX_CACHES
            ),
        }
    }
}

impl Error for CacheError {}

impl From<ShapeError> for CacheError {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

/// Why a system of slabs could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// More caches than there are numbers.
    TooManyCaches {
        /// The number of caches that were planned.
        planned: usize,
    },
    /// The memory is too small.
    Memory {
        /// The bytes that are needed, alignment included.
        needed: usize,
    },
    /// The memory for the tables of pages is too small.
    Tables {
        /// The bytes that are needed, alignment included.
        needed: usize,
    },
    /// The source has more pages than slabs can number ([`MAX_PAGES`]).
    TooManyPages {
        /// The number of pages that it has.
        pages: usize,
    },
    /// Slabs cannot be made of pages as small or as large as the source's.
    PageSize {
        /// log2 of their bytes.
        page_shift: u32,
    },
    /// The zone's span is not mapped throughout, or not aligned to its largest block.
    Unmapped,
    /// Frames are in use of a zone that slabs are to have to themselves.
    ZoneInUse,
    /// The rows that the embedder brings are too small.
    Rows {
        /// The bytes that each row must have, a power of two.
        needed: usize,
    },
    /// The plan says that pages have homes, and fewer have one than there are pages, or it does not
    /// say so, and there are homes.
    Homes {
        /// The number of homes that are needed.
        needed: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyCaches { planned } => {
                write!(f, "{planned} caches planned: at most {MAX_CACHES} can be")
            }
            Self::Memory { needed: usize::MAX } => {
                f.write_str("slabs for this plan need more memory than can be: plan fewer CPUs")
            }
            Self::Memory { needed } => write!(f, "slabs need {needed} bytes of memory"),
            Self::Tables { needed } => write!(f, "the tables of pages need {needed} bytes"),
            Self::TooManyPages { pages } => write!(
                f,
                "the source has {pages} pages, and slabs can number {MAX_PAGES}: give it a shorter \
                 span, or larger pages, or build slabs over each of several sources"
            ),
            Self::PageSize { page_shift } => write!(
                f,
                "the source's pages have 2^{page_shift} bytes: slabs are made of pages of 1 KiB to \
                 64 KiB"
            ),
            Self::Rows { needed } => write!(
                f,
                "a CPU's row needs {needed} bytes: make each as long, a power of two"
            ),
            Self::Homes { needed: 0 } => {
                f.write_str("homes of pages were given that the plan does not have: plan them")
            }
            Self::Homes { needed } => {
                write!(f, "the plan's homes need a byte for each of {needed} pages")
            }
            Self::Unmapped => f.write_str(
                "the zone has frames without memory, or its first frame is not aligned to \
                 its largest block",
            ),
            Self::ZoneInUse => f.write_str(
                "frames of the zone are in use, or lie with CPUs that cannot be reached: free and \
                 drain them before slabs take the zone, or share it",
            ),
        }
    }
}

impl Error for BuildError {}
