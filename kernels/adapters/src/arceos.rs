//! ArceOS's allocator traits (crate `ax-allocator`): pages, and memory by the byte.
//!
//! These traits take `&mut self`: ArceOS puts its allocators behind a lock that masks interrupts.
//! So one caller at a time is inside, and one CPU's stash and queues serve all of them.

use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::slice;

use ax_allocator::{AllocError, AllocResult, BaseAllocator, ByteAllocator, PageAllocator};
use brickyard::bitmap::SetAside;
use brickyard::pressure::{ContiguousRequest, NoHooks, alloc_contiguous};
use brickyard::sync::TicketLock;
use brickyard::{
    AnyZone, Frame, FrameRange, Mobility, OneCpu, Order, RangeError, Request, Zone, ZoneKind,
    ZonePlan,
};

use crate::heap::{HeapError, HeapPlan, OwnZone, PAGE, System, frames_of, place_of, place_one};

/// What every request asks for: a caller inside a lock may not sleep.
const PAGES: Request = Request::page(Mobility::Unmovable).atomic();

/// Returns a region as the memory that it is.
///
/// # Safety
/// Nobody else uses the region, for ever, and it can be read and written.
unsafe fn memory_at(start: usize, bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    // SAFETY: the caller's promise; bytes that may be uninitialised have any value.
    unsafe { slice::from_raw_parts_mut(with_exposed_provenance_mut(start), bytes) }
}

/// Returns the order of an alignment in bytes: a power of two, and pages.
fn order_of(align: usize) -> AllocResult<Order> {
    if !align.is_power_of_two() || align < PAGE {
        return Err(AllocError::InvalidParam);
    }
    Order::holding(align / PAGE).ok_or(AllocError::InvalidParam)
}

/// Pages for ArceOS, as its trait [`PageAllocator`] hands them out: any number, with an alignment
/// of up to 1 GiB, by virtual address.
///
/// Each region that it is given (by `init`, then by `add_memory`) becomes a zone, at most
/// `REGIONS`; they may lie anywhere. A zone's metadata is at the start of its region: some 14 KiB,
/// and 0.01 % of it. `total_pages` leaves it out.
///
/// A request is served from the smallest block that holds it. If there is none, pages side by side
/// are looked for in all of the memory. No range crosses from one region into the next.
///
/// ```
/// use ax_allocator::{BaseAllocator, PageAllocator};
/// use brickyard_adapters::AxPages;
///
/// # let memory = vec![0_u8; 8 << 20].leak();
/// # let (start, size) = (memory.as_mut_ptr().expose_provenance(), memory.len());
/// let mut pages = AxPages::<4>::new();
/// pages.init(start, size); // the kernel's first region
/// let five = pages.alloc_pages(5, 0x4000)?;
/// assert_eq!((five % 0x4000, pages.used_pages()), (0, 5));
/// pages.dealloc_pages(five, 5);
/// # Ok::<(), ax_allocator::AllocError>(())
/// ```
pub struct AxPages<const REGIONS: usize = 8> {
    zones: [Option<&'static Zone<'static, OneCpu>>; REGIONS],
    refused: usize,
}

