//! What the test can find.

use core::error::Error;
use core::fmt;

use brickyard::check::Violation;
use brickyard::{Frame, FrameRange, FreeError, Order, RangeError};

use crate::Owner;

/// What is wrong. The test stops at the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A frame was handed out that somebody owns.
    TwoOwners {
        /// The frame.
        frame: Frame,
        /// Who has just got it.
        new: Owner,
        /// Who had it already.
        old: Owner,
    },
    /// A frame changed hands, though its owner had not given it up.
    Vanished {
        /// The frame.
        frame: Frame,
        /// Who should own it.
        expected: Owner,
        /// Who does.
        found: Option<Owner>,
    },
    /// A frame has other contents than its owner wrote.
    Overwritten {
        /// The frame.
        frame: Frame,
        /// Which word of it.
        word: usize,
        /// Its owner.
        owner: Owner,
        /// What the owner wrote.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A block was handed out that is not in the zone's span.
    OutsideSpan {
        /// The frame.
        frame: Frame,
        /// The span.
        span: FrameRange,
    },
    /// A block was handed out that is not aligned to its size.
    Misaligned {
        /// Its first frame.
        frame: Frame,
        /// The order requested.
        order: Order,
    },
    /// A block was handed out that reaches above the request's limit.
    AboveLimit {
        /// Its first frame.
        frame: Frame,
        /// The limit.
        limit: Frame,
    },
    /// A free by the owner was refused.
    FreeRefused {
        /// The first frame.
        frame: Frame,
        /// The order that was freed.
        order: Order,
        /// What the zone said.
        error: FreeError,
    },
    /// A free of more than the caller owns was accepted.
    BadFreeAccepted {
        /// The first frame.
        frame: Frame,
        /// The order that was freed.
        order: Order,
    },
    /// A range was removed, reserved or taken that holds a frame in use.
    RangeInUse {
        /// The range.
        range: FrameRange,
        /// The frame.
        frame: Frame,
        /// Who owns it.
        owner: Owner,
    },
    /// A change of a range failed that had to succeed.
    RangeRefused {
        /// The range.
        range: FrameRange,
        /// What the zone said.
        error: RangeError,
    },
    /// A range came back with another number of frames than it went with.
    RangeSize {
        /// The range.
        range: FrameRange,
        /// The frames that went.
        expected: usize,
        /// The frames that came back.
        found: usize,
    },
    /// A frame is owned when all is given back.
    StillOwned {
        /// The frame.
        frame: Frame,
        /// Its owner.
        owner: Owner,
    },
    /// Other than all the memory can be had, frame by frame, when all is free.
    Lost {
        /// The frames that were added.
        expected: usize,
        /// The frames that the zone says it manages.
        managed: usize,
        /// The frames that could be had.
        found: usize,
    },
    /// Not all is free at the end.
    NotFree {
        /// The frames that were added.
        expected: usize,
        /// Those free.
        free: usize,
        /// Those that the zone takes to be in use.
        allocated: usize,
        /// Those in caches.
        cached: usize,
    },
    /// An invariant of the zone does not hold.
    Violation(Violation),
    /// The memory for the oracle is too small.
    TooLittleMemory {
        /// The bytes supplied.
        supplied: usize,
        /// The bytes needed.
        needed: usize,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TwoOwners { frame, new, old } => {
                write!(f, "frame {frame} was handed to {new}, but {old} owns it")
            }
            Self::Vanished {
                frame,
                expected,
                found: Some(found),
            } => write!(f, "frame {frame} of {expected} now belongs to {found}"),
            Self::Vanished {
                frame, expected, ..
            } => write!(f, "frame {frame} of {expected} belongs to nobody"),
            Self::Overwritten {
                frame,
                word,
                owner,
                expected,
                found,
            } => write!(
                f,
                "word {word} of frame {frame} of {owner} was overwritten: {found:#x}, not \
                 {expected:#x}"
            ),
            Self::OutsideSpan { frame, span } => {
                write!(f, "frame {frame} was handed out, outside {span:?}")
            }
            Self::Misaligned { frame, order } => {
                write!(f, "frame {frame} was handed out for order {order}")
            }
            Self::AboveLimit { frame, limit } => {
                write!(f, "frame {frame} was handed out, above the limit {limit}")
            }
            Self::FreeRefused {
                frame,
                order,
                error,
            } => write!(f, "a free of {frame}, order {order}, was refused: {error}"),
            Self::BadFreeAccepted { frame, order } => write!(
                f,
                "a free of {frame} as order {order} was accepted, which is more than was owned"
            ),
            Self::RangeInUse {
                range,
                frame,
                owner,
            } => write!(f, "{range:?} left the zone, but {owner} owns {frame}"),
            Self::RangeRefused { range, error } => write!(f, "{range:?}: {error}"),
            Self::RangeSize {
                range,
                expected,
                found,
            } => write!(f, "{expected} frames of {range:?} left, {found} came back"),
            Self::StillOwned { frame, owner } => {
                write!(f, "all is given back, but {owner} owns {frame}")
            }
            Self::Lost {
                expected,
                managed,
                found,
            } => write!(
                f,
                "{expected} frames were added, {managed} are managed, and {found} could be had"
            ),
            Self::NotFree {
                expected,
                free,
                allocated,
                cached,
            } => write!(
                f,
                "of {expected} frames {free} are free, {allocated} in use, {cached} in caches"
            ),
            Self::Violation(violation) => write!(f, "{violation}"),
            Self::TooLittleMemory { supplied, needed } => write!(
                f,
                "the oracle needs {needed} bytes, {supplied} were supplied: `Oracle::bytes(span)` \
                 is the size"
            ),
        }
    }
}

impl Error for Finding {}
