//! Nodes: zones in order, with fallback from zone to zone and from node to node.
//!
//! A request tries the zones that may serve it, best first. In each it checks the low watermark,
//! then asks the zone's front. If no zone has anything, it takes the slow path: wake background
//! reclaim, try down to the min watermark, drain the caches, compact, reclaim, and try again while
//! that helps.

pub mod movable;
mod slow_path;
mod zonelist;

pub use slow_path::{Compaction, Lumpy, SlowPath};
pub use zonelist::Zonelist;

use core::fmt;

use zonelist::{is_for, may_serve};

use crate::block::Census;
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::pressure::{ContiguousRequest, Migrate, NoHooks, Reclaim, alloc_contiguous};
use crate::stats::ZoneSnapshot;
use crate::watermark::{self, Mark};
use crate::zone::{block_holding, cut_to};
use crate::zones::AnyZone;
use crate::{AllocError, Frame, FrameRange, FreeError, Order, RangeError, Request, ZoneKind};

/// A node: the zones of memory that is equally far from some CPUs, lowest kind first.
///
/// Memory that is [too large](crate::zone#limits) for one zone is split into several zones of one
/// kind, in the order of their spans, which must not overlap. They share what one zone would have:
/// the watermarks and reserves are split among them. Requests go to the last of them first. No
/// block and no contiguous range crosses from one into the next. So they should meet at a multiple
/// of the largest block.
pub struct Node<'z, Z> {
    id: u32,
    zones: &'z [Z],
    // The last zone, which most requests and frees concern.
    last: Option<&'z Z>,
}

impl<'z, Z: AnyZone> Node<'z, Z> {
    /// Returns a node of these zones. They must be in rising order of their kind, and those of one
    /// kind in rising order of their spans. [`Nodes::check`] reports zones that are not; a constant
    /// cannot see them.
    #[must_use]
    pub const fn new(id: u32, zones: &'z [Z]) -> Self {
        Self {
            id,
            zones,
            last: zones.last(),
        }
    }

