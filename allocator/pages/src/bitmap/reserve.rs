//! The reserve for atomic requests above order 0: page blocks that no other request takes from.
//!
//! Who cannot wait can neither reclaim nor compact, and small runs are what a full machine runs out
//! of first. So when such a request had to go below the low mark, or to drain caches, the page
//! block that served it is *set aside*: it is in no set from then on. The next such request takes
//! from there first. Before a request fails that one of these blocks could serve, the block is
//! given up.
//!
//! That follows Linux's `MIGRATE_HIGHATOMIC`. It differs in what ends it: Linux gives a block back
//! after reclaim that helped nobody, and keeps one unless it must; atomic single frames take from
//! the reserve as their last step, and give nothing up. Here the block is given up that would serve
//! the request, whoever asks, and the rest only if that lifts the zone above the mark.
//!
//! A request far above the marks pays nothing for all this: a block is set aside, used and given up
//! on slow paths. Less than 32 page blocks above a mark, a refill adds up what is free in them.
//!
//! # How blocks are set aside and given up
//!
//! A slot names each of them, so that they are found in at most [`SLOTS`] words. Which one it is
//! follows from the block's number, so no two slots name a block. The slot is written first. Then
//! the block's state says `ASIDE`, and the CPU tests whether the slot still names the block, by an
//! exchange. Whoever empties a slot ends `ASIDE` afterwards. Nobody waits for anybody; of two
//! exchanges of the slot, the later one knows of the earlier:
//!
//! - If the slot was emptied before the test, the test fails, and `ASIDE` is ended by the tester.
//! - If it is emptied after the test, the CPU that empties it sees the state with `ASIDE`.
//!
//! Invariant `aside-named`: a block whose state says `ASIDE` is named by its slot. It holds while
//! no CPU is at work. A slot may name a block that is not aside: one that was taken as a whole, or
//! that two CPUs set aside and gave up at the same moment. Whoever wants to set another aside, or
//! to give all up, empties it.
//!
//! **Cost.** Each look at the reserve reads up to [`SLOTS`] slots and as many states. To set a
//! block aside takes a look where no slot is left for it. The slots lie with words that are seldom
//! written.

use brickyard_sync::{AtomicU32, AtomicUsize, Ordering};

use super::search::{Aside, Wanted};
use super::{Attempt, Bitmap, TRIES};
use crate::{Context, Frame, Request};

/// The most page blocks that can be set aside. Fewer under loom, which tries all orders of
/// accesses.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 32 };

/// A slot that names no block. Others hold one more than the block's number.
const EMPTY: u32 = 0;

/// How much of a zone is set aside at most for atomic requests above order 0.
///
/// Nothing is if the share is less than a page block. Otherwise it is rounded up to page blocks. Of
/// page blocks whose numbers differ by a multiple of 32, only one is set aside at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetAside {
    /// The share of the managed frames, in percent.
    pub percent: u8,
    /// The number of page blocks; more than 32 count as 32.
    pub blocks: usize,
}

impl SetAside {
    /// One percent of the zone, as in Linux, but no more than 32 page blocks.
    pub const DEFAULT: Self = Self {
        percent: 1,
        blocks: SLOTS,
    };

    /// Nothing is set aside.
    pub const NONE: Self = Self {
        percent: 0,
        blocks: 0,
    };

    /// Returns the most page blocks of `block_frames` frames to set aside, if so many frames are
    /// managed.
    const fn most(self, managed: usize, block_frames: usize) -> usize {
        let share = (managed as u64 * self.percent as u64 / 100) as usize;
        if share < block_frames {
            return 0;
        }
        let most = if self.blocks < SLOTS {
            self.blocks
        } else {
            SLOTS
        };
        let share = share.div_ceil(block_frames);
        if share < most { share } else { most }
    }
}

/// Which blocks are set aside.
#[derive(Debug)]
pub(super) struct Reserve {
    plan: SetAside,
    // The slots that name a block, or are about to: never fewer. The only word that is read while
    // nothing is set aside.
    named: AtomicUsize,
    // 1 once a block was about to be set aside.
    ever: AtomicU32,
    slots: [AtomicU32; SLOTS],
}

impl Reserve {
    pub(super) const fn new() -> Self {
        Self {
            plan: SetAside::DEFAULT,
            named: AtomicUsize::new(0),
            ever: AtomicU32::new(0),
            slots: [const { AtomicU32::new(EMPTY) }; SLOTS],
        }
    }

    /// Returns the block that a slot names.
    fn block(&self, slot: usize) -> Option<usize> {
        // Acquire: pairs with the release in `name`.
        let named = self.slots[slot].load(Ordering::Acquire);
        (named != EMPTY).then(|| named as usize - 1)
    }

