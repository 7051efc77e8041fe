//! What a design of queues answers: hits and misses, frees and overflows, trims and counts.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::caller::Caller;
use crate::error::FreeFault;
use crate::geometry::Shape;
use crate::ground::{Footing, Ground};
use crate::kind::Kind;
use crate::layout::CacheId;
use crate::numbers::CacheNumbers;
use crate::plan::{Footprint, SlabPlan};
use crate::rows::Rows;
use crate::sizes::Sizes;

/// How free objects wait for their next use: per CPU, per node, in slabs. All addresses are those
/// of an object's place in its slab.
///
/// The library's own: [`Sheaves`](crate::sheaf::Sheaves), [`Slqb`](crate::slqb::Slqb).
///
/// # Safety
/// Typed caches write values into what comes out of it, without a word of their users' that is
/// unsafe. So:
/// - What [`hit`](Queues::hit), [`miss`](Queues::miss) and [`miss_on`](Queues::miss_on) return is
///   an object of that cache (`object-bytes`), and nobody else's until it comes back.
/// - Pages go back only when all objects of their slab are in it, and not while
///   [`look`](Queues::look) looks.
/// - A cache of which nothing is out and [`is_clear`](Queues::is_clear) is true has left nothing
///   that the next cache of its number could take for its own.
/// - Whoever passes calls on to another design's state, as one that counts or delays does, passes
///   on the ground, kind and handle that it was called with: state is one system's, and a kind is
///   kept by nobody.
pub unsafe trait Queues<'m, D: Footing>: Sized + Sync {
    /// How slabs are shaped.
    const SHAPE: Shape;
    /// Which general sizes there are.
    const SIZES: Sizes;
    /// What it is called.
    const NAME: &'static str;
    /// Does it need callers that stay on their CPU ([`Local::PINS`](crate::Local::PINS))?
    const NEEDS_PIN: bool = false;

    /// What it keeps in the caller's memory.
    const FOOTPRINT: Footprint;

    /// Its state in the caller's memory, with these rows, or with rows in the same memory; `None`
    /// where that is too small. A design without rows drops them.
    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self>;

    /// A cache has been made; nobody uses it yet.
    fn open(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Where the design finds what CPUs have of a cache: worked out once, and kept by whoever uses
    /// the cache.
    fn handle(&self, cache: CacheId) -> usize;

    /// The fast way to an object of the cache with this [handle](Queues::handle): `None` is a miss,
    /// or a cache that is checked.
    fn hit<C: Caller>(&self, ground: &Ground<'m, D>, handle: usize) -> Option<NonNull<u8>>;

    /// The fast way back: false if the object has to go by [`Queues::overflow`].
    ///
    /// # Safety
    /// As [`RawCache::free`](crate::RawCache::free), for the cache with this handle.
    unsafe fn put<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool;

    /// An object, after [`Queues::hit`] had none; refills the queues. `None`: no memory.
    fn miss<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) -> Option<NonNull<u8>>;

    /// An object for a request that names a node: of its memory if there is some, else of any. A
    /// design that does not tell nodes apart takes the nearest.
    fn miss_on<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        _node: usize,
    ) -> Option<NonNull<u8>> {
        self.miss::<C>(ground, kind)
    }

    /// Takes an object back, after [`Queues::put`] would not; flushes the queues.
    ///
    /// # Safety
    /// If it is an object of the cache, it was handed out and not freed since, and nobody uses it
    /// any more.
    ///
    /// # Errors
    /// [`FreeFault`], and nothing has changed.
    unsafe fn overflow<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault>;

    /// Gives back some of what has lain unused in this CPU's queues since the last call. To be
    /// called every few seconds on each CPU (SLQB: every 3 s).
    fn trim<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Gives back all that lies in this CPU's queues.
    fn drain<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Gives back all that lies in queues which CPUs share.
    fn shrink<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Has no CPU anything of the cache, not even an empty queue? Asked when nobody uses the cache
    /// any more and all that can be reached has been drained: only then may its number be another
    /// cache's. A design whose `open` makes all queues new has nothing to keep.
    fn is_clear(&self, _kind: &Kind) -> bool {
        true
    }

    /// What is counted of a cache, without what the geometry tells.
    fn numbers(&self, ground: &Ground<'m, D>, kind: &Kind, numbers: &mut CacheNumbers);

    /// Calls `look` with the place of the object at `index` and where the object is, if a slab of
    /// the cache begins at page `head`. The slab stays as long as `look` runs: it holds the lock
    /// that slabs go under, so it comes back soon and calls nothing. For who does not have the
    /// object, which would keep the slab.
    fn look<R>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R>;
}

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// In its slab.
    InSlab,
    /// In use, or in a queue.
    Out,
}
