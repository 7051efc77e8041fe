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
//! memory that cannot be moved is handed out again where it does no harm.
//!
//! A single frame of a *sparse* page block, much of which is free, goes to an array of its own, of
//! any mobility. That goes back to the store before others are fetched, so the next request is
//! served from the fullest block, and sparse blocks become whole. If the last freed frame were
//! always the next one handed out, memory would stay as scattered as it is.
//!
//! An empty array of single frames is filled by half, by words of the store, and one of larger
//! blocks wholly. (Of orders 1 to 5 it gets no more than one page block has beside its whole words,
//! or one such word.) A full array gives back its colder three quarters, single frames sorted by
//! block. An array of single frames starts small, doubles whenever it runs empty or full, and is
//! small again after a drain. All arrays of a CPU together stay within its share of the zone's
//! memory ([`StashSizes::percent`]); where that leaves an array no room, its requests and frees go
//! to the store.
//!
//! **What a free checks.** To the store, a block in a stash is in use. A free of something that is
//! free in the store, was never allocated, or is larger than the block is refused at once. So is a
//! second free of the block freed just before, unless its page block has become sparse in between,
//! or ceased to be. A second free of a block that lies elsewhere in a stash, whole or in parts, is
//! not noticed at once. When it reaches the store later it is refused and [counted](crate::zone::Zone::refused_late), unless the block was handed out twice before.
//!
//! Invariant `cached-once`: a block in a stash is in use to the store, is of the order of its
//! array, and lies in no other place.
//!
//! Invariant `lent-to-somebody`: some CPU fetches from each block that is lent, so that the loan
//! ends when that CPU's stash is drained.

mod blocks;
mod cpu;
mod drain;
mod refill;
mod share;
mod stack;

use brickyard_sync::{Inside, Slot, SlotAccess};

use crate::bitmap::{Bitmap, SPARSE};
use crate::check::Violation;
use crate::platform::PinGuard;
use crate::transit::Moves;
use crate::{Context, Frame, Mobility, Order, Platform, Request};
pub use cpu::CpuStash;
use cpu::{Array, HUGE, SINGLES, SMALL, SMALL_ORDERS, place_of};
use stack::StackOf;

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
    /// with a slot has an equal share of it, whether it uses its slot or not, so there should be no
    /// more slots than CPUs. Where memory leaves the zone, a CPU keeps the share that it had until
    /// it is drained. 100 and above: only the other sizes count.
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
    /// The [largest](Self::LARGEST) sizes, but at most 2 percent of the memory.
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

