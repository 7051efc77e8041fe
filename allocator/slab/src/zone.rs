//! The page allocator as a source of pages.
//!
//! **Who owns the frames.** A zone knows frames by number and not by owner: [`Zone::free`], which
//! is safe since it touches no memory, takes any frame back from whoever has it. So slabs have a
//! zone to themselves, and the compiler sees to it: a [`DirectMap`] owns memory, the zone owns the
//! map, and [`ZonePages::new`] borrows the zone for good, with nothing of it in use. Where others
//! have pages of the zone too, that is their promise: [`ZonePages::shared`].

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use brickyard::{AnyZone, Frame, Order, Platform, Request, Zone};
use brickyard_sync::{Exclusive, SlotAccess};

use crate::error::BuildError;
use crate::source::{PageAsk, PageSource};
use crate::wrapped::pass_on_platform;

/// A platform whose frames are memory that it owns. There is one of a memory: it cannot be copied.
#[derive(Debug)]
pub struct DirectMap<P> {
    platform: P,
    page_shift: u32,
}

impl<P> DirectMap<P> {
    /// The memory that `platform` has addresses for, in frames of `1 << page_shift` bytes.
    ///
    /// # Safety
    /// As long as this value lives, or anything that owns it:
    ///
    /// Invariant `direct-map`: [`Platform::address`] answers for the frames of one range, for no
    /// others, and always alike: frame `i` of them is at the first one's address plus
    /// `i << page_shift`. All of it can be read and written. It is this value's: nobody uses a
    /// frame of it that no zone with this platform handed him. It reaches neither address 0 nor the
    /// end of all addresses.
    ///
    /// And the platform keeps its word, as [`Pinned::new`](crate::Pinned::new) asks: a zone
    /// believes it.
    #[must_use]
    pub const unsafe fn new(platform: P, page_shift: u32) -> Self {
        Self {
            platform,
            page_shift,
        }
    }
}

impl<P> Deref for DirectMap<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.platform
    }
}

pass_on_platform!(self.platform: impl<P> for DirectMap<P>);

/// A zone over memory of its own.
pub type DirectMapped<'m, P, A = Exclusive> = Zone<'m, DirectMap<P>, A>;

/// A zone as a source of pages.
pub struct ZonePages<'z, Z> {
    zone: &'z Z,
    start: NonNull<u8>,
    page_shift: u32,
}

// SAFETY: the pointer is an address only; the pages behind it are guarded by the zone, which is
// `Sync`.
unsafe impl<Z: AnyZone> Sync for ZonePages<'_, Z> {}
// SAFETY: as above.
unsafe impl<Z: AnyZone> Send for ZonePages<'_, Z> {}

impl<'z, 'm, P: Platform, A: SlotAccess> ZonePages<'z, DirectMapped<'m, P, A>> {
    /// The pages of a zone that slabs have to themselves: while the source lives, nobody else can
    /// free its frames, or do anything with the zone.
    ///
    /// ```compile_fail,E0502
    /// # use brickyard::{Frame, Order, Platform};
    /// # use brickyard_slab::{DirectMapped, PageAsk, PageSource, ZonePages};
    /// fn takes_a_slabs_page_away<P: Platform>(
    ///     zone: &mut DirectMapped<'_, P>,
    ///     frame: Frame,
    ///     ask: PageAsk,
    /// ) {
    ///     let pages = ZonePages::new(zone);
    ///     let _ = zone.free(frame, Order::ZERO);
    ///     let _ = pages.map(|pages| pages.take(ask));
    /// }
    /// ```
    ///
    /// # Errors
    /// [`BuildError::Unmapped`], if the platform has no address for a frame of the zone's span, or
    /// the first one is not aligned to the zone's largest block, by number and by address.
    /// [`BuildError::ZoneInUse`], if frames are in use, or lie with CPUs that cannot be reached:
    /// what nobody has, nobody can free.
    pub fn new(zone: &'z mut DirectMapped<'m, P, A>) -> Result<Self, BuildError> {
        let (span, platform) = (zone.span(), zone.platform());
        let page_shift = platform.page_shift;
        let last = span.end.number().checked_sub(1).map(Frame::new);
        let start = platform.address(span.start);
        let (Some(start), Some(_)) = (start, last.and_then(|last| platform.address(last))) else {
            return Err(BuildError::Unmapped);
        };
        // Blocks are aligned by number; so they are by address too.
        let block = zone.max_order().frames().checked_shl(page_shift);
        let aligned = block.is_some_and(|block| start.addr().get().is_multiple_of(block));
        if !aligned || !span.start.is_aligned(zone.max_order()) {
            return Err(BuildError::Unmapped);
        }
        zone.drain();
        // Exact, since nobody else has the zone. Whatever was freed twice before has been met in
        // the store by now, and refused: else less would be free than is managed, or something
        // cached.
        if zone.cached_frames() != 0 || zone.free_frames() != zone.managed_frames() {
            return Err(BuildError::ZoneInUse);
        }
        // `direct-map` is the map's, whose memory no other zone has; `frames-of-the-source`:
        // nothing is in use, and the zone is borrowed for good, so all that is left to do with it
        // is done through this source.
        Ok(Self {
            zone,
            start,
            page_shift,
        })
    }
}

impl<'z, Z: AnyZone> ZonePages<'z, Z> {
    /// Pages of a zone that others use too, whose span is mapped as one piece. `None` where the
    /// platform has no address for its first frame.
    ///
    /// # Safety
    /// As long as this source lives, and slabs over it with it:
    ///
    /// - Frame `i` of the zone's span is at [`Platform::address`] of its first frame plus
    ///   `i << page_shift`; whatever the zone hands out can be read and written there, and the
    ///   first frame's number and address are multiples of the zone's largest block (`direct-map`).
    ///
    /// Invariant `frames-of-the-source`:
    /// - What the source has taken and not given back is left alone by everybody else who has the
    ///   zone: nobody frees such a frame ([`Zone::free`], [`Zone::free_range`], and others), or
    ///   makes it part of what is freed, or says that it has moved it; nobody takes a range away
    ///   that holds one ([`Zone::remove`] and [`Zone::reserve`] refuse those in use) or adds one
    ///   again. What the zone itself handed somebody else, that one may free.
    /// - Nobody has freed or frees any frame of the zone that he has not got, before as well as
    ///   while the source lives: a second free of a frame that lies in a stash may not be noticed,
    ///   and it is handed out twice then.
    /// - The zone's platform keeps its word to all threads that use the slabs: what
    ///   [`Pinned::new`](crate::Pinned::new) asks of a platform holds of this one too.
    /// - No other zone hands these frames out, and nothing else works on the zone's metadata: a
    ///   store and fronts of one's own share no words with those of another zone.
    /// - Parts of the zone that are not this library's hand out each frame that is free to one
    ///   caller, in blocks aligned to their size.
    pub unsafe fn shared(zone: &'z Z, page_shift: u32) -> Option<Self> {
        let start = zone.platform().address(zone.span().start)?;
        Some(Self {
            zone,
            start,
            page_shift,
        })
    }

    fn frame(&self, page: NonNull<u8>) -> Frame {
        let offset = page.addr().get() - self.start.addr().get();
        self.zone.span().start.plus(offset >> self.page_shift)
    }
}

impl<Z> fmt::Debug for ZonePages<'_, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZonePages")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

// SAFETY: a zone hands out frames of its span, each to one owner, in blocks aligned to their size
// by number; `direct-map` makes them memory that is aligned alike, and `frames-of-the-source`
// leaves them to the source until it gives them back.
unsafe impl<Z: AnyZone> PageSource for ZonePages<'_, Z> {
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
