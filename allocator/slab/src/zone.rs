//! The page allocator as a source of pages.
//!
//! **Who owns the frames.** A zone knows frames by number and not by owner. [`Zone::free`] is safe,
//! since it touches no memory, and takes any frame back from any caller. So slabs have a zone to
//! themselves, and the compiler enforces it. A [`DirectMap`] owns memory. A [`DirectMapped`] zone
//! owns the map and its own metadata: no other zone has the same memory or the same words. And
//! [`ZonePages::new`] borrows that zone for good, when nothing of it is in use. Where others use
//! pages of the zone too, or where its metadata is shared, the embedder has to promise what the
//! compiler cannot see: [`ZonePages::shared`].

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

use brickyard::{AnyZone, Frame, Order, PlanError, Platform, Request, Zone, ZonePlan};
use brickyard_sync::{Exclusive, SlotAccess};

use crate::error::BuildError;
use crate::source::{PageAsk, PageSource};

/// A platform whose frames are memory that it owns. It cannot be copied, so each memory has one,
/// and one zone owns that.
#[derive(Debug)]
pub struct DirectMap<P> {
    platform: P,
    page_shift: u32,
}

impl<P> DirectMap<P> {
    /// The memory that `platform` has addresses for, in frames of `1 << page_shift` bytes.
    ///
    /// # Safety
    /// While this value lives, or anything that owns it:
    ///
    /// Invariant `direct-map`: [`Platform::address`] answers for the frames of one range and for no
    /// others, and always gives the same answer. Frame `i` of the range is at the first one's
    /// address plus `i << page_shift`. All of it can be read and written. It reaches neither
    /// address 0 nor the end of the address space. It belongs to this value alone, and so to the
    /// one zone that owns this value: nobody uses a frame of it but from when that zone has handed
    /// it to them until it is freed there, by whomever. (The same numbers in any other zone, also
    /// in one with a reference to this platform, are no memory.)
    ///
    /// And the platform keeps its contract, as [`Pinned::new`](crate::Pinned::new) asks: a zone
    /// relies on it.
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

brickyard::pass_on_platform!(self => self.platform, impl<P> for DirectMap<P>);

/// A zone over memory of its own, with metadata of its own: the kind that slabs can
/// [have to themselves](ZonePages::new).
///
/// Invariant `own-metadata`: the zone is made here, in memory that was borrowed for good. Nothing
/// takes it out again. So no other zone works on its words, as one [made of parts](Zone::of) can:
/// those may be shared, and hold anything.
pub struct DirectMapped<'m, P, A = Exclusive>(Zone<'m, DirectMap<P>, A>);

impl<'m, P: Platform, A: SlotAccess> DirectMapped<'m, P, A> {
    /// Returns the bytes of metadata that the zone needs: [`Zone::bytes`].
    ///
    /// # Panics
    /// Panics if no zone can be that large. In a constant, that is a compile error.
    #[must_use]
    pub const fn bytes(plan: &ZonePlan) -> usize {
        Zone::<DirectMap<P>, A>::bytes(plan)
    }

