//! Tests of every invariant of the bitmap store, over the whole span. No other CPU may be using it.

use brickyard_sync::Ordering;

use super::Bitmap;
use super::state::{BlockMode, BlockState};
use super::summary::{End, GRADES, Index, Set};
use super::totals::NEIGHBOURS;
use super::trees::FANOUT;
use super::word::{WORD_FRAMES, WORD_ORDER};
use crate::block::{Census, State, Use};
use crate::check::Violation;
use crate::{Frame, FrameRange, MigrateType, Order};

impl Bitmap<'_> {
    /// Tests every invariant of the store. O(span).
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        let mut census = Census::default();
        let mut free = 0;
        for block in 0..self.states.len() {
            let state = self.state(block);
            match state.mode() {
                BlockMode::Open => self.check_open(block, state)?,
                BlockMode::Free | BlockMode::Huge => self.check_whole(block, state)?,
                BlockMode::Changing => {
                    let found = "a block whose words are being written";
                    return Err(Violation::at("one-owner", found, self.start_of(block)));
                }
            }
            self.check_indexed(block, state)?;
            self.count(block, state, &mut census);
            let frames = FrameRange::at(self.start_of(block), self.block_frames());
            if state.is_isolated() != self.isolation.overlaps(frames) {
                let found = "a block that does not know whether a part of it is isolated";
                return Err(Violation::at("counted", found, self.start_of(block)));
            }
            if !state.is_isolated() {
                free += state.count();
            }
        }
        let lent = (0..self.states.len()).filter(|&block| self.state(block).is_lent());
        let lent = lent.count();
        // Relaxed: no other CPU is at work.
        let counted = self.totals.lent.load(Ordering::Relaxed);
        Violation::unless_equal("counted", "blocks that are lent", lent, counted)?;
        let known = self.lent_blocks().count();
        Violation::unless_equal("indexed", "blocks known as lent", lent, known)?;
        let (named, counted) = self.slots_named();
        Violation::unless_equal("aside-named", "blocks named as set aside", named, counted)?;
        self.check_found()?;
        self.check_blocks()?;
        let counted = self.totals.free.frames();
        Violation::unless_equal("counted", "free frames of the total", free, counted)?;
        let counted = self.free_frames();
        Violation::unless_equal("counted", "free frames in all", census.free, counted)?;
        // Relaxed: no other CPU is at work.
        let managed = self.totals.managed.load(Ordering::Relaxed);
        let memory = census.free + census.isolated + census.allocated;
        Violation::unless_equal("counted", "managed frames", memory, managed)?;
        Ok(census)
    }

    fn check_open(&self, block: usize, state: BlockState) -> Result<(), Violation> {
        let at = |found| Violation::at("one-owner", found, self.start_of(block));
        let first = self.first_word(block);
        let (mut free, mut solid, mut joined) = (0, true, 0);
        for place in first..first + self.block_words() {
            let (bits, memory) = (self.free_bits(place), self.memory_bits(place));
            if bits & !memory != 0 {
                return Err(at("a free frame that is no memory"));
            }
            if bits & self.inner_bits(place) != 0 {
                return Err(at("a free frame inside a block in use"));
            }
            free += bits.count_ones() as usize;
            solid &= memory == !0;
            joined |= self.inner_bits(place) & memory;
        }
        Violation::unless_equal("counted", "free frames of a block", free, state.count())?;
        let run = self.largest_run(block, |word| self.free_bits(word));
        if free > 0 && run > state.run() {
            return Err(at("a run that its block does not know of"));
        }
        if state.is_solid() != solid {
            return Err(at("a block that does not know whether all of it is memory"));
        }
        if joined != 0 && !state.is_joined() {
            return Err(at("a block of several frames in one of single frames"));
        }
        if state.is_tail() {
            return Err(at("an open block in a group"));
        }
        let plain = joined == 0 && solid && !state.is_isolated();
        if self.is_class_known(block) && !plain {
            let found = "a class of single frames where there may be others";
            return Err(Violation::at("class-known", found, self.start_of(block)));
        }
        Ok(())
    }

    fn check_whole(&self, block: usize, state: BlockState) -> Result<(), Violation> {
        let at = |found| Err(Violation::at("one-owner", found, self.start_of(block)));
        let first = self.first_word(block);
        for place in first..first + self.block_words() {
            let inner = !u64::from(place == first);
            if self.free_bits(place) != 0 || self.inner_bits(place) != inner {
                return at("words of a whole block that do not say one block in use");
            }
            if self.memory_bits(place) != !0 {
                return at("a whole block with a hole");
            }
        }
        if self.is_class_known(block) {
            return at("a class of single frames in a whole block");
        }
        let expected = match state.mode() {
            BlockMode::Free => self.block_frames(),
            _ => 0,
        };
        Violation::unless_equal("counted", "free frames of a block", expected, state.count())?;
        let flagged = state.is_lent() || state.is_aside();
        if !state.is_solid() || flagged || state.mode() == BlockMode::Free && state.is_tail() {
            return at("flags that a whole block cannot have");
        }
        Ok(())
    }

    /// Returns every set.
    fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        let kinds = Self::KINDS.map(MigrateType::from);
        let graded = kinds
            .into_iter()
            .flat_map(move |kind| (0..GRADES).map(move |grade| self.index.of_grade(kind, grade)));
        let runs = kinds.into_iter().flat_map(move |kind| {
            (1..self.block_order).map(move |order| self.index.of_run(kind, order))
        });
        graded.chain(runs).chain([Index::WHOLE])
    }

    /// Tests that a search finds all that is in every set, and nothing else: no bit may be missing
    /// in a level above, or be left over.
    fn check_found(&self) -> Result<(), Violation> {
        if !self.index.is_linked() || !self.lent.is_linked(1) {
            let found = "a bit that the words below do not bear out";
            return Err(Violation::at("indexed", found, self.span.start));
        }
        for set in self.sets() {
            let blocks = 0..self.states.len();
            let inside = blocks.filter(|block| self.index.contains(set, block + self.phase));
            let mut found = 0;
            let mut next = self.index.find(set, 0, End::Low);
            while let Some(position) = next {
                found += 1;
                next = self.index.find(set, position + 1, End::Low);
            }
            Violation::unless_equal("indexed", "blocks found in a set", inside.count(), found)?;
        }
        Ok(())
    }

    fn check_indexed(&self, block: usize, state: BlockState) -> Result<(), Violation> {
        let position = block + self.phase;
        let belongs = self.index.sets_of(state);
        let wrong = |set| self.index.contains(set, position) != belongs.contains(&Some(set));
        if self.sets().any(wrong) {
            let found = "a block in a wrong set";
            return Err(Violation::at("indexed", found, self.start_of(block)));
        }
        // Once for each line, and for each leaf.
        if block.is_multiple_of(NEIGHBOURS) && !self.is_known_as_lent(block) {
            let found = "a loan that is not known, or is over";
            return Err(Violation::at("indexed", found, self.start_of(block)));
        }
        if !self.is_named_if_aside(block) {
            let found = "a block that is set aside and not known as such";
            return Err(Violation::at("aside-named", found, self.start_of(block)));
        }
        let first_of_leaf = block == 0 || position.is_multiple_of(FANOUT);
        if first_of_leaf && !self.index.is_grouped(position / FANOUT) {
            let found = "groups that the index does not know of, or that are not there";
            return Err(Violation::at("indexed", found, self.start_of(block)));
        }
        Ok(())
    }

    fn count(&self, block: usize, state: BlockState, census: &mut Census) {
        let first = self.first_word(block);
        for place in first..first + self.block_words() {
            let memory = self.memory_bits(place);
            let free = match state.mode() {
                BlockMode::Free | BlockMode::Changing => !0,
                BlockMode::Huge => 0,
                BlockMode::Open => self.free_bits(place),
            };
            let isolated = if self.isolation.any() {
                self.isolated_bits(place)
            } else {
                0
            };
            census.free += (free & !isolated).count_ones() as usize;
            census.isolated += (free & isolated).count_ones() as usize;
            census.allocated += (memory & !free).count_ones() as usize;
            census.reserved += (!memory & self.inner_bits(place)).count_ones() as usize;
        }
    }

    /// Invariant `small-told`: what a stash asks of a small block in use, in one look, is what the
    /// store knows of it; and of nothing else is it told that it is one.
    fn check_small(&self, first: Frame, block: State) -> Result<(), Violation> {
        let offset = self.offset(first);
        let known = self.state(self.block_at(offset)).is_all_memory();
        for order in Order::new(1).up_to(Order::new(WORD_ORDER - 1)) {
            let is_one = block.usage == Use::Allocated && block.order == order && known;
            let mobility = is_one.then(|| self.mobility_of(offset).index());
            if self.mobility_of_small(offset, order) != mobility {
                return Err(Violation::at("small-told", "a small block mistaken", first));
            }
        }
        Ok(())
    }

    /// Walks the span from block to block. Each must be aligned and end where the next begins.
    fn check_blocks(&self) -> Result<(), Violation> {
        let mut at = self.span.start;
        while at < self.span.end {
            let Some((first, state)) = self.block_of(at) else {
                at = at.plus(1);
                continue;
            };
            let torn = first != at && state.usage == Use::Allocated;
            if torn || !first.is_aligned(state.order) || state.order > self.max_order {
                return Err(Violation::at("whole-blocks", "a block that is torn", at));
            }
            let word = self.offset(at) / WORD_FRAMES;
            debug_assert!(word < self.free.len(), "a frame of the span has words");
            self.check_small(first, state)?;
            at = first.plus(state.order.frames());
        }
        Ok(())
    }
}
