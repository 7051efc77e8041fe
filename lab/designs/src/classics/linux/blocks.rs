//! How Linux 6.12 groups pages: which block a request gets, and what becomes of its page block.
//!
//! A request of a type takes the smallest block of its own lists. If there is none, it *claims*: it
//! looks at the largest foreign block first, and takes over its whole page block if that is free,
//! or if at least half of it is free or of a like mobility. If nothing can be claimed, it *steals*:
//! it takes the smallest foreign block, and leaves the page block its type. A request that keeps
//! apart claims whole page blocks only, and does not steal.
//!
//! Every try to claim a part of a page block raises the zone's marks for a while, the *boost*, so
//! that background reclaim frees more.
//!
//! Deciding and doing are apart: [`Blocks::search`] says what a request gets, and changes nothing.
//! So the decisions can be compared with those of a recorded host.
//!
//! CMA areas are not modelled: their blocks are movable ones.

use brickyard::block::Use;
use brickyard::check::Violation;
use brickyard::sync::{AtomicU32, AtomicUsize, GuardedU32, Ordering};
use brickyard::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

use super::rights::Rights;
use crate::classics::store::buddy::Buddy;
use crate::classics::store::grouping::{
    BlockRecord, End, Grouping, HighAtomic, PageBlocks, Regrouped,
};
use crate::classics::store::{Claimed, Fallback, Taken};

use MigrateType::{HighAtomic as High, Isolate, Movable, Reclaimable, Unmovable};

/// What a machine's administrator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How far the boost may raise the marks, in ten-thousandths of the high mark
    /// (`watermark_boost_factor`); 0 for no boost.
    pub boost_factor: usize,
    /// Whether requests keep page blocks apart until nothing else helps (`defrag_mode`, since
    /// 6.15).
    pub defrag_mode: bool,
}

impl Settings {
    /// Linux's defaults.
    pub const DEFAULT: Self = Self {
        boost_factor: 15_000,
        defrag_mode: false,
    };
}

/// How a bulk operation goes on after its last block. A new one begins with [`Mode::Normal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// With its own lists.
    #[default]
    Normal,
    /// With stealing: the lists of its own type and claims have given nothing.
    Steal,
}

/// How a block was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// On a list of its own type.
    Own,
    /// Among what is set aside for atomic requests.
    SetAside,
    /// All page blocks that it covers are taken over.
    ClaimWhole,
    /// The page block around it is taken over, since at least half of it is free or alike.
    ClaimPart,
    /// The rest of it stays on the lists of its type.
    Steal,
}

/// What a request gets: a free block, and what happens around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The free block to be split.
    pub frame: Frame,
    /// Its order.
    pub order: Order,
    /// The list that it is on.
    pub list: MigrateType,
    /// How it was found.
    pub way: Way,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// What was found.
    pub found: Option<Choice>,
    /// How often it tried to claim a part of a page block; each try raises the boost.
    pub boosts: u32,
}

/// What a zone remembers beside its free blocks, and tells its page sets. Each word is a hint or a
/// limit that takes effect soon; no other access depends on it.
#[derive(Debug)]
pub(crate) struct Condition {
    // 1 from the first request that found the zone below its high mark, until a drain of a page set
    // finds it above.
    below_high: AtomicU32,
    // 1 while background reclaim works.
    reclaiming: AtomicU32,
    // 1 from a boost until background reclaim is woken for it.
    to_be_woken: AtomicU32,
    boost: AtomicUsize,
    // What background reclaim will take off the boost at its end.
    boost_at_wake: AtomicUsize,
    // The high mark without boost, as last seen: it limits the boost.
    high: AtomicUsize,
    // In ten-thousandths of the high mark; 0 for no boost.
    boost_factor: usize,
}

impl Condition {
    const fn new(boost_factor: usize) -> Self {
        Self {
            below_high: AtomicU32::new(0),
            reclaiming: AtomicU32::new(0),
            to_be_woken: AtomicU32::new(0),
            boost: AtomicUsize::new(0),
            boost_at_wake: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            boost_factor,
        }
    }

