//! The errors, as values. A request or a free that is refused has changed nothing.

use core::error::Error;
use core::fmt;

use crate::{Frame, FrameRange, Order};

/// Why a request was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// Too little memory is free in the zones that may serve the request, or what is free is held
    /// back from it: by watermarks, reserves, isolation.
    Exhausted {
        /// The frames free there, those held back included.
        free: usize,
        /// The frames in caches of CPUs that this request could not drain. A hint. A request that
        /// may sleep drains the caches of all CPUs that
        /// [`run_on`](crate::Platform::run_on) reaches.
        cached: usize,
    },
    /// Enough memory is free, but in pieces that are too small.
    Fragmented {
        /// The order requested.
        order: Order,
        /// The frames free in the zone that this is about.
        free: usize,
        /// The fragmentation index in thousandths: near 0 means lack of memory, near 1000 means
        /// fragmentation (Gorman and Healy 2008). `None` if the store keeps no lists of free
        /// blocks; [`Zone::free_counts`](crate::AnyZone::free_counts) counts them.
        index: Option<u16>,
    },
    /// No memory below the limit is available.
    LimitUnsatisfiable {
        /// The limit: every frame had to lie below this one.
        limit: Frame,
    },
    /// No zone ever holds a block of this order.
    OrderTooLarge {
        /// The order requested.
        order: Order,
        /// The highest order of the zones that may serve the request.
        max: Order,
    },
    /// A range of adjacent frames has none, or more than the largest block.
    LengthUnsatisfiable {
        /// The frames requested.
        frames: usize,
        /// The frames of the largest block.
        most: usize,
    },
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exhausted { free, cached } => {
                write!(
                    f,
                    "memory is exhausted: {free} frames free, reserves included"
                )?;
                match cached {
                    0 => Ok(()),
                    _ => write!(f, ", and {cached} in caches that could not be drained"),
                }
            }
            Self::Fragmented { order, free, index } => {
                write!(
                    f,
                    "memory is fragmented at order {order}: {free} frames free in smaller pieces"
                )?;
                match index {
                    Some(index) => write!(f, ", index {}.{:03}", index / 1000, index % 1000),
                    None => Ok(()),
                }
            }
            Self::LimitUnsatisfiable { limit } => {
                write!(f, "nothing free below frame {limit}")
            }
            Self::OrderTooLarge { order, max } => {
                write!(f, "order {order} is above the highest order {max}")
            }
            Self::LengthUnsatisfiable { frames: 0, most } => {
                write!(f, "a range of no frames: ask for 1 to {most}")
            }
            Self::LengthUnsatisfiable { frames, most } => write!(
                f,
                "{frames} adjacent frames are more than the largest block, which has {most}: plan \
                 a higher `max_order`, or ask by `alloc_contiguous`"
            ),
        }
    }
}

impl Error for AllocError {}

/// Why a zone cannot be built from its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The memory supplied for the zone's metadata is too small.
    TooLittleMemory {
        /// The bytes that were supplied.
        supplied: usize,
        /// The bytes that would suffice.
        needed: usize,
    },
    /// The span has more frames than a zone can have.
    TooManyFrames {
        /// The frames in the span. A bitmap store counts from the start of its first page block.
        frames: usize,
        /// The most frames a zone can have, see [`FRAMES_MOST`](crate::FRAMES_MOST).
        most: usize,
    },
    /// The span has more page blocks than a bitmap store can have.
    TooManyBlocks {
        /// The blocks in the span, counted from the start of the highest-order block that it begins
        /// in.
        blocks: usize,
        /// The most blocks, see [`BLOCKS_MOST`](crate::bitmap::Bitmap::BLOCKS_MOST).
        most: usize,
    },
    /// The metadata would need more bytes than this machine can address.
    TooManyBytes,
    /// The store groups by page blocks, and a page block is larger than the largest block.
    PageBlockTooLarge {
        /// The order of a page block.
        page_block_order: Order,
        /// The highest order of the zone.
        max_order: Order,
    },
    /// The caches in front of the store could hold nothing. The text says what they need.
    CacheSizes(&'static str),
}

