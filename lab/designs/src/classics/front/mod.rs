//! Fronts: caches in front of the store, which serve and take single frames, mostly without the
//! zone lock.
//!
//! | front | cost of a hit | how other CPUs reach its frames |
//! |---|---|---|
//! | [`Direct`] | the zone lock | it holds none |
//! | [`PerCpuLists`] | masked interrupts, and with shared slots a lock of the CPU's own | shared slots: by that lock; exclusive ones: by running on that CPU |
//! | [`Magazines`] | a lock that few CPUs share | by that lock, without interrupts to other CPUs |
//!
//! They hold frames in state `Cached`; all but the [page sets of Linux](crate::classics::linux) hold single
//! frames only. As in the default's stash, each is in one place (`cached-once`).

mod direct;
mod lists;
mod magazine;
mod per_cpu;
pub(crate) mod slots;

pub use direct::Direct;
pub use magazine::{Magazine, MagazineSizes, Magazines};
pub use per_cpu::{CpuLists, ListSizes, PerCpuLists};

use crate::classics::bulk::Backing;
use crate::classics::lock::LabLock;
use crate::classics::store::grouping::Grouping;
use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::{Frame, Order, Platform, Request};

/// The result of freeing a frame to a front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// The front keeps it.
    Kept,
    /// The store has to take it: it is in an isolated range, the caller is in an interrupt, or it
    /// is not a frame that may be freed this way.
    ToStore,
}

/// A front. All calls are for blocks of an order that it [serves](Front::serves), without an
/// address limit; where none is named, for single frames.
pub trait Front<G: Grouping, L: LabLock, P: Platform>: Sync {
    /// Returns true if it serves blocks of this order. All fronts serve single frames.
    #[inline]
    fn serves(&self, order: Order) -> bool {
        order == Order::ZERO
    }

    /// Takes a block for `request`, after a refill if necessary; `None` if the store has none for a
    /// refill.
    fn take(&self, backing: &Backing<'_, G, L, P>, request: &Request) -> Option<Frame>;

    /// Fills `out` with frames, or a part of it if the store runs out. Returns how many.
    fn take_many(
        &self,
        backing: &Backing<'_, G, L, P>,
        request: &Request,
        out: &mut [Frame],
    ) -> usize {
        let mut taken = 0;
        for slot in out {
            let Some(frame) = self.take(backing, request) else {
                break;
            };
            *slot = frame;
            taken += 1;
        }
        taken
    }

    /// Frees a block of `order` to the front, if it is a block in use that the front may hold. Any
    /// frame is accepted as argument, even one outside the span.
    fn give(&self, backing: &Backing<'_, G, L, P>, frame: Frame, order: Order) -> Returned;

    /// Frees frames to the front, up to the first that the store has to take. Returns how many were
    /// kept.
    fn give_many(&self, backing: &Backing<'_, G, L, P>, frames: &[Frame]) -> usize {
        frames
            .iter()
            .take_while(|&&frame| self.give(backing, frame, Order::ZERO) == Returned::Kept)
            .count()
    }

    /// Returns true if the front serves the caller on the CPU where it runs; else only the store
    /// does.
    fn serves_here(&self, backing: &Backing<'_, G, L, P>) -> bool;

    /// Gives every frame within `reach` back to the store. Waits for other CPUs within `patience`.
    fn drain(&self, backing: &Backing<'_, G, L, P>, reach: Reach, patience: &Patience) -> Drained;

    /// Returns how many frames were ever freed to it, modulo some power of two. If two readings are
    /// equal, none was freed between them.
    fn arrivals(&self) -> usize;

    /// Returns how many frames it holds. A hint.
    fn cached(&self, backing: &Backing<'_, G, L, P>) -> usize;

    /// Checks its invariants, while it is not otherwise in use. Returns how many frames it holds.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self, backing: &Backing<'_, G, L, P>) -> Result<usize, Violation>;
}
