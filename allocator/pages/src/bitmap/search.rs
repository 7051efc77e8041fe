//! Which block serves a request: the sets are tried in order, best first, and then the blocks
//! themselves. Also what can be said of a request without taking anything.

use super::state::{BlockMode, BlockState};
use super::summary::{End, GRADES, Index, Set};
use super::{Attempt, Bitmap, CALL_INS, Luck, TRIES};
use crate::{Frame, MigrateType, Mobility, Order, Request};

/// Whether frames of blocks that are set aside may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    /// They may not: for requests.
    Not,
    /// They may: for atomic requests from the reserve, and for administration, which wants certain
    /// frames.
    Too,
}

/// What is wanted of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) kind: MigrateType,
    /// If set, every frame must lie below this position.
    pub(super) limit: Option<usize>,
    pub(super) aside: Aside,
}

impl Wanted {
    /// What a request for this kind wants, if it has no limit.
    pub(super) const fn of(kind: MigrateType) -> Self {
        Self {
            kind,
            limit: None,
            aside: Aside::Not,
        }
    }
}

impl Bitmap<'_> {
    /// Returns the request's limit, if it cuts into the span.
    pub(super) fn limit_of(&self, request: &Request) -> Option<Frame> {
        request.limit.filter(|&limit| limit < self.span.end)
    }

    pub(super) fn wanted(&self, request: &Request) -> Wanted {
        let limit = self.limit_of(request);
        Wanted {
            kind: request.mobility.into(),
            limit: limit.map(|limit| limit.number().saturating_sub(self.base)),
            aside: Aside::Not,
        }
    }

    /// Tries blocks, best first, until one serves. Returns `None` if none does, or if other CPUs
    /// were faster in each of [`TRIES`] passes. Also returns `None` if more is wanted, but
    /// something was got, and the search would go on to other mobilities.
    pub(super) fn take_best<T>(
        &self,
        order: u8,
        wanted: Wanted,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let mut call_ins = CALL_INS;
        let mut nothing = false;
        for _ in 0..TRIES {
            nothing = self.totals.free.is_nothing();
            if nothing {
                break;
            }
            let mut luck = Luck::default();
            for set in self.own_sets(order, wanted.kind) {
                if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut luck) {
                    return Some(got);
                }
            }
            if luck.more {
                return None;
            }
            if call_ins > 0 && self.call_in_loans() {
                call_ins -= 1;
                continue;
            }
            luck.content = true;
            for set in self.foreign_sets(order, wanted.kind) {
                if let Some(got) = self.try_set(set, wanted, &mut attempt, &mut luck) {
                    return Some(got);
                }
                if luck.more {
                    return None;
                }
            }
            if !luck.lost {
                break;
            }
        }
        self.try_any(order, wanted, nothing, attempt)
    }

    /// Returns the sets whose blocks may serve without harm, best first. These are the sets of the
    /// mobility, by fullness or by the smallest run that suffices; then blocks that are free as a
    /// whole.
    fn own_sets(&self, order: u8, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        let steps = self.steps(order);
        (0..=steps).map(move |step| match step == steps {
            true => Index::WHOLE,
            false => self.step(order, kind, step),
        })
    }

    /// Returns the sets for single frames of a mobility, the fullest blocks first.
    pub(super) fn graded_sets(&self, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        (0..GRADES).map(move |grade| self.index.of_grade(kind, grade))
    }

    /// Returns the sets of other mobilities. There, a request that cannot be moved looks for the
    /// emptiest block, to claim it and so stay among its own kind. A movable request does no harm
    /// anywhere, and takes from the fullest.
    fn foreign_sets(&self, order: u8, kind: MigrateType) -> impl Iterator<Item = Set> + use<'_> {
        let others = match kind {
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            _ => [MigrateType::Reclaimable, MigrateType::Movable],
        };
        let steps = self.steps(order);
        (0..2 * steps).map(move |i| {
            let step = match kind {
                MigrateType::Movable => i / 2,
                _ => steps - 1 - i / 2,
            };
            self.step(order, others[i % 2], step)
        })
    }

    /// Returns how many sets of one mobility may serve.
    fn steps(&self, order: u8) -> usize {
        if order == 0 {
            GRADES
        } else {
            usize::from(self.block_order - order)
        }
    }

    fn step(&self, order: u8, kind: MigrateType, step: usize) -> Set {
        match order {
            0 => self.index.of_grade(kind, step),
            _ => self.index.of_run(kind, order + step as u8),
        }
    }

    /// Returns the end from which blocks are searched for a request. Below a limit, it is the low
    /// one.
    pub(super) const fn end_for(wanted: Wanted) -> End {
        match wanted.kind {
            MigrateType::Movable if wanted.limit.is_none() => End::High,
            _ => End::Low,
        }
    }

    /// Tries the blocks of one set.
    #[inline]
    pub(super) fn try_set<T>(
        &self,
        set: Set,
        wanted: Wanted,
        attempt: &mut impl FnMut(usize) -> Attempt<T>,
        luck: &mut Luck,
    ) -> Option<T> {
        match self.index.is_empty(set) {
            true => None,
            false => self.search_set(set, wanted, attempt, luck),
        }
    }

    /// Tries the blocks of a set that is not empty.
    #[inline(never)]
    fn search_set<T>(
        &self,
        set: Set,
        wanted: Wanted,
        attempt: &mut impl FnMut(usize) -> Attempt<T>,
        luck: &mut Luck,
    ) -> Option<T> {
        let end = Self::end_for(wanted);
        let last = self.states.len() + self.phase - 1;
        let mut from = match end {
            End::Low => self.phase,
            End::High => last,
        };
        while let Some(position) = self.index.find(set, from, end) {
            let block = position - self.phase;
            if wanted
                .limit
                .is_some_and(|limit| block << self.block_order >= limit)
            {
                return None;
            }
            match attempt(block) {
                Attempt::Got(got) => return Some(got),
                Attempt::More => {
                    luck.more = true;
                    if luck.content {
                        return None;
                    }
                }
                Attempt::Lost => luck.lost = true,
                Attempt::Nothing if !self.belongs(set, block) => self.take_out_of(set, block),
                Attempt::Nothing => self.correct_run(block),
            }
            from = match end {
                End::Low if position < last => position + 1,
                End::High if position > self.phase => position - 1,
                _ => return None,
            };
        }
        None
    }

    /// Corrects the largest run in a block's state. The block lacks the run that its state names,
    /// or lacks it where it is wanted, since a free looked at bits that were already promised.
    fn correct_run(&self, block: usize) {
        self.change(block, |state| {
            let known = state.is_open() && (1..self.block_frames()).contains(&state.count());
            let run = self.largest_run(block, |word| self.free_bits(word));
            (known && run != state.run()).then(|| state.with_free(state.count(), run))
        });
    }

    /// Tries the blocks themselves instead of the sets. For a single frame, if the total says that
    /// there is one, it tries all blocks, unless that may be one of a block that is set aside.
    /// Otherwise it tries those that are already on loan again, unless the total says `nothing`.
    /// Last, it tries those that are isolated in part, which are in no set.
    #[inline(never)]
    fn try_any<T>(
        &self,
        order: u8,
        wanted: Wanted,
        nothing: bool,
        mut attempt: impl FnMut(usize) -> Attempt<T>,
    ) -> Option<T> {
        let below = self.blocks_below(wanted);
        let (mut every, mut lent) = match nothing {
            true => (0..0, None),
            false if order == 0 && !self.keeps_something() => (below.clone(), None),
            false => (0..0, Some(self.lent_blocks())),
        };
        let mut partly = self.partly_isolated();
        // One call of `attempt`, since its frame is large.
        while let Some(block) = every
            .next()
            .or_else(|| lent.as_mut()?.next())
            .or_else(|| partly.next())
        {
            if below.contains(&block)
                && let Attempt::Got(got) = attempt(block)
            {
                return Some(got);
            }
        }
        None
    }

    /// Returns the blocks in which the request may be served, as far as its limit tells.
    fn blocks_below(&self, wanted: Wanted) -> core::ops::Range<usize> {
        let limit = wanted.limit.unwrap_or(usize::MAX);
        0..limit.div_ceil(self.block_frames()).min(self.states.len())
    }

    // ---- without taking ----

    /// Returns true if a request that found nothing may be refused; false if frames that it may
    /// have could be in transit.
    #[inline(never)]
    pub fn may_refuse(&self, request: &Request) -> bool {
        let nothing = || self.totals.free.is_nothing();
        if request.order > Order::ZERO || !self.isolation.any() && nothing() {
            return true;
        }
        // The total also counts frames that a limit keeps from this request, and not those beside
        // isolated ones. So every block that might serve it, and that the total does not tell of,
        // is checked. If one has changed meanwhile, another CPU may have freed a frame behind this
        // look after taking one ahead of it.
        let wanted = self.wanted(request);
        let limited = wanted.limit.is_some();
        let below = self.blocks_below(wanted);
        let blocks = || {
            let every = if limited { below.clone() } else { 0..0 };
            every.chain(self.partly_isolated().filter(|block| below.contains(block)))
        };
        let before = self.states_of(blocks());
        let something = blocks().any(|block| self.there(block, wanted).any(|bits| bits != 0));
        !something && (limited || nothing()) && self.states_of(blocks()) == before
    }

    /// Returns the frames of each word of a block that a request may have, and that are free or may
    /// be in transit.
    pub(super) fn there(
        &self,
        block: usize,
        wanted: Wanted,
    ) -> impl Iterator<Item = u64> + use<'_> {
        let state = self.state(block);
        let first = self.first_word(block);
        (first..first + self.block_words()).map(move |word| self.bits_there(word, state, wanted))
    }

    /// Returns these frames of one word, in a block in this state.
    fn bits_there(&self, word: usize, state: BlockState, wanted: Wanted) -> u64 {
        match state.mode() {
            BlockMode::Huge => 0,
            BlockMode::Free | BlockMode::Changing => self.eligible(word, wanted),
            BlockMode::Open => self.visible(word, state, wanted),
        }
    }

    /// Returns the states of blocks, folded into one number. The number differs once any of them
    /// has changed, since each change advances a state's version; only a collision of 64 bits could
    /// hide that.
    fn states_of(&self, blocks: impl Iterator<Item = usize>) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        blocks.fold(0, |sum, block| {
            let bits = self.state(block).to_bits() ^ block as u64;
            (sum ^ bits).wrapping_mul(ODD).rotate_left(23)
        })
    }

    /// Returns true if the request can be served without mixing a page block: from one of its
    /// mobility, or one that is free as a whole. Looks at the roots of the sets, and if they have
    /// none, calls in the loans first.
    pub(crate) fn has_own(&self, request: &Request) -> bool {
        let order = request.order.get();
        if order >= self.block_order {
            return true;
        }
        let kind = request.mobility.into();
        let has = || {
            let mut sets = self.own_sets(order, kind);
            sets.any(|set| !self.index.is_empty(set))
        };
        has() || self.call_in_loans() && has()
    }

    /// Returns true if a set has a page block for the request, up to the order of page blocks.
    /// Looks at the roots of the sets only.
    pub(crate) fn may_have(&self, request: &Request) -> bool {
        let order = request.order.get();
        if order >= self.block_order {
            return order == self.block_order && !self.index.is_empty(Index::WHOLE);
        }
        let kind = request.mobility.into();
        let mut sets = self
            .own_sets(order, kind)
            .chain(self.foreign_sets(order, kind));
        sets.any(|set| !self.index.is_empty(set))
    }

    /// Returns true if a free block of this order can serve the request, of whatever mobility.
    pub fn can_serve(&self, request: &Request) -> bool {
        if request.order > self.max_order {
            return false;
        }
        let wanted = self.wanted(request);
        if request.order.get() >= self.block_order {
            return self.find_blocks(request.order.get(), wanted).is_some();
        }
        let order = request.order.get();
        let look = |block: usize| {
            let state = self.state(block);
            let bits = |word| self.bits_there(word, state, wanted);
            let enough =
                state.mode() != BlockMode::Changing && state.count() >= request.order.frames();
            if enough && self.find_run(block, order, bits).is_some() {
                Attempt::Got(())
            } else {
                Attempt::Nothing
            }
        };
        let mut luck = Luck::default();
        let own = self.own_sets(order, wanted.kind);
        let mut sets = own.chain(self.foreign_sets(order, wanted.kind));
        sets.any(|set| {
            self.try_set(set, wanted, &mut { look }, &mut luck)
                .is_some()
        }) || self
            .lent_blocks()
            .chain(self.partly_isolated())
            .any(|block| look(block) != Attempt::Nothing)
    }

    /// All mobilities that have sets.
    pub(super) const KINDS: [Mobility; 3] = Mobility::ALL;
}
