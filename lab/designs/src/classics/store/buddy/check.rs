//! Checks of every invariant of the buddy store, over the whole span.

use super::Buddy;
use crate::classics::store::grouping::Grouping;
use crate::classics::store::wrong;
use brickyard::block::{Census, State, Use};
use brickyard::check::Violation;
use brickyard::{Frame, FrameRange, MigrateType, Order};

impl<G: Grouping> Buddy<'_, G> {
    /// Checks every invariant of the store. O(span).
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        let census = self.check_blocks()?;
        self.check_lists()?;
        self.check_counters(&census)?;
        self.grouping.check(self)?;
        Ok(census)
    }

    /// Checks every block of the span, and counts frames.
    fn check_blocks(&self) -> Result<Census, Violation> {
        let mut census = Census::default();
        for (first, state) in self.table.heads(self.table.span()) {
            let frames = state.order.frames();
            match state.usage {
                Use::Free if state.kind == MigrateType::Isolate => census.isolated += frames,
                Use::Free => census.free += frames,
                Use::Allocated => census.allocated += frames,
                Use::Cached => census.cached += frames,
                Use::Reserved => census.reserved += frames,
                // `heads` returns no such block.
                Use::Inner => {}
            }
            self.check_block(first, state)?;
        }
        Ok(census)
    }

    fn check_block(&self, first: Frame, state: State) -> Result<(), Violation> {
        let block = FrameRange::of_block(first, state.order);
        if !first.is_aligned(state.order) || state.order > self.max_order {
            return wrong("exact-heads", "a block of a wrong order", first);
        }
        if !self.table.span().covers(block) {
            return wrong("exact-heads", "a block across the span's end", first);
        }
        let mut inner = FrameRange::new(first.number() + 1, block.end.number()).frames();
        if let Some(frame) = inner.find(|&frame| self.table.state(frame).usage != Use::Inner) {
            return wrong("exact-heads", "a block inside another", frame);
        }
        if state.usage == Use::Cached && state.order > Order::ZERO && !G::CACHES_BLOCKS {
            return wrong("cached-once", "a cached block above order 0", first);
        }
        if state.usage == Use::Free {
            self.check_free(first, state)?;
        }
        Ok(())
    }

    fn check_free(&self, first: Frame, state: State) -> Result<(), Violation> {
        let isolated = state.kind == MigrateType::Isolate;
        let whole = if self.anything_isolated() {
            self.isolated_as_a_whole(first, state.order, isolated)
        } else {
            !isolated
        };
        if !whole {
            return wrong("isolated-apart", "a free block on the wrong side", first);
        }
        let buddy = self.table.state(first.buddy(state.order));
        let unmerged = state.order < self.max_order
            && buddy.usage == Use::Free
            && buddy.order == state.order
            && (buddy.kind == MigrateType::Isolate) == isolated
            && self
                .grouping
                .may_merge(first, first.buddy(state.order), state.order);
        if unmerged {
            return wrong("fully-merged", "two free buddies", first);
        }
        Ok(())
    }

    /// Checks the lists.
    fn check_lists(&self) -> Result<(), Violation> {
        for order in Order::ZERO.up_to(Order::MAX) {
            for kind in MigrateType::ALL {
                let list = self.list(order, kind);
                if let Some(frame) = list.broken_at(&self.table) {
                    return wrong("on-its-list", "links that do not meet", frame);
                }
                let expected = State::new(Use::Free, order, kind);
                let mut blocks = list.iter(&self.table);
                if let Some(frame) = blocks.find(|&frame| self.table.state(frame) != expected) {
                    return wrong("on-its-list", "a block on a wrong list", frame);
                }
                let marked = self.nonempty[kind.index()].get() >> order.get() & 1 == 1;
                Violation::unless_equal(
                    "on-its-list",
                    "the mark of a list with blocks",
                    usize::from(!list.is_empty()),
                    usize::from(marked),
                )?;
            }
        }
        Ok(())
    }

    /// Compares the sums over the lists with the census and with the counters.
    fn check_counters(&self, census: &Census) -> Result<(), Violation> {
        let mut listed = 0;
        for kind in MigrateType::ALL {
            let frames = Order::ZERO
                .up_to(Order::MAX)
                .map(|order| self.list(order, kind).len() << order.get())
                .sum();
            Violation::unless_equal(
                "lists-summed",
                "free frames of a type",
                frames,
                self.free_of(kind),
            )?;
            listed += frames;
        }
        let walked = census.free + census.isolated;
        Violation::unless_equal("lists-summed", "free frames on lists", walked, listed)?;
        let in_use = census.allocated + census.cached;
        Violation::unless_equal(
            "lists-summed",
            "managed frames",
            walked + in_use,
            self.managed_frames(),
        )
    }
}
