//! The buddy store (Knuth's binary buddies, as in Linux): free blocks on lists by order and type,
//! split when taken, merged when freed.
//!
//! All of it runs under the zone's lock. Taking a block costs at most one split per order, freeing
//! it at most one merge per order.
//!
//! - Invariant `on-its-list`: a block is in state `Free` with an order and a type exactly if it is
//!   on the list of that order and type.
//! - Invariant `fully-merged`: of two free buddies of one order, one is isolated and the other not.
//! - Invariant `lists-summed`: the free counters are the sums over the lists.

mod check;
mod ranges;

use brickyard::sync::{AtomicUsize, GuardedU32, Ordering};

use super::frames::{FrameList, FrameTable};
use super::grouping::{End, Grouping};
use super::{Claimed, Fallback, Merged, Taken};
use brickyard::block::{FreeTable, State, Use};
use brickyard::isolation::Isolation;
use brickyard::{
    Context, Frame, FrameRange, FreeError, MigrateType, Mobility, Order, RangeError, Request,
};

/// A buddy store over caller-supplied records.
///
/// Metadata: 12 bytes per frame ([`FrameRecord`](super::frames::FrameRecord)), 4 bytes per page
/// block with [`PageBlocks`](super::grouping::PageBlocks), and about 1.3 KiB of lists. The lists
/// come first: they share a line with what is before the store.
#[derive(Debug)]
#[repr(C)]
pub struct Buddy<'m, G> {
    lists: [[FrameList; MigrateType::COUNT]; Order::COUNT],
    // Bit n: the list of order n is not empty.
    nonempty: [GuardedU32; MigrateType::COUNT],
    // Frames on the lists of each type. Written under the zone's lock, read by anyone as a hint.
    free: [AtomicUsize; MigrateType::COUNT],
    // As `free`: all frames added, less those reserved.
    managed: AtomicUsize,
    table: FrameTable<'m>,
    max_order: Order,
    grouping: G,
    isolation: Isolation,
}

impl<'m, G: Grouping> Buddy<'m, G> {
    /// Makes an empty store: no frame is memory yet, see [`Buddy::add`].
    ///
    /// # Panics
    /// If page blocks are larger than the largest block.
    #[must_use]
    pub fn new(table: FrameTable<'m>, max_order: Order, grouping: G) -> Self {
        assert!(
            grouping.page_block_order() <= Some(max_order),
            "a page block is at most a block of the highest order"
        );
        let isolation = Isolation::new(table.span().start.number());
        Self {
            lists: Default::default(),
            nonempty: Default::default(),
            free: Default::default(),
            managed: AtomicUsize::default(),
            table,
            max_order,
            grouping,
            isolation,
        }
    }

    fn list(&self, order: Order, kind: MigrateType) -> &FrameList {
        &self.lists[order.index()][kind.index()]
    }

    fn free_of(&self, kind: MigrateType) -> usize {
        // Relaxed: exact under the zone's lock, else a hint.
        self.free[kind.index()].load(Ordering::Relaxed)
    }

    fn set_free_of(&self, kind: MigrateType, frames: usize) {
        // Relaxed: only written under the zone's lock.
        self.free[kind.index()].store(frames, Ordering::Relaxed);
    }

    fn set_managed(&self, frames: usize) {
        // Relaxed: only written under the zone's lock.
        self.managed.store(frames, Ordering::Relaxed);
    }

    /// Puts a block at the head of a list.
    fn insert(&self, frame: Frame, order: Order, kind: MigrateType) {
        self.insert_at(frame, order, kind, End::Head);
    }

    /// Puts a block on a list.
    fn insert_at(&self, frame: Frame, order: Order, kind: MigrateType, end: End) {
        self.table
            .set_state(frame, State::new(Use::Free, order, kind));
        let list = self.list(order, kind);
        match end {
            End::Head => list.push_front(&self.table, frame),
            End::Tail => list.push_back(&self.table, frame),
        }
        let nonempty = &self.nonempty[kind.index()];
        nonempty.set(nonempty.get() | 1 << order.get());
        self.grouping.lists_changed(kind, nonempty);
        self.set_free_of(kind, self.free_of(kind) + order.frames());
    }

