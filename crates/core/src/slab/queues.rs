//! What a design of queues answers: hits and misses, frees and overflows, trims and counts.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::SlabPlan;
use super::design::SlabDesign;
use super::error::FreeFault;
use super::geometry::Shape;
use super::ground::Ground;
use super::kind::Kind;
use super::local::Caller;
use super::pages::CacheId;
use super::sizes::Sizes;
use super::stats::CacheNumbers;

/// How free objects wait for their next use: per CPU, per node, in slabs. All addresses are those of an object's place in its slab.
///
/// The library's own: [`Sheaves`](super::sheaf::Sheaves), [`Slqb`](super::slqb::Slqb).
pub trait Queues<'m, D: SlabDesign<'m>>: Sized + Sync {
    /// How slabs are shaped.
    const SHAPE: Shape;
    /// Which general sizes there are.
    const SIZES: Sizes;
    /// What it is called.
    const NAME: &'static str;
    /// Does it need callers that stay on their CPU ([`Local::PINS`](super::Local::PINS))?
    const NEEDS_PIN: bool = false;

    /// Bytes of the caller's memory that it needs for `plan` on `nodes` nodes.
    fn bytes(plan: &SlabPlan, nodes: usize) -> usize;

    /// Its state in the caller's memory; `None` where that is too small.
    fn new(plan: &SlabPlan, nodes: usize, memory: &'m mut [MaybeUninit<u8>]) -> Option<Self>;

    /// A cache has been made; nobody uses it yet.
    fn open(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Where the design finds what CPUs have of a cache: worked out once, and kept by whoever uses the cache.
    fn handle(&self, cache: CacheId) -> usize;

    /// The fast way to an object of the cache with this [handle](Queues::handle): `None` is a miss, or a cache that is checked.
    fn hit<C: Caller>(&self, ground: &Ground<'m, D>, handle: usize) -> Option<NonNull<u8>>;

    /// The fast way back: false if the object has to go by [`Queues::overflow`].
    ///
    /// # Safety
    /// The object is of this cache, and nobody uses it any more.
    unsafe fn put<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool;

    /// An object, after [`Queues::hit`] had none; refills the queues. `None`: no memory.
    fn miss<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind) -> Option<NonNull<u8>>;

    /// An object for a request that names a node: of its memory if there is some, else of any. A design that does not tell nodes apart takes the nearest.
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
    /// Nobody uses the object any more.
    ///
    /// # Errors
    /// [`FreeFault`], and nothing has changed.
    unsafe fn overflow<C: Caller>(
        &self,
        ground: &Ground<'m, D>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault>;

    /// Gives back some of what has lain unused in this CPU's queues since the last call. To be called every few seconds on each CPU (SLQB: every 3 s).
    fn trim<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Gives back all that lies in this CPU's queues.
    fn drain<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Gives back all that lies in queues which CPUs share.
    fn shrink<C: Caller>(&self, ground: &Ground<'m, D>, kind: &Kind);

    /// Has no CPU anything of the cache, not even an empty queue? Asked when nobody uses the cache any more and all that can be reached has been drained: only then may its number be another
    /// cache's. A design whose `open` makes all queues new has nothing to keep.
    fn is_clear(&self, _kind: &Kind) -> bool {
        true
    }

    /// What is counted of a cache, without what the geometry tells.
    fn numbers(&self, ground: &Ground<'m, D>, kind: &Kind, numbers: &mut CacheNumbers);

    /// Is the object at `index` of the slab that begins at page `head` in the slab, that is, neither in use nor in a queue?
    fn in_slab(&self, ground: &Ground<'m, D>, kind: &Kind, head: usize, index: usize) -> bool;
}
