//! What a free must know of a single frame, in one byte for each page block.
//!
//! A free has to know whether a frame is a block of its own, all memory, in no isolated range, and
//! which mobility its neighbours have. The state of its page block says so, but every CPU that
//! takes from the block writes it, and it has to be decoded. A *class* is written seldom. So the
//! CPUs that free keep its cache line, which has the classes of 64 page blocks.
//!
//! A class is 0 (unknown: ask the state), or one more than the number of a mobility.
//!
//! Invariant `class-known`: if the class of a page block is a mobility, the block is open, all of
//! it is memory, nothing in it is isolated, and every block in use in it is a single frame. This
//! holds for whoever owns a frame of it, and for all while no CPU is at work. It follows from two
//! rules:
//!
//! - Only a CPU that has the page block to itself (`Changing`) gives it a class other than 0. Any
//!   CPU may make it 0 at any time.
//! - It is made 0 before a block of several frames is handed out, and before isolation or the
//!   removal of frames is complete.

use brickyard_sync::Ordering;

use super::Bitmap;
use crate::{MigrateType, Mobility};

/// Nothing is known.
const UNKNOWN: u8 = 0;

/// Returns the class of a page block of single frames of one mobility.
const fn of(kind: MigrateType) -> u8 {
    1 + kind.index() as u8
}

impl Bitmap<'_> {
    /// Returns the number of the mobility of all that is in use in the page block of `offset`, if
    /// those are single frames and a free need know no more. `None` for a position outside all
    /// page blocks.
    #[inline(always)]
    pub(super) fn class_at(&self, offset: usize) -> Option<usize> {
        let class = self.classes.get(self.block_at(offset))?;
        // Relaxed: whoever owns the frame comes after the CPU that took it, and after what that CPU
        // made of the class.
        let mobility = usize::from(class.load(Ordering::Relaxed).wrapping_sub(1));
        (mobility < Mobility::ALL.len()).then_some(mobility)
    }

    /// Says that single frames of `kind` are all that is in use in a page block. The caller has it
    /// to itself.
    pub(super) fn begin_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: the change of state that opens the block publishes it.
        self.classes[block].store(of(kind), Ordering::Relaxed);
    }

    /// Says that nothing is known of what is in use in a page block.
    pub(super) fn end_class(&self, block: usize) {
        // Relaxed: whoever gets the frames for whose sake this is called comes after it.
        self.classes[block].store(UNKNOWN, Ordering::Relaxed);
    }

    /// Says that nothing is known of what is in use in a page block: also to whoever has frames of
    /// it already, and before anything that the caller reads next. A drain after isolation looks
    /// which stashes are empty.
    pub(super) fn end_class_for_all(&self, block: usize) {
        // AcqRel: an exchange, so that it comes before the loads that follow it.
        self.classes[block].swap(UNKNOWN, Ordering::AcqRel);
    }

    /// Returns true if the class of a page block is that of single frames of `kind`.
    pub(super) fn has_class(&self, block: usize, kind: MigrateType) -> bool {
        // Relaxed: as in `class_at`.
        self.classes[block].load(Ordering::Relaxed) == of(kind)
    }

    /// Ends the class of a page block if the single frames of `kind` that the caller has just taken
    /// do not belong to it.
    pub(super) fn keep_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: as in `class_at`.
        let class = self.classes[block].load(Ordering::Relaxed);
        if class != of(kind) && class != UNKNOWN {
            self.end_class(block);
        }
    }
}
