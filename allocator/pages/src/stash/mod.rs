//! The stash: per-CPU arrays of frame numbers that are available at once. It is the default front.
//!
//! A request pops a number, a free pushes one. Nothing is masked, since interrupts never use the
//! stash: they go to the store, which needs no lock. Where slots are
//! [`Exclusive`](brickyard_sync::Exclusive), a hit has no atomic instruction. Where they are
//! [`Shared`](brickyard_sync::Shared), a hit takes a lock that is nearly always free. Any CPU can
//! take that lock to drain any stash; its owner uses the store meanwhile.
//!
//! There is an array for each order class (single frames, orders 1 to 5, whole page blocks) and
//! mobility. A freed frame goes to the array of the mobility that its neighbourhood shows. So
//! memory that cannot be moved is handed out again where it does no harm. An empty array of single
//! frames is filled by half, by words of the store, and one of larger blocks wholly. (Of orders 1
//! to 5 it gets no more than one page block has beside its whole words, or one such word.) A full
//! array gives back its colder three quarters, single frames sorted by block. An array of single
//! frames starts small, doubles whenever it runs empty or full, and is small again after a drain.
//! All arrays of a CPU together stay within its share of the zone's memory
//! ([`StashSizes::percent`]).
//!
//! **What a free checks.** To the store, a block in a stash is in use. A free of something that is
//! free in the store, was never allocated, or is larger than the block is refused at once. So is a
//! second free of the block freed just before. A second free of a block that lies elsewhere in a
//! stash, whole or in parts, is not noticed at once. When it reaches the store later it is refused
//! and [counted](crate::zone::Zone::refused_late), unless the block was handed out twice before.
//!
//! Invariant `cached-once`: a block in a stash is in use to the store, is of the order of its
//! array, and lies in no other place.
//!
//! Invariant `lent-to-somebody`: some CPU fetches from each block that is lent, so that the loan
//! ends with the next drain.

mod blocks;
mod cpu;
mod drain;
mod fill;
mod share;
mod stack;

use brickyard_sync::{AtomicUsize, Slot, SlotAccess};

use crate::bitmap::Bitmap;
use crate::check::Violation;
use crate::platform::PinGuard;
use crate::transit::Moves;
use crate::{Context, Frame, Mobility, Order, Platform, Request};
pub use cpu::CpuStash;
use cpu::{HUGE, SINGLES, SMALL, SMALL_ORDERS, place_of};
use stack::Stack;

/// Batches of at least this many single frames go straight to the store.
const BULK: usize = 256;

/// The most that stashes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StashSizes {
    /// Single frames of a CPU, for each mobility: at most 1024.
    pub singles: usize,
    /// Blocks of a CPU of each of the orders 1 to 5, for each mobility: at most 16.
    pub small: usize,
    /// Page blocks of a CPU, for each mobility: at most 8.
    pub huge: usize,
    /// Percent of the memory that the zone manages, in the stashes of all CPUs together. Each CPU
    /// that uses its stash has an equal share of it, but room for one single frame of each mobility
    /// at least. A CPU that came when there were fewer keeps more until it next fetches or gives
    /// back, or is drained. 100 and above: only the other sizes count.
    pub percent: usize,
}

impl StashSizes {
    /// The largest sizes: 4 MiB in single frames of 4 KiB, 16 MiB in page blocks, however small the
    /// memory is.
    pub const LARGEST: Self = Self {
        singles: SINGLES,
        small: SMALL,
        huge: HUGE,
        percent: 100,
    };
    /// As [`LARGEST`](Self::LARGEST), but at most 2 percent of the memory.
    pub const DEFAULT: Self = Self {
        percent: 2,
        ..Self::LARGEST
    };
}

/// What lies behind the stashes of a zone.
#[derive(Debug)]
pub(crate) struct Backing<'m, P> {
    pub(crate) store: Bitmap<'m>,
    pub(crate) platform: P,
    /// The frames in transit between a stash and the store.
    pub(crate) moves: Moves,
}

impl<P: Platform> Backing<'_, P> {
    /// Takes a block for `request` from the store, if that has `room` for so many frames.
    pub(crate) fn take_within(&self, request: &Request, room: usize) -> Option<Frame> {
        if room < request.order.frames() {
            return None;
        }
        // As in `Zone::pinned`.
        let _pinned = PinGuard::new(&self.platform);
        self.store.take(request)
    }
}