/// A stash for each CPU, over caller-supplied slots of 15 KiB. A CPU without one, and every
/// interrupt, goes straight to the store.
#[derive(Debug)]
pub struct Stash<'m, A> {
    slots: &'m [Slot<A, CpuStash>],
    sizes: StashSizes,
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
            sizes: StashSizes {
                singles: at_most(sizes.singles, SINGLES),
                small: at_most(sizes.small, SMALL),
                huge: at_most(sizes.huge, HUGE),
                percent: sizes.percent,
            },
        }
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
        let (_pinned, own) = self.at_once(platform)?;
        Some(with(&own))
    }

    /// Enters the caller's own slot at once, or not at all: `None` also while a visitor is inside.
    #[inline(always)]
    fn at_once<'s, P: Platform>(
        &'s self,
        platform: &'s P,
    ) -> Option<(PinGuard<'s, P>, Inside<'s, A, CpuStash>)> {
        if platform.in_interrupt() {
            return None;
        }
        let pinned = PinGuard::new(platform);
        let own = self.slots.get(pinned.cpu)?.try_enter()?;
        // In this order: the caller drops what it binds last first, and leaves the slot pinned.
        Some((pinned, own))
    }

    /// Takes a block that lies in an array of the caller's stash, if that can be entered at once.
    #[inline(always)]
    fn pop_of<P: Platform, const N: usize>(
        &self,
        backing: &Backing<'_, P>,
        array: impl FnOnce(&CpuStash) -> Option<&StackOf<N>>,
    ) -> Option<Frame> {
        let (_pinned, own) = self.at_once(&backing.platform)?;
        let entry = array(&own)?.pop()?;
        Some(backing.store.frame_at(entry as usize))
    }

    /// Takes a single frame that lies in the caller's stash, if it can be entered at once.
    #[inline(always)]
    pub(crate) fn pop<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        mobility: Mobility,
    ) -> Option<Frame> {
        self.pop_of(backing, |own| Some(&own.singles[mobility as usize]))
    }

    /// Takes a block of `order` that lies in the caller's stash, if it can be entered at once. It
    /// looks for no single frame.
    #[inline(always)]
    pub(crate) fn pop_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        order: Order,
        mobility: Mobility,
    ) -> Option<Frame> {
        if backing.store.is_page_block(order) {
            return self.pop_of(backing, |own| Some(&own.huge[mobility as usize]));
        }
        let small = order.index().wrapping_sub(1);
        if small >= SMALL_ORDERS {
            return None;
        }
        self.pop_of(backing, |own| Some(&own.small[small][mobility as usize]))
    }

    /// Takes a block for `request`: one that lies here, else one fetched from the store. A block of
    /// an order that is not fetched is taken from the store directly.
    ///
    /// A block that lies here passed the watermark when it was fetched. `room` says how many frames
    /// may leave the store. Returns `None` if they are too few, or if the store has nothing.
    pub(crate) fn take<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        request: &Request,
        room: usize,
    ) -> Option<Frame> {
        let store = &backing.store;
        // In an interrupt, the interrupted task may be in the middle of the stash.
        let is_kept = self.most(store, request.order) > 0;
        if is_kept && request.context != Context::Interrupt {
            let place = place_of(request.mobility.into());
            // Fetched in the visit that finds none: before another visit, another task of this CPU
            // may have freed some.
            let here = self.with_own(&backing.platform, |own| {
                let array = own.array(request.order, store.page_block_order(), place)?;
                match array.stack.pop() {
                    Some(entry) => Some(Some(entry)),
                    None => self.refill(backing, own, array, request, room),
                }
            });
            if let Some(found) = here.flatten() {
                return found.map(|entry| store.frame_at(entry as usize));
            }
        }
        backing.take_within(request, room)
    }

    /// Takes single frames into `out`, as many as are available and the store has `room` for.
    /// Returns the number taken. Returns `None` if the caller has no stash here, if it holds
    /// nothing and fetches nothing, or if so many frames should come from the store.
    pub(crate) fn take_many<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        request: &Request,
        out: &mut [Frame],
        mut room: usize,
    ) -> Option<usize> {
        if out.len() >= BULK || request.context == Context::Interrupt {
            return None;
        }
        let store = &backing.store;
        let place = place_of(request.mobility.into());
        let taken = self.with_own(&backing.platform, |own| {
            let array = own.array(Order::ZERO, store.page_block_order(), place)?;
            let stack = array.stack;
            let mut taken = 0;
            while taken < out.len() {
                let wanted = &mut out[taken..];
                let at_hand = (stack.len() as usize).min(wanted.len());
                if at_hand == 0 {
                    let fetched = self.refill(backing, own, array, request, room);
                    let Some(entry) = fetched.flatten() else {
                        break;
                    };
                    // Without room it is one that lay here.
                    room = room.saturating_sub(1 + stack.len() as usize);
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
            Some(taken)
        });
        taken.flatten().filter(|&taken| taken > 0)
    }

    /// Keeps a freed block in an array of the caller's stash, if that takes no more than to add it.
    /// `None` if it was not kept.
    #[inline(always)]
    fn push_to<P: Platform, const N: usize>(
        &self,
        backing: &Backing<'_, P>,
        offset: usize,
        array: impl FnOnce(&CpuStash) -> Option<&StackOf<N>>,
    ) -> Option<()> {
        // The array is found inside the slot: what is isolated before a visit is not kept after it.
        // A stash that looks empty is not visited, and may then get such a block; the next drain
        // brings it back.
        let (_pinned, own) = self.at_once(&backing.platform)?;
        array(&own)?.push_if(offset as u32)
    }

    /// Keeps a freed single frame in the caller's stash, if that takes no more than to add it to the
    /// array of a mobility. Returns true if it was kept. Any frame may be offered, even one outside
    /// the span.
    #[inline(always)]
    pub(crate) fn push<P: Platform>(&self, backing: &Backing<'_, P>, frame: Frame) -> bool {
        let offset = backing.store.offset(frame);
        let kept = self.push_to(backing, offset, |own| {
            let place = backing.store.mobility_of_plain_single(offset)?;
            Some(&own.singles[place])
        });
        kept.is_some()
    }

    /// Keeps a freed block of `order` in the caller's stash, if that takes no more than to add it.
    /// Returns true if it was kept. Any block may be offered; a single frame is kept only if its
    /// page block is sparse.
    #[inline(always)]
    pub(crate) fn push_block<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frame: Frame,
        order: Order,
    ) -> bool {
        let store = &backing.store;
        let offset = store.offset(frame);
        let small = order.index().wrapping_sub(1);
        let kept = if store.is_page_block(order) {
            self.push_to(backing, offset, |own| {
                own.huge.get(store.mobility_of_page_block(offset)?)
            })
        } else if small < SMALL_ORDERS {
            self.push_to(backing, offset, |own| {
                own.small[small].get(store.mobility_of_small(offset, order)?)
            })
        } else if order == Order::ZERO && store.mobility_of_sparse_single(offset).is_some() {
            self.push_to(backing, offset, |own| {
                // Once more: as in `push_to`.
                let is_sparse = store.mobility_of_sparse_single(offset).is_some();
                is_sparse.then_some(&own.sparse)
            })
        } else {
            None
        };
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
        if self.most(&backing.store, order) == 0 {
            return Returned::ToStore;
        }
        let put = |own: &CpuStash| self.put_in(backing, own, frame, order);
        let put = self.with_own(&backing.platform, put).flatten();
        put.unwrap_or(Returned::ToStore)
    }

    /// Returns the place of a freed block; `None` if it is no block of this order in use, or has
    /// isolated frames near.
    #[inline(never)]
    fn place_for(store: &Bitmap<'_>, frame: Frame, order: Order) -> Option<usize> {
        let offset = store.offset(frame);
        if order == Order::ZERO {
            return store.place_of_single(offset);
        }
        let is_block = store.span().contains(frame)
            && store.is_block_in_use(offset, order)
            && !store.is_isolated_near(offset);
        is_block.then(|| place_of(store.mobility_of(offset)))
    }

    /// Keeps a freed block if it is one, after it has made room if necessary. `None` if it cannot
    /// be kept.
    fn put_in<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        own: &CpuStash,
        frame: Frame,
        order: Order,
    ) -> Option<Returned> {
        let store = &backing.store;
        let offset = store.offset(frame) as u32;
        // Once more after room was made: what went back may be this very block, or make its page
        // block sparse. And once more where the share is too small for an array of sparse page
        // blocks: then that of the mobility serves.
        for turn in 0..3 {
            let place = match Self::place_for(store, frame, order)? {
                SPARSE if turn > 0 && own.sparse.limit() == 0 => {
                    store.mobility_of_single(offset as usize)?
                }
                place => place,
            };
            let array = own.array(order, store.page_block_order(), place)?;
            if array.stack.ends_with(offset) || order == Order::ZERO && own.ends_with(offset) {
                return Some(Returned::FreeAlready);
            }
            if !array.stack.is_full() {
                array.stack.push(offset);
                return Some(Returned::Kept);
            }
            self.make_room(backing, own, array);
        }
        None
    }

    /// Keeps freed single frames until one cannot be kept. Returns the number kept, and what became
    /// of the one after them ([`Returned::Kept`] if there is none). They are for the store if the
    /// caller has no stash here, or if they are so many.
    pub(crate) fn put_many<P: Platform>(
        &self,
        backing: &Backing<'_, P>,
        frames: &[Frame],
    ) -> (usize, Returned) {
        if frames.len() >= BULK {
            return (0, Returned::ToStore);
        }
        let store = &backing.store;
        let put = self.with_own(&backing.platform, |own| {
            let mut kept = 0;
            while let Some(&first) = frames.get(kept) {
                let (run, place) = store.run_of_plain_singles(&frames[kept..]);
                let array = own.array(Order::ZERO, store.page_block_order(), place);
                let Some(Array { stack, .. }) = array else {
                    return (kept, Returned::ToStore);
                };
                let run = run.min(stack.room() as usize);
                if run == 0 || stack.ends_with(store.offset(first) as u32) {
                    match self.put_in(backing, own, first, Order::ZERO) {
                        Some(Returned::Kept) => kept += 1,
                        other => return (kept, other.unwrap_or(Returned::ToStore)),
                    }
                    continue;
                }
                let run_of = &frames[kept..][..run];
                stack.push_all(run_of.iter().map(|&frame| store.offset(frame)));
                kept += run;
            }
            (kept, Returned::Kept)
        });
        put.unwrap_or((0, Returned::ToStore))
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
        let (mut frames, mut wrong) = (0, None);
        for slot in self.slots {
            slot.outside().each(huge, |Array { order, stack, .. }| {
                let is_none = |&entry: &u32| !store.is_block_in_use(entry as usize, order);
                wrong = wrong.or_else(|| stack.entries().find(is_none));
                frames += stack.entries().len() << order.get();
            });
        }
        if let Some(entry) = wrong {
            let found = "a block in a stash that is none to the store";
            return Err(Violation::at(
                "cached-once",
                found,
                store.frame_at(entry as usize),
            ));
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
