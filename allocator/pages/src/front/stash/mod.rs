//! The stash: per CPU, arrays of frame numbers that are to be had at once. The front of the default.
//!
//! A request pops a number, a free pushes one. Nothing is masked, since interrupts never come here: they go to the store, which needs no lock. Where slots are
//! [`Exclusive`](brickyard_sync::Exclusive) a hit has no atomic instruction in it; where they are [`Shared`](brickyard_sync::Shared) it takes a lock
//! that is nearly always free, and anyone can drain any stash by it; the owner waits while somebody does.
//!
//! There is an array for each order class (single frames, orders 1 to 3, whole page blocks) and mobility. A frame that is freed goes to the array of the
//! mobility that its neighbourhood shows, so that what cannot be moved is handed out again where it does no harm. An empty array of single frames is filled by words of the store,
//! a full one gives its colder three quarters back, sorted by block. It starts small, doubles whenever it runs empty or full, and is small again after a drain.
//!
//! **What a free is asked.** The store sees a block in a stash as one in use. So a free of what is free in the store, was never allocated, or is larger than the block
//! is refused at once; so is one of the block freed just before. A second free of a block that lies elsewhere in a stash, whole or in parts, is not noticed at once:
//! at the store, later, it is refused and [counted](crate::zone::Zone::refused_late), unless the block was handed out twice before.
//!
//! Invariant `cached-once`: what lies in a stash is a block in use to the store, of the order of its array, and lies in no other place.
//! Invariant `lent-to-somebody`: a block that is lent is one that some CPU fetches from, so that the loan ends with the next drain.

mod blocks;

use brickyard_sync::{AtomicU64, GuardedU32, Inside, Ordering, RawLock, Slot, SlotAccess};

use super::{Drained, Front, Patience, Reach, Returned};
use crate::bulk::Backing;
use crate::check::Violation;
use crate::platform::Pinned;
use crate::store::Store;
use crate::store::bitmap::Bitmap;
use crate::{Context, Frame, MigrateType, Mobility, Order, Platform, Request};
use blocks::Blocks;

/// Most single frames in an array, blocks of a small order, and page blocks.
const SINGLES: usize = 1024;
const SMALL: usize = 16;
const HUGE: usize = 8;

/// Orders 1 to 3 have arrays of their own.
const SMALL_ORDERS: usize = 3;

/// An array of single frames starts with this limit.
const FIRST_LIMIT: u32 = 64;

/// So many single frames are fetched at a time at most: what the slowest requests wait for.
const FETCH_MOST: usize = 320;

/// Batches of so many single frames go straight to the store.
const BULK: usize = 256;

const KINDS: usize = Mobility::ALL.len();

/// How much a CPU's stash holds at most, for each mobility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StashSizes {
    /// Single frames, at most 1024.
    pub singles: usize,
    /// Blocks of each of the orders 1, 2 and 3, at most 16.
    pub small: usize,
    /// Page blocks, at most 8.
    pub huge: usize,
}

impl StashSizes {
    /// All that there is room for: 4 MiB in single frames of 4 KiB, 16 MiB in page blocks.
    pub const DEFAULT: Self = Self {
        singles: SINGLES,
        small: SMALL,
        huge: HUGE,
    };
}

/// An array with a limit: pushed and popped at its end.
#[derive(Debug)]
struct Stack<const N: usize> {
    // Low half: how many entries. High half: how many were ever freed to it, modulo 2^32. One word, so that a free writes one. Written by whoever is
    // inside; others peek.
    word: AtomicU64,
    // How many it may hold now.
    limit: GuardedU32,
    entries: [GuardedU32; N],
}

/// One entry more, freed by somebody.
const FREED: u64 = 1 << 32 | 1;

impl<const N: usize> Stack<N> {
    const fn new() -> Self {
        assert!(N.is_power_of_two());
        Self {
            word: AtomicU64::new(0),
            limit: GuardedU32::new(0),
            entries: [const { GuardedU32::new(0) }; N],
        }
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        // Relaxed: exact for whoever is inside, else a hint.
        self.word.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.word() as u32
    }

