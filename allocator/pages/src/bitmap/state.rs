//! The state of a page block, in one word that every change replaces by compare-and-swap.
//!
//! | bits | field |
//! |---|---|
//! | 0..14 | frames free and not promised |
//! | 14..18 | the order of the largest free run, below the block's own |
//! | 18..20 | the mobility that the block is for |
//! | 20..22 | its [`BlockMode`] |
//! | 22 | `TAIL`: it continues the block in use that the page block before it belongs to |
//! | 23 | `JOINED`: it may contain blocks in use of order 1 and up |
//! | 24 | `SOLID`: each of its frames is memory |
//! | 25 | `ISOLATED`: a part of it is isolated |
//! | 26..34 | the eighths that may contain other than movable frames |
//! | 34 | `LENT`: it is in no set, since a CPU's stash fetches from it |
//! | 35 | `ASIDE`: it is in no set, since it is kept for atomic requests (`reserve.rs`) |
//! | 36..64 | a version, so that no change is mistaken for another |
//!
//! All zero means a block with no memory at all.

use crate::MigrateType;

/// What tells which frames of a block are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockMode {
    /// The block's words tell.
    Open = 0,
    /// All of it is free.
    Free = 1,
    /// All of it is in use by one owner, alone or as part of something larger.
    Huge = 2,
    /// All of it is free, and a CPU is writing its words.
    Changing = 3,
}

/// The state of a page block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BlockState(u64);

const COUNT: u64 = (1 << 14) - 1;
const RUN_SHIFT: u32 = 14;
const RUN: u64 = 0xf << RUN_SHIFT;
const KIND_SHIFT: u32 = 18;
const KIND: u64 = 3 << KIND_SHIFT;
const MODE_SHIFT: u32 = 20;
const MODE: u64 = 3 << MODE_SHIFT;
const TAIL: u64 = 1 << 22;
const JOINED: u64 = 1 << 23;
const SOLID: u64 = 1 << 24;
const ISOLATED: u64 = 1 << 25;
const MIXED_SHIFT: u32 = 26;
const MIXED: u64 = 0xff << MIXED_SHIFT;
const LENT: u64 = 1 << 34;
const ASIDE: u64 = 1 << 35;
const VERSION: u64 = 1 << 36;

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident $is:ident $with:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(super) const fn $is(self) -> bool {
            self.0 & $flag != 0
        }

        #[inline]
        #[must_use]
        pub(super) const fn $with(self, is: bool) -> Self {
            Self(self.0 & !$flag | if is { $flag } else { 0 })
        }
    )*};
}

impl BlockState {
    flags! {
        TAIL is_tail with_tail;
        JOINED is_joined with_joined;
        SOLID is_solid with_solid;
        ISOLATED is_isolated with_isolated;
        LENT is_lent with_lent;
        /// Returns true if the block is kept for atomic requests.
        ASIDE is_aside with_aside;
    }

    #[inline]
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the number of frames that are free and not promised.
    #[inline]
    pub(super) const fn count(self) -> usize {
        (self.0 & COUNT) as usize
    }

    /// Returns the order of the largest free run. It means nothing if no frame is free.
    #[inline]
    pub(super) const fn run(self) -> u8 {
        ((self.0 & RUN) >> RUN_SHIFT) as u8
    }

    /// Returns the mobility that the block is for.
    #[inline]
    pub(super) const fn kind(self) -> MigrateType {
        MigrateType::from_bits(((self.0 & KIND) >> KIND_SHIFT) as u32)
    }

    /// Returns the type to tell others: the mobility that the block is for, unless it is set aside.
    pub(super) const fn shown_kind(self) -> MigrateType {
        match self.is_aside() {
            true => MigrateType::HighAtomic,
            false => self.kind(),
        }
    }

    /// Returns the number of the mobility that the block is for, as [`MigrateType::index`] does.
    #[inline]
    pub(super) const fn kind_number(self) -> usize {
        ((self.0 & KIND) >> KIND_SHIFT) as usize
    }

    /// Returns the number of the mobility of single frames in use in an eighth of the block. This
    /// is movable if no other mobility may be near. Otherwise it is the block's own mobility, or
    /// unmovable in a movable block.
    #[inline]
    pub(super) const fn mobility_in(self, eighth: usize) -> usize {
        const MOVABLE: usize = MigrateType::Movable.index();
        // Of the numbers 0, 1 and 2, the middle one is movable.
        const { assert!(MOVABLE == 1) };
        if self.0 >> MIXED_SHIFT >> eighth & 1 == 0 {
            return MOVABLE;
        }
        (self.0 >> KIND_SHIFT) as usize & (3 & !MOVABLE)
    }

