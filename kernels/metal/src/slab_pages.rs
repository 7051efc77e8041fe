//! The zone as a source of pages for slabs, with the oracle in between: also the pages of slabs
//! have one owner.

use core::ptr::NonNull;

use brickyard::sync::SlotAccess;
use brickyard::{Frame, Order, Platform, Zone};
use brickyard_boot_test::{By, Oracle};
use brickyard_slab::{PageAsk, PageSource, ZonePages};

use crate::fail;
use crate::platform::Machine;

/// Log2 of the bytes of a page.
pub const PAGE_SHIFT: u32 = 12;

/// The pages of a zone that an oracle knows of.
pub struct OwnedPages<A: SlotAccess + 'static> {
    pages: ZonePages<'static, Zone<'static, Machine, A>>,
    oracle: &'static Oracle<'static>,
}

impl<A: SlotAccess> OwnedPages<A> {
    /// Returns a source of pages.
    ///
    /// # Safety
    /// The conditions of [`ZonePages::shared`], for pages of 4 KiB. The oracle knows the zone's
    /// span.
    pub unsafe fn new(
        zone: &'static Zone<'static, Machine, A>,
        oracle: &'static Oracle<'static>,
    ) -> Option<Self> {
        // SAFETY: passed on.
        let pages = unsafe { ZonePages::shared(zone, PAGE_SHIFT) }?;
        Some(Self { pages, oracle })
    }

    fn frame(&self, page: NonNull<u8>) -> Frame {
        let offset = page.addr().get() - self.pages.start().addr().get();
        self.oracle.span().start.plus(offset >> PAGE_SHIFT)
    }
}

// SAFETY: passed on to the zone's pages, which keep the contract.
unsafe impl<A: SlotAccess> PageSource for OwnedPages<A> {
    fn start(&self) -> NonNull<u8> {
        self.pages.start()
    }

    fn pages(&self) -> usize {
        self.pages.pages()
    }

    fn page_shift(&self) -> u32 {
        PAGE_SHIFT
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        let page = self.pages.take(ask)?;
        let task = Machine.task() as u16;
        let owner = self
            .oracle
            .new_owner(ask.order, By::Embedder, Machine.cpu(), task);
        match self.oracle.claim(self.frame(page), ask.order, owner) {
            Ok(()) => Some(page),
            Err(finding) => fail(format_args!("pages of slabs: {finding}")),
        }
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let frame = self.frame(first);
        let released = match self.oracle.owner_of(frame) {
            Some(owner) => self.oracle.release(frame, order, owner),
            None => fail(format_args!("slabs give back {frame}, which nobody owns")),
        };
        if let Err(finding) = released {
            fail(format_args!("pages of slabs: {finding}"));
        }
        // SAFETY: passed on.
        unsafe { self.pages.give(first, order) }
    }
}