    // Relaxed, in all of these: see `Condition`.

    pub(crate) fn is_below_high(&self) -> bool {
        self.below_high.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set_below_high(&self, below: bool) {
        self.below_high.store(u32::from(below), Ordering::Relaxed);
    }

    pub(crate) fn is_reclaiming(&self) -> bool {
        self.reclaiming.load(Ordering::Relaxed) != 0
    }

    /// Notes that background reclaim begins or ends. At its end the boost falls by what it was at
    /// the beginning.
    pub(crate) fn set_reclaiming(&self, reclaiming: bool) {
        if self.is_reclaiming() == reclaiming {
            return;
        }
        self.reclaiming
            .store(u32::from(reclaiming), Ordering::Relaxed);
        let boost = self.boost();
        if reclaiming {
            self.boost_at_wake.store(boost, Ordering::Relaxed);
        } else {
            let worked_off = self.boost_at_wake.load(Ordering::Relaxed);
            let left = boost.saturating_sub(worked_off);
            self.boost.store(left, Ordering::Relaxed);
        }
    }

    /// Returns by how many frames the marks are raised.
    pub(crate) fn boost(&self) -> usize {
        self.boost.load(Ordering::Relaxed)
    }

    /// Returns by how many frames the marks were raised when background reclaim began last.
    pub(crate) fn boost_at_wake(&self) -> usize {
        self.boost_at_wake.load(Ordering::Relaxed)
    }

    /// Notes the high mark without boost. If it has changed, the marks were computed anew, which
    /// ends the boost.
    pub(crate) fn see_high_mark(&self, high: usize) {
        if self.high.load(Ordering::Relaxed) != high {
            self.high.store(high, Ordering::Relaxed);
            self.boost.store(0, Ordering::Relaxed);
        }
    }

    /// Takes back the wish to wake background reclaim for a boost.
    pub(crate) fn take_wake(&self) -> bool {
        let wished = self.to_be_woken.load(Ordering::Relaxed) != 0;
        if wished {
            self.to_be_woken.store(0, Ordering::Relaxed);
        }
        wished
    }

    /// Raises the boost by a page block.
    fn raise(&self, managed: usize, block: usize, wakes: bool) {
        if self.boost_factor == 0 || 4 * block > managed {
            return;
        }
        let high = self.high.load(Ordering::Relaxed);
        let most = (high.saturating_mul(self.boost_factor) / 10_000).max(block);
        let boost = (self.boost() + block).min(most);
        self.boost.store(boost, Ordering::Relaxed);
        if wakes {
            self.to_be_woken.store(1, Ordering::Relaxed);
        }
    }
}

/// Page blocks with types, as in Linux 6.12 to 6.18.
#[derive(Debug)]
pub struct Blocks<'m> {
    types: PageBlocks<'m>,
    condition: Condition,
    // Bit n: the list of a type and order n has blocks. Written under the zone's lock, read by
    // anyone as a hint.
    lists: [AtomicU32; MigrateType::COUNT],
}

impl<'m> Blocks<'m> {
    /// Makes blocks of `order` over `span`, all movable. The boost is at most `boost_factor`
    /// ten-thousandths of the high mark.
    ///
    /// # Panics
    /// If there are fewer records than [`PageBlocks::blocks_in`] returns.
    #[must_use]
    pub const fn new(
        span: FrameRange,
        order: Order,
        records: &'m [BlockRecord],
        boost_factor: usize,
    ) -> Self {
        Self {
            types: PageBlocks::new(span, order, records, HighAtomic::SetAside),
            condition: Condition::new(boost_factor),
            lists: [const { AtomicU32::new(0) }; MigrateType::COUNT],
        }
    }

    /// Returns true if the lists of a type have a block of at least `order`. Without the lock, a
    /// hint.
    pub(crate) fn has_block(&self, kind: MigrateType, order: Order) -> bool {
        // Relaxed: see the field.
        self.lists[kind.index()].load(Ordering::Relaxed) >> order.get() != 0
    }