    /// How many, for a drainer that goes in only if there are any; and how many were ever freed to it.
    fn peek(&self) -> (u32, u32) {
        // Acquire: pairs with the release in `set_word`: who sees that frames have left sees that their move has begun, and who sees that one was freed sees it.
        let word = self.word.load(Ordering::Acquire);
        (word as u32, (word >> 32) as u32)
    }

    #[inline(always)]
    fn set_word(&self, word: u64) {
        // Release: pairs with the acquire in `peek`.
        self.word.store(word, Ordering::Release);
    }

    fn set_len(&self, len: u32) {
        self.set_word(self.word() >> 32 << 32 | u64::from(len));
    }

    #[inline(always)]
    fn entry(&self, place: u32) -> &GuardedU32 {
        // A length never exceeds N; the mask only tells the compiler so.
        &self.entries[place as usize & (N - 1)]
    }

    #[inline(always)]
    fn pop(&self) -> Option<u32> {
        let word = self.word();
        let left = (word as u32).checked_sub(1)?;
        let entry = self.entry(left).get();
        self.set_word(word - 1);
        Some(entry)
    }

    /// Puts an entry at the end that was freed. There is room.
    #[inline(always)]
    fn push(&self, entry: u32) {
        let word = self.word();
        debug_assert!((word as u32 as usize) < N, "a full stack is emptied before");
        self.entry(word as u32).set(entry);
        self.set_word(word.wrapping_add(FREED));
    }

    /// Puts entries at the end that were freed. There is room for all of them.
    fn push_all(&self, entries: impl Iterator<Item = usize>) {
        let mut word = self.word();
        for entry in entries {
            self.entry(word as u32).set(entry as u32);
            word = word.wrapping_add(FREED);
        }
        debug_assert!(word as u32 as usize <= N, "a full stack is emptied before");
        self.set_word(word);
    }

    /// Is this the entry at the end?
    fn ends_with(&self, entry: u32) -> bool {
        // Below an empty stack there is what was popped last; that one is in use.
        let len = self.len();
        len > 0 && self.entry(len - 1).get() == entry
    }

    /// The limit; `least` where none was set yet.
    fn limit(&self, least: u32) -> u32 {
        self.limit.get().max(least)
    }

    fn entries(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        (0..self.len()).map(|place| self.entry(place).get())
    }

    /// Forgets the first `gone` entries.
    fn shift(&self, gone: u32) {
        let left = self.len() - gone;
        for place in 0..left {
            self.entry(place).set(self.entry(place + gone).get());
        }
        self.set_len(left);
    }
}

/// The stash of one CPU: 13 KiB.
#[derive(Debug)]
pub struct CpuStash {
    // The page blocks that single frames of each mobility are fetched from first.
    blocks: [Blocks; KINDS],
    singles: [Stack<SINGLES>; KINDS],
    small: [[Stack<SMALL>; KINDS]; SMALL_ORDERS],
    huge: [Stack<HUGE>; KINDS],
}

impl CpuStash {
    /// An empty stash.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            blocks: [const { Blocks::new() }; KINDS],
            singles: [const { Stack::new() }; KINDS],
            small: [const { [const { Stack::new() }; KINDS] }; SMALL_ORDERS],
            huge: [const { Stack::new() }; KINDS],
        }
    }

    /// How many blocks were ever freed to it, modulo 2^32.
    fn freed(&self) -> u32 {
        let singles = self.singles.iter().map(|stack| stack.peek().1);
        let small = self.small.iter().flatten().map(|stack| stack.peek().1);
        let huge = self.huge.iter().map(|stack| stack.peek().1);
        singles.chain(small).chain(huge).fold(0, u32::wrapping_add)
    }

    /// How many frames lie in it. A hint.
    fn frames(&self, huge: Order) -> usize {
        let singles = self.singles.iter().map(|stack| stack.peek().0 as usize);
        let small = self.small.iter().zip(1..).flat_map(|(stacks, order)| {
            stacks
                .iter()
                .map(move |stack| (stack.peek().0 as usize) << order)
        });
        let huge = self
            .huge
            .iter()
            .map(|stack| (stack.peek().0 as usize) << huge.get());
        singles.chain(small).chain(huge).sum()
    }

    /// Every block in it, with its order.
    fn blocks(&self, huge: Order) -> impl Iterator<Item = (u32, Order)> + '_ {
        let small = self.small.iter().zip(1..).flat_map(|(stacks, order)| {
            let entries = stacks.iter().flat_map(Stack::entries);
            entries.map(move |entry| (entry, Order::new(order)))
        });
        let singles = self.singles.iter().flat_map(Stack::entries);
        let singles = singles.map(|entry| (entry, Order::ZERO));
        let wide = self.huge.iter().flat_map(Stack::entries);
        singles
            .chain(small)
            .chain(wide.map(move |entry| (entry, huge)))
    }
}

