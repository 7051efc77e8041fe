//! What stands before the store: where single frames come from and go to without the zone lock.
//!
//! | front | a hit costs | others reach its frames |
//! |---|---|---|
//! | [`Stash`] | an array's end; with shared slots a lock of the CPU's own | shared slots: by that lock; exclusive ones: by a task on that CPU |
//! | [`Direct`] | the zone lock | always |
//! | [`PerCpuLists`] | masked interrupts, and with shared slots a lock of the CPU's own | shared slots: by that lock; exclusive ones: by running on that CPU |
//! | [`Magazines`] | a lock that few CPUs share | by that lock, interrupting nobody |
//!
//! The stash stands before the [bitmap store](crate::store::bitmap), the others before a store with records. Those hold frames of order 0 only,
//! in state `Cached`. Invariant `cached-once`: each cached frame lies in one place of one front.

mod direct;
mod lists;
mod magazine;
pub mod patience;
mod per_cpu;
mod stash;

pub use direct::Direct;
pub use magazine::{Magazine, MagazineSizes, Magazines};
pub use per_cpu::{CpuLists, ListSizes, PerCpuLists};
pub use stash::{CpuStash, Stash, StashSizes};

use brickyard_sync::RawLock;

use crate::bulk::Backing;
use crate::check::Violation;
use crate::store::Store;
use crate::{Context, Frame, Order, Platform, Request};
use patience::Patience;

/// What a front did with a freed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// It keeps it.
    Kept,
    /// It is a case for the store: an isolated range, an interrupt, or not a frame that may be freed like this at all.
    ToStore,
    /// It lies here already.
    FreeAlready,
}

/// What a drain has brought to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// So many frames.
    pub frames: usize,
    /// How many caches hold something, and could not be entered for as long as the caller waits: somebody is inside.
    pub left_out: usize,
}

impl Drained {
    /// All of a cache.
    #[must_use]
    pub const fn of(frames: usize) -> Self {
        Self {
            frames,
            left_out: 0,
        }
    }

    /// Nothing of a cache that somebody is in.
    pub(crate) const LEFT_OUT: Self = Self {
        frames: 0,
        left_out: 1,
    };
}

impl core::iter::Sum for Drained {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            frames: sum.frames + one.frames,
            left_out: sum.left_out + one.left_out,
        })
    }
}

/// How far a drain may go, by what its caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The own CPU's frames at most: the caller is in an interrupt and waits for nobody.
    Own,
    /// What locks lead to: the caller may spin, but not wait for another CPU to take an interrupt, since that CPU may be waiting for this one.
    Locks,
    /// Everything; other CPUs may be interrupted.
    All,
}

impl Reach {
    /// The reach of a caller in this context on this platform.
    #[must_use]
    pub fn of(context: Context, platform: &impl Platform) -> Self {
        match context {
            Context::Interrupt => Self::Own,
            _ if platform.in_interrupt() => Self::Own,
            Context::Atomic => Self::Locks,
            Context::MaySleep => Self::All,
        }
    }
}

/// A front. Every call is for an order that it serves, without an address limit; those without an order are for single frames.
pub trait Front<S: Store, L: RawLock, P: Platform>: Sync {
    /// Does it hold blocks of this order, where page blocks are of order `huge`?
    fn serves(&self, order: Order, _huge: Order) -> bool {
        order == Order::ZERO
    }

    /// A block that lies here and now for `request`, without any look at the store. Fronts whose frames passed the watermark when they were fetched say so by having one.
    fn hit(&self, _backing: &Backing<S, L, P>, _request: &Request) -> Option<Frame> {
        None
    }

    /// Keeps a freed single frame, if that is a matter of a few instructions; else `false`, and nothing has happened: the way is then [`Front::give`].
    fn keep(&self, _backing: &Backing<S, L, P>, _frame: Frame) -> bool {
        false
    }

    /// A frame for `request`, if need be after a refill; `None` where the store has none to refill from.
    fn take(&self, backing: &Backing<S, L, P>, request: &Request) -> Option<Frame>;

    /// As many frames as `out` holds, or fewer if the store runs out. Returns how many.
    fn take_many(&self, backing: &Backing<S, L, P>, request: &Request, out: &mut [Frame]) -> usize {
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

    /// Takes a freed block back, if it is one in use of this order that the front may hold. Any frame may be given, also one outside the span.
    fn give(&self, backing: &Backing<S, L, P>, frame: Frame, order: Order) -> Returned;

    /// Takes freed frames back until one is a case for the store. Returns how many were kept.
    fn give_many(&self, backing: &Backing<S, L, P>, frames: &[Frame]) -> usize {
        frames
            .iter()
            .take_while(|&&frame| self.give(backing, frame, Order::ZERO) == Returned::Kept)
            .count()
    }

    /// Should so many frames at once go through it, rather than straight to the store?
    fn holds(&self, _frames: usize) -> bool {
        true
    }

    /// Does the caller get anything from a front where it runs, or only from the store?
    fn serves_here(&self, backing: &Backing<S, L, P>) -> bool;

    /// Gives every frame within `reach` back to the store. Waits for others as long as there is `patience`.
    fn drain(&self, backing: &Backing<S, L, P>, reach: Reach, patience: &Patience) -> Drained;

    /// How many frames were ever freed to it, modulo some power of two: unchanged if none was meanwhile.
    fn arrivals(&self) -> usize;

    /// How many frames it holds. A hint.
    fn cached(&self, backing: &Backing<S, L, P>) -> usize;

    /// Tests its invariants while nobody else uses it. Returns how many frames it holds.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self, backing: &Backing<S, L, P>) -> Result<usize, Violation>;
}
