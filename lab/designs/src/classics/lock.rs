//! A zone's lock, as the designs of the source documents differ in it: what its holder can ask it,
//! and what shares its cache line.

use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::Deref;

use brickyard::sync::{RawLock, TestAndSetLock, TicketLock};

/// A lock that its holder can ask whether another CPU waits for it. Porter 2007 yields the zone
/// lock only then; Gorman 2013 ends a batch early then.
pub trait Contended: RawLock + Debug {
    /// Returns true if a CPU other than the holder waits. A hint, out of date at once. A lock that
    /// cannot tell returns false.
    fn is_contended(&self) -> bool;
}

impl Contended for TicketLock {
    #[inline]
    fn is_contended(&self) -> bool {
        self.is_contended()
    }
}

impl Contended for TestAndSetLock {
    #[inline]
    fn is_contended(&self) -> bool {
        self.is_contended()
    }
}

/// The lock of a zone, and how far behind it the data lies that it guards: any [`Contended`] lock
/// in the same cache line, or one on a line of its own ([`OwnLine`]).
pub trait LabLock: 'static {
    /// The lock.
    type Raw: Contended;
    /// What lies before the data, and has no bytes.
    type Gap: Debug + Default + Send + Sync + 'static;
}

impl<L: Contended> LabLock for L {
    type Raw = L;
    type Gap = ();
}

/// A lock on a cache line of its own (64 bytes), as Porter tried in 2008. Waiters then leave the
/// data's lines alone, but the holder has one more cache miss.
#[derive(Debug)]
pub struct OwnLine<L>(PhantomData<L>);

/// Puts what follows at the begin of a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct LineStart;

impl<L: Contended> LabLock for OwnLine<L> {
    type Raw = L;
    type Gap = LineStart;
}

/// Data behind a lock's gap.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Behind<G, T> {
    gap: G,
    data: T,
}

impl<G: Default, T> Behind<G, T> {
    pub(crate) fn new(data: T) -> Self {
        let gap = G::default();
        Self { gap, data }
    }
}

impl<G, T> Behind<G, T> {
    #[inline]
    pub(crate) const fn data(&self) -> &T {
        &self.data
    }
}

impl<G, T> Deref for Behind<G, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

const _: () = {
    type Guarded<L> = Behind<<L as LabLock>::Gap, u64>;
    assert!(align_of::<Guarded<OwnLine<TicketLock>>>() == 64);
    assert!(size_of::<Guarded<TicketLock>>() == size_of::<u64>());
};
