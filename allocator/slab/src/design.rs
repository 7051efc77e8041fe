//! Which parts a system of slabs is made of.

use core::marker::PhantomData;

use brickyard_sync::{RawLock, TicketLock};

use crate::local::Local;
use crate::queues::Queues;
use crate::sheaf::Sheaves;
use crate::slqb::Slqb;
use crate::source::PageSource;

/// The parts of [`Slabs`](crate::Slabs).
pub trait SlabDesign<'m>: Sized + 'm {
    /// Where pages come from.
    type Source: PageSource;
    /// How a CPU reaches what is its own.
    type Local: Local;
    /// The lock of what CPUs share.
    type Lock: RawLock;
    /// How free objects wait for their next use.
    type Queues: Queues<'m, Self>;
}

/// The default: arrays of free objects ("sheaves"), so that a hit touches no object; bitmaps beside the slabs.
#[derive(Debug)]
pub struct Sheafed<'m, S, L, K = TicketLock>(PhantomData<&'m ()>, PhantomData<Parts<S, L, K>>);

/// A function type, so that a marker is `Send` and `Sync` whatever its parts are.
type Parts<S, L, K> = fn() -> (S, L, K);

impl<'m, S, L, K> SlabDesign<'m> for Sheafed<'m, S, L, K>
where
    S: PageSource + 'm,
    L: Local + 'm,
    K: RawLock,
{
    type Source = S;
    type Local = L;
    type Lock = K;
    type Queues = Sheaves<'m, K>;
}

/// Piggin's queued slab allocator, as it was designed: see [`slqb`](crate::slqb). Only where callers can be kept on their CPU ([`Local::PINS`]).
#[derive(Debug)]
pub struct Slqb2008<'m, S, L, K = TicketLock>(PhantomData<&'m ()>, PhantomData<Parts<S, L, K>>);

impl<'m, S, L, K> SlabDesign<'m> for Slqb2008<'m, S, L, K>
where
    S: PageSource + 'm,
    L: Local + 'm,
    K: RawLock,
{
    type Source = S;
    type Local = L;
    type Lock = K;
    type Queues = Slqb<'m, K>;
}