    #[inline]
    pub(super) const fn mode(self) -> BlockMode {
        match (self.0 & MODE) >> MODE_SHIFT {
            0 => BlockMode::Open,
            1 => BlockMode::Free,
            2 => BlockMode::Huge,
            _ => BlockMode::Changing,
        }
    }

    #[inline]
    pub(super) const fn is_open(self) -> bool {
        self.0 & MODE == 0
    }

    /// Returns true if the block may go on loan: it is open, and kept for nobody.
    #[inline]
    pub(super) const fn may_be_lent(self) -> bool {
        self.0 & (MODE | ASIDE) == 0
    }

    /// Returns true if a part of the block is isolated, or the block is kept for atomic requests.
    #[inline]
    pub(super) const fn is_kept(self) -> bool {
        self.0 & (ISOLATED | ASIDE) != 0
    }

    /// Returns true if the block is in no set whatever is free in it: it is isolated, on loan, or
    /// kept for atomic requests.
    #[inline]
    pub(super) const fn is_unlisted(self) -> bool {
        self.0 & (ISOLATED | LENT | ASIDE) != 0
    }

    /// Returns true if the block is open, all of it is memory, and nothing is isolated.
    #[inline]
    pub(super) const fn is_all_memory(self) -> bool {
        self.0 & (MODE | SOLID | ISOLATED) == SOLID
    }

    /// Returns true if the block is open, all of it is memory, nothing is isolated, and every block
    /// in use in it is a single frame.
    #[inline]
    pub(super) const fn is_plain(self) -> bool {
        self.is_all_memory() && !self.is_joined()
    }

    /// Returns true if all of the block is in use by one owner, it continues no other block, and
    /// nothing is isolated.
    #[inline]
    pub(super) const fn is_head(self) -> bool {
        const HUGE: u64 = (BlockMode::Huge as u64) << MODE_SHIFT;
        self.0 & (MODE | TAIL | ISOLATED) == HUGE
    }

    /// Returns true if all of the block, which has so many frames, is free, and it is neither
    /// isolated, nor lent, nor kept for atomic requests, nor changing.
    #[inline]
    pub(super) const fn is_whole(self, frames: usize) -> bool {
        // Of the modes, those above `Free` have this bit.
        const TAKEN: u64 = (BlockMode::Huge as u64) << MODE_SHIFT;
        const { assert!(TAKEN == (BlockMode::Huge as u64 & BlockMode::Changing as u64) << MODE_SHIFT) };
        self.0 & (COUNT | TAKEN | ISOLATED | LENT | ASIDE) == frames as u64
    }

    /// Returns true if other than movable frames may lie in this eighth.
    #[cfg(test)]
    pub(super) const fn is_mixed(self, eighth: usize) -> bool {
        self.0 >> (MIXED_SHIFT + eighth as u32) & 1 != 0
    }

    /// Sets the number of free frames, and the order of the largest run to `run`.
    #[inline]
    #[must_use]
    pub(super) const fn with_free(self, count: usize, run: u8) -> Self {
        Self(self.0 & !(COUNT | RUN) | count as u64 | (run as u64) << RUN_SHIFT)
    }

    /// Sets the mobility.
    #[inline]
    #[must_use]
    pub(super) const fn with_kind(self, kind: MigrateType) -> Self {
        Self(self.0 & !KIND | (kind as u64) << KIND_SHIFT)
    }

    #[inline]
    #[must_use]
    pub(super) const fn with_mode(self, mode: BlockMode) -> Self {
        Self(self.0 & !MODE | (mode as u64) << MODE_SHIFT)
    }

    /// Marks these eighths as mixed, in addition to others.
    #[inline]
    #[must_use]
    pub(super) const fn with_mixed(self, eighths: u8) -> Self {
        Self(self.0 | (eighths as u64) << MIXED_SHIFT)
    }

    /// Declares that nothing in the block is in use: nothing is mixed, nothing is joined.
    #[inline]
    #[must_use]
    pub(super) const fn unmixed(self) -> Self {
        Self(self.0 & !(MIXED | JOINED))
    }

    /// Returns the state of a block that has just been taken as a whole: nothing in it is free,
    /// mixed, joined or lent, and it is no longer kept for anybody.
    #[inline]
    #[must_use]
    pub(super) const fn taken_whole(self, kind: MigrateType, tail: bool) -> Self {
        const KEPT: u64 = !(COUNT | RUN | KIND | MODE | TAIL | JOINED | MIXED | LENT | ASIDE);
        let huge = (kind as u64) << KIND_SHIFT | (BlockMode::Huge as u64) << MODE_SHIFT;
        Self(self.0 & KEPT | huge | if tail { TAIL } else { 0 })
    }