impl<const REGIONS: usize> AxPages<REGIONS> {
    /// Makes an allocator without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            zones: [None; REGIONS],
            refused: 0,
        }
    }

    /// Returns how many calls of `dealloc_pages` were refused: pages that were free already, or
    /// never handed out. They have changed nothing; the trait has no error for them.
    #[must_use]
    pub const fn refused(&self) -> usize {
        self.refused
    }

    fn zones(&self) -> impl Iterator<Item = &'static Zone<'static, OneCpu>> {
        self.zones.iter().copied().flatten()
    }

    /// Makes a region a zone.
    fn add_region(&mut self, start: usize, size: usize) -> AllocResult {
        let span = frames_of(start, size);
        let overlaps = |zone: &Zone<'_, OneCpu>| !zone.span().intersection(span).is_empty();
        if self.zones().any(overlaps) {
            return Err(AllocError::MemoryOverlap);
        }
        let Some(vacant) = self.zones.iter_mut().find(|zone| zone.is_none()) else {
            return Err(AllocError::InvalidParam);
        };
        let plan = ZonePlan {
            max_order: Order::MAX,
            set_aside: SetAside::NONE,
            ..ZonePlan::new(ZoneKind::Normal, span, 1)
        };
        let bytes = Zone::<OneCpu>::checked_bytes(&plan).map_err(|_| AllocError::InvalidParam)?;
        let place = place_of::<Zone<'static, OneCpu>>();
        let pages = (bytes + place).div_ceil(PAGE);
        if pages >= span.len() {
            return Err(AllocError::InvalidParam);
        }
        let first = span.start.number() * PAGE;
        // SAFETY: the traits' contract: a region is free memory, and the allocator's from now on.
        // It overlaps no other region.
        let memory = unsafe { memory_at(first, pages * PAGE) };
        let (metadata, rest) = memory.split_at_mut(bytes);
        let zone = Zone::new(&plan, OneCpu, metadata).map_err(|_| AllocError::InvalidParam)?;
        let (zone, _) = place_one(rest, zone).ok_or(AllocError::InvalidParam)?;
        let usable = FrameRange {
            start: span.start.plus(pages),
            ..span
        };
        zone.add(usable).map_err(|_| AllocError::InvalidParam)?;
        *vacant = Some(zone);
        Ok(())
    }

    /// Takes pages that no aligned block holds.
    fn alloc_anywhere(&self, pages: usize, order: Order) -> Option<FrameRange> {
        self.zones().find_map(|zone| {
            let wanted = ContiguousRequest::new(pages, zone.span()).aligned(order.frames());
            alloc_contiguous(zone, &wanted, &NoHooks).ok()
        })
    }
}

impl<const REGIONS: usize> fmt::Debug for AxPages<REGIONS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.zones()).finish()
    }
}

impl<const REGIONS: usize> PageAllocator for AxPages<REGIONS> {
    const PAGE_SIZE: usize = PAGE;

    fn alloc_pages(&mut self, pages: usize, align: usize) -> AllocResult<usize> {
        let order = order_of(align)?;
        if pages == 0 {
            return Err(AllocError::InvalidParam);
        }
        let request = Request { order, ..PAGES };
        let range = self
            .zones()
            .find_map(|zone| zone.alloc_range(&request, pages).ok())
            .or_else(|| self.alloc_anywhere(pages, order))
            .ok_or(AllocError::NoMemory)?;
        Ok(range.start.number() * PAGE)
    }

    fn dealloc_pages(&mut self, at: usize, pages: usize) {
        let range = FrameRange::at(Frame::new(at / PAGE), pages);
        let zone = self.zones().find(|zone| zone.span().covers(range));
        let freed = at.is_multiple_of(PAGE)
            && pages > 0
            && zone.is_some_and(|zone| match pages {
                // Into the stash.
                1 => zone.free(range.start, Order::ZERO).is_ok(),
                _ => zone.free_range(range).is_ok(),
            });
        if !freed {
            self.refused += 1;
        }
    }

    fn alloc_pages_at(&mut self, at: usize, pages: usize, align: usize) -> AllocResult<usize> {
        let order = order_of(align)?;
        let range = FrameRange::at(Frame::new(at / PAGE), pages);
        let aligned = at.is_multiple_of(PAGE) && range.start.is_aligned(order);
        let zone = self.zones().find(|zone| zone.span().covers(range));
        let Some(zone) = zone.filter(|_| aligned && !range.is_empty()) else {
            return Err(AllocError::InvalidParam);
        };
        match zone.alloc_range_at(range, &PAGES) {
            Ok(()) => Ok(at),
            Err(RangeError::Busy { .. }) => Err(AllocError::NoMemory),
            Err(_) => Err(AllocError::InvalidParam),
        }
    }

    fn total_pages(&self) -> usize {
        self.zones().map(AnyZone::managed_frames).sum()
    }

    fn used_pages(&self) -> usize {
        self.total_pages() - self.available_pages()
    }

    fn available_pages(&self) -> usize {
        self.zones()
            .map(|zone| zone.free_frames() + zone.cached_frames())
            .sum()
    }
}

/// A region of [`AxBytes`].
type Region = System<OneCpu, TicketLock, OwnZone<OneCpu>>;

