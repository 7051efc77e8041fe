//! What a free must know of a single frame, in one byte for each page block.
//!
//! A free has to know whether a frame is a block of its own, all memory, in no isolated range, and
//! which mobility its neighbours have. The state of its page block says so, but every CPU that
//! takes from the block writes it, and it has to be decoded. A *class* is written seldom. So the
//! CPUs that free keep its cache line, which has the classes of 64 page blocks.
//!
//! A class is 0 (unknown: ask the state), or 1 and the number of the mobility, and 4 more if the
//! block is sparse.
//!
//! A block is *sparse* if much of it is free, no CPU has it on loan, and few frames at a time came
//! back to it after the last were taken from it. What is freed in it should serve after what fuller
//! blocks have, so stashes keep it apart. What is freed in a block that a CPU has just fetched from,
//! or that is freed in one go, serves at once. It is a hint: no request is served otherwise for a
//! wrong one.
//!
//! Invariant `class-known`: if the class of a page block is known, the block is open, all of it is
//! memory, nothing in it is isolated, and every block in use in it is a single frame. This
//! holds for whoever owns a frame of it, and for all while no CPU is at work. It follows from two
//! rules:
//!
//! - Only a CPU that has the page block to itself (`Changing`) gives it a class other than 0. Any
//!   CPU may make it 0 at any time, or say whether it is sparse, which leaves a 0 as it is.
//! - It is made 0 before a block of several frames is handed out, and before isolation or the
//!   removal of frames is complete.

use brickyard_sync::Ordering;

use super::Bitmap;
use super::state::BlockState;
use crate::{MigrateType, Mobility};

/// Nothing is known.
const UNKNOWN: u8 = 0;

/// The place of what is freed in sparse blocks. The other places are the numbers of mobilities.
pub(crate) const SPARSE: usize = Mobility::ALL.len();

/// What the class of a sparse block has more.
const SPARSE_BIT: u8 = 4;

const _: () = assert!(Mobility::ALL.len() < SPARSE_BIT as usize);

/// A block to which more frames come back at once is not sparse for that.
const FEW: usize = 32;

/// Returns the class of a page block of single frames of one mobility, which is not sparse.
const fn of(kind: MigrateType) -> u8 {
    1 + kind.index() as u8
}

impl Bitmap<'_> {
    /// Returns the number of the mobility of all that is in use in the page block of `offset`, if
    /// those are single frames, a free need know no more, and the block is not sparse. `None` for a
    /// position outside all page blocks.
    #[inline(always)]
    pub(super) fn class_at(&self, offset: usize) -> Option<usize> {
        let class = self.classes.get(self.block_at(offset))?;
        // Relaxed: whoever owns the frame comes after the CPU that took it, and after what that CPU
        // made of the class.
        let mobility = usize::from(class.load(Ordering::Relaxed).wrapping_sub(1));
        (mobility < Mobility::ALL.len()).then_some(mobility)
    }

    /// Returns the number of the mobility of all that is in use in the page block of `offset`, as
    /// [`Self::class_at`] does, if the block is sparse.
    pub(super) fn sparse_class_at(&self, offset: usize) -> Option<usize> {
        let class = self.classes.get(self.block_at(offset))?;
        // Relaxed: as in `class_at`.
        let mobility = class.load(Ordering::Relaxed).checked_sub(SPARSE_BIT + 1)?;
        Some(usize::from(mobility))
    }

    /// Returns true if the class of a page block is known.
    pub(super) fn is_class_known(&self, block: usize) -> bool {
        // Relaxed: as in `class_at`.
        self.classes[block].load(Ordering::Relaxed) != UNKNOWN
    }

    /// Says that single frames of `kind` are all that is in use in a page block. The caller has it
    /// to itself.
    pub(super) fn begin_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: the change of state that opens the block publishes it.
        self.classes[block].store(of(kind), Ordering::Relaxed);
    }

    /// Says whether a page block is sparse to which so many frames have just come back, and which is
    /// now in this state.
    pub(super) fn follow_sparse(&self, block: usize, state: BlockState, frames: usize) {
        let is_sparse =
            frames <= FEW && state.is_open() && !state.is_unlisted() && self.index.is_sparse(state);
        if is_sparse {
            // Relaxed: as in `class_at`.
            let class = self.classes[block].load(Ordering::Relaxed);
            self.replace_class(block, class, class | SPARSE_BIT);
        }
    }

    /// Replaces a class that is known by one that differs in whether the block is sparse.
    fn replace_class(&self, block: usize, class: u8, now: u8) {
        if class != UNKNOWN && class != now {
            // Relaxed: a hint, and an exchange that leaves the rest of the class as it is.
            let relaxed = Ordering::Relaxed;
            let _ = self.classes[block].compare_exchange(class, now, relaxed, relaxed);
        }
    }

    /// Says that nothing is known of what is in use in a page block.
    pub(super) fn end_class(&self, block: usize) {
        // Relaxed: whoever gets the frames for whose sake this is called comes after it.
        #[cfg(not(loom))]
        self.classes[block].store(UNKNOWN, Ordering::Relaxed);
        // An exchange that found another class comes before this. Loom orders only exchanges so.
        #[cfg(loom)]
        self.classes[block].swap(UNKNOWN, Ordering::Relaxed);
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
        self.classes[block].load(Ordering::Relaxed) & !SPARSE_BIT == of(kind)
    }

    /// Ends the class of a page block if the single frames of `kind` that the caller has just taken
    /// do not belong to it; says that it is not sparse if they do.
    pub(super) fn keep_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: as in `class_at`.
        let class = self.classes[block].load(Ordering::Relaxed);
        if class & !SPARSE_BIT == of(kind) {
            self.replace_class(block, class, of(kind));
        } else if class != UNKNOWN {
            self.end_class(block);
        }
    }
}