    /// Returns the node's number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Returns the node's zones, lowest kind first.
    #[must_use]
    pub const fn zones(&self) -> &'z [Z] {
        self.zones
    }

    /// Returns the number of frames that the zones of each kind manage.
    fn managed_by_kind(&self) -> [usize; ZoneKind::COUNT] {
        let mut managed = [0_usize; ZoneKind::COUNT];
        for zone in self.zones {
            let sum = &mut managed[zone.kind().index()];
            *sum = sum.saturating_add(zone.managed_frames());
        }
        managed
    }

    /// Invariant `kinds-in-order`: zones of a node stand in rising order of their kinds.
    /// Invariant `spans-in-order`: the spans of zones of one kind follow each other.
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
    /// Returns these nodes, without hooks: memory that is not free is not available.
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
    /// Returns these nodes, with hooks.
    #[must_use]
    pub const fn with_hooks(nodes: &'z [Node<'z, Z>], hooks: H, slow_path: SlowPath) -> Self {
        Self {
            nodes,
            hooks,
            slow_path,
        }
    }

    /// Returns the nodes.
    #[must_use]
    pub const fn nodes(&self) -> &'z [Node<'z, Z>] {
        self.nodes
    }

    /// Returns the embedder's hooks.
    #[must_use]
    pub const fn hooks(&self) -> &H {
        &self.hooks
    }

    /// Returns every zone, node by node, lowest kind first.
    pub fn zones(&self) -> impl Iterator<Item = &'z Z> + Clone + use<'z, Z, H> {
        self.nodes.iter().flat_map(|node| node.zones)
    }

    /// Returns the zones that may serve `request`, best first. First come those of node `from`,
    /// from the highest kind allowed to the lowest. Then come those of the nodes after it, wrapping
    /// around to the one before it. Of several zones of one kind, the last is the best.
    pub fn zonelist(&self, from: usize, request: &Request) -> Zonelist<'z, Z> {
        Zonelist::new(self.nodes, from, request)
    }

    /// Returns the first zone of the zonelist, if it is the last zone of node `from`.
    #[inline]
    fn first(&self, from: usize, request: &Request) -> Option<&'z Z> {
        let last = self.nodes.get(from)?.last?;
        may_serve(last, request).then_some(last)
    }

    /// Takes a block for `request`, from node `from` if possible.
    ///
    /// Cost: that of the first zone, which is a pop from this CPU's stash if it holds something.
    /// Otherwise, for each zone tried, a few words read and then the cost of a miss there. If all
    /// zones miss, see [`SlowPath`].
    ///
    /// # Errors
    /// The reason why the request could not be served, judged in the zone with the most free
    /// memory. No frame has changed hands then, except those that the hooks freed and moved.
    #[inline]
    pub fn alloc(&self, from: usize, request: &Request) -> Result<Frame, AllocError> {
        match self.at_hand(from, request) {
            Some(frame) => Ok(frame),
            None => self.alloc_from_first(from, request),
        }
    }

    /// Takes a single frame that a cache of this CPU has for the last zone of node `from`, if that
    /// is the first of the zonelist.
    #[inline(always)]
    fn at_hand(&self, from: usize, request: &Request) -> Option<Frame> {
        let last = self.nodes.get(from)?.last?;
        // A request with a limit gets nothing this way: a cache does not know how low its frames
        // lie.
        match is_for(last, request) {
            true => last.alloc_at_hand(request),
            false => None,
        }
    }

    /// Asks the first zone above its low watermark, then the others.
    #[inline(never)]
    fn alloc_from_first(&self, from: usize, request: &Request) -> Result<Frame, AllocError> {
        let first = self.first(from, request);
        let mark = match self.own_zones(from).len() > 1 {
            true => Mark::FirstApart,
            false => Mark::First,
        };
        match first.and_then(|zone| zone.alloc_above(request, mark)) {
            Some(frame) => Ok(frame),
            None => self.alloc_from_others(from, request, first),
        }
    }

    /// Asks the other zones, after the first had nothing, then takes the slow path.
    #[cold]
    #[inline(never)]
    fn alloc_from_others(
        &self,
        from: usize,
        request: &Request,
        first: Option<&Z>,
    ) -> Result<Frame, AllocError> {
        match self.try_others(from, request, first) {
            Some(frame) => Ok(frame),
            None => self.alloc_by_slow_path(from, request),
        }
    }

    /// Tries the other zones, after the first had nothing above its low watermark, or nothing that
    /// it could give without mixing a page block: first those of this node for what mixes none,
    /// then all zones for anything. Its frame is not below that of the slow path.
    #[inline(never)]
    fn try_others(&self, from: usize, request: &Request, first: Option<&Z>) -> Option<Frame> {
        let is_first = |zone: &Z| first.is_some_and(|first| core::ptr::eq(first, zone));
        let own = self.own_zones(from);
        let several = own.len() > 1;
        let is_own = |zone: &Z| own.iter().any(|own| core::ptr::eq(own, zone));
        let apart = || {
            self.zonelist(from, request)
                .take_while(|zone| is_own(zone))
                .filter(|zone| !is_first(zone))
                .find_map(|zone| zone.alloc_above(request, Mark::Apart))
        };
        // A single zone has been asked for anything already.
        let mixed = || {
            self.zonelist(from, request)
                .filter(|zone| several || !is_first(zone))
                .find_map(|zone| zone.alloc_above(request, Mark::Low))
        };
        several.then(apart).flatten().or_else(mixed)
    }

    /// Returns the zones of node `from`.
    fn own_zones(&self, from: usize) -> &'z [Z] {
        self.nodes.get(from).map_or(&[], |node| node.zones)
    }

    /// Fills `out` with as many single frames as are available. The first zone that stays above its
    /// low watermark gives as many as it has at once; the rest come one by one.
    ///
    /// # Errors
    /// The reason why none was available.
    pub fn alloc_bulk(
        &self,
        from: usize,
        request: &Request,
        out: &mut [Frame],
    ) -> Result<usize, AllocError> {
        let single = request.single();
        let mut taken = self.alloc_batch(from, &single, out);
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

    /// Fills `out` with what the first zone that has some gives at once. Returns how many.
    #[inline(never)]
    fn alloc_batch(&self, from: usize, single: &Request, out: &mut [Frame]) -> usize {
        let zones = self.zonelist(from, single);
        let mut batches = zones.map(|zone| zone.alloc_batch(single, out));
        batches.find(|&taken| taken > 0).unwrap_or(0)
    }

    /// Takes `frames` adjacent frames, see [`Zone::alloc_range`](crate::Zone::alloc_range): the
    /// smallest block that holds them, whose rest is free again at once. They are freed by
    /// [`Nodes::free_range`], all or in parts.
    ///
    /// # Errors
    /// [`AllocError::LengthUnsatisfiable`] for no frames, and for more than the largest block of
    /// the zones that may serve the request; otherwise as [`Nodes::alloc`] of the block.
    pub fn alloc_range(
        &self,
        from: usize,
        request: &Request,
        frames: usize,
    ) -> Result<FrameRange, AllocError> {
        let orders = self.zonelist(from, request).map(AnyZone::max_order);
        let block = block_holding(request, frames, orders.max().unwrap_or_default())?;
        let first = self.alloc(from, &block)?;
        Ok(cut_to(frames, first, block.order, |rest| {
            self.free_range(rest)
        }))
    }

    /// Returns the zone that `frame` belongs to. O(zones): a look at each zone's span, and at its
    /// records where the spans of nodes interleave.
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

    /// Returns the zone that owns the frame, of several whose spans contain it.
    #[inline(never)]
    fn zone_among(&self, frame: Frame) -> Option<&'z Z> {
        let mut first = None;
        for zone in self.zones().filter(|zone| zone.span().contains(frame)) {
            if zone.has(frame) {
                return Some(zone);
            }
            first = first.or(Some(zone));
        }
        first
    }

    /// Takes back a block or any aligned part of one, see [`AnyZone::free`]. The cost is that of
    /// finding the [zone](Nodes::zone_of), and a hit of its front.
    ///
    /// # Errors
    /// A bad free is refused and changes nothing.
    #[inline]
    pub fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        match order == Order::ZERO && self.free_at_hand(frame) {
            true => Ok(()),
            false => self.free_to_its_zone(frame, order),
        }
    }

    /// Takes back a single frame of the last zone of a node, if a cache of this CPU keeps it as it
    /// is. (Plain loops here and below: in a build without link-time optimisation, those of
    /// iterators are not inlined.)
    #[inline(always)]
    fn free_at_hand(&self, frame: Frame) -> bool {
        for node in self.nodes {
            if let Some(last) = node.last
                && last.free_at_hand(frame)
            {
                return true;
            }
        }
        false
    }

    /// Offers a single frame to the caches of the other zones, else finds the zone of the block.
    #[inline(never)]
    fn free_to_its_zone(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if order == Order::ZERO {
            for node in self.nodes {
                // The last zone has been asked.
                for zone in node.zones.iter().rev().skip(1) {
                    if zone.free_at_hand(frame) {
                        return Ok(());
                    }
                }
            }
        }
        self.zone_of(frame)
            .ok_or(FreeError::NotOwned)?
            .free(frame, order)
    }

    /// Takes back single frames, in runs that lie in one zone. See [`AnyZone::free_bulk`].
    ///
    /// # Errors
    /// The error of the first bad frame. Those before it are freed; it and those after it are not.
    pub fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        let mut freed = 0;
        while let Some(&first) = frames.get(freed) {
            let error = FreeError::NotOwned;
            let zone = self.zone_of(first).ok_or(BulkFreeError { freed, error })?;
            let same = |&&frame: &&Frame| {
                self.zone_of(frame)
                    .is_some_and(|other| core::ptr::eq(other, zone))
            };
            // The first belongs to this zone, even if a lookup would give another zone by now.
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
    /// The errors of [`AnyZone::free_range`]. Nothing has changed then.
    pub fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.zone_of(range.start)
            .ok_or(FreeError::NotOwned)?
            .free_range(range)
    }

    /// Takes adjacent frames from any zone, starting with node `from` and the highest kind, see
    /// [`alloc_contiguous`].
    ///
    /// # Errors
    /// The reason why the first zone that has such a place could not give it;
    /// [`RangeError::OutsideSpan`] if none has; [`RangeError::Malformed`] for a request that cannot
    /// be met anywhere.
    pub fn alloc_contiguous(
        &self,
        from: usize,
        request: &ContiguousRequest,
    ) -> Result<FrameRange, RangeError> {
        let mut page = Request::page(request.mobility);
        if let Some(highest) = request.highest {
            page = page.from_zones_up_to(highest);
        }
        let mut request = *request;
        request.highest = Some(page.highest);
        let mut error = RangeError::OutsideSpan {
            span: FrameRange::default(),
        };
        for zone in self.zonelist(from, &page) {
            match alloc_contiguous(zone, &request, &self.hooks) {
                Ok(range) => return Ok(range),
                Err(why) if matches!(error, RangeError::OutsideSpan { .. }) => error = why,
                Err(_) => {}
            }
        }
        Err(error)
    }

    /// Returns the frames of every reachable cache to the stores. Returns the number of frames.
    pub fn drain(&self) -> usize {
        self.zones().map(AnyZone::drain).sum()
    }

    /// Sets all watermarks and reserves from `min_free_kbytes` and the memory now managed. Uses
    /// Linux's rules, with the ratios 256, 256, 32, 0, 0 of `lowmem_reserve_ratio`. Call it again
    /// when memory is added or removed. Zones of one kind in a node share what one zone of all
    /// their memory would have, each in proportion to its memory. Frames of 0 bytes change nothing.
    pub fn set_min_free_kbytes(&self, kbytes: usize, frame_bytes: usize) {
        if frame_bytes == 0 {
            return;
        }
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
            // The frames of each kind that the zones before this one manage.
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
                let part = watermark::ZonePart {
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

    /// Returns what buddyinfo and pagetypeinfo show of each zone, in the order of [`Nodes::zones`].
    pub fn snapshots(&self) -> impl Iterator<Item = ZoneSnapshot> + '_ {
        self.nodes
            .iter()
            .flat_map(|node| node.zones.iter().map(|zone| zone.snapshot(node.id)))
    }

    /// Tests every invariant of every zone. O(memory). No other CPU may be using them.
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
