//! Nodes: zones in order, with fallback from zone to zone and from node to node.
//!
//! The way of a request: the zones that may serve it, best first; in each, the low watermark, then
//! the zone's front. If none has anything, the slow path: wake background reclaim, try down to the
//! min mark, drain the caches, compact, reclaim, and try again while that helps.

pub mod movable;
mod slow;

pub use slow::{Compaction, Lumpy, SlowPath};

use core::fmt;

use crate::block::Census;
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::pressure::{ContiguousRequest, Migrate, NoHooks, Reclaim, alloc_contiguous};
use crate::stats::ZoneSnapshot;
use crate::watermark::{self, Mark};
use crate::zones::AnyZone;
use crate::{
    AllocError, Frame, FrameRange, FreeError, Mobility, Order, RangeError, Request, ZoneKind,
};

/// A node: the zones of memory that is equally far from some CPUs, lowest kind first.
///
/// Memory that is [too large](crate::zone#limits) for one zone is several zones of one kind, in the
/// order of their spans, which do not overlap. They share what one zone would have: the marks and
/// what is held back are split among them. Requests go to the last of them first. No block and no
/// contiguous range reaches from one into the next; so they had better meet at a multiple of the
/// largest block.
pub struct Node<'z, Z> {
    id: u32,
    zones: &'z [Z],
}

impl<'z, Z: AnyZone> Node<'z, Z> {
    /// A node of these zones: in rising order of their kind, and where there are several of one
    /// kind, in that of their spans ([`Nodes::check`] tells of zones that are not; a constant
    /// cannot see them).
    #[must_use]
    pub const fn new(id: u32, zones: &'z [Z]) -> Self {
        Self { id, zones }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Its zones, lowest kind first.
    #[must_use]
    pub const fn zones(&self) -> &'z [Z] {
        self.zones
    }

    /// The frames that its zones of each kind manage.
    fn managed_by_kind(&self) -> [usize; ZoneKind::COUNT] {
        let mut managed = [0_usize; ZoneKind::COUNT];
        for zone in self.zones {
            let sum = &mut managed[zone.kind().index()];
            *sum = sum.saturating_add(zone.managed_frames());
        }
        managed
    }

    /// Invariant `kinds-in-order`: zones of a node stand in rising order of their kinds.
    /// Invariant `spans-in-order`: the spans of those of one kind follow each other.
    fn check_order(&self) -> Result<(), Violation> {
        for (lower, upper) in self.zones.iter().zip(self.zones.iter().skip(1)) {
            let start = upper.span().start;
            if lower.kind() > upper.kind() {
                let found = "a zone of a lower kind than the one before it";
                return Err(Violation::at("kinds-in-order", found, start));
            }
            if lower.kind() == upper.kind() && lower.span().end > start {
                let found = "a zone that begins before the end of one of its kind";
                return Err(Violation::at("spans-in-order", found, start));
            }
        }
        Ok(())
    }
}

/// All nodes of a machine, and the hooks of the embedder.
///
/// ```
/// use core::mem::MaybeUninit;
/// use brickyard::node::{Node, Nodes};
/// use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind, ZonePlan};
///
/// const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 1024), 1);
/// let mut memory = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
/// let zones = [Zone::<OneCpu>::new(&PLAN, OneCpu, &mut memory)?];
/// zones[0].add(FrameRange::new(16, 1024))?;
/// let node = [Node::new(0, &zones)];
/// let nodes = Nodes::new(&node);
/// let block = nodes.alloc(0, &Request::new(Order::new(3), Mobility::Unmovable))?;
/// nodes.free(block, Order::new(3))?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Nodes<'z, Z, H = NoHooks> {
    nodes: &'z [Node<'z, Z>],
    hooks: H,
    slow_path: SlowPath,
}

impl<'z, Z> Nodes<'z, Z, NoHooks> {
    /// These nodes, without hooks: what is not free cannot be had.
    #[must_use]
    pub const fn new(nodes: &'z [Node<'z, Z>]) -> Self {
        Self {
            nodes,
            hooks: NoHooks,
            slow_path: SlowPath::MODERN,
        }
    }
}