impl Default for CpuStash {
    fn default() -> Self {
        Self::new()
    }
}

/// The array for a mobility.
#[inline]
const fn place_of(kind: MigrateType) -> usize {
    match kind {
        MigrateType::Movable => 1,
        MigrateType::Reclaimable => 2,
        MigrateType::Unmovable | MigrateType::HighAtomic | MigrateType::Isolate => 0,
    }
}

/// Which arrays an order belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Single,
    /// The order, less one.
    Small(usize),
    Huge,
    None,
}

/// A stash for each CPU, over caller-supplied slots of 13 KiB. A CPU without one, and every interrupt, goes straight to the store.
#[derive(Debug)]
pub struct Stash<'m, A> {
    slots: &'m [Slot<A, CpuStash>],
    sizes: StashSizes,
}

impl<'m, A: SlotAccess> Stash<'m, A> {
    /// Stashes for the CPUs `0..slots.len()`. Sizes above what there is room for are cut.
    #[must_use]
    pub const fn new(slots: &'m [Slot<A, CpuStash>], sizes: StashSizes) -> Self {
        const fn at_most(size: usize, most: usize) -> usize {
            if size < most { size } else { most }
        }
        Self {
            slots,
            sizes: StashSizes {
                singles: at_most(size_or_one(sizes.singles), SINGLES),
                small: at_most(sizes.small, SMALL),
                huge: at_most(sizes.huge, HUGE),
            },
        }
    }

    #[inline]
    const fn class(order: Order, huge: Order) -> Class {
        if order.get() == 0 {
            return Class::Single;
        }
        if order.get() == huge.get() {
            return Class::Huge;
        }
        if order.index() <= SMALL_ORDERS {
            return Class::Small(order.index() - 1);
        }
        Class::None
    }

    /// Calls `with` inside the caller's own slot; `None` in an interrupt, on a CPU without one, and where a visitor stands
    /// still in it. What is looked at in one call may be otherwise in the next: another task may have run on this CPU
    /// meanwhile, or the caller be on another.
    fn with_own<P: Platform, R>(
        &self,
        platform: &P,
        with: impl FnOnce(&CpuStash) -> R,
    ) -> Option<R> {
        self.with_own_by(platform, |slot| slot.enter(|| platform.relax()), with)
    }

    /// The same where it can be had at once: for hits. A visitor is waited for on the longer way.
    #[inline(always)]
    fn with_own_now<P: Platform, R>(
        &self,
        platform: &P,
        with: impl FnOnce(&CpuStash) -> R,
    ) -> Option<R> {
        self.with_own_by(platform, Slot::try_enter, with)
    }

    /// The same, going in by `enter`.
    #[inline(always)]
    fn with_own_by<P: Platform, R>(
        &self,
        platform: &P,
        enter: impl FnOnce(&Slot<A, CpuStash>) -> Option<Inside<'_, A, CpuStash>>,
        with: impl FnOnce(&CpuStash) -> R,
    ) -> Option<R> {
        if platform.in_interrupt() {
            return None;
        }
        let pinned = Pinned::new(platform);
        let own = enter(self.slots.get(pinned.cpu)?)?;
        Some(with(&own))
    }

    /// The limit that an array of single frames starts with.
    fn first_limit(&self) -> u32 {
        FIRST_LIMIT.min(self.sizes.singles as u32)
    }

    /// Twice the limit from now on, as far as there is room.
    fn grow(&self, stack: &Stack<SINGLES>) {
        let limit = stack.limit(self.first_limit());
        stack.limit.set((limit * 2).min(self.sizes.singles as u32));
    }

