//! What begins where: a byte for each granule of sixteen bytes of the span.
//!
//! Invariant `one-state`: a byte leaves [`OBJECT`] or [`RUN`] by a compare-and-swap of the one caller
//! that frees what begins there, and gets there by a store of the one that has just taken it: only
//! where a queue of free objects is damaged are there two.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};

use super::guarded;
use crate::build::HeapError;

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
}

impl States {
    pub(super) fn new(start: usize, span_bytes: usize) -> Result<Self, HeapError> {
        let memory = guarded(span_bytes / GRANULE)?;
        let length = memory.len();
        // SAFETY: the mapping is zero, is there for ever, and is this value's.
        let bytes = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), length) };
        Ok(Self { start, bytes })
    }

    /// Returns the number of the granule that begins at an address; `None` if none of the span
    /// does.
    #[inline(always)]
    pub(super) fn granule(&self, memory: NonNull<u8>) -> Option<usize> {
        // What is no multiple of a granule is beyond all others when it is rotated.
        let offset = memory.addr().get().wrapping_sub(self.start);
        let granule = offset.rotate_right(GRANULE.trailing_zeros());
        (granule < self.bytes.len()).then_some(granule)
    }

    fn of(&self, memory: NonNull<u8>) -> &AtomicU8 {
        &self.bytes[(memory.addr().get() - self.start) / GRANULE]
    }

    /// Returns what begins at an address of the span.
    pub(super) fn at(&self, memory: NonNull<u8>) -> u8 {
        // Relaxed: what the caller knows of the memory came to it in ways that carry this along.
        self.of(memory).load(Ordering::Relaxed)
    }

    /// Returns where the last thing at or before an address begins, and its state; `None` if it is too
    /// far to be looked for. Reads at most 4096 bytes.
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

    /// As [`States::begin`], by the granule's number.
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

    /// As [`States::end`], by the granule's number.
    #[inline(always)]
    pub(super) fn end_at(&self, granule: usize, state: u8) -> Result<(), u8> {
        Self::end_in(&self.bytes[granule], state)
    }

    #[inline(always)]
    fn end_in(byte: &AtomicU8, state: u8) -> Result<(), u8> {
        // Relaxed, both: `one-state`.
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