    pub(crate) const fn condition(&self) -> &Condition {
        &self.condition
    }

    pub(crate) fn order(&self) -> Order {
        self.types.page_block_order().unwrap_or(Order::HUGE)
    }

    /// Returns what a request of type `wanted` gets from the ordinary lists, as one of a bulk
    /// operation that is in this mode.
    #[must_use]
    pub fn search(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
        mode: Mode,
    ) -> Search {
        let mut boosts = 0;
        if order > buddy.max_order() {
            return Search {
                found: None,
                boosts,
            };
        }
        let own = || Self::smallest(buddy, self.list_for(wanted), order, Way::Own);
        let found = match mode {
            Mode::Normal => {
                own().or_else(|| self.find_claim(buddy, order, wanted, rights, &mut boosts))
            }
            Mode::Steal => None,
        };
        let found = found.or_else(|| match rights.any(Rights::KEEPS_APART) {
            true => None,
            false => self.find_theft(buddy, order, wanted),
        });
        Search { found, boosts }
    }

    /// Returns what a request gets that takes one block and no page set serves: as
    /// [`Blocks::search`], with what is set aside for those that may have it.
    #[must_use]
    pub fn search_direct(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
    ) -> Search {
        let set_aside = || Self::smallest(buddy, High, order, Way::SetAside);
        if rights.any(Rights::HIGH_ATOMIC)
            && let Some(found) = set_aside()
        {
            return Search {
                found: Some(found),
                boosts: 0,
            };
        }
        let mut search = self.search(buddy, order, wanted, rights, Mode::Normal);
        if search.found.is_none() && rights.any(Rights::OOM.and(Rights::NON_BLOCK)) {
            search.found = set_aside();
        }
        search
    }

    fn smallest(
        buddy: &Buddy<'_, Self>,
        list: MigrateType,
        order: Order,
        way: Way,
    ) -> Option<Choice> {
        let (frame, order) = buddy.smallest(list, order)?;
        Some(Choice {
            frame,
            order,
            list,
            way,
        })
    }

    /// Returns true if a request should try to claim the page block of a free block of this order.
    fn is_worth_claiming(&self, order: Order, wanted: MigrateType) -> bool {
        order >= self.least_claim(wanted)
    }

    /// Looks for a page block to claim, largest free block first.
    fn find_claim(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
        boosts: &mut u32,
    ) -> Option<Choice> {
        let least = match rights.any(Rights::KEEPS_APART) {
            true => order.max(self.order()),
            false => order,
        };
        let orders = least.up_to(buddy.max_order()).rev();
        for order in orders.take_while(|&order| self.is_worth_claiming(order, wanted)) {
            let Some((frame, list)) = self.first_foreign(buddy, order, wanted) else {
                continue;
            };
            let whole = order >= self.order();
            *boosts += u32::from(!whole);
            if whole || self.is_claimable(buddy, frame, wanted) {
                return Some(Choice {
                    frame,
                    order,
                    list,
                    way: if whole {
                        Way::ClaimWhole
                    } else {
                        Way::ClaimPart
                    },
                });
            }
        }
        None
    }

