//! What an array of caches asks of a design: hits and misses, frees and overflows, trims, counts.
//!
//! The library has one design, [`Sheafed`](crate::Sheafed). Whoever makes another stands on the
//! same backend, and finds here what it is made of.
//!
//! Invariant `backend-of-a-design`: [`Backend`], [`CacheInfo`] and what hangs on them are made by
//! [`Slabs`](crate::Slabs) and shown to nobody but its design, in the calls of [`SlabDesign`].
//! Their methods can be called as they are: whoever implements that trait answers for what comes of
//! it.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::cache_info::CacheSpec;
use crate::caller::Caller;
use crate::error::FreeFault;
use crate::geometry::{Geometry, ShapeError};
use crate::layout::CacheId;
use crate::local::Local;
use crate::numbers::CacheNumbers;
use crate::plan::SlabPlan;
use crate::rows::Rows;
use crate::sizes;
use crate::source::PageSource;

pub use crate::backend::{Backend, LoosePages};
pub use crate::cache_info::CacheInfo;
pub use crate::caller::Inside;
pub use crate::owned::{Gone, OwnedSlabs};
pub use crate::pages::{Pages, SlabRecord};
pub use crate::plan::Footprint;
pub use crate::watch::{overwritten, refuse_late};

/// What slabs of a design stand on.
pub type BackendOf<'m, D> =
    Backend<'m, <D as SlabDesign<'m>>::Source, <D as SlabDesign<'m>>::Local>;

/// How free objects wait for their next use: per CPU, per node, in slabs. All addresses are those
/// of an object's place in its slab.
///
/// # Safety
/// Typed caches write values into what comes out of it, without a word of their users' that is
/// unsafe. So:
/// - What [`hit`](SlabDesign::hit), [`miss`](SlabDesign::miss) and [`miss_on`](SlabDesign::miss_on)
///   return is an object of that cache (`object-bytes`), and nobody else's until it comes back.
/// - Pages go back only when all objects of their slab are in it, and not while
///   [`look`](SlabDesign::look) looks.
/// - A cache of which nothing is out and [`is_clear`](SlabDesign::is_clear) is true has left
///   nothing that the next cache of its number could take for its own.
/// - Slabs hold the objects that their [shape](SlabDesign::shape) says, and a general size serves
///   each layout that is [of its class](SlabDesign::class_of).
/// - Whoever passes calls on to another design's state, as one that counts or delays does, passes
///   on the backend, cache and handle that it was called with: state is one system's, and a cache is
///   kept by nobody (`backend-of-a-design`).
pub unsafe trait SlabDesign<'m>: Sized + Sync + 'm {
    /// Where pages come from.
    type Source: PageSource;
    /// How a CPU reaches what is its own.
    type Local: Local;

    /// What it is called.
    const NAME: &'static str;

    /// The general sizes, ascending, the last of them [`MAX_GENERAL`](sizes::MAX_GENERAL).
    const SIZES: &'static [u32] = &sizes::SIZES;

    /// What it keeps in the caller's memory.
    const FOOTPRINT: Footprint;

    /// Its state in the caller's memory, with these rows, or with rows in the same memory; `None`
    /// where that is too small. A design without rows drops them.
    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self>;

    /// The number of the smallest general size that serves `layout`, as [`sizes::class_of`].
    #[inline]
    #[must_use]
    fn class_of(layout: Layout) -> Option<usize> {
        sizes::class_of(layout)
    }

    /// What the cache of a general size is called.
    #[must_use]
    fn size_name(size: u32) -> &'static str {
        sizes::name_of(size)
    }

    /// Bytes, a multiple of a word, that the design wants behind each object of `spec` for what it
    /// keeps in free objects: see [`Kind::tail`].
    #[must_use]
    fn tail_of(_spec: &CacheSpec) -> usize {
        0
    }

    /// The slabs of places of `size` bytes, multiples of `align`, on pages of `page_bytes`.
    ///
    /// # Errors
    /// [`ShapeError`].
    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        Geometry::new(size, align, page_bytes)
    }

    /// A cache has been made; nobody uses it yet.
    fn open(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Where the design finds what CPUs have of a cache: worked out once, and kept by whoever uses
    /// the cache.
    fn handle(&self, cache: CacheId) -> usize;

    /// The fast way to an object of the cache with this [handle](SlabDesign::handle): `None` is a
    /// miss, or a cache that is checked.
    fn hit<C: Caller>(&self, backend: &BackendOf<'m, Self>, handle: usize) -> Option<NonNull<u8>>;

    /// The fast way back: false if the object has to go by [`SlabDesign::overflow`].
    ///
    /// # Safety
    /// As [`RawCache::free`](crate::RawCache::free), for the cache with this handle.
    unsafe fn put<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool;

    /// An object, after [`SlabDesign::hit`] had none; refills the queues. `None`: no memory.
    fn miss<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
    ) -> Option<NonNull<u8>>;

    /// An object for a request that names a node: of its memory if there is some, else of any. A
    /// design that does not tell nodes apart takes the nearest.
    fn miss_on<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        _node: usize,
    ) -> Option<NonNull<u8>> {
        self.miss::<C>(backend, info)
    }

    /// Takes an object back, after [`SlabDesign::put`] would not; flushes the queues.
    ///
    /// # Safety
    /// If it is an object of the cache, it was handed out and not freed since, and nobody uses it
    /// any more.
    ///
    /// # Errors
    /// [`FreeFault`], and nothing has changed.
    unsafe fn overflow<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault>;

    /// Gives back some of what has lain unused in this CPU's queues since the last call. To be
    /// called every few seconds on each CPU. Not in an interrupt that has no business with the
    /// cache; nor are the next two.
    fn trim<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Gives back all that lies in this CPU's queues.
    fn drain<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Gives back all that lies in queues which CPUs share.
    fn shrink<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Has no CPU anything of the cache, not even an empty queue? Asked when nobody uses the cache
    /// any more and all that can be reached has been drained: only then may its number be another
    /// cache's. A design whose `open` makes all queues new has nothing to keep.
    fn is_clear(&self, _kind: &CacheInfo) -> bool {
        true
    }

    /// What is counted of a cache, without what the geometry tells.
    fn numbers(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo, numbers: &mut CacheNumbers);

    /// Calls `look` with the place of the object at `index` and where the object is, if a slab of
    /// the cache begins at page `head`. The slab stays as long as `look` runs: it holds the lock
    /// that slabs go under, so it comes back soon and calls nothing. For who does not have the
    /// object, which would keep the slab.
    fn look<R>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
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
