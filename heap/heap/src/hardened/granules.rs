//! A byte for each granule of sixteen bytes of the span, which says what kind of memory begins
//! there.
//!
//! Invariant `one-state`: a byte leaves [`OBJECT`] or [`RUN`] by a compare-and-swap of the one
//! caller that frees what begins there, and gets there by a store of the one that has just taken
//! it: only where a queue of free objects is damaged are there two.
//!
//! The bytes of memory that the span has not got yet are zero and can only be read: locking all of
//! a process's memory does not make them memory, and nor does a core file have them.

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use brickyard_arena::{Region, page_bytes};

use crate::instance::HeapError;

use super::guard_pages::fence;

/// The bytes that have a state together.
pub(super) const GRANULE: usize = 16;

/// So many granules are looked at for a beginning: more than an object has.
const FAR: usize = 4095;

/// Nothing begins there, or nothing that was ever in use.
const NOTHING: u8 = 0;
/// An object in use begins there.
pub(super) const OBJECT: u8 = 1;
/// Memory in use that lies in a run begins there.
pub(super) const RUN: u8 = 2;
/// What began there has been freed.
pub(super) const FREED: u8 = 3;

/// See the [module](self).
pub(super) struct States {
    start: usize,
    bytes: &'static [AtomicU8],
    /// So many of them belong to the span: all, until addresses are given up.
    limit: AtomicUsize,
    /// The bytes, with a page before and behind them.
    region: Region,
}

impl States {
    pub(super) fn new(start: usize, span_bytes: usize) -> Result<Self, HeapError> {
        let page = page_bytes();
        let length = span_bytes / GRANULE;
        let inner = length.next_multiple_of(page);
        let region = Region::map_zeros(inner + 2 * page, 1).map_err(|_| HeapError::NoAddresses)?;
        let region = region.not_in_dumps();
        fence(&region).ok_or(HeapError::NoAddresses)?;
        // SAFETY: the mapping is zero, and is there as long as this value, which is for ever once
        // it is used.
        let bytes = unsafe { core::slice::from_raw_parts(region.at(page).as_ptr().cast(), length) };
        Ok(Self {
            start,
            bytes,
            limit: AtomicUsize::new(length),
            region,
        })
    }

    /// Makes the bytes of a part of the span writable, which begins where the last one ended. False
    /// if the system refuses.
    pub(super) fn commit(&self, span: Range<usize>) -> bool {
        // SAFETY: who writes to these bytes waits until the zone has the memory.
        unsafe { self.region.commit_new(self.part(span)) }.is_ok()
    }

    /// Gives up the bytes of a part of the span, the last one that has any.
    pub(super) fn give_up(&self, span: Range<usize>) {
        self.limit.store(span.start / GRANULE, Ordering::Relaxed);
        // SAFETY: nothing begins there, and nobody looks behind the limit. The region is never
        // dropped.
        let _ = unsafe { self.region.give_up(self.part(span)) };
    }

    /// Gets them back. False if others have those addresses, or if the system refuses.
    pub(super) fn regain(&self, span: Range<usize>) -> bool {
        let end = span.end / GRANULE;
        let done = self.region.regain(self.part(span), true).is_ok();
        if done {
            self.limit.store(end, Ordering::Relaxed);
        }
        done
    }

    /// Returns the bytes of a part of the span in the region: whole pages.
    fn part(&self, span: Range<usize>) -> Range<usize> {
        let page = page_bytes();
        let [from, to] =
            [span.start, span.end].map(|byte| page + (byte / GRANULE).next_multiple_of(page));
        let to = to.min(self.region.bytes() - page);
        from.min(to)..to
    }

    /// Returns the number of the granule that begins at an address; `None` if none of the span
    /// does.
    #[inline(always)]
    pub(super) fn granule(&self, memory: NonNull<u8>) -> Option<usize> {
        // What is no multiple of a granule is beyond all others when it is rotated.
        let offset = memory.addr().get().wrapping_sub(self.start);
        let granule = offset.rotate_right(GRANULE.trailing_zeros());
        // Relaxed: as the limit of the span.
        (granule < self.limit.load(Ordering::Relaxed)).then_some(granule)
    }

    fn of(&self, memory: NonNull<u8>) -> &AtomicU8 {
        &self.bytes[(memory.addr().get() - self.start) / GRANULE]
    }

    /// Returns what begins at an address of the span.
    pub(super) fn at(&self, memory: NonNull<u8>) -> u8 {
        // Relaxed: what the caller knows of the memory came to it in ways that carry this along.
        self.of(memory).load(Ordering::Relaxed)
    }

    /// Returns where the last thing at or before an address begins, and its state; `None` if it is
    /// too far to be looked for. Reads at most 4096 bytes.
    pub(super) fn before(&self, memory: NonNull<u8>) -> Option<(NonNull<u8>, u8)> {
        let at = (memory.addr().get() - self.start) / GRANULE;
        let first = at.saturating_sub(FAR);
        let states = self.bytes[first..=at].iter().enumerate().rev();
        // Relaxed: as in `at`.
        let mut states = states.map(|(index, byte)| (index, byte.load(Ordering::Relaxed)));
        let (index, state) = states.find(|&(_, state)| state != NOTHING)?;
        let back = memory.addr().get() - self.start - (first + index) * GRANULE;
        // SAFETY: that far back is still the span.
        Some((unsafe { memory.sub(back) }, state))
    }

    /// Notes that something in use begins there. False if that was so already.
    pub(super) fn begin(&self, memory: NonNull<u8>, state: u8) -> bool {
        Self::begin_in(self.of(memory), state)
    }

    /// Notes what begins at a granule, by its number: see [`States::begin`].
    #[inline(always)]
    pub(super) fn begin_at(&self, granule: usize, state: u8) -> bool {
        Self::begin_in(&self.bytes[granule], state)
    }

    #[inline(always)]
    fn begin_in(byte: &AtomicU8, state: u8) -> bool {
        // Relaxed, both: `one-state`.
        let was = byte.load(Ordering::Relaxed);
        byte.store(state, Ordering::Relaxed);
        // Nothing, or freed.
        const _: () = assert!(NOTHING == 0 && FREED == 3);
        (was + 1) & 2 == 0
    }

    /// Notes that what begins there, of which the state tells, is freed.
    ///
    /// # Errors
    /// Another state: no such thing begins there.
    pub(super) fn end(&self, memory: NonNull<u8>, state: u8) -> Result<(), u8> {
        Self::end_in(self.of(memory), state)
    }

    /// Ends what begins at a granule, by its number: see [`States::end`].
    #[inline(always)]
    pub(super) fn end_at(&self, granule: usize, state: u8) -> Result<(), u8> {
        Self::end_in(&self.bytes[granule], state)
    }

    #[inline(always)]
    fn end_in(byte: &AtomicU8, state: u8) -> Result<(), u8> {
        // Relaxed, all: `one-state`. It may be a byte that can only be read, and a swap writes
        // always.
        let found = byte.load(Ordering::Relaxed);
        if found != state {
            return Err(found);
        }
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let ended = byte.compare_exchange(state, FREED, success, failure);
        ended.map(drop)
    }

    /// Forgets what was in pages that are taken anew.
    pub(super) fn forget(&self, first: NonNull<u8>, bytes: usize) {
        let from = (first.addr().get() - self.start) / GRANULE;
        for byte in &self.bytes[from..from + bytes / GRANULE] {
            // Relaxed: the pages are the caller's.
            byte.store(NOTHING, Ordering::Relaxed);
        }
    }
}
