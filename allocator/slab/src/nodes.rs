//! All zones of a machine as one source of pages.

use core::fmt;
use core::ptr::NonNull;

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Reclaim};
use brickyard::{AnyZone, Frame, FrameRange, Order, Platform, Request, ZoneKind};

use crate::error::BuildError;
use crate::source::{PageAsk, PageSource};

/// The memory that a kernel maps, of all nodes, as a source of pages: the zones up to
/// [`ZoneKind::Normal`]. Requests use the nodes' fallback, slow path and hooks.
///
/// The tables of pages cover the span from the first to the last of these zones, holes included.
pub struct NodesPages<'z, Z, H> {
    nodes: &'z Nodes<'z, Z, H>,
    span: FrameRange,
    start: NonNull<u8>,
    page_shift: u32,
    near: Option<fn(usize) -> usize>,
}

impl<Z, H> Clone for NodesPages<'_, Z, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Z, H> Copy for NodesPages<'_, Z, H> {}

// SAFETY: the pointer is only an address. The zones guard the pages behind it, and they and the
// hooks are `Sync`.
unsafe impl<Z: AnyZone, H: Sync> Sync for NodesPages<'_, Z, H> {}
// SAFETY: as above.
unsafe impl<Z: AnyZone, H: Sync> Send for NodesPages<'_, Z, H> {}

impl<'z, Z: AnyZone, H: Reclaim + Migrate> NodesPages<'z, Z, H> {
    /// The pages of nodes that others use too. Slabs do not tell nodes apart, unless they are told
    /// which is [near](Self::near) a CPU.
    ///
    /// # Errors
    /// [`BuildError::Unmapped`] if there is no such zone, if the platform of the first zone has no
    /// address for the first frame of the span, or if that address is not aligned to the largest
    /// block of any zone.
    ///
    /// # Safety
    /// The conditions of [`ZonePages::shared`](crate::ZonePages::shared), of all zones up to
    /// [`ZoneKind::Normal`] together: frame `i` of the span is at the address of its first frame
    /// plus `i << page_shift` (`direct-map`), and the other users of the nodes leave alone what the
    /// source has taken (`frames-of-the-source`). The first zone's platform speaks for all.
    pub unsafe fn shared(nodes: &'z Nodes<'z, Z, H>, page_shift: u32) -> Result<Self, BuildError> {
        let span = Self::span_of(nodes);
        let first = nodes.zones().next().ok_or(BuildError::Unmapped)?;
        let start = first.platform().address(span.start);
        let start = start.ok_or(BuildError::Unmapped)?;
        let block = largest(nodes).frames().checked_shl(page_shift);
        let aligned = block.is_some_and(|block| start.addr().get().is_multiple_of(block));
        if span.is_empty() || !aligned {
            return Err(BuildError::Unmapped);
        }
        Ok(Self {
            nodes,
            span,
            start,
            page_shift,
            near: None,
        })
    }

    /// Returns the same source, whose slabs keep the memory of nodes apart. `near` returns the
    /// index of the node that is nearest to a CPU, as [`Nodes::nodes`] counts; an index that does
    /// not exist counts as 0. It must not use the slabs.
    #[must_use]
    pub fn near(self, near: fn(usize) -> usize) -> Self {
        Self {
            near: Some(near),
            ..self
        }
    }

    /// Returns the frames that the source spans: from the first to the last of the zones up to
    /// [`ZoneKind::Normal`]. The first is a multiple of the largest block.
    #[must_use]
    pub fn span_of(nodes: &Nodes<'z, Z, H>) -> FrameRange {
        let low = nodes.zones().filter(|zone| zone.kind() <= ZoneKind::Normal);
        let spans = low.map(AnyZone::span).reduce(|all, span| FrameRange {
            start: all.start.min(span.start),
            end: all.end.max(span.end),
        });
        let all = spans.unwrap_or_default();
        FrameRange {
            start: all.start.align_down(largest(nodes)),
            end: all.end,
        }
    }

    fn frame(&self, page: NonNull<u8>) -> Frame {
        let offset = page.addr().get() - self.start.addr().get();
        self.span.start.plus(offset >> self.page_shift)
    }

    /// Returns the index of the node that has a frame.
    fn index_of(&self, frame: Frame) -> usize {
        let Some(zone) = self.nodes.zone_of(frame) else {
            return 0;
        };
        let has = |zones: &[Z]| zones.iter().any(|one| core::ptr::eq(one, zone));
        let mut nodes = self.nodes.nodes().iter();
        nodes.position(|node| has(node.zones())).unwrap_or(0)
    }
}

/// Returns the highest order that any zone hands out.
fn largest<Z: AnyZone, H: Reclaim + Migrate>(nodes: &Nodes<'_, Z, H>) -> Order {
    nodes
        .zones()
        .map(AnyZone::max_order)
        .max()
        .unwrap_or_default()
}

impl<Z, H> fmt::Debug for NodesPages<'_, Z, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodesPages")
            .field("span", &self.span)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

// SAFETY: zones hand out frames of their spans, each to one owner, in blocks aligned to their size
// by number. `direct-map` makes them memory with the same alignment, since the span begins at a
// multiple of the largest block, by number and by address. `frames-of-the-source` leaves them to
// the source until it gives them back. The zones of a node never change. Where the zones of several
// nodes interleave in one span, a page's node is that of the zone that has it.
unsafe impl<Z: AnyZone, H: Reclaim + Migrate + Sync> PageSource for NodesPages<'_, Z, H> {
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
        let frame = self.nodes.alloc(ask.node.unwrap_or(0), &request).ok()?;
        if ask.node.is_some_and(|node| self.index_of(frame) != node) {
            let given = self.nodes.free(frame, ask.order);
            debug_assert!(given.is_ok(), "a frame of another node: {given:?}");
            return None;
        }
        let page = frame.number() - self.span.start.number();
        // SAFETY: `direct-map`: the frame is memory at this offset.
        Some(unsafe { self.start.add(page << self.page_shift) })
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        let given = self.nodes.free(self.frame(first), order);
        debug_assert!(given.is_ok(), "slab pages: {given:?}");
    }

    fn nodes(&self) -> usize {
        match self.near {
            Some(_) => self.nodes.nodes().len(),
            None => 1,
        }
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        match self.near {
            Some(_) => self.index_of(self.frame(page)),
            None => 0,
        }
    }

    fn local_node(&self, cpu: usize) -> usize {
        let near = self.near.map_or(0, |near| near(cpu));
        match near < self.nodes.nodes().len() {
            true => near,
            false => 0,
        }
    }
}
