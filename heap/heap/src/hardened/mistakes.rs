//! Complaints about the mistakes that the fast paths find, a function for each, so that a call has
//! one argument only.

use core::ptr::NonNull;

use crate::complaints::complain;

#[cold]
#[inline(never)]
pub(super) fn damaged_queue(object: NonNull<u8>) -> ! {
    complain("a queue of free objects is damaged: this is none", object)
}

#[cold]
#[inline(never)]
pub(super) fn written_after_free(object: NonNull<u8>) -> ! {
    complain("written to after it was freed", object)
}

#[cold]
#[inline(never)]
pub(super) fn written_behind(memory: NonNull<u8>) -> ! {
    complain("written behind the end", memory)
}

#[cold]
#[inline(never)]
pub(super) fn written_before(memory: NonNull<u8>) -> ! {
    complain("written before the beginning", memory)
}
