//! Where the words lie that a cache's numbers are computed from, for a reader in another process.
//! It copies the words, without a lock, and computes the same.
//!
//! With `fulls`, `lacking`, `slabs` and `out` of the depot and the tops `main`, `spare` and `away`
//! of every row, as [`Slabs::numbers`](crate::Slabs::numbers) has them:
//!
//! - objects that are not in slabs: `out`
//! - of those, free ones in queues: `fulls * capacity - lacking`, and for each top that is neither
//!   0 nor [`closed`](super::closed) the words from that of an empty sheaf to it
//!   ([`CachePlaces::in_sheaf`])

use core::mem::offset_of;
use core::ptr::from_ref;

use brickyard_sync::RawLock;

use super::depot::Depot;
use super::purpose::Purpose;
use super::state::{AWAY, MAIN, SPARE, Sheafed};
use super::words::sentinel;
use crate::layout::{CacheId, SHEAF_BYTES, WORD_BYTES};
use crate::local::Local;
use crate::numbers::CacheNumbers;
use crate::owned::OwnedSlabs;
use crate::slabs::Slabs;
use crate::source::PageSource;

/// Where the words of a cache lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachePlaces {
    /// The number of the cache.
    pub cache: CacheId,
    /// The address of its depot, of the first node.
    pub depot: usize,
    /// The columns of `main`, `spare` and `away` in each CPU's row; `usize::MAX` for one that is
    /// not used.
    pub columns: [usize; 3],
    /// The objects that a sheaf has room for.
    pub capacity: usize,
    /// What its numbers begin with: all that stays the same, and no slabs.
    pub numbers: CacheNumbers,
}

impl CachePlaces {
    /// The word `fulls` of a depot, of 32 bits: bytes from its address.
    pub const FULLS: usize = offset_of!(Depot, fulls);
    /// The word `lacking`, of 64 bits.
    pub const LACKING: usize = offset_of!(Depot, lacking);
    /// The word `slabs`, of 32 bits.
    pub const SLABS: usize = offset_of!(Depot, slabs) + OwnedSlabs::SLABS;
    /// The word `out`, of 64 bits.
    pub const OUT: usize = offset_of!(Depot, slabs) + offset_of!(OwnedSlabs, out);

    /// Returns how many objects lie in the sheaf with this top, of a row of a cache whose sheaves
    /// have room for `capacity`.
    #[must_use]
    pub fn in_sheaf(top: usize, capacity: usize, closed: usize) -> u64 {
        if top == 0 || top == closed {
            return 0;
        }
        ((top % SHEAF_BYTES).saturating_sub(sentinel(capacity)) / WORD_BYTES) as u64
    }
}

impl<'m, S, L, K, P> Slabs<'m, Sheafed<'m, S, L, K, P>>
where
    S: PageSource + 'm,
    L: Local + 'm,
    K: RawLock,
    P: Purpose,
{
    /// Returns where each cache's words lie, in the order of [`Slabs::numbers`], of the first node.
    pub fn places(&self) -> impl Iterator<Item = CachePlaces> {
        self.caches().map(|info| {
            let depots = &self.queues().depots;
            let depot = &depots[usize::from(info.id) * self.queues().nodes];
            CachePlaces {
                cache: info.id,
                depot: from_ref(depot.0.unlocked()).addr(),
                columns: [MAIN, SPARE, AWAY].map(|part| match part < self.queues().parts {
                    true => self.queues().column(info.id, part),
                    false => usize::MAX,
                }),
                capacity: info.geometry.capacity as usize,
                numbers: self.constants_of(&info),
            }
        })
    }
}