    /// Takes a free block off its list. Its record is still `Free`; the caller writes the new
    /// state.
    fn unlink(&self, frame: Frame, order: Order, kind: MigrateType) {
        debug_assert_eq!(
            self.table.state(frame),
            State::new(Use::Free, order, kind),
            "on-its-list"
        );
        let list = self.list(order, kind);
        list.remove(&self.table, frame);
        if list.is_empty() {
            let nonempty = &self.nonempty[kind.index()];
            nonempty.set(nonempty.get() & !(1 << order.get()));
            self.grouping.lists_changed(kind, nonempty);
        }
        self.set_free_of(kind, self.free_of(kind) - order.frames());
    }

    /// Returns the first block on a list.
    pub(crate) fn first_of(&self, order: Order, kind: MigrateType) -> Option<Frame> {
        self.list(order, kind).iter(&self.table).next()
    }

    /// Iterates over the blocks on a list from its head, where blocks are taken from.
    pub(crate) fn blocks_on(
        &self,
        order: Order,
        kind: MigrateType,
    ) -> impl Iterator<Item = Frame> + '_ {
        self.list(order, kind).iter(&self.table)
    }

    /// Iterates over the blocks on a list from its tail.
    pub(crate) fn blocks_from_tail(
        &self,
        order: Order,
        kind: MigrateType,
    ) -> impl Iterator<Item = Frame> + '_ {
        self.list(order, kind).iter_back(&self.table)
    }

    /// Turns a list until the block at `frame`, which is on it, is at this end. The blocks between
    /// it and that end follow each other at the other end, in their order.
    pub(crate) fn turn(&self, order: Order, kind: MigrateType, frame: Frame, end: End) {
        let list = self.list(order, kind);
        match end {
            End::Head => list.turn_to_head(&self.table, frame),
            End::Tail => list.turn_to_tail(&self.table, frame),
        }
    }

    /// Returns the smallest free block of a type, of at least `order`.
    pub(crate) fn smallest(&self, kind: MigrateType, order: Order) -> Option<(Frame, Order)> {
        let orders = self.nonempty[kind.index()].get() >> order.get();
        if orders == 0 {
            return None;
        }
        let found = Order::new(order.get() + orders.trailing_zeros() as u8);
        Some((self.first_of(found, kind)?, found))
    }

    /// Returns the largest free block of a type, of at least `order`.
    pub(crate) fn largest(&self, kind: MigrateType, order: Order) -> Option<(Frame, Order)> {
        let orders = self.nonempty[kind.index()].get() >> order.get();
        if orders == 0 {
            return None;
        }
        let found = Order::new(order.get() + orders.ilog2() as u8);
        Some((self.first_of(found, kind)?, found))
    }

    /// Takes the free block at `first` off its list and splits it down to `order`; the rest goes to
    /// the lists of type `rest`. Returns the block's state before.
    fn split(&self, first: Frame, order: Order, rest: MigrateType) -> State {
        let state = self.table.state(first);
        self.unlink(first, state.order, state.kind);
        let mut size = state.order;
        while size > order
            && let Some(half) = size.down()
        {
            self.insert(first.plus(half.frames()), half, rest);
            size = half;
        }
        state
    }

    /// Takes the start of the free block at `frame` for a request of type `wanted`; the rest goes
    /// to the lists of type `rest`.
    pub(crate) fn break_into(
        &self,
        frame: Frame,
        order: Order,
        wanted: MigrateType,
        rest: MigrateType,
    ) -> Taken {
        let was = self.split(frame, order, rest);
        self.table
            .set_state(frame, State::new(Use::Allocated, order, wanted));
        let fallback = (was.kind != self.grouping.list_for(wanted)).then_some(Fallback {
            order: was.order,
            from: was.kind,
            claimed: Claimed::No,
        });
        Taken { frame, fallback }
    }

    /// Takes a block for a request of type `wanted`, from its own list or by the grouping's
    /// fallback.
    fn take_kind(&self, order: Order, wanted: MigrateType) -> Option<Taken> {
        if order > self.max_order {
            return None;
        }
        let own = self.grouping.list_for(wanted);
        match self.smallest(own, order) {
            Some((frame, _)) => Some(self.break_into(frame, order, wanted, own)),
            None => self.grouping.fall_back(self, order, wanted),
        }
    }

    /// Returns a free block of a type whose start, of size `order`, is wholly below `limit`;
    /// smallest first.
    pub(crate) fn below(&self, kind: MigrateType, order: Order, limit: Frame) -> Option<Frame> {
        let fits = |frame: &Frame| frame.plus(order.frames()) <= limit;
        let mut orders = order.up_to(self.max_order);
        orders.find_map(|found| self.list(found, kind).iter(&self.table).find(fits))
    }

    /// Finds a block for a request that must be wholly below `limit`: on its own type's lists
    /// first, then on the fallbacks.
    fn find_below(&self, request: &Request, limit: Frame) -> Option<(Frame, MigrateType)> {
        let wanted = self.grouping.type_of(request);
        let own = self.grouping.list_for(wanted);
        core::iter::once(&own)
            .chain(self.grouping.fallbacks(wanted))
            .filter(|&&kind| self.may_have(request, kind))
            .find_map(|&kind| Some((self.below(kind, request.order, limit)?, kind)))
    }

    /// Returns true if the request may be served from this list, and not only after held-back
    /// blocks are given back.
    fn may_have(&self, request: &Request, kind: MigrateType) -> bool {
        request.context != Context::MaySleep || !self.grouping.holds_back(kind)
    }

    /// Returns the request's limit, if it is below the span's end.
    pub(crate) fn limit_of(&self, request: &Request) -> Option<Frame> {
        request.limit.filter(|&limit| limit < self.table.span().end)
    }

    /// Merges a block, which is on no list and whose record is `Inner`, with its free buddies, and
    /// puts the result on a list.
    ///
    /// A block cut by the edge of an isolated range is freed half by half; the result returned is
    /// that of the half that `frame` is in.
    #[inline]
    fn merge(&self, frame: Frame, order: Order, recorded: MigrateType) -> Merged {
        self.merge_to(frame, order, recorded, None)
    }

    /// Merges a free block with its buddies, and puts it at this end of its list; `None` for the
    /// end that the grouping chooses.
    fn merge_to(
        &self,
        frame: Frame,
        order: Order,
        recorded: MigrateType,
        end: Option<End>,
    ) -> Merged {
        self.merge_or_keep(frame, order, recorded, end, &|_| None)
    }

    /// Merges a free block with its buddies. Before each look at a buddy it asks `keep` about the
    /// block so far. If that returns a type, the block goes on no list: it is in use, as if taken
    /// for that type.
    fn merge_or_keep<K: Fn(Merged) -> Option<MigrateType>>(
        &self,
        frame: Frame,
        order: Order,
        recorded: MigrateType,
        end: Option<End>,
        keep: &K,
    ) -> Merged {
        if let Some(half) = order.down()
            && self.isolation.cuts(FrameRange::of_block(frame, order))
        {
            self.merge_or_keep(frame.plus(half.frames()), half, recorded, end, keep);
            return self.merge_or_keep(frame, half, recorded, end, keep);
        }
        if let Some(half) = order.down()
            && self.grouping.page_block_order() < Some(order)
            && G::FREES_BY_BLOCK
        {
            let low = self.merge_or_keep(frame, half, recorded, end, keep);
            let high = self.merge_or_keep(frame.plus(half.frames()), half, recorded, end, keep);
            let joined = high.frame <= frame;
            return if joined { high } else { low };
        }
        let isolated = self.isolation.contains(frame);
        let kind = if isolated {
            MigrateType::Isolate
        } else {
            self.grouping.list_on_free(frame, recorded)
        };
        let (mut first, mut size) = (frame, order);
        while size < self.max_order {
            let so_far = Merged {
                frame: first,
                order: size,
                kind,
            };
            if let Some(wanted) = keep(so_far) {
                self.table
                    .set_state(first, State::new(Use::Allocated, size, wanted));
                return so_far;
            }
            let buddy = first.buddy(size);
            let state = self.table.state(buddy);
            let merges = state.usage == Use::Free
                && state.order == size
                && (state.kind == MigrateType::Isolate) == isolated
                && self.grouping.may_merge(first, buddy, size);
            let (true, Some(next)) = (merges, size.up()) else {
                break;
            };
            self.unlink(buddy, size, state.kind);
            self.table.set_state(buddy, State::INNER);
            if state.kind != kind {
                self.grouping
                    .joined(FrameRange::of_block(buddy, size), kind);
            }
            first = first.min(buddy);
            size = next;
        }
        let end = end.unwrap_or_else(|| self.grouping.end_for(self, first, size));
        self.insert_at(first, size, kind, end);
        Merged {
            frame: first,
            order: size,
            kind,
        }
    }

    /// Cuts the aligned part `part` of `order` out of the block in use at `first`: the other parts
    /// become blocks in use of their own.
    fn cut_out(&self, first: Frame, state: State, part: Frame, order: Order) {
        let (mut from, mut size) = (first, state.order);
        while size > order {
            // The loop ends at `order` at the latest, which is not below 0.
            let Some(half) = size.down() else { break };
            let upper = from.plus(half.frames());
            let piece = State::new(state.usage, half, state.kind);
            if part < upper {
                self.table.set_state(upper, piece);
            } else {
                self.table.set_state(from, piece);
                from = upper;
            }
            size = half;
        }
    }

    /// Moves every free block that starts in `range` to the lists of `kind`. Returns how many
    /// frames moved or were there already. Isolated blocks stay isolated.
    pub(crate) fn move_free(&self, range: FrameRange, kind: MigrateType) -> usize {
        let mut frames = 0;
        for (first, state) in self.free_in(range) {
            self.unlink(first, state.order, state.kind);
            self.insert_at(first, state.order, kind, G::MOVES_TO);
            frames += state.order.frames();
        }
        frames
    }

    /// Iterates over the free blocks that start in `range` and are not isolated.
    fn free_in(&self, range: FrameRange) -> impl Iterator<Item = (Frame, State)> + '_ {
        self.table
            .heads(range)
            .filter(|(_, state)| state.usage == Use::Free && state.kind != MigrateType::Isolate)
    }

    /// Merges every free block that starts in `range` once more, after a change of what may merge.
    pub(crate) fn merge_again(&self, range: FrameRange) {
        for (first, state) in self.free_in(range) {
            self.unlink(first, state.order, state.kind);
            self.table.set_state(first, State::INNER);
            self.merge(first, state.order, state.kind);
        }
    }

    /// Sets the number of managed frames: the grouping decides whether it is on, and if that
    /// changes, the free blocks move to the lists that follow.
    fn resize(&self, managed: usize) {
        self.set_managed(managed);
        if self.grouping.resized(managed) == super::grouping::Regrouped::No {
            return;
        }
        for (first, state) in self.free_in(self.table.span()) {
            self.unlink(first, state.order, state.kind);
            let kind = self.grouping.list_on_free(first, state.kind);
            self.insert(first, state.order, kind);
        }
    }
}