    /// Fills an array of single frames that is empty to half, or by as much as is fetched at a time, and takes one.
    #[cold]
    #[inline(never)]
    fn refill<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        request: &Request,
    ) -> Option<u32> {
        let kind = request.mobility.into();
        let place = place_of(kind);
        let stack = &own.singles[place];
        debug_assert_eq!(stack.len(), 0, "`cached-once`: filled from the start");
        let store = backing.unlocked();
        let half = (stack.limit(self.first_limit()) / 2).max(1) as usize;
        let wanted = half.min(FETCH_MOST);
        self.grow(stack);
        // They leave the store before they lie here.
        let _transit = backing.moves().begin(backing.platform().cpu());
        let blocks = &own.blocks[place];
        let mut len = 0;
        let mut keep = |offset: usize, mut bits: u64| {
            // From the top, so that they are handed out upwards.
            if bits == !0 {
                for bit in (0..u64::BITS).rev() {
                    stack.entry(len).set(offset as u32 + bit);
                    len += 1;
                }
                return;
            }
            while bits != 0 {
                let bit = bits.ilog2();
                stack.entry(len).set(offset as u32 + bit);
                len += 1;
                bits &= !(1 << bit);
            }
        };
        let mut taken = 0;
        while taken < wanted
            && let Some(block) = blocks.fullest(store, kind)
        {
            let more = store.take_singles_from(block, kind, wanted - taken, &mut keep);
            if more == 0 {
                // Others were faster, or a part of it is just being isolated: elsewhere then.
                break;
            }
            taken += more;
        }
        if taken < wanted {
            let loan = blocks.loan(store, kind, self.slots.len());
            store.take_singles(request, wanted - taken, loan, |offset, bits| {
                blocks.adopt(store, kind, store.block_at(offset));
                keep(offset, bits);
            });
        }
        stack.set_len(len);
        stack.pop()
    }

    /// Gives the colder three quarters of a full array back.
    #[cold]
    #[inline(never)]
    fn flush<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        place: usize,
    ) {
        let stack = &own.singles[place];
        let most = self.sizes.singles as u32;
        if stack.limit.get() == 0 {
            stack.limit.set(self.first_limit());
            return;
        }
        if stack.limit.get() < most {
            self.grow(stack);
            if stack.len() < stack.limit.get() {
                return;
            }
        }
        let leaving = (stack.len() * 3 / 4).max(1);
        // They leave here before they are in the store.
        let _transit = backing.moves().begin(backing.platform().cpu());
        let entry_at = |place| stack.entry(place).get();
        let store = backing.unlocked();
        let kind = Mobility::ALL[place].into();
        let mut borrowing = own.blocks[place].borrowing(store, kind);
        store.give_cached(leaving, entry_at, &mut borrowing);
        stack.shift(leaving);
    }

    /// Takes a page block inside the slot, after fetching half as many as there is room for if there is none.
    fn take_huge<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        request: &Request,
    ) -> Option<u32> {
        let kind = request.mobility.into();
        let stack = &own.huge[place_of(kind)];
        // Fetched only while there is none, in the same visit: another task of this CPU may have freed some since the
        // caller looked last.
        let at_hand = stack.pop();
        let wanted = self.sizes.huge / 2;
        if at_hand.is_some() || wanted == 0 {
            return at_hand;
        }
        // They leave the store before they lie here.
        let _transit = backing.moves().begin(backing.platform().cpu());
        let mut len = 0;
        backing.unlocked().take_page_blocks(kind, wanted, |offset| {
            stack.entry(len).set(offset as u32);
            len += 1;
        });
        stack.set_len(len);
        stack.pop()
    }

    /// Gives half of the page blocks of a full array back.
    fn flush_huge<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        stack: &Stack<HUGE>,
    ) {
        let leaving = stack.len().div_ceil(2);
        // They leave here before they are in the store.
        let _transit = backing.moves().begin(backing.platform().cpu());
        let cold = stack.entries().take(leaving as usize);
        let store = backing.unlocked();
        store.give_page_blocks(cold.map(|entry| entry as usize));
        stack.shift(leaving);
    }

    /// Takes one frame inside the slot, after a refill if need be.
    #[inline]
    fn take_single<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        request: &Request,
    ) -> Option<u32> {
        let stack = &own.singles[place_of(request.mobility.into())];
        match stack.pop() {
            Some(entry) => Some(entry),
            None => self.refill(backing, own, request),
        }
    }

    /// Keeps a freed single frame inside the slot.
    #[inline]
    fn give_single<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        offset: usize,
    ) -> Returned {
        let place = backing.unlocked().single_in_use(offset);
        let Some(place) = place.filter(|&place| place < KINDS) else {
            return Returned::ToStore;
        };
        let stack = &own.singles[place];
        if stack.ends_with(offset as u32) {
            return Returned::FreeAlready;
        }
        if stack.len() >= stack.limit.get() {
            self.flush(backing, own, place);
        }
        stack.push(offset as u32);
        Returned::Kept
    }

    /// Keeps a freed block of another order, if it is one and there is room.
    #[inline(never)]
    fn give_other<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        own: &CpuStash,
        offset: usize,
        order: Order,
    ) -> Returned {
        let store = backing.unlocked();
        if !store.is_block_in_use(offset, order) || store.is_isolated_near(offset) {
            return Returned::ToStore;
        }
        let place = place_of(store.mobility_of(offset));
        match Self::class(order, store.page_block_order()) {
            Class::Small(small) => keep(&own.small[small][place], offset, self.sizes.small),
            Class::Huge => {
                let stack = &own.huge[place];
                if stack.len() as usize == self.sizes.huge && !stack.ends_with(offset as u32) {
                    self.flush_huge(backing, stack);
                }
                keep(stack, offset, self.sizes.huge)
            }
            Class::Single | Class::None => Returned::ToStore,
        }
    }

    /// Empties a stash that is entered. Returns how many frames.
    fn drain_inside<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        inside: &Inside<'_, A, CpuStash>,
    ) -> usize {
        let store = backing.unlocked();
        let huge = store.page_block_order();
        inside.blocks.iter().for_each(|blocks| blocks.let_go(store));
        let frames = inside.frames(huge);
        if frames == 0 {
            return 0;
        }
        let _transit = backing.moves().begin(backing.platform().cpu());
        for stack in &inside.singles {
            store.give_cached(stack.len(), |place| stack.entry(place).get(), &mut ());
            stack.set_len(0);
            stack.limit.set(self.first_limit());
        }
        let give = |entry: u32, order: Order| {
            if store.give(store.frame_at(entry as usize), order).is_err() {
                store.refuse_late(order.frames());
            }
        };
        for (stacks, order) in inside.small.iter().zip(1..) {
            for stack in stacks {
                stack
                    .entries()
                    .for_each(|entry| give(entry, Order::new(order)));
                stack.set_len(0);
            }
        }
        for stack in &inside.huge {
            store.give_page_blocks(stack.entries().map(|entry| entry as usize));
            stack.set_len(0);
        }
        frames
    }

    /// Empties the slot of `cpu` from wherever the caller runs, if that is within its reach.
    fn drain_slot<L: RawLock, P: Platform>(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        cpu: usize,
        slot: &Slot<A, CpuStash>,
        reach: Reach,
        patience: &Patience,
    ) -> Drained {
        if reach == Reach::Own {
            // Whoever is interrupted may be in the middle of its stash.
            return Drained::default();
        }
        let platform = backing.platform();
        let huge = backing.unlocked().page_block_order();
        let holds_nothing = || slot.outside().frames(huge) == 0;
        let empty = |inside: Option<Inside<'_, A, CpuStash>>| match inside {
            Some(inside) => Drained::of(self.drain_inside(backing, &inside)),
            None if holds_nothing() => Drained::default(),
            None => Drained::LEFT_OUT,
        };
        let mut drained = Drained::default();
        let mut drain_here = || {
            // Nor where a platform runs this in an interrupt.
            if platform.in_interrupt() {
                return;
            }
            drained = empty(patience.wait_for(cpu, platform, |waits, relax| {
                slot.enter_within(waits, relax)
            }));
        };
        let own = {
            let pinned = Pinned::new(platform);
            let own = pinned.cpu == cpu;
            if own {
                drain_here();
            }
            own
        };
        // A CPU that holds nothing is left in peace.
        if own || holds_nothing() {
            return drained;
        }
        if A::LENDS {
            let _pinned = Pinned::new(platform);
            return empty(patience.wait_for(cpu, platform, |waits, relax| {
                slot.visit_within(waits, relax)
            }));
        }
        if reach == Reach::All {
            patience.run_on(cpu, platform, &mut drain_here);
        }
        drained
    }
}

