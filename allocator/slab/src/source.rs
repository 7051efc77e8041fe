//! Where slabs get their pages.

use core::ptr::NonNull;

use brickyard::{Context, Mobility, Order};

/// What slabs ask a [`PageSource`] for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAsk {
    /// 2^order pages.
    pub order: Order,
    /// What the objects on them allow: [`Mobility::Reclaimable`] for caches whose objects can be
    /// given back on request, so that the page allocator keeps them together.
    pub mobility: Mobility,
    /// The node whose memory it must be, if any.
    pub node: Option<usize>,
    /// What the caller may do while it waits.
    pub context: Context,
}

/// Pages for slabs, out of one span of addresses.
///
/// # Safety
/// - What [`PageSource::take`] gives lies in the span, is aligned to its own size, can be read and
///   written, and is nobody else's until it is given back by [`PageSource::give`]: no other way
///   leads to it, by the number of a frame, for instance.
/// - The span reaches neither address 0 nor the end of all addresses.
/// - Start, length, page size and nodes never change, nor does the node of a page.
/// - [`PageSource::node_of`], for a page of the span, and [`PageSource::local_node`], for any
///   number at all, are below [`PageSource::nodes`]; these three use no slabs, since they are
///   called in the middle of it.
///
/// Several systems of slabs can have one source, if it can be shared: each takes pages of its own.
pub unsafe trait PageSource: Sync {
    /// Where the span begins: page `i` is at `start + (i << page_shift)`. Aligned to the largest
    /// block that is ever given.
    fn start(&self) -> NonNull<u8>;

    /// Pages of the span, whether there is memory for them now or not.
    fn pages(&self) -> usize;

    /// log2 of the bytes of a page.
    fn page_shift(&self) -> u32 {
        12
    }

    /// 2^order pages, with whatever is in them.
    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>>;

    /// Takes pages back.
    ///
    /// # Safety
    /// They were taken with this order, not given back since, and nobody uses them any more.
    unsafe fn give(&self, first: NonNull<u8>, order: Order);

    /// How many nodes there are.
    fn nodes(&self) -> usize {
        1
    }

    /// The node that a page of the span belongs to.
    fn node_of(&self, _page: NonNull<u8>) -> usize {
        0
    }

    /// The node that is nearest to a CPU.
    fn local_node(&self, _cpu: usize) -> usize {
        0
    }
}
