//! A design: which store, which front, which lock, on which platform.
//!
//! What the fast path meets is chosen here, as types; what only a miss meets is a value in [`Tuning`](crate::bulk::Tuning). One
//! type parameter then carries all of it through zones, nodes and the slow path.

use core::marker::PhantomData;

use brickyard_sync::{Exclusive, RawLock, TicketLock};

use crate::Platform;
use crate::front::{Front, Magazines, PerCpuLists, Stash};
use crate::store::Store;
use crate::store::bitmap::Bitmap;
use crate::store::buddy::Buddy;
use crate::store::grouping::{Grouping, NoGrouping, PageBlocks, TwoKinds};

/// The parts that a zone is made of.
pub trait Design: Sized {
    /// Where free frames are kept.
    type Store: Store;
    /// What stands before the store.
    type Front: Front<Self::Store, Self::Lock, Self::Platform>;
    /// The zone's lock.
    type Lock: RawLock;
    /// What it is embedded in.
    type Platform: Platform;
}

/// A buddy store with grouping `G` behind a front `F` and a lock `L` on platform `P`.
#[derive(Debug)]
pub struct Classic<'m, G, F, L, P>(PhantomData<&'m ()>, PhantomData<Parts<G, F, L, P>>);

/// A function type, so that a marker is `Send` and `Sync` whatever its parts are.
type Parts<G, F, L, P> = fn() -> (G, F, L, P);

impl<'m, G, F, L, P> Design for Classic<'m, G, F, L, P>
where
    G: Grouping,
    F: Front<Buddy<'m, G>, L, P>,
    L: RawLock,
    P: Platform,
{
    type Store = Buddy<'m, G>;
    type Front = F;
    type Lock = L;
    type Platform = P;
}

/// A bitmap store behind a front `F` on platform `P`; administration is one at a time, by a lock `L`.
#[derive(Debug)]
pub struct LockFree<'m, F, L, P>(PhantomData<&'m ()>, PhantomData<LockFreeParts<F, L, P>>);

type LockFreeParts<F, L, P> = fn() -> (F, L, P);

impl<'m, F, L, P> Design for LockFree<'m, F, L, P>
where
    F: Front<Bitmap<'m>, L, P>,
    L: RawLock,
    P: Platform,
{
    type Store = Bitmap<'m>;
    type Front = F;
    type Lock = L;
    type Platform = P;
}

/// The default: a lock-free bitmap store behind a stash of frame numbers per CPU.
pub type Brickyard<'m, P, A = Exclusive, L = TicketLock> = LockFree<'m, Stash<'m, A>, L, P>;

/// The 2.6 kernels up to 2.6.23: no grouping, per-CPU lists.
pub type Vanilla<'m, P, A = Exclusive, L = TicketLock> =
    Classic<'m, NoGrouping, PerCpuLists<'m, A>, L, P>;

/// Gorman 2005: kernel pages and easily reclaimed pages apart.
pub type TwoKinds2005<'m, P, A = Exclusive, L = TicketLock> =
    Classic<'m, TwoKinds, PerCpuLists<'m, A>, L, P>;

/// Gorman 2007, list-based: page blocks by mobility. With a second zone for movable pages it is his combined form; [`Vanilla`] with such
/// a zone is his zone-based form.
pub type List2007<'m, P, A = Exclusive, L = TicketLock> =
    Classic<'m, PageBlocks<'m>, PerCpuLists<'m, A>, L, P>;

/// Gorman 2013: page blocks, and magazines in place of per-CPU lists.
pub type Magazine2013<'m, P, L = TicketLock> = Classic<'m, PageBlocks<'m>, Magazines<'m, L>, L, P>;