/// The outcome of offering a freed block to a stash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returned {
    /// The block was kept.
    Kept,
    /// The store must handle it: an isolated range, an interrupt, or not a block that may be freed
    /// like this at all.
    ToStore,
    /// The block lies in the stash already.
    FreeAlready,
}

/// The class of arrays that an order belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Single,
    /// The order, less one.
    Small(usize),
    Huge,
    None,
}

/// A stash for each CPU, over caller-supplied slots of 15 KiB. A CPU without one, and every
/// interrupt, goes straight to the store.
#[derive(Debug)]
pub struct Stash<'m, A> {
    slots: &'m [Slot<A, CpuStash>],
    sizes: StashSizes,
    // The number of CPUs whose arrays may hold something, see `share.rs`.
    users: AtomicUsize,
}

impl<'m, A: SlotAccess> Stash<'m, A> {
    /// Returns stashes for the CPUs `0..slots.len()`. Sizes above the room of a slot are cut.
    #[must_use]
    pub const fn new(slots: &'m [Slot<A, CpuStash>], sizes: StashSizes) -> Self {
        const fn at_most(size: usize, most: usize) -> usize {
            if size < most { size } else { most }
        }
        Self {
            slots,
            users: AtomicUsize::new(0),
            sizes: StashSizes {
                singles: at_most(size_or_one(sizes.singles), SINGLES),
                small: at_most(sizes.small, SMALL),
                huge: at_most(sizes.huge, HUGE),
                percent: sizes.percent,
            },
        }
    }

    #[inline]
    fn class(order: Order, store: &Bitmap<'_>) -> Class {
        if order == Order::ZERO {
            return Class::Single;
        }
        if order > store.max_order() {
            return Class::None;
        }
        if order == store.page_block_order() {
            return Class::Huge;
        }
        if order.index() <= SMALL_ORDERS {
            return Class::Small(order.index() - 1);
        }
        Class::None
    }

    /// Calls `with` inside the caller's own slot. Returns `None` in an interrupt, on a CPU without
    /// a slot, and while a visitor is inside: the owner then does without its slot, and waits for
    /// nobody. What one call sees may have changed by the next: another task may have run on this
    /// CPU meanwhile, or the caller may be on another CPU.
    fn with_own<P: Platform, R>(
        &self,
        platform: &P,
        with: impl FnOnce(&CpuStash) -> R,
    ) -> Option<R> {
        self.at_once(platform, |own| Some(with(own)))
    }

    /// As [`Stash::with_own`], for what may fail inside.
    #[inline(always)]
    fn at_once<P: Platform, R>(
        &self,
        platform: &P,
        with: impl FnOnce(&CpuStash) -> Option<R>,
    ) -> Option<R> {
        if platform.in_interrupt() {
            return None;
        }
        let pinned = PinGuard::new(platform);
        let own = self.slots.get(pinned.cpu)?.try_enter()?;
        with(&own)
    }

