//! A slab under its own lock, and the links of its free objects.
//!
//! A slab's record has its first free object in `free[0]`, and in `free[1]` whether it is *frozen*:
//! some CPU's own. Invariant `slub-lists`: whoever holds the lock of a slab that is not frozen
//! finds it on its node's list of partial slabs exactly if it has a first free object. Invariant
//! `slab-under-its-lock`: a slab begins and ends under its own lock.
//!
//! The free objects of a CPU's slab are of two kinds: those in the CPU's chain, which only that CPU
//! touches, and those that other CPUs have freed since, which are in the slab. All of the former
//! count as out of the slab.

#![allow(unsafe_code, reason = "links are stored in objects")]

use core::ptr::with_exposed_provenance;

use brickyard_slab::design::{CacheInfo, Pages, SlabRecord};
use brickyard_sync::{AtomicUsize, Ordering};

/// A slab whose lock the caller holds.
#[derive(Debug)]
pub(super) struct HeldSlab<'m> {
    record: &'m SlabRecord,
    head: usize,
}

impl<'m> HeldSlab<'m> {
    pub(super) fn lock(pages: &Pages<'m>, head: usize, mut relax: impl FnMut()) -> Self {
        loop {
            if let Some(held) = Self::try_lock(pages, head) {
                return held;
            }
            // Relaxed: a hint.
            while pages.record(head).lock.load(Ordering::Relaxed) != 0 {
                relax();
            }
        }
    }

    pub(super) fn try_lock(pages: &Pages<'m>, head: usize) -> Option<Self> {
        let record = pages.record(head);
        // Acquire: pairs with the release in `drop` of the last holder.
        let taken = record.lock.fetch_or(1, Ordering::Acquire) == 0;
        // Not `then_some`: a guard that was made and dropped would unlock what another CPU holds.
        taken.then(|| Self { record, head })
    }

    pub(super) const fn head(&self) -> usize {
        self.head
    }

    /// Returns the first free object; 0 if there is none.
    pub(super) fn first(&self) -> usize {
        self.record.free[0].get() as usize
    }

    pub(super) fn set_first(&self, object: usize) {
        self.record.free[0].set(object as u64);
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.record.free[1].get() != 0
    }

    pub(super) fn set_frozen(&self, frozen: bool) {
        self.record.free[1].set(u64::from(frozen));
    }

    /// Returns how many objects are not in the slab.
    pub(super) fn out(&self) -> u32 {
        self.record.out.get()
    }

    pub(super) fn set_out(&self, out: u32) {
        self.record.out.set(out);
    }

    /// Puts an object back.
    pub(super) fn push(&self, links: Links, object: usize) {
        links.set_next(object, self.first());
        self.set_first(object);
        self.set_out(self.out() - 1);
    }

    /// Returns true if an object is in the slab. Walks its free objects.
    pub(super) fn has(&self, links: Links, object: usize) -> bool {
        let mut at = self.first();
        while at != 0 && at != object {
            at = links.next(at);
        }
        at == object
    }
}

impl Drop for HeldSlab<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `try_lock`.
        self.record.lock.store(0, Ordering::Release);
    }
}

/// The links of a cache's free objects: plain addresses, in the object's first word, or behind it
/// where its bytes have to last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links(pub(super) usize);

impl Links {
    pub(super) const fn of(info: &CacheInfo) -> Self {
        Self(match info.tail {
            0 => info.before,
            _ => info.tail_at(),
        })
    }

    /// Returns the object behind this one; 0 if it is the last.
    #[inline(always)]
    pub(super) fn next(self, object: usize) -> usize {
        self.word(object).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set_next(self, object: usize, next: usize) {
        self.word(object).store(next, Ordering::Relaxed);
    }

    /// Relaxed, both: a free object belongs to the holder of its slab's lock, or to a CPU.
    #[inline(always)]
    fn word<'a>(self, object: usize) -> &'a AtomicUsize {
        // SAFETY: the object is free and in the caller's hands, so its bytes are nobody else's. Its
        // link is aligned to a word, and its page's address was exposed when the page was taken.
        unsafe { &*with_exposed_provenance::<AtomicUsize>(object + self.0) }
    }
}
