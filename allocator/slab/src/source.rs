//! Where slabs get their pages: one trait, and the page allocator as one implementation of it.

use core::fmt;
use core::ptr::NonNull;

use brickyard::design::Design;
use brickyard::zone::Zone;
use brickyard::{Context, Frame, Mobility, Order, Platform, Request};

/// What slabs ask a [`PageSource`] for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAsk {
    /// 2^order pages.
    pub order: Order,
    /// What the objects on them allow: [`Mobility::Reclaimable`] for caches whose objects can be given back on request, so that the page allocator keeps
    /// them together.
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
    /// Where the span begins: page `i` is at `start + (i << page_shift)`. Aligned to the largest block that is ever given.
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

/// A [`Zone`] as a source of pages.
///
/// A zone knows frames by number and not by owner: [`Zone::free`], which is safe since it touches
/// no memory, takes any frame back from whoever has it. So the promise of [`ZonePages::new`] is
/// about everybody who has the zone. Where slabs alone use it, [`ZonePages::alone`] has the
/// compiler see to that.
pub struct ZonePages<'z, D: Design> {
    zone: &'z Zone<D>,
    start: NonNull<u8>,
    page_shift: u32,
}

// SAFETY: the pointer is an address only; the pages behind it are guarded by the zone, which is `Sync`.
unsafe impl<D: Design> Sync for ZonePages<'_, D> where Zone<D>: Sync {}
// SAFETY: as above.
unsafe impl<D: Design> Send for ZonePages<'_, D> where Zone<D>: Sync {}

impl<'z, D: Design> ZonePages<'z, D> {
    /// The pages of `zone`, whose span is mapped as one piece. `None` where the platform has no address for its first frame.
    ///
    /// # Safety
    /// As long as this source lives, and slabs over it with it:
    ///
    /// Invariant `direct-map`: frame `i` of the zone's span is at [`Platform::address`] of its
    /// first frame plus `i << page_shift`; whatever the zone hands out can be read and written
    /// there, and the first address is a multiple of the zone's largest block.
    ///
    /// Invariant `frames-of-the-source`:
    /// - What the source has taken and not given back is left alone by everybody else who has the
    ///   zone: nobody frees such a frame ([`Zone::free`], [`Zone::free_range`], and others), or
    ///   makes it part of what is freed, or says that it has moved it; nobody takes a range away
    ///   that holds one ([`Zone::remove`] and [`Zone::reserve`] refuse those in use) or adds one
    ///   again. What the zone itself handed somebody else, that one may free.
    /// - Nobody has freed or frees any frame of the zone that he has not got, before as well as while
    ///   the source lives: a second free of a frame that lies in a stash may not be noticed, and it
    ///   is handed out twice then.
    /// - The zone's platform keeps its word to all threads that use the slabs: what
    ///   [`Pinned::new`](crate::Pinned::new) asks of a platform holds of this one too.
    /// - No other zone hands these frames out, and nothing else works on the zone's metadata: a
    ///   store and fronts of one's own share no words with those of another zone.
    /// - Parts of the zone that are not this library's hand out each frame that is free to one
    ///   caller, in blocks aligned to their size.
    pub unsafe fn new(zone: &'z Zone<D>, page_shift: u32) -> Option<Self> {
        let start = zone.platform().address(zone.span().start)?;
        Some(Self {
            zone,
            start,
            page_shift,
        })
    }

    /// The same for who has the zone to itself: while the source lives, nobody else can free its
    /// frames, or do anything with the zone.
    ///
    /// ```compile_fail,E0502
    /// # use brickyard::design::Design;
    /// # use brickyard_slab::{PageAsk, PageSource, ZonePages};
    /// # use brickyard::zone::Zone;
    /// # use brickyard::{Frame, Order};
    /// fn takes_a_slabs_page_away<D: Design>(zone: &mut Zone<D>, frame: Frame, ask: PageAsk)
    /// where
    ///     Zone<D>: Sync,
    /// {
    ///     // SAFETY: suppose that frames are where they have to be.
    ///     let pages = unsafe { ZonePages::alone(zone, 12) };
    ///     let _ = zone.free(frame, Order::ZERO);
    ///     let _ = pages.map(|pages| pages.take(ask));
    /// }
    /// ```
    ///
    /// # Safety
    /// `direct-map`, and `frames-of-the-source` without its first line: see [`ZonePages::new`]. What
    /// was freed before counts as well.
    pub unsafe fn alone(zone: &'z mut Zone<D>, page_shift: u32) -> Option<Self> {
        // SAFETY: passed on; and the zone is borrowed for good, so all that is left to do with it
        // is done through this source.
        unsafe { Self::new(zone, page_shift) }
    }

    fn frame(&self, page: NonNull<u8>) -> Frame {
        let offset = page.addr().get() - self.start.addr().get();
        self.zone.span().start.plus(offset >> self.page_shift)
    }
}

impl<D: Design> fmt::Debug for ZonePages<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZonePages")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

// SAFETY: a zone hands out frames of its span, each to one owner, in blocks aligned to their size
// by number; `direct-map` makes them memory that is aligned alike, and `frames-of-the-source`
// leaves them to the source until it gives them back.
unsafe impl<D: Design> PageSource for ZonePages<'_, D>
where
    Zone<D>: Sync,
{
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.zone.span().len()
    }

    fn page_shift(&self) -> u32 {
        self.page_shift
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        if ask.order > self.zone.max_order() || ask.node.is_some_and(|node| node != 0) {
            return None;
        }
        let request = Request::new(ask.order, ask.mobility).in_context(ask.context);
        let frame = self.zone.alloc(&request).ok()?;
        let offset = (frame.number() - self.zone.span().start.number()) << self.page_shift;
        // SAFETY: `direct-map`: the frame is memory at this offset.
        Some(unsafe { self.start.add(offset) })
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let given = self.zone.free(self.frame(first), order);
        debug_assert!(given.is_ok(), "slab pages: {given:?}");
    }
}
