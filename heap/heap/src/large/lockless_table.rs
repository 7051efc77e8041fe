//! Large blocks that are listed beside the table, without its lock.
//!
//! While the gate is closed, a request that cannot wait for it lists its block in a few places
//! beside the table, which change by one compare-and-swap each. It may look into the table, under
//! its lock, but does not change it. So at a fork the table is as it should be, and only its lock
//! may be held by a thread that the child does not have.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard_arena::Region;

use super::{LargeBlocks, Piece, piece_of, rounded, unmap};

/// So many blocks can be listed beside the table.
pub(super) const BESIDE: usize = 64;

/// A place beside the table. Invariant `beside-claimed`: who makes `bytes` something else than 0 by
/// a compare-and-swap owns the place until `address` is written, and who takes the address out by
/// one owns it until `bytes` is 0 again.
#[derive(Debug)]
pub(super) struct Unlisted {
    pub(super) address: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

impl Unlisted {
    pub(super) const fn new() -> Self {
        Self {
            address: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Takes the address out, and returns the bytes of its block; `None` if another has.
    fn take(&self, start: NonNull<u8>) -> Option<usize> {
        let address = start.addr().get();
        // Acquire: pairs with the release in `alloc_beside`.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let taken = self.address.compare_exchange(address, 0, success, failure);
        taken.is_ok().then(|| self.bytes.load(Ordering::Relaxed))
    }

    /// Leaves the place to the next owner.
    fn leave(&self) {
        // Release: pairs with the acquire of the next owner.
        self.bytes.store(0, Ordering::Release);
    }
}

impl LargeBlocks {
    /// Allocates a block without changing the table. `None` if the system has no memory, or too
    /// many blocks are listed beside the table.
    pub(crate) fn alloc_beside(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let region = Region::map_memory(bytes, align).ok()?;
        let place = self.beside.iter().find(|place| {
            // Acquire: pairs with the release of the last owner (`beside-claimed`).
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            let claimed = place.bytes.compare_exchange(0, bytes, success, failure);
            claimed.is_ok()
        })?;
        let start = region.leak();
        // Release: pairs with the acquire of who looks for the address.
        place.address.store(start.addr().get(), Ordering::Release);
        self.grown_by(bytes, 0);
        Some(start)
    }

    /// Returns the place beside the table that lists an address.
    pub(super) fn beside(&self, start: NonNull<u8>) -> Option<&Unlisted> {
        let address = start.addr().get();
        // Acquire: pairs with the release in `alloc_beside`.
        let mut places = self.beside.iter();
        places.find(|place| place.address.load(Ordering::Acquire) == address)
    }

    /// Frees a block that is listed beside the table. False if none is that begins there.
    ///
    /// # Safety
    /// The conditions of [`LargeBlocks::free`].
    pub(crate) unsafe fn free_beside(&self, start: NonNull<u8>) -> bool {
        let Some(block) = self.take_beside(start) else {
            return false;
        };
        self.bytes.fetch_sub(block.bytes, Ordering::Relaxed);
        unmap(block);
        true
    }

    /// Takes a block out that is listed beside the table: it is the caller's mapping from then on.
    pub(super) fn take_beside(&self, start: NonNull<u8>) -> Option<Piece> {
        let place = self.beside(start)?;
        let bytes = place.take(start)?;
        place.leave();
        Some(piece_of(start, bytes))
    }

    /// Moves what is listed beside the table into it, and returns true if the address was listed
    /// there. The gate must be open for the caller.
    pub(super) fn list_in_table(&self, start: NonNull<u8>) -> bool {
        let Some(place) = self.beside(start) else {
            return false;
        };
        self.with_table(|table| {
            if !table.reserve() {
                return false;
            }
            let Some(bytes) = place.take(start) else {
                table.unreserve();
                return false;
            };
            table.put(piece_of(start, bytes));
            place.leave();
            true
        })
    }
}