impl<G: Grouping> Buddy<'_, G> {
    /// Returns the frames that it has records for.
    pub fn span(&self) -> FrameRange {
        self.table.span()
    }

    /// Returns the highest order that it hands out.
    pub fn max_order(&self) -> Order {
        self.max_order
    }

    /// Returns the order of the unit in which mobility is grouped and huge pages are counted.
    pub fn page_block_order(&self) -> Order {
        let ungrouped = Order::HUGE.min(self.max_order);
        self.grouping.page_block_order().unwrap_or(ungrouped)
    }

    /// Returns how many frames are free and not isolated. Without the lock, a hint.
    pub fn free_frames(&self) -> usize {
        MigrateType::ALL
            .into_iter()
            .filter(|&kind| kind != MigrateType::Isolate)
            .map(|kind| self.free_of(kind))
            .sum()
    }

    /// Returns how many frames it manages: all that were added, less those reserved. Without the
    /// lock, a hint.
    pub fn managed_frames(&self) -> usize {
        // Relaxed: exact under the zone's lock, else a hint.
        self.managed.load(Ordering::Relaxed)
    }

    /// Returns the number of free blocks by order and type. O(lists).
    pub fn free_table(&self) -> FreeTable {
        let mut table = [[0; MigrateType::COUNT]; Order::COUNT];
        for (counts, lists) in table.iter_mut().zip(&self.lists) {
            for (count, list) in counts.iter_mut().zip(lists) {
                *count = list.len();
            }
        }
        table
    }

    /// Returns how many free frames are set aside for atomic requests: ordinary requests can have
    /// them only after a block is given back. Without the lock, a hint.
    pub fn set_aside_frames(&self) -> usize {
        let high = MigrateType::HighAtomic;
        if self.grouping.holds_back(high) {
            self.free_of(high)
        } else {
            0
        }
    }

    /// Returns the type of the page block that contains `frame`, where blocks have types.
    pub fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        if self.table.span().contains(frame) {
            self.grouping.block_type(frame)
        } else {
            None
        }
    }

    /// Gives the page block of `frame` to pages of this mobility. Does nothing where blocks have no
    /// types, or if the block is wholly free or kept for atomic requests.
    pub fn dedicate(&self, frame: Frame, kind: Mobility) {
        if self.table.span().contains(frame) {
            self.grouping.dedicate(self, frame, kind);
        }
    }

    /// Returns the block that contains `frame`: its first frame, use, order and type.
    pub fn block_of(&self, frame: Frame) -> Option<(Frame, State)> {
        self.table.block_of(frame, self.max_order)
    }

    /// Returns true if a free block can serve this request, be it from another type's list.
    pub fn can_serve(&self, request: &Request) -> bool {
        let wanted = self.grouping.type_of(request);
        if let Some(limit) = self.limit_of(request) {
            return self.find_below(request, limit).is_some();
        }
        let holds =
            |kind: MigrateType| self.nonempty[kind.index()].get() >> request.order.get() != 0;
        let fallbacks = self.grouping.fallbacks(wanted).iter().copied();
        request.order <= self.max_order
            && (holds(self.grouping.list_for(wanted))
                || fallbacks
                    .filter(|&kind| self.may_have(request, kind))
                    .any(holds))
    }

    /// Takes a block for `request`, within its limit. O(orders) without a limit; with one, O(free
    /// blocks) at worst.
    pub fn take(&self, request: &Request) -> Option<Taken> {
        let wanted = self.grouping.type_of(request);
        let order = request.order;
        if let Some(limit) = self.limit_of(request) {
            let (frame, kind) = self.find_below(request, limit)?;
            return Some(self.break_into(frame, order, wanted, kind));
        }
        let high = || {
            let (frame, _) = self.smallest(MigrateType::HighAtomic, order)?;
            Some(self.break_into(frame, order, wanted, MigrateType::HighAtomic))
        };
        match request.context {
            Context::MaySleep => self.take_kind(order, wanted),
            // High-atomic requests try the blocks kept for them first, other atomic requests try
            // these last.
            _ if request.is_high_atomic() => high().or_else(|| self.take_kind(order, wanted)),
            _ => self.take_kind(order, wanted).or_else(high),
        }
    }

    /// Takes exactly the block of `request`'s order at `frame`.
    ///
    /// # Errors
    /// [`RangeError`], if a part of it is not free, or is isolated.
    pub fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        let order = request.order;
        let range = FrameRange::of_block(frame, order);
        if order > self.max_order || !frame.is_aligned(order) {
            return Err(RangeError::Malformed);
        }
        if !self.table.span().contains(frame) || !self.table.span().covers(range) {
            let span = self.table.span();
            return Err(RangeError::OutsideSpan { span });
        }
        if self.isolation.overlaps(range) {
            return Err(RangeError::Isolated);
        }
        self.take_free(range)?;
        let wanted = self.grouping.type_of(request);
        self.table
            .set_state(frame, State::new(Use::Allocated, order, wanted));
        Ok(())
    }

    /// Takes the start of a block that has just become free for `request`, if that mixes no page
    /// block and takes nothing that is set aside. The caller has to check the limit.
    pub fn take_merged(&self, merged: Merged, request: &Request) -> Option<Taken> {
        let Merged { frame, order, kind } = merged;
        let wanted = self.grouping.type_of(request);
        if kind == MigrateType::Isolate || self.grouping.holds_back(kind) {
            return None;
        }
        let whole_blocks = request.order >= self.page_block_order();
        let foreign = kind != self.grouping.list_for(wanted);
        if foreign && !whole_blocks {
            return None;
        }
        let taken = self.break_into(frame, request.order, wanted, kind);
        if !foreign {
            return Some(taken);
        }
        let blocks = FrameRange::of_block(frame, request.order);
        self.grouping.claim(blocks, wanted);
        let fallback = Some(Fallback {
            order,
            from: kind,
            claimed: Claimed::Yes,
        });
        Some(Taken { fallback, ..taken })
    }

    /// Checks that all frames of `range` are in use.
    ///
    /// # Errors
    /// The error of freeing the first other frame.
    pub fn check_in_use(&self, range: FrameRange) -> Result<(), FreeError> {
        self.for_extents(range, |extent| {
            match extent.block.map(|(_, state)| state.usage) {
                Some(Use::Allocated) => Ok(()),
                Some(Use::Free | Use::Cached) => Err(FreeError::DoubleFree),
                Some(Use::Reserved | Use::Inner) | None => Err(FreeError::NotOwned),
            }
        })
    }

    /// Frees any aligned part of a block in use, and merges.
    ///
    /// # Errors
    /// [`FreeError`], if it is not an aligned part of a block in use; then nothing has changed.
    pub fn give(&self, frame: Frame, order: Order) -> Result<Merged, FreeError> {
        let kind = self.cut(frame, order)?;
        self.table.set_state(frame, State::INNER);
        Ok(self.merge(frame, order, kind))
    }

    /// Frees a block, or a part of one. Before each look at a buddy it asks `keep` about the block
    /// so far. If that returns a type, the block goes on no list: it is in use, as if taken for
    /// that type.
    ///
    /// # Errors
    /// The errors of [`Buddy::give`].
    pub(crate) fn give_or_keep(
        &self,
        frame: Frame,
        order: Order,
        keep: &impl Fn(Merged) -> Option<MigrateType>,
    ) -> Result<Merged, FreeError> {
        let kind = self.cut(frame, order)?;
        self.table.set_state(frame, State::INNER);
        Ok(self.merge_or_keep(frame, order, kind, None, keep))
    }

    /// Makes any aligned part of a block in use a block in use of its own. Returns the type that it
    /// was taken for.
    ///
    /// # Errors
    /// The errors of [`Buddy::give`].
    pub(crate) fn cut(&self, frame: Frame, order: Order) -> Result<MigrateType, FreeError> {
        let (first, state) = self.block_of(frame).ok_or(FreeError::NotOwned)?;
        match state.usage {
            Use::Free | Use::Cached => return Err(FreeError::DoubleFree),
            Use::Inner | Use::Reserved => return Err(FreeError::NotOwned),
            Use::Allocated => {}
        }
        if order > state.order || !frame.is_aligned(order) {
            return Err(FreeError::WrongOrder {
                allocated: state.order,
            });
        }
        self.cut_out(first, state, frame, order);
        self.table
            .set_state(frame, State::new(Use::Allocated, order, state.kind));
        Ok(state.kind)
    }

    /// Returns true if `frame` is in an isolated range. Without the lock, a hint.
    #[inline]
    pub fn is_isolated(&self, frame: Frame) -> bool {
        self.isolation.contains(frame)
    }

    /// Keeps the page block of `frame` for atomic requests of order 1 and up, unless `most_frames`
    /// are kept already.
    pub fn reserve_high_atomic(&self, frame: Frame, most_frames: usize) {
        self.grouping.reserve_high_atomic(self, frame, most_frames);
    }

    /// Gives back one page block that is kept for atomic requests and can serve `request`. Returns
    /// false if there is none.
    pub fn unreserve_high_atomic(&self, request: &Request) -> bool {
        self.grouping.unreserve_high_atomic(self, request)
    }

    /// Returns how often a page block kept for atomic requests was given back. May be read without
    /// the lock.
    pub fn unreserved(&self) -> usize {
        self.grouping.unreserved()
    }

    /// Returns how its blocks are grouped.
    #[inline]
    pub const fn grouping(&self) -> &G {
        &self.grouping
    }

    /// Returns the records.
    #[inline]
    pub fn table(&self) -> &FrameTable<'_> {
        &self.table
    }

    /// Returns the type of list on which a front keeps a frame that was taken for `recorded`.
    /// Called without the lock, for a frame that the caller owns.
    #[inline]
    pub fn list_on_free(&self, frame: Frame, recorded: MigrateType) -> MigrateType {
        self.grouping.list_on_free(frame, recorded)
    }

    /// Returns the type of list that a request of type `wanted` is served from first.
    #[inline]
    pub fn list_for(&self, wanted: MigrateType) -> MigrateType {
        self.grouping.list_for(wanted)
    }

    /// Frees a block from a front, and merges. The block is in state `Cached`.
    pub fn give_cached(&self, frame: Frame) -> Merged {
        let state = self.table.state(frame);
        debug_assert_eq!(state.usage, Use::Cached, "cached-once");
        self.table.set_state(frame, State::INNER);
        self.merge(frame, state.order, state.kind)
    }

    /// Takes one frame for a front, which keeps it in state `Cached`.
    pub fn take_cached(&self, wanted: MigrateType) -> Option<Taken> {
        let taken = self.take_kind(Order::ZERO, wanted)?;
        self.table
            .set_state(taken.frame, State::new(Use::Cached, Order::ZERO, wanted));
        Some(taken)
    }
}
