//! Memory of no bytes: addresses that cannot be accessed, each given once at a time.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use brickyard_arena::Region;

use super::guarded;
use super::states::GRANULE;
use crate::build::HeapError;
use crate::life::complain;

/// So many pieces of no bytes can be had at a time.
const PIECES: usize = 1 << 20;

/// A request looks at so many places at most.
const LOOKS: usize = 64;

/// See the [module](self).
pub(super) struct Nothing {
    region: Region,
    /// 1: in use, a byte for each.
    used: &'static [AtomicU8],
    next: AtomicUsize,
}

impl Nothing {
    pub(super) fn new() -> Result<Self, HeapError> {
        let memory = guarded(PIECES)?;
        // SAFETY: the mapping is zero, is there for ever, and is this value's.
        let used = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), PIECES) };
        let region = Region::map_addresses(PIECES * GRANULE, 1);
        Ok(Self {
            region: region.map_err(|_| HeapError::NoAddresses)?,
            used,
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn contains(&self, memory: NonNull<u8>) -> bool {
        let offset = memory
            .addr()
            .get()
            .wrapping_sub(self.region.start().addr().get());
        offset < PIECES * GRANULE
    }

    /// Returns an address that nobody else has; `None` if too many are in use.
    pub(super) fn allocate(&self) -> Option<NonNull<u8>> {
        (0..LOOKS).find_map(|_| {
            // Relaxed, all: there is no memory that the orders could be for.
            let piece = self.next.fetch_add(1, Ordering::Relaxed) % PIECES;
            let free = self.used[piece].swap(1, Ordering::Relaxed) == 0;
            free.then(|| self.region.at(piece * GRANULE))
        })
    }

    pub(super) fn free(&self, memory: NonNull<u8>) {
        let offset = memory.addr().get() - self.region.start().addr().get();
        let piece = offset / GRANULE;
        if !offset.is_multiple_of(GRANULE) || self.used[piece].swap(0, Ordering::Relaxed) == 0 {
            complain(
                "freed twice, or an address inside memory of no bytes",
                memory,
            );
        }
    }
}