    /// Returns the state of a block of `frames` frames, all of which are free as one run of order
    /// `run`: nothing in it is mixed, joined or lent.
    #[inline]
    #[must_use]
    pub(super) const fn freed_whole(self, frames: usize, run: u8) -> Self {
        const KEPT: u64 = !(COUNT | RUN | MODE | TAIL | JOINED | MIXED | LENT);
        let free =
            frames as u64 | (run as u64) << RUN_SHIFT | (BlockMode::Free as u64) << MODE_SHIFT;
        Self(self.0 & KEPT | free)
    }

    /// Returns this state with the next version, as stored by a change.
    #[inline]
    #[must_use]
    pub(super) const fn next_version(self) -> Self {
        Self(self.0.wrapping_add(VERSION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let state = BlockState::default()
            .with_free(2048, 10)
            .with_kind(MigrateType::Reclaimable)
            .with_mode(BlockMode::Huge)
            .with_mixed(0b1000_0001);
        for _ in 0..3 {
            let state = state.next_version();
            assert_eq!((state.count(), state.run()), (2048, 10));
            assert_eq!(state.kind(), MigrateType::Reclaimable);
            assert_eq!(state.mode(), BlockMode::Huge);
            assert!(state.is_mixed(0) && state.is_mixed(7) && !state.is_mixed(1));
            assert!(!state.is_tail() && !state.is_joined() && !state.is_solid());
        }
        let flags = state.with_tail(true).with_joined(true).with_solid(true);
        assert!(flags.is_tail() && flags.is_joined() && flags.is_solid());
        assert_eq!(flags.with_tail(false).with_solid(false).unmixed().run(), 10);
        assert!(!flags.unmixed().is_joined() && !flags.unmixed().is_mixed(7));
        // The version wraps around without touching the other fields.
        let last = BlockState::from_bits(state.to_bits() | !(VERSION - 1));
        assert_eq!(last.next_version().to_bits(), state.to_bits());
    }

    #[test]
    fn frames_in_use_are_movable_where_nothing_else_is_near() {
        use MigrateType::{Movable, Reclaimable, Unmovable};
        for (kind, mixed) in [
            (Unmovable, Unmovable),
            (Movable, Unmovable),
            (Reclaimable, Reclaimable),
        ] {
            let state = BlockState::default().with_kind(kind).with_mixed(0b10);
            assert_eq!(state.mobility_in(0), Movable.index());
            assert_eq!(state.mobility_in(1), mixed.index());
        }
    }

    #[test]
    fn a_head_is_huge_and_continues_nothing() {
        let head = BlockState::default().with_mode(BlockMode::Huge);
        assert!(head.is_head() && head.with_solid(true).is_head());
        for other in [
            BlockState::default(),
            head.with_tail(true),
            head.with_isolated(true),
            head.with_mode(BlockMode::Free),
            head.with_mode(BlockMode::Changing),
        ] {
            assert!(!other.is_head());
        }
    }

    #[test]
    fn a_whole_block_forgets_what_was_in_it() {
        use MigrateType::Reclaimable;
        let used = BlockState::default()
            .with_free(7, 2)
            .with_solid(true)
            .with_joined(true)
            .with_lent(true)
            .with_aside(true)
            .with_mixed(0xff);
        for tail in [false, true] {
            let huge = used
                .with_mode(BlockMode::Huge)
                .with_free(0, 0)
                .with_tail(tail);
            let huge = huge.with_kind(Reclaimable).with_lent(false).unmixed();
            let huge = huge.with_aside(false);
            assert_eq!(used.taken_whole(Reclaimable, tail), huge);
            let free = huge
                .with_mode(BlockMode::Free)
                .with_free(512, 9)
                .with_tail(false);
            assert_eq!(huge.freed_whole(512, 9), free);
        }
    }

    #[test]
    fn whole_is_free_and_nobodys() {
        let open = BlockState::default().with_free(512, 9);
        let free = open.with_mode(BlockMode::Free).with_solid(true);
        assert!(open.is_whole(512) && free.is_whole(512) && free.next_version().is_whole(512));
        for other in [
            open.with_free(511, 8),
            open.with_lent(true),
            open.with_aside(true),
            free.with_isolated(true),
            free.with_mode(BlockMode::Huge),
            free.with_mode(BlockMode::Changing),
        ] {
            assert!(!other.is_whole(512));
        }
    }

    #[test]
    fn plain_is_open_solid_single_and_unisolated() {
        let plain = BlockState::default().with_solid(true);
        assert!(plain.is_plain());
        assert!(!BlockState::default().is_plain());
        for other in [
            plain.with_joined(true),
            plain.with_isolated(true),
            plain.with_mode(BlockMode::Free),
            plain.with_mode(BlockMode::Huge),
        ] {
            assert!(!other.is_plain());
            assert_eq!(other.is_all_memory(), other == plain.with_joined(true));
        }
    }
}
