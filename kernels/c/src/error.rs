//! The codes that functions return, all negative, and their texts.

use core::ffi::{CStr, c_char};

use brickyard::{AllocError, FreeError, PlanError, RangeError};
use brickyard_slab::{BuildError, CacheError, FreeFault};

/// Too little memory is free.
pub const BY_EXHAUSTED: isize = -1;
/// Enough memory is free, but in pieces that are too small.
pub const BY_FRAGMENTED: isize = -2;
/// Nothing is free below the limit of the request.
pub const BY_ABOVE_LIMIT: isize = -3;
/// No zone ever has a block of this order.
pub const BY_ORDER_TOO_LARGE: isize = -4;
/// The frame is not memory that this machine handed out.
pub const BY_NOT_OWNED: isize = -5;
/// The frame is free already.
pub const BY_DOUBLE_FREE: isize = -6;
/// The block is not as large as that, or begins elsewhere.
pub const BY_WRONG_ORDER: isize = -7;
/// The range reaches outside the zone.
pub const BY_OUTSIDE: isize = -8;
/// A frame of the range is in use, or another zone's; or the cache is in use; or another CPU writes
/// a text.
pub const BY_BUSY: isize = -9;
/// A frame of the range is not memory of the zone.
pub const BY_ABSENT: isize = -10;
/// The range is isolated, or too many are.
pub const BY_ISOLATED: isize = -11;
/// An argument makes no sense: a null pointer, an unknown flag, a range or object without size, an
/// alignment that is not a power of two, or a zone that the machine does not have.
pub const BY_INVALID: isize = -12;
/// The memory is too small; the function for its size tells how much is needed.
pub const BY_TOO_LITTLE_MEMORY: isize = -13;
/// No zone can be as large as that or end as high, or no machine have as many zones, CPUs or
/// caches.
pub const BY_TOO_LARGE: isize = -14;
/// Zones must be sorted by node, then by kind (BY_DMA, BY_DMA32, BY_NORMAL, BY_HIGHMEM,
/// BY_ZONE_MOVABLE), then by start; those of one node and kind must not overlap; nodes are numbered
/// from 0 without a gap.
pub const BY_UNSORTED: isize = -15;
/// The platform has no address for a frame that slabs were to use.
pub const BY_UNMAPPED: isize = -16;
/// An interrupt used a cache for tasks only.
pub const BY_TASK_ONLY: isize = -17;
/// The address is no object of this cache.
pub const BY_NOT_AN_OBJECT: isize = -18;
/// An object was written to while it was not its user's.
pub const BY_DAMAGED: isize = -19;
/// An invariant does not hold: metadata were overwritten, or the platform broke a promise.
pub const BY_BROKEN: isize = -20;

/// Returns the text of a code, for people. Never null. A result that is no error is "success".
#[unsafe(no_mangle)]
pub extern "C" fn by_error_text(code: isize) -> *const c_char {
    text_of(code).as_ptr()
}

const fn text_of(code: isize) -> &'static CStr {
    match code {
        0.. => c"success",
        BY_EXHAUSTED => c"too little memory is free",
        BY_FRAGMENTED => c"enough memory is free, but in pieces that are too small: compact",
        BY_ABOVE_LIMIT => c"nothing is free below the limit",
        BY_ORDER_TOO_LARGE => c"no zone ever has a block of this order",
        BY_NOT_OWNED => c"the frame is not memory that this machine handed out",
        BY_DOUBLE_FREE => c"the frame or object is free already",
        BY_WRONG_ORDER => c"the block is not as large as that, or begins elsewhere",
        BY_OUTSIDE => c"the range reaches outside the zone's span",
        BY_BUSY => c"in use, or another zone's",
        BY_ABSENT => c"a frame of the range is not memory of the zone",
        BY_ISOLATED => c"the range is isolated, or too many are at once",
        BY_INVALID => {
            c"invalid argument: a null pointer, an unknown flag or zone, or a size or alignment that makes no sense"
        }
        BY_TOO_LITTLE_MEMORY => c"the memory for metadata is too small: ask for its size first",
        BY_TOO_LARGE => c"no zone is as large or ends as high, and no machine has as many zones, CPUs or caches",
        BY_UNSORTED => {
            c"sort zones by node, kind and start, without overlap in a kind; number nodes from 0 without a gap"
        }
        BY_UNMAPPED => c"the platform has no address for a frame, or the first frame is misaligned",
        BY_TASK_ONLY => c"an interrupt used a cache for tasks only: give it BY_CACHE_INTERRUPTS",
        BY_NOT_AN_OBJECT => c"the address is no object of this cache",
        BY_DAMAGED => c"the object was written to while it was not its user's",
        BY_BROKEN => c"an invariant does not hold: metadata or a promise of the platform broken",
        _ => c"unknown code",
    }
}

