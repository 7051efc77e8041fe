//! What stands before the store: where single frames come from and go to without the zone lock.
//!
//! | front | a hit costs | others reach its frames |
//! |---|---|---|
//! | [`Direct`] | the zone lock | always |
//! | [`PerCpuLists`] | masked interrupts, and with shared slots a lock of the CPU's own | shared slots: by that lock; exclusive ones: by running on that CPU |
//! | [`Magazines`] | a lock that few CPUs share | by that lock, interrupting nobody |
//!
//! They hold frames of order 0 only, in state `Cached`. As in the default's stash, each lies in one
//! place (`cached-once`).

mod direct;
mod lists;
mod magazine;
mod per_cpu;

pub use direct::Direct;
pub use magazine::{Magazine, MagazineSizes, Magazines};
pub use per_cpu::{CpuLists, ListSizes, PerCpuLists};

use brickyard::sync::RawLock;

use crate::bulk::Backing;
use crate::store::grouping::Grouping;
use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::{Frame, Platform, Request};

/// What a front did with a freed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// It keeps it.
    Kept,
    /// It is a case for the store: an isolated range, an interrupt, or not a frame that may be
    /// freed like this at all.
    ToStore,
}

/// A front. Every call is for single frames, without an address limit.
pub trait Front<G: Grouping, L: RawLock, P: Platform>: Sync {
    /// A frame for `request`, if need be after a refill; `None` where the store has none to refill
    /// from.
    fn take(&self, backing: &Backing<'_, G, L, P>, request: &Request) -> Option<Frame>;

    /// As many frames as `out` holds, or fewer if the store runs out. Returns how many.
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

    /// Takes a freed frame back, if it is a single one in use that the front may hold. Any frame
    /// may be given, also one outside the span.
    fn give(&self, backing: &Backing<'_, G, L, P>, frame: Frame) -> Returned;

    /// Takes freed frames back until one is a case for the store. Returns how many were kept.
    fn give_many(&self, backing: &Backing<'_, G, L, P>, frames: &[Frame]) -> usize {
        frames
            .iter()
            .take_while(|&&frame| self.give(backing, frame) == Returned::Kept)
            .count()
    }

    /// Does the caller get anything from a front where it runs, or only from the store?
    fn serves_here(&self, backing: &Backing<'_, G, L, P>) -> bool;

    /// Gives every frame within `reach` back to the store. Waits for others as long as there is
    /// `patience`.
    fn drain(&self, backing: &Backing<'_, G, L, P>, reach: Reach, patience: &Patience) -> Drained;

    /// How many frames were ever freed to it, modulo some power of two: unchanged if none was
    /// meanwhile.
    fn arrivals(&self) -> usize;

    /// How many frames it holds. A hint.
    fn cached(&self, backing: &Backing<'_, G, L, P>) -> usize;

    /// Tests its invariants while nobody else uses it. Returns how many frames it holds.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self, backing: &Backing<'_, G, L, P>) -> Result<usize, Violation>;
}
