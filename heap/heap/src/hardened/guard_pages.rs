//! Memory that cannot be accessed, between pieces that can.

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;

use brickyard_arena::{Region, page_bytes};
use rustix::mm::{MprotectFlags, mprotect};

use crate::instance::HeapError;

/// Maps memory for ever, zero throughout, with a page before and behind it that cannot be accessed.
pub(super) fn guarded(bytes: usize) -> Result<&'static mut [MaybeUninit<u8>], HeapError> {
    map_guarded(bytes).ok_or(HeapError::NoAddresses)
}

fn map_guarded(bytes: usize) -> Option<&'static mut [MaybeUninit<u8>]> {
    let page = page_bytes();
    let inner = bytes.checked_next_multiple_of(page)?;
    let region = Region::map_sparse(inner.checked_add(2 * page)?, 1).ok()?;
    fence(&region)?;
    let start = region.leak();
    // SAFETY: the mapping has so many bytes, and is there for ever; nobody else knows of it.
    Some(unsafe { slice::from_raw_parts_mut(start.add(page).as_ptr().cast(), bytes) })
}

/// Makes the first and the last page of a mapping inaccessible; `None` if the system refuses.
pub(super) fn fence(region: &Region) -> Option<()> {
    let page = page_bytes();
    // SAFETY: whole pages of the region, in which nothing is yet.
    unsafe {
        deny(region.start(), page)?;
        deny(region.at(region.bytes() - page), page)
    }
}

/// Makes whole pages inaccessible; `None` if the system refuses, since the process has too many
/// mappings.
///
/// # Safety
/// They are the caller's.
pub(super) unsafe fn deny(first: NonNull<u8>, bytes: usize) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe { mprotect(first.as_ptr().cast(), bytes, MprotectFlags::empty()) }.ok()
}

/// Makes whole pages accessible again; `None` if the system refuses.
///
/// # Safety
/// They are the caller's.
pub(super) unsafe fn allow(first: NonNull<u8>, bytes: usize) -> Option<()> {
    let both = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: the caller's promise.
    unsafe { mprotect(first.as_ptr().cast(), bytes, both) }.ok()
}