pub(crate) const fn of_alloc(error: AllocError) -> isize {
    match error {
        AllocError::Fragmented { .. } => BY_FRAGMENTED,
        AllocError::LimitUnsatisfiable { .. } => BY_ABOVE_LIMIT,
        AllocError::OrderTooLarge { .. } => BY_ORDER_TOO_LARGE,
        _ => BY_EXHAUSTED,
    }
}

pub(crate) const fn of_free(error: FreeError) -> isize {
    match error {
        FreeError::DoubleFree => BY_DOUBLE_FREE,
        FreeError::WrongOrder { .. } => BY_WRONG_ORDER,
        _ => BY_NOT_OWNED,
    }
}

pub(crate) const fn of_range(error: RangeError) -> isize {
    match error {
        RangeError::OutsideSpan { .. } => BY_OUTSIDE,
        RangeError::Busy { .. } => BY_BUSY,
        RangeError::Absent { .. } => BY_ABSENT,
        RangeError::Isolated | RangeError::TooManyIsolated => BY_ISOLATED,
        RangeError::TooLittleFree { .. } => BY_EXHAUSTED,
        _ => BY_INVALID,
    }
}

pub(crate) const fn of_plan(error: PlanError) -> isize {
    match error {
        PlanError::TooLittleMemory { .. } => BY_TOO_LITTLE_MEMORY,
        _ => BY_TOO_LARGE,
    }
}

pub(crate) const fn of_build(error: BuildError) -> isize {
    match error {
        BuildError::Memory { .. } | BuildError::Tables { .. } | BuildError::Rows { .. } => {
            BY_TOO_LITTLE_MEMORY
        }
        BuildError::TooManyCaches { .. } | BuildError::TooManyPages { .. } => BY_TOO_LARGE,
        BuildError::Unmapped => BY_UNMAPPED,
        BuildError::ZoneInUse => BY_BUSY,
        _ => BY_INVALID,
    }
}

pub(crate) const fn of_cache(error: CacheError) -> isize {
    match error {
        CacheError::TooMany { .. } => BY_TOO_LARGE,
        _ => BY_INVALID,
    }
}

pub(crate) const fn of_fault(error: FreeFault) -> isize {
    match error {
        FreeFault::DoubleFree => BY_DOUBLE_FREE,
        FreeFault::Damaged => BY_DAMAGED,
        FreeFault::TaskOnly => BY_TASK_ONLY,
        _ => BY_NOT_AN_OBJECT,
    }
}

/// Returns a number of frames, objects or bytes as a result.
pub(crate) fn count(number: usize) -> isize {
    isize::try_from(number).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let codes = BY_BROKEN..0;
        for code in codes.clone() {
            assert_ne!(text_of(code), c"unknown code", "{code}");
            assert!(
                codes
                    .clone()
                    .all(|other| other == code || text_of(other) != text_of(code))
            );
        }
        assert_eq!(text_of(BY_BROKEN - 1), c"unknown code");
        assert_eq!(text_of(17), c"success");
    }
}
