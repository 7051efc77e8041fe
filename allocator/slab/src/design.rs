//! Which parts a system of slabs is made of.

use core::marker::PhantomData;

use crate::ground::Footing;
use crate::queues::Queues;

/// The parts of [`Slabs`](crate::Slabs).
pub trait SlabDesign<'m>: Footing + Sized + 'm {
    /// How free objects wait for their next use.
    type Queues: Queues<'m, Self>;
}

/// What a design's name is made of. A function type, so that a name is `Send` and `Sync` whatever
/// its parts are.
pub(crate) type Marker<'m, S, L, K> = PhantomData<fn() -> (&'m (), S, L, K)>;
