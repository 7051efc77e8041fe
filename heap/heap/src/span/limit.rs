//! Addresses that a span gives up, and gets back as it needs them.
//!
//! Invariant `behind-the-limit`: pages from the limit on are no zone's. So nothing of the span lies
//! there, and the tables hold nothing of them. The limit is lowered before the addresses go, and
//! raised after they have come, so that what others map there is not taken for the span's.
//!
//! What is mapped between the limit and the span's end belongs to others. The system gives them the
//! highest addresses that are free, so those behind the limit stay free for long.

use core::ops::Range;
use core::sync::atomic::Ordering;

use brickyard::Platform;
use brickyard_arena::{Region, Threads, page_bytes};
use brickyard_slab::Tables;

use super::idle::Bits;
use super::zones::STEP_BYTES;
use super::{RUN_BYTES_MAX, Span};

/// So many pieces of memory belong to pages: see [`Span::of`].
const PARTS: usize = 9;

impl Span {
    /// Returns the number of pages that have addresses.
    pub(super) fn limit(&self) -> usize {
        // Relaxed: what lies behind the limit belongs to whoever has mapped it since, by a call of
        // the system that came after the one that gave it up.
        self.limit.load(Ordering::Relaxed)
    }

    fn set_limit(&self, pages: usize) {
        self.limit.store(pages, Ordering::Relaxed);
        if let Some(limited) = self.limited {
            limited(pages);
        }
    }

    /// Returns the bytes of addresses of the span and of all tables that grow with it.
    pub(crate) fn address_bytes(&self) -> usize {
        self.limit().saturating_mul(self.address_bytes_a_page())
    }

    fn address_bytes_a_page(&self) -> usize {
        let slabs = self.slab_tables.as_ref().map_or(0, Region::bytes);
        let guard = self.guard.map_or(0, |_| self.page_bytes() / 16);
        self.page_bytes() + (self.tables.bytes() + slabs) / self.layout.pages + guard
    }

    /// Gives up the addresses of pages that no zone has got, and those of their tables, as far as
    /// all together have more than `most` bytes. They come back a step at a time, as long as nobody
    /// else has mapped anything there.
    ///
    /// # Safety
    /// The span is never dropped.
    pub(crate) unsafe fn give_up_addresses(&self, most: usize) {
        let _held = self.growing.lock(|| Threads.relax());
        // Relaxed: changed under the lock only.
        let grown = self.grown.load(Ordering::Relaxed).max(1);
        let least = grown.max(most / self.address_bytes_a_page());
        let pages = least.next_multiple_of(RUN_BYTES_MAX >> self.layout.page_shift);
        let before = self.limit();
        if pages >= before {
            return;
        }
        self.set_limit(pages);
        if let Some(guard) = self.guard {
            guard.give_up(self.bytes_of(pages..before));
        }
        // SAFETY: `behind-the-limit`; and by the caller's promise.
        unsafe { self.unmap(pages..before, PARTS) }
    }

    /// Unmaps the first so many parts of what lies between two limits, but for what is the guard's.
    ///
    /// # Safety
    /// It is behind the limit, and the span is never dropped.
    unsafe fn unmap(&self, pages: Range<usize>, count: usize) {
        for (region, part) in self.parts(pages).into_iter().take(count) {
            // SAFETY: passed on.
            let _ = unsafe { region.give_up(part) };
        }
    }

    /// Gets the addresses of the next step back. False if others have them, or if the system
    /// refuses. The lock of those that make the span grow must be held.
    pub(super) fn regain(&self) -> bool {
        let (from, zone) = (self.limit(), self.layout.zone_pages);
        let most = self.layout.pages.min((from / zone + 1) * zone);
        let steps = [STEP_BYTES, RUN_BYTES_MAX].map(|bytes| bytes >> self.layout.page_shift);
        let mut steps = steps.into_iter().map(|step| from..most.min(from + step));
        from < most && steps.any(|pages| self.map_again(pages))
    }

    fn map_again(&self, pages: Range<usize>) -> bool {
        let parts = self.parts(pages.clone());
        let refused = parts
            .iter()
            .enumerate()
            .position(|(index, (region, part))| {
                // The first is the span's own, and the others are tables, which can be read.
                region.regain(part.clone(), index > 0).is_err()
            });
        let refused = refused.or_else(|| {
            let guard = self.guard?;
            (!guard.regain(self.bytes_of(pages.clone()))).then_some(PARTS)
        });
        match refused {
            None => self.set_limit(pages.end),
            // SAFETY: behind the limit; addresses that were given up are of a span that stays.
            Some(count) => unsafe { self.unmap(pages, count) },
        }
        refused.is_none()
    }

    /// Returns what belongs to pages between two limits, of the span and of its tables: whole pages
    /// of the system. The first page of each stays with those before, since who looks for free
    /// pages side by side may look at the words behind the last one.
    fn parts(&self, pages: Range<usize>) -> [(&Region, Range<usize>); PARTS] {
        let rest = self.of(pages.end..self.layout.pages);
        let page = page_bytes();
        let behind = |byte: usize| (byte + size_of::<Bits>()).next_multiple_of(page);
        let mut index = 0;
        self.of(pages).map(|(region, part)| {
            let end = behind(part.end).min(rest[index].1.end / page * page);
            index += 1;
            (region, behind(part.start).min(end)..end)
        })
    }

    /// Returns what belongs to pages, to the byte.
    fn of(&self, pages: Range<usize>) -> [(&Region, Range<usize>); PARTS] {
        let slabs = self.slab_tables.as_ref().unwrap_or(&self.tables);
        let homes = self.layout.homes_at();
        let [records, ids] = Tables::parts(self.layout.pages, &pages);
        let zone = self.layout.zone_pages;
        let zones = pages.start.div_ceil(zone) * zone..pages.end.div_ceil(zone) * zone;
        let [metadata, bits, runs, warm, longest] = self.layout.tables_of(zones);
        let homes = homes + pages.start..homes + pages.end;
        let of_slabs = |part| match self.slab_tables {
            Some(_) => (slabs, part),
            None => (slabs, 0..0),
        };
        [
            (&self.region, self.bytes_of(pages)),
            of_slabs(records),
            of_slabs(ids),
            of_slabs(homes),
            (&self.tables, metadata),
            (&self.tables, bits),
            (&self.tables, runs),
            (&self.tables, warm),
            (&self.tables, longest),
        ]
    }

    fn bytes_of(&self, pages: Range<usize>) -> Range<usize> {
        let shift = self.layout.page_shift;
        pages.start << shift..pages.end << shift
    }
}
