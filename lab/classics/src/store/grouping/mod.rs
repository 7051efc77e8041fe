//! Grouping: which list a block goes to and comes from, so that pages of like mobility lie
//! together.
//!
//! Three forms, each a type parameter of the buddy store, so that none costs anything where another
//! is chosen:
//!
//! | form | who lies together | source |
//! |---|---|---|
//! | [`NoGrouping`] | all on one list | before 2006 |
//! | [`TwoKinds`] | user pages and kernel pages, told apart by what each page was taken for | Gorman 2005 |
//! | [`PageBlocks`] | all pages of a block of huge-page size, which has a type of its own | Gorman 2007 |

mod none;
mod page_blocks;
mod two_kinds;

pub use none::NoGrouping;
pub use page_blocks::{BlockRecord, HighAtomic, PageBlocks};
pub use two_kinds::TwoKinds;

use super::Taken;
use super::buddy::Buddy;
use brickyard::check::Violation;
use brickyard::{Frame, FrameRange, MigrateType, Mobility, Order, Request};

/// Whether a change of the zone's size turned grouping on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regrouped {
    /// As before.
    No,
    /// Switched: every free block must be put on its new list.
    Yes,
}

/// A form of grouping. Called with the zone's lock held, save [`Grouping::list_on_free`] and
/// [`Grouping::block_type`].
pub trait Grouping: Sync + Sized {
    /// The order of the unit of grouping, where there is one.
    fn page_block_order(&self) -> Option<Order> {
        None
    }

    /// The type that a request is of.
    fn type_of(&self, request: &Request) -> MigrateType {
        request.mobility.into()
    }

    /// The list that a request of this type is served from first.
    fn list_for(&self, wanted: MigrateType) -> MigrateType;

    /// The list that a block goes to when it is freed; `recorded` is the type it was taken for,
    /// read before any merge.
    fn list_on_free(&self, frame: Frame, recorded: MigrateType) -> MigrateType;

    /// The lists that may be broken into when that of `wanted` is empty, in order.
    fn fallbacks(&self, wanted: MigrateType) -> &'static [MigrateType];

    /// Serves a request whose own list has no block of `order` or above.
    fn fall_back(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken>;

    /// May two free buddies of this order merge?
    #[inline]
    fn may_merge(&self, _first: Frame, _buddy: Frame, _order: Order) -> bool {
        true
    }

    /// Whole page blocks that were free are the requester's from now on.
    fn claim(&self, _blocks: FrameRange, _wanted: MigrateType) {}

    /// The type of the page block that `frame` lies in, where blocks have types.
    fn block_type(&self, _frame: Frame) -> Option<MigrateType> {
        None
    }

    /// Are free frames of this type held back from ordinary requests, so that a watermark does not
    /// count them?
    fn holds_back(&self, _kind: MigrateType) -> bool {
        false
    }

    /// The store now manages this many frames.
    fn resized(&self, _managed: usize) -> Regrouped {
        Regrouped::No
    }

    /// See [`super::buddy::Buddy::dedicate`].
    fn dedicate(&self, _buddy: &Buddy<'_, Self>, _frame: Frame, _kind: Mobility) {}

    /// See [`super::buddy::Buddy::reserve_high_atomic`].
    fn reserve_high_atomic(&self, _buddy: &Buddy<'_, Self>, _frame: Frame, _most_frames: usize) {}

    /// See [`super::buddy::Buddy::unreserve_high_atomic`].
    fn unreserve_high_atomic(&self, _buddy: &Buddy<'_, Self>, _request: &Request) -> bool {
        false
    }

    /// See [`super::buddy::Buddy::unreserved`].
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