    /// Returns the first block of this order on the first of the fallback lists that has one.
    fn first_foreign(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<(Frame, MigrateType)> {
        let mut lists = self.fallbacks(wanted).iter();
        lists.find_map(|&list| Some((buddy.first_of(order, list)?, list)))
    }

    /// Looks for a block to steal, smallest first.
    fn find_theft(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Choice> {
        order.up_to(buddy.max_order()).find_map(|order| {
            let (frame, list) = self.first_foreign(buddy, order, wanted)?;
            Some(Choice {
                frame,
                order,
                list,
                way: Way::Steal,
            })
        })
    }

    /// Returns true if at least half of the page block of `frame` is free, or in use by pages that
    /// are alike to those wanted. Frames in page sets are neither.
    fn is_claimable(&self, buddy: &Buddy<'_, Self>, frame: Frame, wanted: MigrateType) -> bool {
        let block = self.types.block_around(buddy, frame);
        if block.len() < self.order().frames() {
            // The zone has only a part of it.
            return false;
        }
        let (mut free, mut movable) = (0, 0);
        for (first, state) in buddy.table().heads(block) {
            let part = FrameRange::of_block(first, state.order).intersection(block);
            match state.usage {
                Use::Free => free += part.len(),
                Use::Allocated if state.kind == Movable => movable += part.len(),
                _ => {}
            }
        }
        let alike = match (wanted, self.types.kind(frame)) {
            (Movable, _) => movable,
            // An unmovable page block has unknown contents; of a movable one, the rest is unmovable
            // or reclaimable.
            (_, Movable) => block.len() - free - movable,
            _ => 0,
        };
        free + alike >= block.len() / 2
    }

    /// Takes what was chosen.
    pub(crate) fn carry_out(
        &self,
        buddy: &Buddy<'_, Self>,
        choice: &Choice,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken> {
        let &Choice { frame, list, .. } = choice;
        let fell_back = |claimed| {
            Some(Fallback {
                order: choice.order,
                from: list,
                claimed,
            })
        };
        let (frame, fallback) = match choice.way {
            Way::Own | Way::SetAside => {
                buddy.break_into(frame, order, wanted, list);
                (frame, None)
            }
            Way::Steal => {
                buddy.break_into(frame, order, wanted, list);
                (frame, fell_back(Claimed::No))
            }
            Way::ClaimWhole => {
                self.claim(FrameRange::of_block(frame, choice.order), wanted);
                buddy.break_into(frame, order, wanted, wanted);
                (frame, fell_back(Claimed::Yes))
            }
            Way::ClaimPart => {
                self.retype(buddy, frame, wanted);
                let (smallest, _) = buddy.smallest(wanted, order)?;
                buddy.break_into(smallest, order, wanted, wanted);
                (smallest, fell_back(Claimed::Yes))
            }
        };
        Some(Taken { frame, fallback })
    }

    /// Gives the page block of `frame` a type: its free blocks move to the lists of that type.
    pub fn retype(&self, buddy: &Buddy<'_, Self>, frame: Frame, kind: MigrateType) {
        let block = self.types.block_around(buddy, frame);
        buddy.move_free(block, kind);
        self.claim(block, kind);
    }

    /// Notes the tries of a search.
    pub(crate) fn note(&self, buddy: &Buddy<'_, Self>, search: &Search, rights: Rights) {
        for _ in 0..search.boosts {
            self.condition.raise(
                buddy.managed_frames(),
                self.order().frames(),
                rights.any(Rights::WAKES),
            );
        }
    }

    /// Takes one block of a bulk operation, and goes on to its next mode.
    pub(crate) fn take(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
        mode: &mut Mode,
    ) -> Option<Taken> {
        let search = self.search(buddy, order, wanted, rights, *mode);
        self.note(buddy, &search, rights);
        let choice = search.found?;
        if choice.way == Way::Steal {
            *mode = Mode::Steal;
        }
        self.carry_out(buddy, &choice, order, wanted)
    }

    /// Takes one block past the page sets.
    pub(crate) fn take_direct(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
        rights: Rights,
    ) -> Option<Taken> {
        let search = self.search_direct(buddy, order, wanted, rights);
        self.note(buddy, &search, rights);
        self.carry_out(buddy, &search.found?, order, wanted)
    }

    /// Gives back one page block that is set aside: that of the smallest free block in them. It
    /// takes the type `wanted`. Unless it is `forced`, one page block stays set aside. Returns
    /// false if none was given back.
    pub(crate) fn unreserve(
        &self,
        buddy: &Buddy<'_, Self>,
        wanted: MigrateType,
        forced: bool,
    ) -> bool {
        let spare = forced || self.types.set_aside() > 1;
        let smallest = buddy.smallest(High, Order::ZERO).filter(|_| spare);
        smallest.is_some_and(|(frame, _)| self.give_back(buddy, frame, wanted))
    }

    fn give_back(&self, buddy: &Buddy<'_, Self>, frame: Frame, wanted: MigrateType) -> bool {
        let block = self.types.block_around(buddy, frame);
        buddy.move_free(block, wanted);
        self.types.set_kind(block, wanted);
        if buddy.table().state(frame).order >= self.order() {
            // Whole page blocks may merge now.
            buddy.merge_again(block);
        }
        self.types.count_unreserved();
        true
    }

    /// Sets all page blocks of a block in use aside, unless so many frames are; see
    /// [`Grouping::reserve_high_atomic`]. A page block of which the zone has only a part is not.
    pub(crate) fn set_aside(
        &self,
        buddy: &Buddy<'_, Self>,
        frame: Frame,
        order: Order,
        most_frames: usize,
    ) {
        let room = self.types.set_aside() * self.order().frames() < most_frames;
        if !room || !self.types.is_enabled() || self.types.kind(frame) == High {
            return;
        }
        if order >= self.order() {
            self.types
                .set_kind(FrameRange::of_block(frame, order), High);
            return;
        }
        let block = self.types.block_around(buddy, frame);
        if block.len() == self.order().frames() {
            self.types.set_kind(block, High);
            buddy.move_free(block, High);
        }
    }

    /// Notes that a free block, which is on no list any more, is isolated as a target of
    /// compaction: if it covers at least half of a page block, all page blocks that it touches
    /// become movable, with what else is free in them.
    pub(crate) fn isolated_target(&self, buddy: &Buddy<'_, Self>, frame: Frame, order: Order) {
        let large = order.index() + 1 >= self.order().index();
        let first = frame.align_down(self.order());
        if !large || !self.types.is_enabled() {
            return;
        }
        let mut blocks = FrameRange::of_block(first, order.max(self.order()));
        while !blocks.is_empty() {
            let block = self.types.block_around(buddy, blocks.start);
            if !matches!(self.types.kind(blocks.start), Movable | High) {
                buddy.move_free(block, Movable);
                self.types.set_kind(block, Movable);
            }
            blocks.start = blocks.start.plus(self.order().frames());
        }
    }

    /// Reports the free page blocks to the host of a virtual machine, as far as that changes
    /// anything here: those that are not movable become so. They are taken off their list for it,
    /// like targets of compaction, and come back at the end of another. Each needs that more than
    /// `least` frames are free. Returns how many frames have changed their type.
    pub fn report(&self, buddy: &Buddy<'_, Self>, least: usize) -> usize {
        let mut frames = 0;
        if !self.types.is_enabled() {
            return frames;
        }
        for order in self.order().up_to(buddy.max_order()) {
            for kind in [Unmovable, Reclaimable] {
                while buddy.free_frames() > least + order.frames()
                    && let Some(first) = buddy.first_of(order, kind)
                {
                    let range = FrameRange::of_block(first, order);
                    buddy.move_free(range, Movable);
                    self.types.set_kind(range, Movable);
                    frames += range.len();
                }
            }
        }
        frames
    }

    /// Returns the order from which on a request of type `wanted` claims page blocks of other
    /// types.
    pub(crate) fn least_claim(&self, wanted: MigrateType) -> Order {
        match wanted {
            Movable => Order::new(self.order().get() / 2),
            _ => Order::ZERO,
        }
    }
}

impl Grouping for Blocks<'_> {
    const MOVES_TO: End = End::Tail;
    const ADDS_TO: Option<End> = Some(End::Tail);
    const FREES_BY_BLOCK: bool = true;
    const CACHES_BLOCKS: bool = true;

    fn page_block_order(&self) -> Option<Order> {
        self.types.page_block_order()
    }

    #[inline]
    fn list_for(&self, wanted: MigrateType) -> MigrateType {
        self.types.list_for(wanted)
    }

    #[inline]
    fn list_on_free(&self, frame: Frame, recorded: MigrateType) -> MigrateType {
        self.types.list_on_free(frame, recorded)
    }

    fn fallbacks(&self, wanted: MigrateType) -> &'static [MigrateType] {
        if !self.types.is_enabled() {
            return &[];
        }
        match wanted {
            Unmovable => &[Reclaimable, Movable],
            Movable => &[Reclaimable, Unmovable],
            Reclaimable => &[Unmovable, Movable],
            High | Isolate => &[],
        }
    }

    fn fall_back(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken> {
        self.take(buddy, order, wanted, Rights::WAKES, &mut Mode::Normal)
    }

    /// From the size of a page block up, only blocks of one type merge, or those of ordinary types.
    #[inline]
    fn may_merge(&self, first: Frame, buddy: Frame, order: Order) -> bool {
        if order < self.order() {
            return true;
        }
        let (kind, other) = (self.types.kind(first), self.types.kind(buddy));
        kind == other || (kind != High && other != High)
    }

    #[inline]
    fn lists_changed(&self, kind: MigrateType, orders: &GuardedU32) {
        let (shown, orders) = (&self.lists[kind.index()], orders.get());
        // Relaxed: see the field.
        if shown.load(Ordering::Relaxed) != orders {
            shown.store(orders, Ordering::Relaxed);
        }
    }

    fn joined(&self, range: FrameRange, kind: MigrateType) {
        if range.len() >= self.order().frames() && self.types.is_enabled() && kind != Isolate {
            self.types.set_kind(range, kind);
        }
    }

    /// To the tail if the buddy of what it would merge to next is free: then that merge is likely.
    #[inline]
    fn end_for(&self, buddy: &Buddy<'_, Self>, first: Frame, order: Order) -> End {
        let (Some(above), true) = (order.up(), order.index() + 1 < buddy.max_order().index())
        else {
            return End::Head;
        };
        let parent = first.align_down(above);
        let state = buddy.table().state(parent.buddy(above));
        let is_near = state.usage == Use::Free && state.order == above;
        if is_near { End::Tail } else { End::Head }
    }

    /// One hundredth of the zone, rounded up to page blocks; none if that is less than one.
    fn most_set_aside(&self, managed: usize) -> usize {
        let (share, block) = (managed / 100, self.order().frames());
        if share < block {
            return 0;
        }
        share.next_multiple_of(block)
    }

    fn claim(&self, blocks: FrameRange, wanted: MigrateType) {
        self.types.set_kind(blocks, wanted);
    }

    fn block_type(&self, frame: Frame) -> Option<MigrateType> {
        self.types.block_type(frame)
    }

    fn holds_back(&self, kind: MigrateType) -> bool {
        kind == High
    }

    fn resized(&self, managed: usize) -> Regrouped {
        self.types.resized(managed)
    }

    fn dedicate(&self, buddy: &Buddy<'_, Self>, frame: Frame, kind: Mobility) {
        let whole = buddy
            .table()
            .block_of(frame, buddy.max_order())
            .is_some_and(|(_, state)| state.usage == Use::Free && state.order >= self.order());
        if self.types.is_enabled() && self.types.kind(frame) != High && !whole {
            let block = self.types.block_around(buddy, frame);
            self.types.set_kind(block, kind.into());
            buddy.move_free(block, kind.into());
        }
    }

    fn reserve_high_atomic(&self, buddy: &Buddy<'_, Self>, frame: Frame, most_frames: usize) {
        self.set_aside(buddy, frame, Order::ZERO, most_frames);
    }

    fn unreserved(&self) -> usize {
        self.types.unreserved()
    }

    fn unreserve_high_atomic(&self, buddy: &Buddy<'_, Self>, request: &Request) -> bool {
        let wanted = request.mobility.into();
        match buddy.limit_of(request) {
            None => self.unreserve(buddy, wanted, true),
            Some(limit) => buddy
                .below(High, request.order, limit)
                .is_some_and(|frame| self.give_back(buddy, frame, wanted)),
        }
    }

    fn check(&self, buddy: &Buddy<'_, Self>) -> Result<(), Violation> {
        self.types.check_set_aside(buddy.span())
    }
}