impl<'z, Z: AnyZone, H: Reclaim + Migrate> Nodes<'z, Z, H> {
    /// These nodes, with hooks.
    #[must_use]
    pub const fn with_hooks(nodes: &'z [Node<'z, Z>], hooks: H, slow_path: SlowPath) -> Self {
        Self {
            nodes,
            hooks,
            slow_path,
        }
    }

    /// The nodes.
    #[must_use]
    pub const fn nodes(&self) -> &'z [Node<'z, Z>] {
        self.nodes
    }

    /// The embedder's hooks.
    #[must_use]
    pub const fn hooks(&self) -> &H {
        &self.hooks
    }

    /// Every zone, node by node, lowest kind first.
    pub fn zones(&self) -> impl Iterator<Item = &'z Z> + Clone + use<'z, Z, H> {
        self.nodes.iter().flat_map(|node| node.zones)
    }

    /// The zones that may serve `request`, best first: those of node `from`, from the highest kind
    /// allowed to the lowest, then those of the nodes behind it, round to the one before it. Of
    /// several zones of one kind, the last is the best.
    pub(crate) fn zonelist(
        &self,
        from: usize,
        request: &Request,
    ) -> impl Iterator<Item = &'z Z> + Clone + use<'z, Z, H> {
        let (before, own) = self.nodes.split_at(from.min(self.nodes.len()));
        let request = *request;
        own.iter()
            .chain(before)
            .flat_map(|node| node.zones.iter().rev())
            .filter(move |zone| Self::may_serve(zone, &request))
    }

    #[inline]
    fn may_serve(zone: &Z, request: &Request) -> bool {
        zone.kind() <= request.highest
            && (zone.kind() != ZoneKind::Movable || request.mobility == Mobility::Movable)
            && request.limit.is_none_or(|limit| zone.span().start < limit)
    }

    /// The first zone of the zonelist, if it is the last one of node `from`.
    #[inline]
    fn first(&self, from: usize, request: &Request) -> Option<&'z Z> {
        let last = self.nodes.get(from)?.zones.last()?;
        Self::may_serve(last, request).then_some(last)
    }

    /// A block for `request`, from node `from` if it can be.
    ///
    /// Cost: what the first zone takes: a pop of this CPU's stash, where something lies in it; else
    /// for each zone tried a few words read, then what a miss costs there. On a miss of all, see
    /// [`SlowPath`].
    ///
    /// # Errors
    /// Why it could not be served, as judged in the zone with the most free memory. No frame has
    /// changed hands then, but for what the hooks freed and moved.
    #[inline]
    pub fn alloc(&self, from: usize, request: &Request) -> Result<Frame, AllocError> {
        let first = self.first(from, request);
        match first.and_then(|zone| zone.alloc_above(request, Mark::First)) {
            Some(frame) => Ok(frame),
            None => self.alloc_behind(from, request, first),
        }
    }

    /// The same where the first zone had nothing above its low mark.
    #[cold]
    #[inline(never)]
    fn alloc_behind(
        &self,
        from: usize,
        request: &Request,
        first: Option<&Z>,
    ) -> Result<Frame, AllocError> {
        let is_first = |zone: &Z| first.is_some_and(|first| core::ptr::eq(first, zone));
        let quickly = self
            .zonelist(from, request)
            .filter(|zone| !is_first(zone))
            .find_map(|zone| zone.alloc_above(request, Mark::Low));
        match quickly {
            Some(frame) => Ok(frame),
            None => self.alloc_slowly(from, request),
        }
    }

    /// Fills `out` with single frames, as many as can be had. The first zone that stays above its
    /// low mark gives them all at once; what is still missing comes one by one.
    ///
    /// # Errors
    /// Why none could be had.
    pub fn alloc_bulk(
        &self,
        from: usize,
        request: &Request,
        out: &mut [Frame],
    ) -> Result<usize, AllocError> {
        let single = request.single();
        let mut at_once = self
            .zonelist(from, &single)
            .map(|zone| zone.alloc_batch(&single, out));
        let mut taken = at_once.find(|&taken| taken > 0).unwrap_or(0);
        while let Some(slot) = out.get_mut(taken) {
            match self.alloc(from, &single) {
                Ok(frame) => *slot = frame,
                Err(why) if taken == 0 => return Err(why),
                Err(_) => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// The zone that `frame` belongs to. O(zones): a look at each one's span, and at its records
    /// where the spans of nodes interleave.
    #[must_use]
    #[inline]
    pub fn zone_of(&self, frame: Frame) -> Option<&'z Z> {
        let mut found = None;
        for zone in self.nodes.iter().flat_map(|node| node.zones) {
            if zone.span().contains(frame) {
                if found.is_some() {
                    return self.zone_among(frame);
                }
                found = Some(zone);
            }
        }
        found
    }

    /// The zone whose frame it is, of several whose spans contain it.
    #[inline(never)]
    fn zone_among(&self, frame: Frame) -> Option<&'z Z> {
        let mut around = self.zones().filter(|zone| zone.span().contains(frame));
        let first = around.next()?;
        let mut others = around.peekable();
        if others.peek().is_none() || first.has(frame) {
            return Some(first);
        }
        others.find(|zone| zone.has(frame)).or(Some(first))
    }

    /// Takes back a block or any aligned part of one, see [`AnyZone::free`]. Costs what finding the
    /// [zone](Nodes::zone_of) costs, and a hit of its front.
    ///
    /// # Errors
    /// A bad free is refused and changes nothing.
    #[inline]
    pub fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.zone_of(frame)
            .ok_or(FreeError::NotOwned)?
            .free(frame, order)
    }

    /// Takes back single frames, run by run of one zone. See [`AnyZone::free_bulk`].
    ///
    /// # Errors
    /// At the first bad one; those before it are freed, it and those behind it are not.
    pub fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        let mut freed = 0;
        while let Some(&first) = frames.get(freed) {
            let error = FreeError::NotOwned;
            let zone = self.zone_of(first).ok_or(BulkFreeError { freed, error })?;
            let same = |&&frame: &&Frame| {
                self.zone_of(frame)
                    .is_some_and(|other| core::ptr::eq(other, zone))
            };
            // The first is of it, even if its zone would be told otherwise by now.
            let run = 1 + frames[freed + 1..].iter().take_while(same).count();
            zone.free_bulk(&frames[freed..][..run])
                .map_err(|bad| BulkFreeError {
                    freed: freed + bad.freed,
                    ..bad
                })?;
            freed += run;
        }
        Ok(())
    }

    /// Takes back a range of one zone, see [`AnyZone::free_range`].
    ///
    /// # Errors
    /// As there; nothing has changed then.
    pub fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.zone_of(range.start)
            .ok_or(FreeError::NotOwned)?
            .free_range(range)
    }

    /// Adjacent frames from any zone, of node `from` first and highest kind first, see
    /// [`alloc_contiguous`].
    ///
    /// # Errors
    /// Why the last zone that was asked had none; [`RangeError::Malformed`] for a request that
    /// cannot be met anywhere.
    pub fn alloc_contiguous(
        &self,
        from: usize,
        request: &ContiguousRequest,
    ) -> Result<FrameRange, RangeError> {
        let mut error = RangeError::Malformed;
        for zone in self.zonelist(from, &Request::page(request.mobility)) {
            match alloc_contiguous(zone, request, &self.hooks) {
                Ok(range) => return Ok(range),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    /// Gives the frames of every cache that can be reached back to the stores. Returns how many.
    pub fn drain(&self) -> usize {
        self.zones().map(AnyZone::drain).sum()
    }

    /// Sets all watermarks and reserves from `min_free_kbytes` and the memory now managed, by
    /// Linux's rules, with the ratios 256, 256, 32, 0, 0 of `lowmem_reserve_ratio`. To be called
    /// again when memory is added or removed. Zones of one kind in a node have together what one
    /// zone of all their memory would have, each by its memory.
    pub fn set_min_free_kbytes(&self, kbytes: usize, frame_bytes: usize) {
        let is_low = |zone: &&Z| zone.kind() <= ZoneKind::Normal;
        let min_free = watermark::frames_of_kbytes(kbytes, frame_bytes);
        let lowmem = self
            .zones()
            .filter(is_low)
            .map(AnyZone::managed_frames)
            .sum();
        for node in self.nodes {
            let managed = node.managed_by_kind();
            let reserves = watermark::lowmem_reserve(&managed, &watermark::LOWMEM_RESERVE_RATIO);
            // What the zones before have of their kind.
            let mut before = [0_usize; ZoneKind::COUNT];
            for zone in node.zones {
                let index = zone.kind().index();
                let marks = watermark::zone_marks(
                    zone.kind(),
                    managed[index],
                    lowmem,
                    min_free,
                    watermark::SCALE_FACTOR,
                );
                let own = zone.managed_frames();
                let part = watermark::Part {
                    before: before[index],
                    own,
                    all: managed[index],
                };
                let reserve = reserves[index].map(|frames| part.of(frames));
                zone.watermarks().set(part.of_marks(marks), reserve);
                before[index] = before[index].saturating_add(own);
            }
        }
    }

    /// What buddyinfo and pagetypeinfo tell of each zone, by place in [`Nodes::zones`].
    pub fn snapshots(&self) -> impl Iterator<Item = ZoneSnapshot> + '_ {
        self.nodes
            .iter()
            .flat_map(|node| node.zones.iter().map(|zone| zone.snapshot(node.id)))
    }

    /// Tests every invariant of every zone. O(memory). Nobody else may be using them.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        self.nodes.iter().try_for_each(Node::check_order)?;
        let mut sum = Census::default();
        for zone in self.zones() {
            let census = zone.check()?;
            sum.free += census.free;
            sum.isolated += census.isolated;
            sum.allocated += census.allocated;
            sum.cached += census.cached;
            sum.reserved += census.reserved;
        }
        Ok(sum)
    }
}

impl<Z: fmt::Debug> fmt::Debug for Node<'_, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("zones", &self.zones)
            .finish()
    }
}

impl<Z: fmt::Debug, H> fmt::Debug for Nodes<'_, Z, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes")
            .field("nodes", &self.nodes)
            .field("slow_path", &self.slow_path)
            .finish_non_exhaustive()
    }
}
