//! Which objects of a slab are free: a chain of indices, beside the objects.
//!
//! A slab's record has the first free index in `free[0]`. The index behind each one is in the slab,
//! behind its objects, where there is room: four bytes each. Where there is none, the slab has few
//! objects, and they are in the other three words of the record, a byte each: this is where Linux
//! allocates a description outside the slab.
//!
//! Invariant `indices-behind-objects`: no object of a slab whose indices are in it reaches them, of
//! any colour (`rules::shape`). Guarded by the lock of the slab's node.

#![allow(unsafe_code, reason = "indices are stored in the slab's pages")]

use core::ptr::with_exposed_provenance;

use brickyard_slab::PageSource;
use brickyard_slab::design::{Backend, CacheInfo, SlabRecord};
use brickyard_sync::GuardedU32;

use super::parameters::{INDEX_BYTES, is_on_slab};

/// No index: the end of the chain.
pub(super) const END: u32 = u32::MAX;

/// The same in a byte.
const END_BYTE: u64 = 0xff;

/// The indices of one slab.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indices<'m> {
    record: &'m SlabRecord,
    /// Where they begin, if they are in the slab.
    at: Option<usize>,
}

impl<'m> Indices<'m> {
    pub(super) fn of<S: PageSource, L>(
        backend: &Backend<'m, S, L>,
        info: &CacheInfo,
        head: usize,
    ) -> Self {
        let page_bytes = 1 << backend.source.page_shift();
        let shape = &info.geometry;
        let end = backend.pages.address_of(head) + (page_bytes << shape.order.get());
        let on_slab = is_on_slab(shape, page_bytes);
        Self {
            record: backend.pages.record(head),
            at: on_slab.then(|| end - shape.objects as usize * INDEX_BYTES),
        }
    }

    /// Chains all objects in address order.
    pub(super) fn begin(&self, objects: u32) {
        for index in 0..objects {
            self.set(index, if index + 1 < objects { index + 1 } else { END });
        }
        self.record.free[0].set(0);
    }

    /// Returns the first free index, or [`END`].
    pub(super) fn first(&self) -> u32 {
        self.record.free[0].get() as u32
    }

    /// Takes the first free index.
    pub(super) fn pop(&self) -> Option<u32> {
        let first = self.first();
        if first == END {
            return None;
        }
        self.record.free[0].set(u64::from(self.next(first)));
        Some(first)
    }

    /// Makes an index the first.
    pub(super) fn push(&self, index: u32) {
        self.set(index, self.first());
        self.record.free[0].set(u64::from(index));
    }

    /// Returns true if an index is in the chain.
    pub(super) fn has(&self, index: u32) -> bool {
        let mut at = self.first();
        while at != END && at != index {
            at = self.next(at);
        }
        at == index
    }

    fn next(&self, index: u32) -> u32 {
        match self.at {
            Some(at) => word(at, index).get(),
            None => {
                let (word, shift) = self.byte(index);
                match word.get() >> shift & END_BYTE {
                    END_BYTE => END,
                    next => next as u32,
                }
            }
        }
    }

    fn set(&self, index: u32, next: u32) {
        match self.at {
            Some(at) => word(at, index).set(next),
            None => {
                let (word, shift) = self.byte(index);
                let others = word.get() & !(END_BYTE << shift);
                word.set(others | (u64::from(next) & END_BYTE) << shift);
            }
        }
    }

    fn byte(&self, index: u32) -> (&'m brickyard_sync::GuardedU64, u32) {
        (&self.record.free[1 + index as usize / 8], index % 8 * 8)
    }
}

/// Returns the word of an index in a slab.
fn word<'a>(at: usize, index: u32) -> &'a GuardedU32 {
    let address = at + index as usize * INDEX_BYTES;
    // SAFETY: `indices-behind-objects`: these bytes of the slab are nobody else's, and its pages'
    // addresses were exposed when they were taken; `begin` writes every word before it is read.
    unsafe { &*with_exposed_provenance::<GuardedU32>(address) }
}
