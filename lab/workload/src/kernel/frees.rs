//! Frees: of a block by its owner, of parts of blocks as traces have them, and of all that belongs
//! to a process or a tree.

use brickyard::{Frame, Order};
use brickyard_designs::classics::LabZone;

use super::{Became, Freed, Kernel};
use crate::pages::{Block, Location, PageId};

impl<Z: LabZone> Kernel<'_, Z> {
    /// Frees the block that starts at `frame`. `None` if none in use does.
    pub fn release(&self, frame: Frame) -> Option<Block> {
        let block = self.state.borrow_mut().pages.remove(frame)?;
        self.give_back(block.frame, block.order);
        Some(block)
    }

    #[inline]
    pub(super) fn give_back(&self, frame: Frame, order: Order) {
        self.log(frame, order, Became::Freed);
        self.forget_dirty(frame);
        self.note_freed(frame);
        let freed = self.stopwatch.frees.time(|| self.nodes.free(frame, order));
        assert_eq!(freed, Ok(()), "both-ways: recorded blocks are in use");
    }

    /// Frees the 2^order pages at `page`, as a trace does: a block, a part of one, or several.
    #[inline]
    pub fn give(&self, page: PageId, order: Order) -> Freed {
        let removed = self.change(|pages| match pages.location(page) {
            Location::At(frame) => pages.remove_of(frame, order),
            _ => None,
        });
        match removed {
            Some(block) => {
                self.give_back(block.frame, order);
                Freed::Whole
            }
            None => self.give_parts(page, order),
        }
    }

    /// Frees pages that are not exactly one block.
    #[cold]
    fn give_parts(&self, page: PageId, order: Order) -> Freed {
        let end = u64::from(page.0) + order.frames() as u64;
        let mut outcome = Freed::Unknown;
        let mut at = u64::from(page.0);
        while at < end {
            let part = PageId(at as u32);
            let (done, frames) = self.give_part(part, order);
            outcome = match (outcome, done) {
                (Freed::Parts, _) | (_, Freed::Parts | Freed::Whole) => Freed::Parts,
                (Freed::Unknown, other) => other,
                (known, _) => known,
            };
            at += frames;
        }
        outcome
    }

    /// Frees the block, or part of one, at `page`, up to 2^order pages. Returns the outcome and the
    /// number of pages that it covers.
    fn give_part(&self, page: PageId, order: Order) -> (Freed, u64) {
        let mut state = self.state.borrow_mut();
        let around = state.pages.location_around(page);
        let (first, frame) = match around {
            Some((first, Location::At(frame))) => (first, frame),
            Some((_, Location::Reclaimed)) => {
                state.pages.set_absent(page, Location::Unknown);
                return (Freed::WasReclaimed, 1);
            }
            Some((_, Location::Refused)) => {
                state.pages.set_absent(page, Location::Unknown);
                return (Freed::WasRefused, 1);
            }
            _ => return (Freed::Unknown, 1),
        };
        let part = frame.plus((page.0 - first.0) as usize);
        let Some(block) = state.pages.block(frame) else {
            return (Freed::Unknown, 1);
        };
        // The whole block if it is no larger, else its part of that size. (A damaged trace may free
        // across blocks: then at most the aligned part.)
        let aligned = Order::new(
            part.number()
                .trailing_zeros()
                .min(u32::from(Order::MAX.get())) as u8,
        );
        let size = block.order.min(order).min(aligned);
        if block.order > size {
            state.pages.split(frame, part, size);
        }
        state.pages.remove(part);
        drop(state);
        self.give_back(part, size);
        (Freed::Parts, size.frames() as u64)
    }

    /// Frees every block for which `ends` is true, when processes end or trees are deleted. Returns
    /// the frames freed.
    pub fn end(&self, ends: impl Fn(&Block) -> bool) -> usize {
        let going: Vec<Frame> = self.look(|pages| {
            let going = pages.blocks().filter(|block| ends(block));
            going.map(|block| block.frame).collect()
        });
        let freed = going.into_iter().filter_map(|frame| self.release(frame));
        freed.map(|block| block.order.frames()).sum()
    }
}
