//! Pages, slabs over them and the general sizes, all in memory of the embedder, and what is done
//! with them.
//!
//! The order in that memory: the zone's metadata (if the heap has a zone of its own) and the zone;
//! the places of [`HeapPages`], [`Slabs`] and [`System`]; what the slabs keep; the pages.

use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::bitmap::SetAside;
use brickyard::sync::{AtomicUsize, Ordering, RawLock, Shared, place};
use brickyard::{Order, Platform, Zone, ZoneKind, ZonePlan};
use brickyard_slab::{Everywhere, General, Pinned, Sheafed, SlabPlan, Slabs};

use super::pages::{HeapPages, Map, PAGE, frames_of};
use super::{HeapError, HeapNumbers, HeapPlan, OwnZone};
use crate::Frames;

/// The design of a heap's slabs.
pub type HeapSlabs<P, K, F> = Sheafed<'static, &'static HeapPages<F>, Pinned<P>, K>;

/// The bytes of the parts, for a plan.
#[derive(Debug)]
pub(crate) struct Layouts {
    places: usize,
    slabs: usize,
    plan: SlabPlan,
}

/// The bytes of a value, at any address.
pub(crate) const fn place_of<T>() -> usize {
    size_of::<T>() + align_of::<T>() - 1
}

impl Layouts {
    /// Returns the bytes of what lies beside the frames.
    pub(crate) fn over<P: Platform + 'static, K: RawLock, F: Frames + 'static>(
        plan: &HeapPlan,
        map: &Map,
    ) -> Result<Self, HeapError> {
        let mut slabs = plan.slabs.pages(HeapPages::<F>::pages_of(*map)?);
        slabs.cpus = plan.cpus;
        Ok(Self {
            places: place_of::<HeapPages<F>>()
                + place_of::<Slabs<'static, HeapSlabs<P, K, F>>>()
                + place_of::<System<P, K, F>>(),
            slabs: Slabs::<HeapSlabs<P, K, F>>::bytes(&slabs),
            plan: slabs,
        })
    }

    /// Returns the bytes of all of it.
    pub(crate) const fn bytes(&self) -> usize {
        self.slabs.saturating_add(self.places)
    }
}

/// Puts one value at the start of `memory`. Returns it and the rest, or `None` if it has no room.
pub(crate) fn place_one<T>(
    memory: &'static mut [MaybeUninit<u8>],
    value: T,
) -> Option<(&'static T, &'static mut [MaybeUninit<u8>])> {
    let mut value = Some(value);
    let make = || value.take().expect("`place` makes one value");
    let (placed, rest) = place(memory, 1, make)?;
    Some((placed.first()?, rest))
}

/// A heap that is built.
pub(crate) struct System<P: Platform + 'static, K: RawLock, F: Frames + 'static> {
    pages: &'static HeapPages<F>,
    slabs: &'static Slabs<'static, HeapSlabs<P, K, F>>,
    general: General<'static, 'static, HeapSlabs<P, K, F>, Everywhere>,
    refused: AtomicUsize,
}

impl<P: Platform, K: RawLock, F: Frames> System<P, K, F> {
    /// Builds a heap over `frames`, in `metadata`.
    ///
    /// # Safety
    /// `heap-platform`, `heap-map` and `heap-frames` hold for ever.
    pub(crate) unsafe fn over(
        layouts: &Layouts,
        frames: F,
        map: Map,
        platform: P,
        metadata: &'static mut [MaybeUninit<u8>],
    ) -> Result<&'static Self, HeapError> {
        let short = HeapError::TooSmall {
            needed: layouts.bytes(),
        };
        if metadata.len() < layouts.bytes() {
            return Err(short);
        }
        let (places, rest) = metadata.split_at_mut(layouts.places);
        // SAFETY: passed on.
        let pages = unsafe { HeapPages::new(frames, map)? };
        let (pages, places) = place_one(places, pages).ok_or(short)?;
        // SAFETY: `heap-platform`.
        let cpus = unsafe { Pinned::new(platform) };
        let slabs = Slabs::new(layouts.plan, pages, cpus, rest)?;
        let (slabs, places) = place_one(places, slabs).ok_or(short)?;
        let system = Self {
            pages,
            slabs,
            general: slabs.general::<Everywhere>()?,
            refused: AtomicUsize::new(0),
        };
        let (system, _) = place_one(places, system).ok_or(short)?;
        Ok(system)
    }

    pub(crate) const fn slabs(&self) -> &'static Slabs<'static, HeapSlabs<P, K, F>> {
        self.slabs
    }

    pub(crate) fn refused(&self) -> usize {
        // Relaxed: a count, for reports.
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns true if `memory` lies where this heap's pages can be.
    #[cfg(feature = "arceos")]
    pub(crate) fn contains(&self, memory: NonNull<u8>) -> bool {
        self.pages.contains(memory)
    }

    /// Returns true if slabs serve this layout. They keep no alignment above a page.
    #[inline(always)]
    fn is_small(&self, layout: Layout) -> bool {
        layout.align() <= PAGE && self.general.cache_of(layout).is_some()
    }

    /// Takes memory for `layout`, which has a size.
    #[inline]
    pub(crate) fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.take(layout) {
            Some(memory) => Some(memory),
            None => self.take_drained(layout),
        }
    }

    #[inline]
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.is_small(layout) {
            true => self.general.alloc(layout).ok(),
            false => {
                let pages = layout.size().div_ceil(PAGE);
                self.pages.take_many(pages, layout.align())
            }
        }
    }

    /// Takes pages when nothing was left: what lies free in this CPU's queues, and in those that
    /// CPUs share, may be whole slabs, and their pages what is missing.
    #[cold]
    #[inline(never)]
    fn take_drained(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.slabs.drain();
        self.slabs.shrink();
        self.take(layout)
    }

    /// Takes memory back. Returns false if it was refused; that is counted, and changes nothing.
    ///
    /// # Safety
    /// It came from here for this layout, was not freed since, and nobody uses it any more.
    #[inline]
    pub(crate) unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) -> bool {
        let freed = match self.is_small(layout) {
            // SAFETY: passed on.
            true => unsafe { self.general.free(memory, layout).is_ok() },
            // SAFETY: passed on: as many pages as `alloc` took.
            false => unsafe { self.pages.give_many(memory, layout.size().div_ceil(PAGE)) },
        };
        if !freed {
            // Relaxed: as in `refused`.
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        freed
    }

    /// Makes memory of `layout` one of `bytes` bytes where it lies, if nothing has to move for
    /// that.
    ///
    /// # Safety
    /// It came from here for this layout and was not freed since, and nobody uses what lies behind
    /// `bytes`.
    pub(crate) unsafe fn resize(
        &self,
        memory: NonNull<u8>,
        layout: Layout,
        wanted: Layout,
    ) -> bool {
        if self.is_small(layout) || self.is_small(wanted) {
            let same = self.general.cache_of(layout) == self.general.cache_of(wanted);
            return same && self.is_small(layout) && self.is_small(wanted);
        }
        let (had, wants) = (layout.size().div_ceil(PAGE), wanted.size().div_ceil(PAGE));
        if wants >= had {
            return wants == had;
        }
        // SAFETY: inside the memory, which has `had` pages.
        let behind = unsafe { memory.add(wants * PAGE) };
        // SAFETY: they are the caller's, who does not use them any more.
        unsafe { self.pages.give_many(behind, had - wants) }
    }
}

