//! Where slabs get their pages.

use core::ptr::NonNull;

use brickyard::{Context, Mobility, Order};

/// A request of slabs to a [`PageSource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAsk {
    /// 2^order pages.
    pub order: Order,
    /// The mobility of the objects on the pages: [`Mobility::Reclaimable`] for caches whose objects
    /// can be given back on request, so that the page allocator keeps them together.
    pub mobility: Mobility,
    /// The node whose memory it must be, if any.
    pub node: Option<usize>,
    /// What the caller may do while it waits.
    pub context: Context,
}

/// Pages for slabs, out of one span of addresses.
///
/// # Safety
/// - The pages that [`PageSource::take`] gives lie in the span, are aligned to their own size
///   (those of [`PageSource::take_part`] to a page, where they are fewer), and can be read and
///   written. They belong to nobody else until [`PageSource::give`] gives them back. There is no
///   other way to reach them, such as by the number of a frame.
/// - The span reaches neither address 0 nor the end of the address space.
/// - Start, length, page size and nodes never change, nor does the node of a page.
/// - [`PageSource::node_of`], for a page of the span, and [`PageSource::local_node`], for any
///   number at all, are below [`PageSource::nodes`]. These three use no slabs, since they are
///   called in the middle of slab operations.
///
/// Several systems of slabs can use one source, if it can be shared: each takes pages of its own.
pub unsafe trait PageSource: Sync {
    /// Returns where the span begins: page `i` is at `start + (i << page_shift)`. Aligned to the
    /// largest block that is ever given.
    fn start(&self) -> NonNull<u8>;

    /// Returns the number of pages of the span, whether they have memory now or not.
    fn pages(&self) -> usize;

    /// Returns log2 of the bytes of a page.
    fn page_shift(&self) -> u32 {
        12
    }

    /// Takes 2^order pages, with any content.
    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>>;

    /// Takes pages back.
    ///
    /// # Safety
    /// They were taken with this order, not given back since, and nobody uses them any more.
    unsafe fn give(&self, first: NonNull<u8>, order: Order);

    /// Takes the first `pages` of 2^order pages; more than half of those are wanted. A source that
    /// can gives the others to somebody else, and then these need only be aligned to a page. Who
    /// overrides this overrides [`give_part`](PageSource::give_part) too: as they are, both treat
    /// all 2^order pages.
    fn take_part(&self, ask: PageAsk, _pages: usize) -> Option<NonNull<u8>> {
        self.take(ask)
    }

    /// Takes pages back that were taken by [`take_part`](PageSource::take_part).
    ///
    /// # Safety
    /// They were taken so, with this order and these pages, not given back since, and nobody uses
    /// them any more.
    unsafe fn give_part(&self, first: NonNull<u8>, order: Order, _pages: usize) {
        // SAFETY: passed on: all of them were taken.
        unsafe { self.give(first, order) }
    }

    /// Returns how many nodes there are.
    fn nodes(&self) -> usize {
        1
    }

    /// Returns the node that a page of the span belongs to.
    fn node_of(&self, _page: NonNull<u8>) -> usize {
        0
    }

    /// Returns the node that is nearest to a CPU.
    fn local_node(&self, _cpu: usize) -> usize {
        0
    }
}