const fn size_or_one(size: usize) -> usize {
    if size == 0 { 1 } else { size }
}

/// Puts a block into an array of up to `most`, if there is room.
fn keep<const N: usize>(stack: &Stack<N>, offset: usize, most: usize) -> Returned {
    if stack.ends_with(offset as u32) {
        return Returned::FreeAlready;
    }
    if stack.len() as usize >= most {
        return Returned::ToStore;
    }
    stack.push(offset as u32);
    Returned::Kept
}

impl<L: RawLock, P: Platform, A: SlotAccess> Front<Bitmap<'_>, L, P> for Stash<'_, A> {
    #[inline]
    fn serves(&self, order: Order, huge: Order) -> bool {
        Self::class(order, huge) != Class::None
    }

    #[inline(always)]
    fn keep(&self, backing: &Backing<Bitmap<'_>, L, P>, frame: Frame) -> bool {
        let store = backing.unlocked();
        let offset = store.offset(frame);
        let kept = self.with_own_now(backing.platform(), |own| {
            let stack = own.singles.get(store.plain_single_in_use(offset)?)?;
            let len = stack.len();
            // Where it is empty, what is compared is none of its entries; then the longer way finds out.
            let last = stack.entry(len.wrapping_sub(1)).get();
            if len >= stack.limit.get() || last == offset as u32 {
                return None;
            }
            stack.push(offset as u32);
            Some(())
        });
        kept.flatten().is_some()
    }