impl<P: Platform + Copy, K: RawLock> System<P, K, OwnZone<P>> {
    /// Builds a heap in memory of its own.
    ///
    /// # Safety
    /// `heap-platform` holds for ever.
    pub(crate) unsafe fn owning(
        plan: &HeapPlan,
        platform: P,
        memory: &'static mut [MaybeUninit<u8>],
    ) -> Result<&'static Self, HeapError> {
        let start = memory.as_ptr().addr();
        let own = frames_of(start, memory.len());
        let span = plan.span.unwrap_or(own);
        if !span.covers(own) {
            return Err(HeapError::Outside { memory: own, span });
        }
        let map = Map::identity(span);
        let layouts = Layouts::over::<P, K, OwnZone<P>>(plan, &map)?;
        let zone_plan = ZonePlan {
            max_order: Order::MAX,
            // Every request here is atomic, so there is nobody to set anything aside for.
            set_aside: SetAside::NONE,
            ..ZonePlan::new(ZoneKind::Normal, span, plan.cpus)
        };
        let zone_bytes = Zone::<P, Shared>::checked_bytes(&zone_plan)?;
        let metadata = zone_bytes
            .saturating_add(place_of::<Zone<'static, P, Shared>>())
            .saturating_add(layouts.bytes());
        let short = HeapError::TooSmall {
            needed: metadata.saturating_add(2 * PAGE),
        };
        let first = start
            .checked_add(metadata)
            .and_then(|end| end.checked_next_multiple_of(PAGE))
            .ok_or(short)?;
        if first
            .checked_add(PAGE)
            .is_none_or(|end| end > start + memory.len())
        {
            return Err(short);
        }
        let (metadata, pages) = memory.split_at_mut(first - start);
        let (zone_metadata, rest) = metadata.split_at_mut(zone_bytes);
        let zone = Zone::new(&zone_plan, platform, zone_metadata)?;
        let (zone, rest) = place_one(rest, zone).ok_or(short)?;
        // SAFETY: `heap-platform` by the caller. `heap-map` and `heap-frames`: nobody but this heap
        // has the zone or its memory, which is added by `add` alone.
        let system = unsafe { Self::over(&layouts, zone, map, platform, rest)? };
        system.add(pages)?;
        Ok(system)
    }

    /// Adds the pages that lie in `memory` as a whole. Returns their number.
    pub(crate) fn add(&self, memory: &'static mut [MaybeUninit<u8>]) -> Result<usize, HeapError> {
        // From here on the memory is reached by its frames' numbers (`heap-map`).
        let start = memory.as_mut_ptr().expose_provenance();
        let frames = frames_of(start, memory.len());
        if frames.is_empty() {
            return Ok(0);
        }
        self.zone()
            .add(frames)
            .map_err(|error| HeapError::outside(frames, error))
    }

    pub(crate) const fn zone(&self) -> OwnZone<P> {
        self.pages.frames
    }

    pub(crate) fn numbers(&self) -> HeapNumbers {
        let zone = self.zone();
        HeapNumbers {
            pages: brickyard::AnyZone::managed_frames(zone),
            free: zone.free_frames() + zone.cached_frames(),
            refused: self.refused(),
        }
    }
}

impl<P: Platform, K: RawLock, F: Frames> fmt::Debug for System<P, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System")
            .field("pages", &self.pages)
            .field("refused", &self.refused())
            .finish_non_exhaustive()
    }
}
