//! Grouping: which list a block goes to and comes from, so that pages of like mobility are kept
//! together.
//!
//! Three forms, each a type parameter of the buddy store, so that the forms not chosen cost
//! nothing:
//!
//! | form | pages kept together | source |
//! |---|---|---|
//! | [`NoGrouping`] | all on one list | before 2006 |
//! | [`TwoKinds`] | user pages and kernel pages, by what each page was taken for | Gorman 2005 |
//! | [`PageBlocks`] | all pages of a block of huge-page size, which has a type | Gorman 2007 |

mod none;
mod page_blocks;
mod two_kinds;

pub use none::NoGrouping;
pub use page_blocks::{BlockRecord, HighAtomic, PageBlocks};
pub use two_kinds::TwoKinds;

use super::Taken;
use super::buddy::Buddy;
use brickyard::check::Violation;
use brickyard::sync::GuardedU32;
use brickyard::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

/// Whether a change of the zone's size switched grouping on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regrouped {
    /// No change.
    No,
    /// Switched: every free block must be put on its new list.
    Yes,
}

/// An end of a list of free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where blocks are taken from.
    Head,
    /// The other end: its blocks are taken last.
    Tail,
}

/// A form of grouping. Called with the zone's lock held; `page_block_order`, `list_for`,
/// `list_on_free`, `block_type`, `holds_back` and `unreserved` also without it.
pub trait Grouping: Sync + Sized {
    /// The end of a list to which blocks are moved that change their type.
    const MOVES_TO: End = End::Head;

    /// The end of a list to which memory goes that was added, or is no longer isolated; `None` if
    /// it goes where other free blocks go.
    const ADDS_TO: Option<End> = None;

    /// Whether a block larger than a page block is freed page block by page block, each to the list
    /// of its type.
    const FREES_BY_BLOCK: bool = false;

    /// Whether a front keeps blocks above order 0.
    const CACHES_BLOCKS: bool = false;

    /// Returns the order of the unit of grouping, if there is one.
    fn page_block_order(&self) -> Option<Order> {
        None
    }

    /// Returns the type of a request.
    fn type_of(&self, request: &Request) -> MigrateType {
        request.mobility.into()
    }

    /// Returns the list that a request of this type is served from first.
    fn list_for(&self, wanted: MigrateType) -> MigrateType;

    /// Returns the list that a block goes to when it is freed; `recorded` is the type it was taken
    /// for, read before any merge.
    fn list_on_free(&self, frame: Frame, recorded: MigrateType) -> MigrateType;

    /// Returns the lists to fall back on when that of `wanted` is empty, in order.
    fn fallbacks(&self, wanted: MigrateType) -> &'static [MigrateType];

    /// Serves a request whose own list has no block of `order` or above.
    fn fall_back(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken>;

    /// Returns true if two free buddies of this order may merge.
    #[inline]
    fn may_merge(&self, _first: Frame, _buddy: Frame, _order: Order) -> bool {
        true
    }

    /// Notes which lists of a type have blocks: bit n is that of order n. For a grouping that has
    /// to know without the lock.
    #[inline]
    fn lists_changed(&self, _kind: MigrateType, _orders: &GuardedU32) {}

    /// Notes that the free blocks of `range`, which were on lists of other types, have merged with
    /// one of type `kind`.
    #[inline]
    fn joined(&self, _range: FrameRange, _kind: MigrateType) {}

    /// Returns the end of its list to which the free block at `first` goes when nothing is left
    /// that it could merge with.
    #[inline]
    fn end_for(&self, _buddy: &Buddy<'_, Self>, _first: Frame, _order: Order) -> End {
        End::Head
    }

    /// Returns how many frames are set aside for atomic requests at most, in a zone that manages
    /// `managed` frames: one hundredth and a page block (Linux 4.4).
    fn most_set_aside(&self, managed: usize) -> usize {
        managed / 100 + self.page_block_order().map_or(0, Order::frames)
    }

    /// Gives whole free page blocks the type `wanted`.
    fn claim(&self, _blocks: FrameRange, _wanted: MigrateType) {}

    /// Returns the type of the page block that contains `frame`, where blocks have types.
    fn block_type(&self, _frame: Frame) -> Option<MigrateType> {
        None
    }

    /// Returns true if free frames of this type are held back from ordinary requests, so that a
    /// watermark does not count them.
    fn holds_back(&self, _kind: MigrateType) -> bool {
        false
    }

    /// Notes that the store now manages this many frames.
    fn resized(&self, _managed: usize) -> Regrouped {
        Regrouped::No
    }

    /// Implements [`Buddy::dedicate`].
    fn dedicate(&self, _buddy: &Buddy<'_, Self>, _frame: Frame, _kind: Mobility) {}

    /// Implements [`Buddy::reserve_high_atomic`].
    fn reserve_high_atomic(&self, _buddy: &Buddy<'_, Self>, _frame: Frame, _most_frames: usize) {}

    /// Implements [`Buddy::unreserve_high_atomic`].
    fn unreserve_high_atomic(&self, _buddy: &Buddy<'_, Self>, _request: &Request) -> bool {
        false
    }

    /// Implements [`Buddy::unreserved`].
    fn unreserved(&self) -> usize {
        0
    }

    /// Tests the grouping's own invariants.
    ///
    /// # Errors
    /// The first that does not hold.
    fn check(&self, _buddy: &Buddy<'_, Self>) -> Result<(), Violation> {
        Ok(())
    }
}