    #[inline(always)]
    fn hit(&self, backing: &Backing<Bitmap<'_>, L, P>, request: &Request) -> Option<Frame> {
        let store = backing.unlocked();
        if request.context == Context::Interrupt {
            return None;
        }
        if request.order == Order::ZERO {
            let place = request.mobility as usize;
            let hit = self.with_own_now(backing.platform(), |own| own.singles[place].pop());
            return hit.flatten().map(|entry| store.frame_at(entry as usize));
        }
        let place = place_of(request.mobility.into());
        let hit = self.with_own_now(backing.platform(), |own| {
            match Self::class(request.order, store.page_block_order()) {
                Class::Small(small) => own.small[small][place].pop(),
                Class::Huge => own.huge[place].pop(),
                Class::Single | Class::None => None,
            }
        });
        hit.flatten().map(|entry| store.frame_at(entry as usize))
    }

    #[inline]
    fn take(&self, backing: &Backing<Bitmap<'_>, L, P>, request: &Request) -> Option<Frame> {
        let store = backing.unlocked();
        if request.context == Context::Interrupt {
            // Whatever it has interrupted may be in the middle of the stash.
        } else if request.order == Order::ZERO {
            let own = |own: &CpuStash| self.take_single(backing, own, request);
            if let Some(entry) = self.with_own(backing.platform(), own) {
                return entry.map(|entry| store.frame_at(entry as usize));
            }
        } else if request.order == store.page_block_order() {
            let own = |own: &CpuStash| self.take_huge(backing, own, request);
            let entry = self.with_own(backing.platform(), own).flatten();
            if let Some(entry) = entry {
                return Some(store.frame_at(entry as usize));
            }
        } else if let Some(frame) = self.hit(backing, request) {
            return Some(frame);
        }
        store.take(request).map(|taken| taken.frame)
    }

    fn take_many(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        request: &Request,
        out: &mut [Frame],
    ) -> usize {
        let store = backing.unlocked();
        if request.context == Context::Interrupt {
            return store.take_frames(request, out);
        }
        let taken = self.with_own(backing.platform(), |own| {
            let stack = &own.singles[place_of(request.mobility.into())];
            let mut taken = 0;
            while taken < out.len() {
                let wanted = &mut out[taken..];
                let at_hand = (stack.len() as usize).min(wanted.len());
                if at_hand == 0 {
                    let Some(entry) = self.refill(backing, own, request) else {
                        break;
                    };
                    wanted[0] = store.frame_at(entry as usize);
                    taken += 1;
                    continue;
                }
                let left = stack.len() - at_hand as u32;
                for (slot, place) in wanted.iter_mut().zip((left..stack.len()).rev()) {
                    *slot = store.frame_at(stack.entry(place).get() as usize);
                }
                stack.set_len(left);
                taken += at_hand;
            }
            taken
        });
        taken.unwrap_or(0)
    }