    /// Takes a single frame that lies in the caller's stash, if it can be entered at once.
    #[inline(always)]
    pub(crate) fn pop<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        mobility: Mobility,
    ) -> Option<Frame> {
        let pop = |own: &CpuStash| own.singles[mobility as usize].pop();
        let entry = self.at_once(&backing.platform, pop)?;
        Some(backing.store.frame_at(entry as usize))
    }

    /// As [`Stash::pop`], for a page block.
    #[inline(always)]
    pub(crate) fn pop_page_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        mobility: Mobility,
    ) -> Option<Frame> {
        let pop = |own: &CpuStash| own.huge[mobility as usize].pop();
        let entry = self.at_once(&backing.platform, pop)?;
        Some(backing.store.frame_at(entry as usize))
    }

    /// As [`Stash::pop`], for a block of `order`, if blocks of that order are kept.
    #[inline(always)]
    pub(crate) fn pop_small<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        order: Order,
        mobility: Mobility,
    ) -> Option<Frame> {
        let small = order.index().wrapping_sub(1);
        let entry = self.at_once(&backing.platform, |own| {
            own.small.get(small)?[mobility as usize].pop()
        })?;
        Some(backing.store.frame_at(entry as usize))
    }

    /// Takes a block for `request`: one that lies here, else one fetched from the store. A block of
    /// an order that is not fetched is taken from the store directly.
    ///
    /// A block that lies here passed the watermark when it was fetched. `room` says how many frames
    /// may leave the store now. Returns `None` if they are too few, or if the store has nothing.
    pub(crate) fn take<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        request: &Request,
        room: impl Fn() -> usize,
    ) -> Option<Frame> {
        if request.order != Order::ZERO {
            return self.take_block(backing, request, room);
        }
        if request.context != Context::Interrupt {
            // In an interrupt, the interrupted task may be in the middle of the stash.
            let here = self.with_own(&backing.platform, |own| {
                match own.singles[place_of(request.mobility.into())].pop() {
                    Some(entry) => Some(backing.store.frame_at(entry as usize)),
                    None => self.refill_if(backing, own, request, &room),
                }
            });
            if let Some(taken) = here {
                return taken;
            }
        }
        backing.take_within(request, room())
    }

    /// As [`Stash::take`], above order 0.
    #[inline(never)]
    fn take_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        request: &Request,
        room: impl Fn() -> usize,
    ) -> Option<Frame> {
        let place = place_of(request.mobility.into());
        let class = match request.context {
            Context::Interrupt => Class::None,
            _ => Self::class(request.order, &backing.store),
        };
        // Fetched in the visit that finds none: before another visit, another task of this CPU may
        // have freed some.
        let here = match class {
            Class::Small(small) => self.with_own(&backing.platform, |own| {
                let stack = &own.small[small][place];
                match stack.pop() {
                    Some(entry) => Some(Some(entry)),
                    None => self.refill_small(backing, own, stack, request, room()),
                }
            }),
            Class::Huge => self.with_own(&backing.platform, |own| {
                let fetched = || self.refill_huge(backing, own, request, room());
                own.huge[place].pop().or_else(fetched).map(Some)
            }),
            Class::Single | Class::None => None,
        };
        match here.flatten() {
            Some(found) => found.map(|entry| backing.store.frame_at(entry as usize)),
            None => backing.take_within(request, room()),
        }
    }

    /// Takes single frames into `out`, as many as are available and the store has `room` for.
    /// Returns the number taken. Returns `None` if the caller has no stash here, or if so many
    /// frames should come from the store.
    pub(crate) fn take_many<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        request: &Request,
        out: &mut [Frame],
        room: impl Fn() -> usize,
    ) -> Option<usize> {
        if out.len() >= BULK || request.context == Context::Interrupt {
            return None;
        }
        let store = &backing.store;
        self.with_own(&backing.platform, |own| {
            let stack = &own.singles[place_of(request.mobility.into())];
            let mut taken = 0;
            while taken < out.len() {
                let wanted = &mut out[taken..];
                let at_hand = (stack.len() as usize).min(wanted.len());
                if at_hand == 0 {
                    let Some(frame) = self.refill_if(backing, own, request, &room) else {
                        break;
                    };
                    wanted[0] = frame;
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
        })
    }

    /// Keeps a freed single frame in the caller's stash, if that takes no more than to add it.
    /// Returns true if it was kept. Any frame may be offered, even one outside the span.
    #[inline(always)]
    pub(crate) fn push<P: Platform>(&self, backing: &Backing<'_, P>, frame: Frame) -> bool {
        let offset = backing.store.offset(frame);
        let kept = self.at_once(&backing.platform, |own| {
            // Inside the slot: what is isolated before a visit is not kept after it. A stash that
            // looks empty is not visited, and may then get such a frame; the next drain brings it
            // back.
            let place = backing.store.mobility_of_plain_single(offset)?;
            own.singles[place].push_if(offset as u32)
        });
        kept.is_some()
    }

    /// As [`Stash::push`], for a page block.
    #[inline(always)]
    pub(crate) fn push_page_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frame: Frame,
    ) -> bool {
        let offset = backing.store.offset(frame);
        let kept = self.at_once(&backing.platform, |own| {
            // Inside the slot: as in `push`.
            let place = backing.store.mobility_of_page_block(offset)?;
            own.huge.get(place)?.push_if(offset as u32)
        });
        kept.is_some()
    }

    /// As [`Stash::push`], for a block of `order`, if blocks of that order are kept.
    #[inline(always)]
    pub(crate) fn push_small<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frame: Frame,
        order: Order,
    ) -> bool {
        let small = order.index().wrapping_sub(1);
        if small >= SMALL_ORDERS {
            return false;
        }
        let offset = backing.store.offset(frame);
        let kept = self.at_once(&backing.platform, |own| {
            // Inside the slot: as in `push`.
            let place = backing.store.mobility_of_small(offset, order)?;
            own.small[small].get(place)?.push_if(offset as u32)
        });
        kept.is_some()
    }

    /// Offers a freed block to the caller's stash. Any frame may be offered, even one outside the
    /// span.
    pub(crate) fn put<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frame: Frame,
        order: Order,
    ) -> Returned {
        if order != Order::ZERO {
            return self.put_block(backing, frame, order);
        }
        let offset = backing.store.offset(frame);
        self.with_own(&backing.platform, |own| {
            self.put_single(backing, own, offset)
        })
        .unwrap_or(Returned::ToStore)
    }

    /// Keeps a freed single frame, after a flush if necessary.
    fn put_single<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        offset: usize,
    ) -> Returned {
        let place = backing.store.mobility_of_single(offset);
        let Some((place, stack)) = place.and_then(|place| Some((place, own.singles.get(place)?)))
        else {
            return Returned::ToStore;
        };
        if stack.ends_with(offset as u32) {
            return Returned::FreeAlready;
        }
        if stack.is_full() {
            self.flush(backing, own, place);
        }
        stack.push(offset as u32);
        Returned::Kept
    }

    /// Keeps a freed block of another order, if it is a block and there is room.
    #[inline(never)]
    fn put_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frame: Frame,
        order: Order,
    ) -> Returned {
        let store = &backing.store;
        let class = Self::class(order, store);
        if matches!(class, Class::Single | Class::None) || !store.span().contains(frame) {
            return Returned::ToStore;
        }
        let offset = store.offset(frame);
        let put = self.with_own(&backing.platform, |own| {
            if !store.is_block_in_use(offset, order) || store.is_isolated_near(offset) {
                return Returned::ToStore;
            }
            let place = place_of(store.mobility_of(offset));
            match class {
                Class::Small(small) => {
                    let stack = &own.small[small][place];
                    if stack.is_full() && !stack.ends_with(offset as u32) {
                        self.make_room_for_small(backing, own, stack, order);
                    }
                    keep(stack, offset)
                }
                Class::Huge => {
                    let stack = &own.huge[place];
                    if stack.is_full() && !stack.ends_with(offset as u32) {
                        self.make_room_for_huge(backing, own, stack, order);
                    }
                    keep(stack, offset)
                }
                Class::Single | Class::None => Returned::ToStore,
            }
        });
        put.unwrap_or(Returned::ToStore)
    }

    /// Keeps freed single frames until one cannot be kept. Returns the number kept, and what became
    /// of the one after them ([`Returned::Kept`] if there is none). Returns `None` if the caller
    /// has no stash here, or if so many frames should go to the store.
    pub(crate) fn put_many<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frames: &[Frame],
    ) -> Option<(usize, Returned)> {
        if frames.len() >= BULK {
            return None;
        }
        let store = &backing.store;
        self.with_own(&backing.platform, |own| {
            let mut kept = 0;
            while let Some(&first) = frames.get(kept) {
                let (run, mobility) = store.run_of_plain_singles(&frames[kept..]);
                let stack = &own.singles[mobility];
                let run = run.min(stack.room() as usize);
                let offset = store.offset(first);
                if run == 0 || stack.ends_with(offset as u32) {
                    match self.put_single(backing, own, offset) {
                        Returned::Kept => kept += 1,
                        other => return (kept, other),
                    }
                    continue;
                }
                let run_of = &frames[kept..][..run];
                stack.push_all(run_of.iter().map(|&frame| store.offset(frame)));
                kept += run;
            }
            (kept, Returned::Kept)
        })
    }

    /// Returns the number of blocks ever freed to stashes, modulo 2^32. It is unchanged if no block
    /// was freed meanwhile.
    #[inline(never)]
    pub(crate) fn arrivals(&self) -> usize {
        let freed = self.slots.iter().map(|slot| slot.outside().freed());
        freed.fold(0, u32::wrapping_add) as usize
    }

    /// Returns the number of frames in the stashes. A hint.
    pub(crate) fn cached(&self, store: &Bitmap<'_>) -> usize {
        let huge = store.page_block_order();
        self.slots
            .iter()
            .map(|slot| slot.outside().frames(huge))
            .sum()
    }

    /// Tests the invariants while no other CPU uses the zone. Returns the number of frames in the
    /// stashes.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(crate) fn check(&self, store: &Bitmap<'_>) -> Result<usize, Violation> {
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

const fn size_or_one(size: usize) -> usize {
    if size == 0 { 1 } else { size }
}

/// Adds a block to an array, if there is room.
fn keep<const N: usize>(stack: &Stack<N>, offset: usize) -> Returned {
    if stack.ends_with(offset as u32) {
        return Returned::FreeAlready;
    }
    if stack.is_full() {
        return Returned::ToStore;
    }
    stack.push(offset as u32);
    Returned::Kept
}