    /// Makes an empty slot name a block, unless `most` do. Returns true if it does now.
    fn name(&self, slot: usize, block: usize, most: usize) -> bool {
        // Relaxed: published by what follows. Whoever knows that something may be aside knows that
        // it is to be given up before a refusal.
        self.ever.store(1, Ordering::Relaxed);
        // Release, twice: pairs with `has_aside`.
        let named = self.named.fetch_add(1, Ordering::Release) < most
            && self.exchange(slot, EMPTY, block as u32 + 1);
        if !named {
            self.named.fetch_sub(1, Ordering::Release);
        }
        named
    }

    /// Returns true if the slot still names the block. An exchange, so that whoever empties the
    /// slot later sees what the caller has done before.
    fn still_names(&self, slot: usize, block: usize) -> bool {
        self.exchange(slot, block as u32 + 1, block as u32 + 1)
    }

    /// Empties a slot, if it names the block. Returns true if it did.
    fn forget(&self, slot: usize, block: usize) -> bool {
        self.exchange(slot, block as u32 + 1, EMPTY)
    }

    fn exchange(&self, slot: usize, old: u32, new: u32) -> bool {
        // AcqRel: of two exchanges, the later one comes after all that the CPU of the earlier one
        // did before it.
        let slot = &self.slots[slot];
        slot.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Returns true if the request may take from blocks that are set aside, and sets more aside.
fn is_entitled(request: &Request, block_order: u8) -> bool {
    let order = request.order.get();
    request.context != Context::MaySleep && 0 < order && order < block_order
}

impl<'m> Bitmap<'m> {
    /// Returns the store with this much set aside for atomic requests at most, instead of
    /// [`SetAside::DEFAULT`].
    #[must_use]
    pub const fn with_set_aside(mut self, plan: SetAside) -> Self {
        self.reserve.plan = plan;
        self
    }
}

impl Bitmap<'_> {
    /// Returns true if any block is set aside.
    #[inline]
    pub(crate) fn has_aside(&self) -> bool {
        // Acquire: pairs with the release in `Reserve::name`.
        self.reserve.named.load(Ordering::Acquire) != 0
    }

    /// Returns true if a slot names a block that is set aside.
    pub(crate) fn keeps_something(&self) -> bool {
        let mut named = self.blocks_named(0);
        named.any(|(_, block)| self.state(block).is_aside())
    }

    /// Returns true if a block was ever set aside; surely if `has_aside` was ever true before.
    pub(crate) fn ever_had_aside(&self) -> bool {
        // Relaxed: the acquire in `has_aside` pairs with the release in `Reserve::name`.
        self.reserve.ever.load(Ordering::Relaxed) != 0
    }

    /// Returns the blocks that are named by the slots from this one on, each with its slot.
    fn blocks_named(&self, from: usize) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let end = if self.has_aside() { SLOTS } else { from };
        (from..end).filter_map(|slot| Some((slot, self.reserve.block(slot)?)))
    }

    /// Returns the most frames that are free and that the request may not have, since they are set
    /// aside. Reads one word.
    #[inline]
    pub(crate) fn kept_from_at_most(&self, request: &Request) -> usize {
        match request.context {
            // Relaxed: a hint.
            Context::MaySleep => self.reserve.named.load(Ordering::Relaxed) * self.block_frames(),
            Context::Atomic | Context::Interrupt => 0,
        }
    }

    /// Returns how many frames are free that the request may not have, since they are set aside. A
    /// hint. Any atomic request may count them: it may have them in the end.
    pub(crate) fn kept_from(&self, request: &Request) -> usize {
        if request.context != Context::MaySleep {
            return 0;
        }
        let free = self.blocks_named(0).map(|(_, block)| {
            let state = self.state(block);
            match (state.is_aside(), state.is_isolated()) {
                (false, _) => 0,
                (true, false) => state.count(),
                // What is isolated of it counts as free for nobody.
                (true, true) => {
                    let free = self.there(block, Wanted::of(state.kind()));
                    free.map(|bits| bits.count_ones() as usize).sum()
                }
            }
        });
        free.sum()
    }

    /// Takes a block for an atomic request above order 0 from those set aside. `None` for any other
    /// request.
    pub(crate) fn take_aside(&self, request: &Request) -> Option<Frame> {
        if !is_entitled(request, self.block_order) || request.order > self.max_order {
            return None;
        }
        let wanted = Wanted {
            aside: Aside::Too,
            ..self.wanted(request)
        };
        let order = request.order.get();
        for _ in 0..TRIES {
            let mut lost = false;
            for (_, block) in self.blocks_named(0) {
                let state = self.state(block);
                if !state.is_aside() || state.count() == 0 || state.run() < order {
                    continue;
                }
                match self.take_run(block, order, wanted) {
                    Attempt::Got(offset) => return Some(self.frame_at(offset)),
                    Attempt::Lost => lost = true,
                    Attempt::More | Attempt::Nothing => {}
                }
            }
            if !lost {
                break;
            }
        }
        None
    }

