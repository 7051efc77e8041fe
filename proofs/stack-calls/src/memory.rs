//! The memory of the zone that slabs are made over.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::Frame;

/// Its pages, of 4 KiB.
pub(crate) const PAGES: usize = 256;

/// One MiB, aligned to its own size.
#[repr(align(1048576))]
struct Memory(UnsafeCell<MaybeUninit<[u8; PAGES << 12]>>);

// SAFETY: the zone hands out its bytes, each to one user.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new(MaybeUninit::uninit()));

/// Returns the address of a frame.
pub(crate) fn page(frame: Frame) -> Option<NonNull<u8>> {
    let start = NonNull::new(MEMORY.0.get())?.cast::<u8>();
    // SAFETY: a frame of the zone is a page of the memory.
    (frame.number() < PAGES).then(|| unsafe { start.add(frame.number() << 12) })
}
