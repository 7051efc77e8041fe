//! What a free must know of a single frame, in one byte for each page block.
//!
//! A free has to know whether a frame is a block of its own, all memory, in no isolated range, and
//! which mobility its neighbours have. The state of its page block says so, but every CPU that
//! takes from the block writes it, and it has to be decoded. A *class* is written seldom. So the
//! CPUs that free keep its cache line, which has the classes of 64 page blocks.
//!
//! A class is 0 (unknown: ask the state), or has these bits:
//!
//! | bits | field |
//! |---|---|
//! | 0..2 | the *place* of what is freed: the number of the mobility, or [`SPARSE`] |
//! | 2 | set |
//! | 3..5 | the number of the mobility |
//!
//! A block is *sparse* if much of it is free, and no CPU fetches from it. What is freed in it should
//! serve after what fuller blocks have, so stashes keep it apart. That is a hint: it follows the
//! state where the block changes its sets.
//!
//! Invariant `class-known`: if the class of a page block is a mobility, the block is open, all of
//! it is memory, nothing in it is isolated, and every block in use in it is a single frame. This
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
pub(crate) const SPARSE: usize = 3;

const _: () = assert!(Mobility::ALL.len() == SPARSE);

/// The bits of the place.
const PLACE: u8 = 3;

/// Returns the class of a page block of single frames of one mobility, which is not sparse.
const fn of(kind: MigrateType) -> u8 {
    let mobility = kind.index() as u8;
    mobility << 3 | 4 | mobility
}

/// Returns a class with the place of a block that is sparse, or is not.
const fn with_place(class: u8, is_sparse: bool) -> u8 {
    class & !PLACE | if is_sparse { SPARSE as u8 } else { class >> 3 }
}

/// Returns true if two classes are the same but for what is sparse.
const fn is_like(class: u8, other: u8) -> bool {
    class & !PLACE == other & !PLACE
}

impl Bitmap<'_> {
    /// Returns the place of what is freed in the page block of `offset`, if all that is in use there
    /// are single frames of one mobility, and a free need know no more: the number of the mobility,
    /// or [`SPARSE`]. `None` for a position outside all page blocks.
    #[inline(always)]
    pub(super) fn class_at(&self, offset: usize) -> Option<usize> {
        let class = self.classes.get(self.block_at(offset))?;
        // Relaxed: whoever owns the frame comes after the CPU that took it, and after what that CPU
        // made of the class.
        let class = class.load(Ordering::Relaxed);
        (class != UNKNOWN).then_some(usize::from(class & PLACE))
    }

    /// Returns the number of the mobility of the single frames in use in the page block of
    /// `offset`, if its class says so.
    pub(super) fn mobility_by_class(&self, offset: usize) -> Option<usize> {
        let class = self.classes.get(self.block_at(offset))?;
        // Relaxed: as in `class_at`.
        let class = class.load(Ordering::Relaxed);
        (class != UNKNOWN).then_some(usize::from(class >> 3))
    }

    /// Says that single frames of `kind` are all that is in use in a page block. The caller has it
    /// to itself.
    pub(super) fn begin_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: the change of state that opens the block publishes it.
        self.classes[block].store(of(kind), Ordering::Relaxed);
    }

    /// Says whether a page block is sparse, as its state says, which has just changed its sets.
    pub(super) fn follow_sparse(&self, block: usize, state: BlockState) {
        let is_sparse = state.is_open() && !state.is_unlisted() && self.index.is_sparse(state);
        // Relaxed, all: a hint, and an exchange that leaves the rest of the class as it is.
        let class = self.classes[block].load(Ordering::Relaxed);
        let now = with_place(class, is_sparse);
        if class != UNKNOWN && class != now {
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
        is_like(self.classes[block].load(Ordering::Relaxed), of(kind))
    }

    /// Ends the class of a page block if the single frames of `kind` that the caller has just taken
    /// do not belong to it.
    pub(super) fn keep_class(&self, block: usize, kind: MigrateType) {
        // Relaxed: as in `class_at`.
        let class = self.classes[block].load(Ordering::Relaxed);
        if class != UNKNOWN && !is_like(class, of(kind)) {
            self.end_class(block);
        }
    }
}
