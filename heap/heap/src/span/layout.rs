//! Where the tables of a span lie: zones with their metadata, then two bits per page, then a length
//! per page, then a warm one's next, then a word per group of pages.

use core::mem::MaybeUninit;
use core::ops::Range;

use brickyard::sync::Exclusive;
use brickyard::zone::{Zone, ZonePlan};
use brickyard::{Frame, FrameRange, Order, Platform, ZoneKind};
use brickyard_arena::{Threads, page_bytes};
use brickyard_slab::Tables;

use super::{RUN_BYTES_MAX, SPAN_ALIGN, ZONE_BYTES};

/// The pages of a word of bits.
pub(super) const WORD: usize = 64;

/// The pages of a group. A run has no more.
pub(super) const GROUP: usize = 8 * WORD;

/// How zones wait. They know nothing of CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits;

impl Platform for Waits {
    fn cpu(&self) -> usize {
        0
    }

    fn relax(&self) {
        Threads.relax();
    }
}

/// Zones without stashes: slabs and runs have caches of their own.
pub(super) type SpanZone = Zone<'static, Waits, Exclusive>;

/// The layout of the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) page_shift: u32,
    pub(super) pages: usize,
    pub(super) zone_pages: usize,
    /// The distance of zones in the tables, in bytes.
    pub(super) zone_stride: usize,
    pub(super) bits_at: usize,
    pub(super) runs_at: usize,
    pub(super) warm_at: usize,
    pub(super) longest_at: usize,
    pub(super) table_bytes: usize,
}

impl Layout {
    pub(super) fn new(bytes: usize, page_bytes: usize) -> Self {
        let page_shift = page_bytes.trailing_zeros();
        let pages = bytes >> page_shift;
        let zone_pages = pages.min(ZONE_BYTES >> page_shift);
        let zones = pages.div_ceil(zone_pages);
        let plan = Self::plan_of(0, zone_pages, page_shift);
        let zone_bytes = size_of::<MaybeUninit<SpanZone>>() + SpanZone::bytes(&plan);
        let zone_stride = zone_bytes.next_multiple_of(page_bytes);
        let bits_at = zones * zone_stride;
        let runs_at = (bits_at + pages / 4).next_multiple_of(page_bytes);
        let warm_at = (runs_at + pages * size_of::<u16>()).next_multiple_of(page_bytes);
        let longest_at = (warm_at + pages * size_of::<u32>()).next_multiple_of(page_bytes);
        let longest_bytes = pages.div_ceil(GROUP) * size_of::<u16>();
        let table_bytes = (longest_at + longest_bytes).next_multiple_of(page_bytes);
        Self {
            page_shift,
            pages,
            zone_pages,
            zone_stride,
            bits_at,
            runs_at,
            warm_at,
            longest_at,
            table_bytes,
        }
    }

    /// Returns the parts of the tables that zones of these pages have, which are whole zones.
    pub(super) fn tables_of(&self, pages: Range<usize>) -> [Range<usize>; 5] {
        let of = |at: usize, bits: usize| {
            let bytes = |page: usize| page.saturating_mul(bits) / 8;
            at + bytes(pages.start)..at + bytes(pages.end)
        };
        let groups = [pages.start, pages.end].map(|page| page.div_ceil(GROUP) * size_of::<u16>());
        let zones = [pages.start, pages.end].map(|page| page / self.zone_pages * self.zone_stride);
        [
            zones[0]..zones[1],
            of(self.bits_at, 2),
            of(self.runs_at, 16),
            of(self.warm_at, 32),
            self.longest_at + groups[0]..self.longest_at + groups[1],
        ]
    }

    /// Returns where the homes of pages begin in the tables of slabs: with a page, behind the rest.
    /// Then comes a byte for each page.
    pub(crate) fn homes_at(&self) -> usize {
        Tables::bytes(self.pages).next_multiple_of(page_bytes())
    }

    /// Returns the bytes of the tables of slabs in the span.
    pub(crate) fn slab_table_bytes(&self) -> usize {
        self.homes_at() + self.pages
    }

    pub(super) fn plan_of(zone: usize, zone_pages: usize, page_shift: u32) -> ZonePlan {
        let first = Frame::new(zone * zone_pages);
        let order_of = |bytes: usize| Order::new((bytes >> page_shift).trailing_zeros() as u8);
        ZonePlan {
            max_order: order_of(SPAN_ALIGN),
            page_block_order: order_of(RUN_BYTES_MAX),
            ..ZonePlan::new(ZoneKind::Normal, FrameRange::at(first, zone_pages), 0)
        }
    }
}