    fn give(&self, backing: &Backing<Bitmap<'_>, L, P>, frame: Frame, order: Order) -> Returned {
        let offset = backing.unlocked().offset(frame);
        let given = if order == Order::ZERO {
            self.with_own(backing.platform(), |own| {
                self.give_single(backing, own, offset)
            })
        } else if backing.unlocked().span().contains(frame) {
            self.with_own(backing.platform(), |own| {
                self.give_other(backing, own, offset, order)
            })
        } else {
            None
        };
        given.unwrap_or(Returned::ToStore)
    }

    fn give_many(&self, backing: &Backing<Bitmap<'_>, L, P>, frames: &[Frame]) -> usize {
        let store = backing.unlocked();
        let kept = self.with_own(backing.platform(), |own| {
            let mut kept = 0;
            while let Some(&first) = frames.get(kept) {
                let (run, mobility) = store.plain_singles_in_use(&frames[kept..]);
                let stack = &own.singles[mobility];
                let room = stack.limit.get().saturating_sub(stack.len()) as usize;
                let run = run.min(room);
                let offset = store.offset(first);
                if run == 0 || stack.ends_with(offset as u32) {
                    if self.give_single(backing, own, offset) != Returned::Kept {
                        break;
                    }
                    kept += 1;
                    continue;
                }
                stack.push_all(
                    frames[kept..][..run]
                        .iter()
                        .map(|&frame| store.offset(frame)),
                );
                kept += run;
            }
            kept
        });
        kept.unwrap_or(0)
    }

    fn holds(&self, frames: usize) -> bool {
        // From here on the store is as quick, and nothing is copied twice.
        frames < BULK
    }

    fn serves_here(&self, backing: &Backing<Bitmap<'_>, L, P>) -> bool {
        let platform = backing.platform();
        let has_one = !platform.in_interrupt() && platform.cpu() < self.slots.len();
        // Somebody may stand still in it.
        has_one && (!A::LENDS || self.with_own(platform, |_| ()).is_some())
    }

    fn drain(
        &self,
        backing: &Backing<Bitmap<'_>, L, P>,
        reach: Reach,
        patience: &Patience,
    ) -> Drained {
        self.slots
            .iter()
            .enumerate()
            .map(|(cpu, slot)| self.drain_slot(backing, cpu, slot, reach, patience))
            .sum()
    }

    fn arrivals(&self) -> usize {
        let freed = self.slots.iter().map(|slot| slot.outside().freed());
        freed.fold(0, u32::wrapping_add) as usize
    }

    fn cached(&self, backing: &Backing<Bitmap<'_>, L, P>) -> usize {
        let huge = backing.unlocked().page_block_order();
        self.slots
            .iter()
            .map(|slot| slot.outside().frames(huge))
            .sum()
    }

    fn check(&self, backing: &Backing<Bitmap<'_>, L, P>) -> Result<usize, Violation> {
        let store = backing.unlocked();
        let huge = store.page_block_order();
        let mut frames = 0;
        for slot in self.slots {
            for (entry, order) in slot.outside().blocks(huge) {
                if !store.is_block_in_use(entry as usize, order) {
                    let frame = store.frame_at(entry as usize);
                    let found = "a block in a stash that is none to the store";
                    return Err(Violation::at("cached-once", found, frame));
                }
                frames += order.frames();
            }
        }
        for block in store.lent_blocks() {
            let mut slots = self.slots.iter().map(Slot::outside);
            if !slots.any(|own| own.blocks.iter().any(|blocks| blocks.contains(block))) {
                let frame = store.frame_at(block << huge.get());
                let found = "a block that is lent to nobody";
                return Err(Violation::at("lent-to-somebody", found, frame));
            }
        }
        Ok(frames)
    }
}