    /// Sets the page block of `frame` aside, which has just served `request`, if the request is
    /// entitled to it and not enough is set aside yet.
    pub(crate) fn set_aside(&self, frame: Frame, request: &Request) {
        if !is_entitled(request, self.block_order) {
            return;
        }
        let block = self.block_at(self.offset(frame));
        let most = self
            .reserve
            .plan
            .most(self.managed_frames(), self.block_frames());
        if most == 0 || self.state(block).is_aside() {
            return;
        }
        let slot = block % SLOTS;
        if !self.reserve.name(slot, block, most) {
            self.forget_what_is_not_aside();
            if !self.reserve.name(slot, block, most) {
                return;
            }
        }
        let mut is_aside = false;
        let changed = self.change(block, |state| {
            is_aside = state.is_aside();
            // Open, since the caller has a part of it; bad frees apart.
            let fits = state.is_open() && state.count() < self.block_frames() && !state.is_kept();
            fits.then(|| state.with_lent(false).with_aside(true))
        });
        let is_over = match changed {
            Some(_) => !self.reserve.still_names(slot, block),
            // Another CPU sets it aside, or is about to end that, and then the slot is emptied
            // later.
            None => !is_aside,
        };
        if is_over {
            self.give_up(slot, block);
        }
    }

    /// Empties the slots that name blocks that are not aside.
    fn forget_what_is_not_aside(&self) {
        for (slot, block) in self.blocks_named(0) {
            if !self.state(block).is_aside() {
                self.give_up(slot, block);
            }
        }
    }

    /// Gives up a block that a slot names: it goes back to its sets.
    fn give_up(&self, slot: usize, block: usize) {
        let forgotten = self.reserve.forget(slot, block);
        // Also if another CPU has emptied the slot: it may have done so before the state said that
        // the block is aside.
        self.change(block, |state| {
            state.is_aside().then(|| state.with_aside(false))
        });
        if forgotten {
            // Release: pairs with `has_aside`. A CPU that sees no block aside finds it in its sets.
            self.reserve.named.fetch_sub(1, Ordering::Release);
        }
    }

    /// Gives up one more of the blocks that are set aside, of those named by slots from this one
    /// on: one that could serve the request. Returns the slot after it; `None` if there is none, or
    /// if the request may have what is set aside.
    pub(crate) fn give_up_for(&self, request: &Request, from: usize) -> Option<usize> {
        if is_entitled(request, self.block_order) {
            return None;
        }
        let wanted = self.wanted(request);
        let mut named = self.blocks_named(from);
        let serves = |block| self.would_serve(block, request.order.get(), wanted);
        let (slot, block) = named.find(|&(_, block)| serves(block))?;
        self.give_up(slot, block);
        Some(slot + 1)
    }

    /// Returns true if a block that is set aside could serve a request: by itself or, above the
    /// order of page blocks, with its group.
    fn would_serve(&self, block: usize, order: u8, wanted: Wanted) -> bool {
        let state = self.state(block);
        if !state.is_aside() {
            return false;
        }
        if order < self.block_order {
            let some = state.is_open() && state.count() >> order > 0;
            let bits = |word| self.visible(word, state, wanted);
            return some && self.find_run(block, order, bits).is_some();
        }
        let group = 1 << (order - self.block_order);
        let first = ((block + self.phase) & !(group - 1)).checked_sub(self.phase);
        let limit = wanted.limit.unwrap_or(usize::MAX);
        first.is_some_and(|first| {
            let all = first..first + group;
            let fits = all.end <= self.states.len() && all.end << self.block_order <= limit;
            fits && { all }.all(|block| self.state(block).count() == self.block_frames())
        })
    }

    /// Gives up all blocks that are set aside, and empties all slots.
    pub(crate) fn give_up_all(&self) {
        for (slot, block) in self.blocks_named(0) {
            self.give_up(slot, block);
        }
    }

    /// Returns true if its slot names a block that is aside. No other CPU may be at work.
    pub(super) fn is_named_if_aside(&self, block: usize) -> bool {
        !self.state(block).is_aside() || self.reserve.block(block % SLOTS) == Some(block)
    }