    /// Builds the zone, with its metadata in `memory`: [`Zone::new`].
    ///
    /// # Errors
    /// Those of [`Zone::new`].
    pub fn new(
        plan: &ZonePlan,
        map: DirectMap<P>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError> {
        Zone::new(plan, map, memory).map(Self)
    }
}

impl<'m, P, A> Deref for DirectMapped<'m, P, A> {
    type Target = Zone<'m, DirectMap<P>, A>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<P: Platform, A: SlotAccess> fmt::Debug for DirectMapped<'_, P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A zone as a source of pages.
pub struct ZonePages<'z, Z> {
    zone: &'z Z,
    start: NonNull<u8>,
    page_shift: u32,
}

// SAFETY: the pointer is only an address. The zone guards the pages behind it and is `Sync`.
unsafe impl<Z: AnyZone> Sync for ZonePages<'_, Z> {}
// SAFETY: as above.
unsafe impl<Z: AnyZone> Send for ZonePages<'_, Z> {}

impl<'z, 'm, P: Platform, A: SlotAccess> ZonePages<'z, Zone<'m, DirectMap<P>, A>> {
    /// The pages of a zone that slabs have to themselves. While the source lives, nobody else can
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
    /// Nor does a zone serve whose words another zone may have:
    /// ```compile_fail,E0308
    /// # use brickyard::bitmap::Bitmap;
    /// # use brickyard::stash::Stash;
    /// # use brickyard::sync::Exclusive;
    /// # use brickyard::{Platform, Zone, ZoneKind};
    /// # use brickyard_slab::{DirectMap, ZonePages};
    /// fn over_parts<P: Platform>(map: DirectMap<P>, store: Bitmap<'_>, stash: Stash<'_, Exclusive>) {
    ///     let mut zone = Zone::of(ZoneKind::Normal, map, store, stash);
    ///     let pages = ZonePages::new(&mut zone);
    /// }
    /// ```
    ///
    /// # Errors
    /// [`BuildError::Unmapped`], if the platform has no address for a frame of the zone's span, or
    /// if the first frame is not aligned to the zone's largest block, by number and by address.
    /// [`BuildError::ZoneInUse`], if frames are in use, or lie with CPUs that cannot be reached:
    /// their holders could free them.
    pub fn new(zone: &'z mut DirectMapped<'m, P, A>) -> Result<Self, BuildError> {
        let zone = &zone.0;
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
        // Exact, since nobody else has the zone. The drain has brought any double free to the
        // store, which refused it. Otherwise fewer frames would be free than are managed, or
        // something would be cached.
        if zone.cached_frames() != 0 || zone.free_frames() != zone.managed_frames() {
            return Err(BuildError::ZoneInUse);
        }
        // `direct-map`: the memory is this zone's alone. `own-metadata`: so are its words.
        // `frames-of-the-source` holds because nothing is in use and the zone is borrowed for good:
        // all that is done with it from now on is done through this source.
        Ok(Self {
            zone,
            start,
            page_shift,
        })
    }
}

impl<'z, Z: AnyZone> ZonePages<'z, Z> {
    /// The pages of a zone that others use too. Its span is mapped as one piece. `None` if the
    /// platform has no address for its first frame.
    ///
    /// # Safety
    /// While this source lives, and slabs over it with it:
    ///
    /// - Frame `i` of the zone's span is at [`Platform::address`] of its first frame plus
    ///   `i << page_shift`. Whatever the zone hands out can be read and written there. The first
    ///   frame's number and address are multiples of the zone's largest block (`direct-map`).
    ///
    /// Invariant `frames-of-the-source`:
    /// - All other users of the zone leave alone what the source has taken and not given back. They
    ///   do not free such a frame ([`Zone::free`], [`Zone::free_range`], and others), make it part
    ///   of what they free, or say that it has moved. They do not take a range away that holds one
    ///   ([`Zone::remove`] and [`Zone::reserve`] refuse frames in use), and do not add one again.
    ///   They may free what the zone itself handed to them.
    /// - Nobody frees a frame of the zone that they do not hold, and nobody has done so before the
    ///   source lives. A second free of a frame that lies in a stash may go unnoticed, and the
    ///   frame is then handed out twice.
    /// - The zone's platform keeps its contract to all threads that use the slabs: what
    ///   [`Pinned::new`](crate::Pinned::new) asks of a platform holds of this one too.
    /// - Each frame of the span is memory of this zone only: no other zone manages it too, on this
    ///   node or on another. And nothing else works on the zone's metadata: a zone that was
    ///   [made of parts](Zone::of), or one of another design, shares no words with another one, and
    ///   its words were zero when it was made.
    /// - Parts of the zone that are not this library's hand out each free frame to one caller, in
    ///   blocks aligned to their size.
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
// by number. `direct-map` makes them memory with the same alignment. `frames-of-the-source` leaves
// them to the source until it gives them back.
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
