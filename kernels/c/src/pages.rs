//! A machine as the source of slabs' pages: the memory that the kernel maps, which is all zones up to
//! BY_NORMAL, in one span of addresses.

use core::ptr::NonNull;

use brickyard::{AnyZone, FrameRange, Order, Platform, Request, ZoneKind};
use brickyard_slab::{PageAsk, PageSource};

use crate::error::BY_UNMAPPED;
use crate::machine::by_machine;
use crate::platform::by_platform;

/// The pages of a machine.
#[derive(Clone, Copy)]
pub struct MachinePages {
    machine: &'static by_machine,
    span: FrameRange,
    start: NonNull<u8>,
    page_shift: u32,
}

// SAFETY: the pointer is an address. The machine hands out the pages behind it.
unsafe impl Sync for MachinePages {}
// SAFETY: as above.
unsafe impl Send for MachinePages {}

impl MachinePages {
    /// Returns the frames that slabs can use: from the first to the last of the zones up to Normal.
    pub(crate) fn span(machine: &by_machine) -> FrameRange {
        let low = machine
            .zones
            .iter()
            .filter(|zone| zone.kind() <= ZoneKind::Normal);
        let all = low.fold(None, |all: Option<FrameRange>, zone| {
            let span = zone.span();
            Some(all.map_or(span, |all| FrameRange {
                start: all.start.min(span.start),
                end: all.end.max(span.end),
            }))
        });
        let all = all.unwrap_or_default();
        FrameRange {
            start: all.start.align_down(Self::largest(machine)),
            end: all.end,
        }
    }

    /// Returns the platform.
    pub(crate) fn platform(&self) -> by_platform {
        *self.machine.zones[0].platform()
    }

    fn largest(machine: &by_machine) -> Order {
        let orders = machine.zones.iter().map(AnyZone::max_order);
        orders.max().unwrap_or(Order::ZERO)
    }

    /// Returns the pages of a machine whose platform has addresses for all of the span.
    ///
    /// # Safety
    /// Invariant `mapped-in-c`: frame `i` of the span is at the platform's address of the first plus
    /// `i << page_shift`; what the machine hands out can be read and written there; and the users of
    /// the machine leave alone what slabs took.
    pub(crate) unsafe fn new(machine: &'static by_machine, page_shift: u32) -> Result<Self, isize> {
        let span = Self::span(machine);
        let platform = machine.zones.first().ok_or(BY_UNMAPPED)?.platform();
        let start = platform.address(span.start).ok_or(BY_UNMAPPED)?;
        let block = Self::largest(machine).frames() << page_shift;
        if span.is_empty() || !start.addr().get().is_multiple_of(block) {
            return Err(BY_UNMAPPED);
        }
        Ok(Self {
            machine,
            span,
            start,
            page_shift,
        })
    }
}

// SAFETY: the machine hands each frame to one owner, in blocks aligned to their size by number. The
// span starts at an address aligned to the largest of them, so they are aligned by address too.
// `mapped-in-c` makes them memory, which others leave alone.
unsafe impl PageSource for MachinePages {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.span.len()
    }

    fn page_shift(&self) -> u32 {
        self.page_shift
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        let request = Request::new(ask.order, ask.mobility)
            .in_context(ask.context)
            .from_zones_up_to(ZoneKind::Normal);
        let frame = self.machine.nodes.alloc(0, &request).ok()?;
        let page = frame.number() - self.span.start.number();
        // SAFETY: `mapped-in-c`: the frame is memory at this offset.
        Some(unsafe { self.start.add(page << self.page_shift) })
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let page = (first.addr().get() - self.start.addr().get()) >> self.page_shift;
        let given = self.machine.nodes.free(self.span.start.plus(page), order);
        debug_assert!(given.is_ok(), "slab pages: {given:?}");
    }
}
