//! Pages by address, out of frames by number: for slabs, and for memory that is too large for them.

use core::fmt;
use core::ptr::{NonNull, with_exposed_provenance_mut};

use brickyard::{Context, Frame, FrameRange, Mobility, Order, Request};
use brickyard_slab::{PageAsk, PageSource};

use super::HeapError;
use crate::Frames;

/// log2 of the bytes of a page.
const SHIFT: u32 = 12;

/// The bytes of a page.
pub(crate) const PAGE: usize = 1 << SHIFT;

/// The largest slab: slabs of higher orders do not exist (`brickyard_slab::geometry`).
const SLAB_ORDER: Order = Order::new(5);

/// Where frames lie in the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map {
    /// The frames that are mapped.
    pub span: FrameRange,
    /// What is added to a frame's number times 4096 to give its address; wraps around.
    pub offset: usize,
}

impl Map {
    /// Returns the map of memory whose frames are numbered by their own addresses.
    pub(crate) const fn identity(span: FrameRange) -> Self {
        Self { span, offset: 0 }
    }

    /// Returns the address of a frame.
    const fn address(&self, frame: Frame) -> usize {
        (frame.number() << SHIFT).wrapping_add(self.offset)
    }

    /// Returns the frame that an address lies in.
    const fn frame(&self, address: usize) -> Frame {
        Frame::new(address.wrapping_sub(self.offset) >> SHIFT)
    }

    /// Returns the same map, with a span that begins at the start of a largest slab.
    fn for_slabs(self) -> Result<Self, HeapError> {
        let span = FrameRange {
            start: self.span.start.align_down(SLAB_ORDER),
            ..self.span
        };
        let map = Self { span, ..self };
        let aligned = self.offset.is_multiple_of(PAGE << SLAB_ORDER.get());
        let (start, bytes) = (map.address(span.start), span.len().checked_mul(PAGE));
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        match aligned && !span.is_empty() && start != 0 && end.is_some() {
            true => Ok(map),
            false => Err(HeapError::Map),
        }
    }
}

/// Returns the frames that lie in this memory as a whole, numbered by their addresses.
pub(crate) const fn frames_of(start: usize, bytes: usize) -> FrameRange {
    // No memory reaches the end of the address space, where this would be short by a page.
    let end = start.saturating_add(bytes) >> SHIFT;
    FrameRange::new(start.div_ceil(PAGE), end)
}

/// Frames as pages: what a heap's slabs are made of. Others take pages by a layout of pages.
pub struct HeapPages<F> {
    pub(crate) frames: F,
    map: Map,
}

impl<F: Frames> HeapPages<F> {
    /// Makes pages of frames.
    ///
    /// # Safety
    /// `heap-map` and `heap-frames` hold for ever.
    pub(crate) unsafe fn new(frames: F, map: Map) -> Result<Self, HeapError> {
        let map = map.for_slabs()?;
        Ok(Self { frames, map })
    }

    /// Returns the number of pages that slabs have records of.
    pub(crate) fn pages_of(map: Map) -> Result<usize, HeapError> {
        Ok(map.for_slabs()?.span.len())
    }

    fn page(&self, frame: Frame) -> Option<NonNull<u8>> {
        debug_assert!(self.map.span.contains(frame), "`heap-frames`: {frame}");
        NonNull::new(with_exposed_provenance_mut(self.map.address(frame)))
    }

    /// Returns true if the address lies in the span.
    #[cfg(feature = "arceos")]
    pub(crate) fn contains(&self, page: NonNull<u8>) -> bool {
        self.map.span.contains(self.map.frame(page.addr().get()))
    }

    /// Takes adjacent pages, aligned to `align` bytes.
    pub(crate) fn take_many(&self, pages: usize, align: usize) -> Option<NonNull<u8>> {
        let order = Order::holding(align.div_ceil(PAGE))?;
        // The map keeps the alignment of 128 KiB, and more where the offset has more.
        if !self.map.offset.is_multiple_of(align) {
            return None;
        }
        let request = Request::new(order, Mobility::Unmovable).atomic();
        let range = self.frames.alloc_range(&request, pages).ok()?;
        self.page(range.start)
    }

    /// Takes adjacent pages back, or the last ones of some. Returns false, and changes nothing, if
    /// they are not in use.
    ///
    /// # Safety
    /// If they are in use, they are the caller's.
    pub(crate) unsafe fn give_many(&self, first: NonNull<u8>, pages: usize) -> bool {
        let first = self.map.frame(first.addr().get());
        self.frames.free_range(FrameRange::at(first, pages)).is_ok()
    }
}

// SAFETY: `heap-map` and `heap-frames`: frames of the span are memory at these addresses, each
// block aligned by number and so by address up to the largest slab, since the offset is a multiple
// of that. They are the source's until it gives them back. `for_slabs` looks at both ends.
unsafe impl<F: Frames> PageSource for &'static HeapPages<F> {
    fn start(&self) -> NonNull<u8> {
        let start = self.map.address(self.map.span.start);
        // `for_slabs` refuses address 0.
        NonNull::new(with_exposed_provenance_mut(start)).unwrap_or(NonNull::dangling())
    }

    fn pages(&self) -> usize {
        self.map.span.len()
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        if ask.order > SLAB_ORDER || ask.node.is_some_and(|node| node != 0) {
            return None;
        }
        let context = match ask.context {
            // Who allocates memory may hold a lock.
            Context::MaySleep => Context::Atomic,
            other => other,
        };
        let request = Request::new(ask.order, ask.mobility).in_context(context);
        self.page(self.frames.alloc(&request).ok()?)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let given = self.frames.free(self.map.frame(first.addr().get()), order);
        debug_assert!(given.is_ok(), "slab pages: {given:?}");
    }
}

impl<F> fmt::Debug for HeapPages<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapPages")
            .field("map", &self.map)
            .finish_non_exhaustive()
    }
}