impl PlanError {
    /// Panics with a message that names the limit. In a constant, that is a compile error. A
    /// constant cannot print numbers, so they are in the text.
    pub const fn refuse(self) -> ! {
        match self {
            Self::TooLittleMemory { .. } => panic!("the zone's metadata needs more bytes"),
            Self::TooManyFrames { .. } => panic!(
                "a zone spans at most 2^32 - 2 frames: give the rest to one more zone of the node"
            ),
            Self::TooManyBlocks { .. } => panic!(
                "a zone has at most 2^24 page blocks: \
                 use larger page blocks, or give the rest to one more zone of the node"
            ),
            Self::TooManyBytes => panic!(
                "the zone's metadata needs more bytes than there are addresses: \
                 plan fewer CPUs and magazines, or several smaller zones"
            ),
            Self::PageBlockTooLarge { .. } => {
                panic!("a page block is at most a block of the highest order")
            }
            Self::CacheSizes(_) => panic!("the caches before the store could hold nothing"),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLittleMemory { supplied, needed } => write!(
                f,
                "the zone's metadata needs {needed} bytes, {supplied} were supplied: \
                 `Zone::bytes(&plan)` is the size"
            ),
            Self::TooManyFrames { frames, most } => write!(
                f,
                "a zone spans at most {most} frames, and here {frames}: give the rest to one \
                 more zone of the node"
            ),
            Self::TooManyBlocks { blocks, most } => write!(
                f,
                "a zone has at most {most} page blocks, and here {blocks}: use larger page \
                 blocks, or give the rest to one more zone of the node"
            ),
            Self::TooManyBytes => f.write_str(
                "the zone's metadata needs more bytes than there are addresses: plan fewer \
                 CPUs and magazines, or several smaller zones",
            ),
            Self::PageBlockTooLarge {
                page_block_order,
                max_order,
            } => write!(
                f,
                "page blocks of order {page_block_order} are above the highest order \
                 {max_order}: plan smaller page blocks, or larger blocks"
            ),
            Self::CacheSizes(needed) => f.write_str(needed),
        }
    }
}

impl Error for PlanError {}

/// Why a free was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreeError {
    /// The frame is not in this zone, was never added, or is reserved.
    NotOwned,
    /// The frame is already free, or lies in a cache of free frames.
    DoubleFree,
    /// The block is smaller than what is freed, or the part is not aligned to its own size.
    WrongOrder {
        /// The order of the block that contains the frame.
        allocated: Order,
    },
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOwned => f.write_str("the frame is not this allocator's to free"),
            Self::DoubleFree => f.write_str("the frame is free already"),
            Self::WrongOrder { allocated } => write!(
                f,
                "not an aligned part of the block, which has order {allocated}"
            ),
        }
    }
}

impl Error for FreeError {}

/// Where and why a free of many frames stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkFreeError {
    /// The number of frames freed. The next one is bad.
    pub freed: usize,
    /// The error of that frame.
    pub error: FreeError,
}

impl fmt::Display for BulkFreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} frames: {}", self.freed, self.error)
    }
}

impl Error for BulkFreeError {}

/// Why a range could not be added, removed, reserved, taken or isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The range reaches outside the zone's records.
    OutsideSpan {
        /// The span of the records.
        span: FrameRange,
    },
    /// A frame of the range is in use, or another caller is removing or reserving it.
    Busy {
        /// The first such frame.
        frame: Frame,
    },
    /// A frame of the range is not memory of this zone.
    Absent {
        /// The first such frame.
        frame: Frame,
    },
    /// The range overlaps one that is already isolated.
    Isolated,
    /// The most ranges that can be isolated at a time are, or as many are being removed or
    /// reserved. Another try is worthwhile.
    TooManyIsolated,
    /// The zone would fall below its min watermark.
    TooLittleFree {
        /// The frames free there.
        free: usize,
    },
    /// The request makes no sense: it has no frames, an alignment or boundary that is not a power
    /// of two, or more frames than fit between two boundaries.
    Malformed,
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideSpan { span } => write!(f, "outside the zone's span {span:?}"),
            Self::Busy { frame } => write!(f, "frame {frame} is in use"),
            Self::Absent { frame } => write!(f, "frame {frame} is not memory of this zone"),
            Self::Isolated => f.write_str("isolated already"),
            Self::TooManyIsolated => f.write_str("too many ranges are isolated: try again later"),
            Self::TooLittleFree { free } => {
                write!(
                    f,
                    "the zone would fall below its min watermark: {free} frames free"
                )
            }
            Self::Malformed => f.write_str(
                "a range needs frames, and an alignment and boundary that are powers of two",
            ),
        }
    }
}

impl Error for RangeError {}
