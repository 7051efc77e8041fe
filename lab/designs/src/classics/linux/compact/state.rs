//! What compaction remembers of a zone: where its scanners stood, which page blocks gave nothing,
//! and when it failed.
//!
//! | event | positions | skip bits |
//! |---|---|---|
//! | a page block was scanned to its end and gave nothing, or twice | move on | its bit is set |
//! | pages were taken from a page block, from its first frame on | | its bit is set |
//! | the scanners have met | back to the ends of the zone | |
//! | background reclaim ends, and a direct compaction had met | back | cleared |
//! | the first try after the longest pause | back | cleared |

use brickyard::sync::{AtomicU32, AtomicUsize, Ordering};
use brickyard::{Frame, FrameRange, Order};

use super::deferral::Deferral;
use crate::classics::store::grouping::PageBlocks;

/// Skip bits in a word.
const BITS: usize = u32::BITS as usize;

/// What is remembered of one zone. All of it are guesses that only steer effort, so races between
/// CPUs do no harm.
#[derive(Debug)]
pub(in crate::classics::linux) struct CompactionState<'m> {
    pub(super) deferral: Deferral,
    span: FrameRange,
    // That of page blocks.
    order: Order,
    // Everything below has been searched for pages to move: when they were tried gently, and when
    // thoroughly.
    gentle: AtomicUsize,
    thorough: AtomicUsize,
    // Everything above has been searched for free places.
    free: AtomicUsize,
    // 1 from a direct compaction whose scanners met until the skip bits are cleared.
    met: AtomicU32,
    // A bit for each page block.
    skips: &'m [AtomicU32],
}

impl<'m> CompactionState<'m> {
    /// Returns how many words of skip bits a zone needs.
    pub(in crate::classics::linux) const fn words_for(span: FrameRange, order: Order) -> usize {
        PageBlocks::blocks_in(span, order).div_ceil(BITS)
    }

    /// Returns the memory of a zone where nothing has been tried yet.
    pub(in crate::classics::linux) const fn new(
        span: FrameRange,
        order: Order,
        skips: &'m [AtomicU32],
    ) -> Self {
        assert!(
            skips.len() >= Self::words_for(span, order),
            "a bit for each page block"
        );
        Self {
            deferral: Deferral::new(),
            span,
            order,
            gentle: AtomicUsize::new(0),
            thorough: AtomicUsize::new(0),
            free: AtomicUsize::new(usize::MAX),
            met: AtomicU32::new(0),
            skips,
        }
    }

    /// Returns the start of the zone's last page block, where the search for free places begins.
    pub(super) fn last_block(&self) -> Frame {
        let last = Frame::new(self.span.end.number().saturating_sub(1));
        last.align_down(self.order).max(self.span.start)
    }

    // Relaxed, in all of these: see `CompactionState`.

    /// Returns where a search for pages to move begins.
    pub(super) fn source(&self, gently: bool) -> Frame {
        let position = if gently { &self.gentle } else { &self.thorough };
        let at = Frame::new(position.load(Ordering::Relaxed));
        if self.span.contains(at) {
            at
        } else {
            self.span.start
        }
    }

    /// Notes that everything below `at` was searched for pages to move.
    pub(super) fn source_passed(&self, at: Frame, gently: bool) {
        let raise = |position: &AtomicUsize| {
            if at.number() > position.load(Ordering::Relaxed) {
                position.store(at.number(), Ordering::Relaxed);
            }
        };
        raise(&self.gentle);
        if !gently {
            raise(&self.thorough);
        }
    }

    /// Returns true if thorough searches begin where gentle ones do.
    pub(super) fn is_in_step(&self) -> bool {
        self.source(true) == self.source(false)
    }

    /// Lets thorough searches begin where gentle ones do.
    pub(super) fn bring_in_step(&self) {
        let gentle = self.gentle.load(Ordering::Relaxed);
        self.thorough.store(gentle, Ordering::Relaxed);
    }

    /// Returns where a search for free places begins, downwards.
    pub(super) fn target(&self) -> Frame {
        let at = Frame::new(self.free.load(Ordering::Relaxed));
        if self.span.contains(at) {
            at
        } else {
            self.last_block()
        }
    }

    /// Notes that everything above the page block of `at` was searched for free places.
    pub(super) fn target_passed(&self, at: Frame) {
        if at < self.target() {
            self.free.store(at.number(), Ordering::Relaxed);
        }
    }

    /// Notes that the page block at `at` has free places again.
    pub(super) fn target_returned(&self, at: Frame) {
        if at > self.target() {
            self.free.store(at.number(), Ordering::Relaxed);
        }
    }

    /// Sets where a search for free places begins.
    pub(super) fn set_target(&self, at: Frame) {
        self.free.store(at.number(), Ordering::Relaxed);
    }

    /// Lets the next searches begin at the ends of the zone.
    pub(super) fn reset_positions(&self) {
        self.gentle.store(0, Ordering::Relaxed);
        self.thorough.store(0, Ordering::Relaxed);
        self.free.store(usize::MAX, Ordering::Relaxed);
    }

    /// Returns true if the page block of `frame` is to be skipped.
    pub(in crate::classics::linux) fn is_skipped(&self, frame: Frame) -> bool {
        let (word, bit) = self.bit(frame);
        self.skips[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Lets the page block of `frame` be skipped from now on.
    pub(super) fn set_skipped(&self, frame: Frame) {
        let (word, bit) = self.bit(frame);
        self.skips[word].fetch_or(bit, Ordering::Relaxed);
    }

    fn bit(&self, frame: Frame) -> (usize, u32) {
        let first = self.span.start.number() >> self.order.get();
        let block = (frame.number() >> self.order.get()) - first;
        (block / BITS, 1 << (block % BITS))
    }

    /// Clears all skip bits, and lets the next searches begin at the ends of the zone. O(page
    /// blocks / 32).
    pub(super) fn restart(&self) {
        for word in self.skips {
            word.store(0, Ordering::Relaxed);
        }
        self.met.store(0, Ordering::Relaxed);
        self.reset_positions();
    }

    /// Notes that the scanners of a direct compaction have met.
    pub(super) fn set_met(&self) {
        self.met.store(1, Ordering::Relaxed);
    }

    /// Notes that background reclaim ends: what it freed may have changed what was skipped.
    pub(in crate::classics::linux) fn reclaimed(&self) {
        if self.met.load(Ordering::Relaxed) != 0 {
            self.restart();
        }
    }

    /// Notes that a request for `order` got its block after a compaction.
    pub(in crate::classics::linux) fn served(&self, order: Order) {
        self.met.store(0, Ordering::Relaxed);
        self.deferral.served(order);
    }
}
