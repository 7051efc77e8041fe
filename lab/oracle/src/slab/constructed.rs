//! The state that the constructors here make.

use core::ptr::NonNull;
use core::slice;

use brickyard_measure::objects::in_hand::Pattern;

/// What they fill an object with.
pub(super) const CONSTRUCTED: Pattern = Pattern::of(0xc0de);

/// Constructs an object of `N` bytes.
pub(super) fn construct<const N: usize>(object: NonNull<u8>) {
    // SAFETY: the rule of constructors: the object is `N` bytes not in use, on pages that the
    // source has filled.
    let bytes = unsafe { slice::from_raw_parts_mut(object.as_ptr(), N) };
    CONSTRUCTED.fill(bytes);
}