/// Memory by the byte for ArceOS, as its trait [`ByteAllocator`] hands it out: slabs up to 32 KiB,
/// pages above and for alignments above 4 KiB.
///
/// Each region that it is given becomes a [heap](crate::KernelHeap) of its own, at most `REGIONS`.
/// It needs 43 KiB for itself, and 66 bytes for each page: so it is for whole memories, and not for
/// a heap that begins with 32 KiB and grows by a few pages.
pub struct AxBytes<const REGIONS: usize = 8> {
    regions: [Option<&'static Region>; REGIONS],
    used: usize,
    refused: usize,
}

impl<const REGIONS: usize> AxBytes<REGIONS> {
    /// Makes an allocator without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            regions: [None; REGIONS],
            used: 0,
            refused: 0,
        }
    }

    /// Returns how many calls of `dealloc` were refused; see
    /// [`KernelHeap::refused`](crate::KernelHeap::refused).
    #[must_use]
    pub const fn refused(&self) -> usize {
        self.refused
    }

    fn regions(&self) -> impl Iterator<Item = &'static Region> {
        self.regions.iter().copied().flatten()
    }

    fn add_region(&mut self, start: usize, size: usize) -> AllocResult {
        let span = frames_of(start, size);
        let overlaps = |region: &Region| !region.zone().span().intersection(span).is_empty();
        if self.regions().any(overlaps) {
            return Err(AllocError::MemoryOverlap);
        }
        let Some(vacant) = self.regions.iter_mut().find(|region| region.is_none()) else {
            return Err(AllocError::InvalidParam);
        };
        // SAFETY: the traits' contract: a region is free memory, and the allocator's from now on.
        // It overlaps no other region.
        let memory = unsafe { memory_at(start, size) };
        // SAFETY: `heap-platform`: whoever is inside has this value to themselves (`&mut self`),
        // and it lends its regions to nobody.
        let region = unsafe { System::owning(&HeapPlan::new(1), OneCpu, memory) };
        *vacant = Some(region.map_err(|_: HeapError| AllocError::InvalidParam)?);
        Ok(())
    }
}

impl<const REGIONS: usize> fmt::Debug for AxBytes<REGIONS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AxBytes")
            .field("regions", &self.regions().count())
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl<const REGIONS: usize> ByteAllocator for AxBytes<REGIONS> {
    fn alloc(&mut self, layout: Layout) -> AllocResult<NonNull<u8>> {
        if layout.size() == 0 {
            return Err(AllocError::InvalidParam);
        }
        let memory = self.regions().find_map(|region| region.alloc(layout));
        self.used += memory.map_or(0, |_| layout.size());
        memory.ok_or(AllocError::NoMemory)
    }

    fn dealloc(&mut self, at: NonNull<u8>, layout: Layout) {
        let region = self.regions().find(|region| region.contains(at));
        // SAFETY: the trait's contract: the memory came from here, for this layout.
        let freed = region.is_some_and(|region| unsafe { region.free(at, layout) });
        match freed {
            true => self.used -= layout.size(),
            false => self.refused += 1,
        }
    }

    /// Returns the bytes of all pages, less what the regions keep for themselves.
    fn total_bytes(&self) -> usize {
        self.regions().map(|of| of.numbers().pages * PAGE).sum()
    }

    /// Returns the bytes that were asked for and not given back.
    fn used_bytes(&self) -> usize {
        self.used
    }

    /// Returns the bytes of pages that are free as a whole. What is free in slabs is not among
    /// them.
    fn available_bytes(&self) -> usize {
        self.regions().map(|of| of.numbers().free * PAGE).sum()
    }
}

/// What both allocators have in common.
macro_rules! base_allocator {
    ($($allocator:ident),*) => {$(
        impl<const REGIONS: usize> Default for $allocator<REGIONS> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<const REGIONS: usize> BaseAllocator for $allocator<REGIONS> {
            /// Takes the first region.
            ///
            /// # Panics
            /// Panics if the region is too small for its metadata: see the type.
            fn init(&mut self, start: usize, size: usize) {
                let added = self.add_region(start, size);
                assert!(
                    added.is_ok(),
                    "a first region of {size} bytes at {start:#x}: {added:?}"
                );
            }

            fn add_memory(&mut self, start: usize, size: usize) -> AllocResult {
                self.add_region(start, size)
            }
        }
    )*};
}

base_allocator!(AxPages, AxBytes);