    /// Returns the number of slots that name a block, and the number that is kept of them. No other
    /// CPU may be at work.
    pub(super) fn slots_named(&self) -> (usize, usize) {
        let slots = (0..SLOTS).filter(|&slot| self.reserve.block(slot).is_some());
        // Relaxed: no other CPU is at work.
        (slots.count(), self.reserve.named.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
pub(in crate::bitmap) mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use brickyard_sync::{AtomicU8, AtomicU64};

    use super::super::Borrower;
    use super::super::state::BlockMode;
    use super::*;
    use crate::{FrameRange, MigrateType, Mobility, Order};

    #[test]
    fn a_share_of_less_than_a_page_block_is_nothing() {
        let most = |managed| SetAside::DEFAULT.most(managed, 512);
        // The numbers of Linux 6.12: none below 51,200 frames, 20 blocks of a million.
        assert_eq!([51_199, 51_200, 1_000_000].map(most), [0, 1, 20]);
        assert_eq!(most(1 << 32), SLOTS);
        assert_eq!(SetAside::NONE.most(1 << 32, 512), 0);
        let all = SetAside {
            percent: 100,
            blocks: 1000,
        };
        assert_eq!(all.most(1 << 32, 512), SLOTS);
        assert_eq!(all.most(4096, 512), 8);
        assert_eq!(all.most(511, 512), 0);
    }

    /// A store of page blocks of 64 frames, all free, which lives as long as the test process.
    pub(in crate::bitmap) fn store(blocks: usize) -> Bitmap<'static> {
        let span = FrameRange::new(0, blocks * 64);
        let (max, block) = (Order::new(7), Order::new(6));
        let words = (0..Bitmap::words(span, max, block)).map(|_| AtomicU64::new(0));
        let classes = (0..Bitmap::classes(span, block)).map(|_| AtomicU8::new(0));
        let words = Box::leak(words.collect::<Vec<_>>().into_boxed_slice());
        let classes = Box::leak(classes.collect::<Vec<_>>().into_boxed_slice());
        let store = Bitmap::new(span, max, block, words, classes).with_set_aside(SetAside {
            percent: 100,
            blocks: 4,
        });
        store.add(span).expect("inside the span");
        store
    }

    /// A stash gives a frame back to a block that is aside, and borrows the block.
    #[test]
    fn what_is_aside_is_not_lent_and_serves_nobody_else() {
        let store = store(1);
        let pair = Request::new(Order::new(1), Mobility::Movable).atomic();
        let single = Request::page(Mobility::Movable);
        let page = store.take(&single).expect("enough is free");
        let run = store.take(&pair).expect("enough is free");
        store.set_aside(run, &pair);
        let block = store.block_at(store.offset(run));
        assert!(store.state(block).is_aside());
        let wanted = Request::new(Order::new(3), Mobility::Movable);
        assert!(!store.can_serve(&wanted), "it is aside");
        let mut masks = [0; super::super::MOST_WORDS];
        store.write_masks(&mut masks, block, FrameRange::at(page, 1));
        // What `BlockMasks` of a stash that gives frames back do, while a block is free as a whole.
        store.give_masks(block, &masks, 1, Borrower::Cpu(MigrateType::Movable));
        assert!(!store.state(block).is_lent(), "a loan that is of no use");
        assert!(
            !store.can_serve(&wanted),
            "it is aside, and nobody else can have it"
        );
    }

    /// One CPU stands still after it has counted a slot, before it names one: it has no frame in
    /// hand. Another has moved a block out of a set and stands still before the block is in the
    /// next one: it has no frame of the 63 in hand either.
    #[test]
    fn a_frame_is_found_while_two_cpus_stand_still() {
        for named in [0, 1] {
            let store = store(1);
            let single = Request::page(Mobility::Movable);
            store.take(&single).expect("enough is free");
            let state = store.state(0);
            // `change_once` of a CPU that ends a loan, say, before `moved`.
            for set in store.index.sets_of(state).into_iter().flatten() {
                store.index.remove(set, store.phase);
            }
            store.reserve.named.fetch_add(named, Ordering::Release);
            assert!(
                store.take(&single).is_some(),
                "order-0-succeeds, {named} named"
            );
        }
    }

    // What the tests of a zone make another CPU do.
    impl Bitmap<'_> {
        /// A CPU is at this point of `Reserve::name`, in the first `set_aside` of all.
        pub(crate) fn count_a_slot(&self) {
            self.reserve.ever.store(1, Ordering::Relaxed);
            self.reserve.named.fetch_add(1, Ordering::Release);
        }

        /// A CPU opens a block: it has begun.
        pub(crate) fn begin_to_open(&self, block: usize) {
            let old = self.state(block);
            let new = old.with_mode(BlockMode::Changing).with_free(0, 0).unmixed();
            assert!(self.replace(block, old, new));
        }

        /// And has ended.
        pub(crate) fn end_to_open(&self, block: usize) {
            for word in self.first_word(block)..self.first_word(block) + self.block_words() {
                self.inner[word].store(0, Ordering::Relaxed);
                self.free[word].store(!0, Ordering::Relaxed);
            }
            self.begin_class(block, MigrateType::Movable);
            self.change(block, |state| {
                let open = state.with_mode(BlockMode::Open);
                Some(open.with_free(self.block_frames(), self.block_order))
            });
        }
    }
}
