//! The zones of a span, how they are built, and how they get memory.
//!
//! What zones have got, and what the tables hold of it, is made writable just before.

use core::mem::MaybeUninit;
use core::ops::Range;
use core::slice;
use core::sync::atomic::Ordering;

use brickyard::FrameRange;
use brickyard::sync::Zeros;
use brickyard_arena::{Region, page_bytes};
use brickyard_slab::Tables;

use super::layout::{Layout, SpanZone, Waits};
use super::{SPAN_ALIGN, Span};
use crate::huge::{Huge, huge};

/// The step by which a zone grows.
pub(super) const STEP_BYTES: usize = 32 << 20;

/// The first bytes of a span. They are doubled up to [`FEW_BYTES`], so that of a small program's
/// span not much more can be accessed than what it uses: a write far behind memory is a fault.
const FIRST_BYTES: usize = 256 << 10;

/// See [`FIRST_BYTES`].
const FEW_BYTES: usize = 2 << 20;

/// So many of a span's first bytes are small pages, where huge ones have to be asked for.
const SMALL_BYTES: usize = 32 << 20;

/// Returns the end of the next step from `grown` bytes on.
const fn step_end(grown: usize) -> usize {
    if grown == 0 {
        FIRST_BYTES
    } else if grown < FEW_BYTES {
        2 * grown
    } else {
        (grown / STEP_BYTES + 1) * STEP_BYTES
    }
}

impl Span {
    /// Returns a zone that is built.
    pub(super) fn zone(&self, index: usize) -> &SpanZone {
        let place = self.tables.at(index * self.layout.zone_stride);
        // SAFETY: `in-span`: zones below the count, which the caller has loaded with acquire, have
        // been written there, and stay.
        unsafe { place.cast().as_ref() }
    }

    /// Returns how many zones are built, and acquires what built them.
    pub(super) fn zones(&self) -> usize {
        // Acquire: pairs with the release in `build`.
        self.zones.load(Ordering::Acquire)
    }

    pub(super) fn zone_of(&self, page: usize) -> &SpanZone {
        let _ = self.zones();
        self.zone(page / self.layout.zone_pages)
    }

    /// Adds memory to the zones. False if the span has no more, or if the system refuses. The lock
    /// must be held.
    pub(super) fn grow(&self) -> bool {
        // Relaxed: changed under the lock only.
        let grown = self.grown.load(Ordering::Relaxed);
        let index = grown / self.layout.zone_pages;
        if grown >= self.limit() && !self.regain() {
            return false;
        }
        let shift = self.layout.page_shift;
        let most = self.limit().min((index + 1) * self.layout.zone_pages);
        if index == self.zones.load(Ordering::Relaxed) && !self.build(index) {
            return false;
        }
        // If a limit leaves no room for a whole step, it may for a smaller one: two of the largest
        // blocks.
        let bytes = grown << shift;
        let smaller = (bytes / SPAN_ALIGN + 1) * SPAN_ALIGN;
        let ends = [step_end(bytes), smaller.min(step_end(bytes))];
        let usable = ends.into_iter().find_map(|end| {
            let end = most.min(end >> shift);
            let done = self.commit_slab_tables(&(grown..end))
                && self
                    .guard
                    .is_none_or(|guard| guard.commit(grown << shift..end << shift))
                && self.commit_pages(grown << shift..end << shift);
            done.then_some(end)
        });
        let Some(end) = usable else {
            return false;
        };
        self.want_huge(&(grown..end));
        let range = FrameRange::new(grown, end);
        let added = self.zone(index).add(range);
        debug_assert!(added.is_ok(), "the range is the zone's: {added:?}");
        self.grown.store(end, Ordering::Relaxed);
        true
    }

    /// Makes bytes of the span, which were never used, writable, and has core dumps have them.
    /// False if the system refuses the first.
    fn commit_pages(&self, part: Range<usize>) -> bool {
        let done = commit_new(&self.region, part.clone());
        if done {
            let _ = self.region.put_into_dumps(part);
        }
        done
    }

    /// Makes what the slabs' tables hold of these pages writable. False if the system refuses.
    fn commit_slab_tables(&self, pages: &Range<usize>) -> bool {
        self.slab_tables.as_ref().is_none_or(|tables| {
            let parts = Tables::parts(self.layout.pages, pages);
            let homes_at = self.layout.homes_at();
            let homes = homes_at + pages.start..homes_at + pages.end;
            let mut parts = parts.into_iter().chain([homes]);
            parts.all(|part| commit_new(tables, part))
        })
    }

    /// Asks for huge pages for what a zone is about to get, or for none, where the heap is told to.
    /// Whatever the system says to that, it is memory.
    fn want_huge(&self, pages: &Range<usize>) {
        let shift = self.layout.page_shift;
        let part = pages.start << shift..pages.end << shift;
        let _ = match huge() {
            Huge::Unwanted => self.region.want_huge(part, false),
            Huge::Asked if part.start >= SMALL_BYTES => self.region.want_huge(part, true),
            _ => Ok(()),
        };
    }

    /// Builds the next zone. False if the system refuses memory for its tables.
    fn build(&self, index: usize) -> bool {
        let Layout {
            zone_pages,
            zone_stride,
            page_shift,
            ..
        } = self.layout;
        let tables = self
            .layout
            .tables_of(index * zone_pages..(index + 1) * zone_pages);
        if !tables
            .into_iter()
            .all(|part| commit_new(&self.tables, part))
        {
            return false;
        }
        let plan = Layout::plan_of(index, zone_pages, page_shift);
        let place = self
            .tables
            .at(index * zone_stride)
            .cast::<MaybeUninit<SpanZone>>();
        // SAFETY: `in-span`: the stride has room for a zone and its metadata, and nobody else
        // refers to them before the count includes them. The tables live as long as what is built
        // here, which is never dropped. A zone is built once, so that its part of the mapping is
        // zero as the system gave it.
        let (place, metadata): (&mut MaybeUninit<SpanZone>, Zeros<'static>) = unsafe {
            let behind = place.add(1).cast::<MaybeUninit<u8>>();
            let bytes = zone_stride - size_of::<MaybeUninit<SpanZone>>();
            let metadata = slice::from_raw_parts_mut(behind.as_ptr(), bytes);
            (&mut *place.as_ptr(), Zeros::new(metadata))
        };
        let zone = SpanZone::on_zeros(&plan, Waits, metadata);
        place.write(zone.expect("`Layout::new` asked the same plan for its bytes"));
        // Release: pairs with the acquire in `zones`.
        self.zones.store(index + 1, Ordering::Release);
        true
    }
}

/// Makes a part of a region writable that was not, with the rest of its last page. Parts of a table
/// follow each other, so the first page of one that begins inside it is writable already. False if
/// the system refuses.
fn commit_new(region: &Region, part: Range<usize>) -> bool {
    let page = page_bytes();
    let [start, end] = [part.start, part.end].map(|byte| byte.next_multiple_of(page));
    // SAFETY: the part before this one ended with the page before `start`, and who writes to this
    // one waits until the zone has it.
    start >= end || unsafe { region.commit_new(start..end) }.is_ok()
}
