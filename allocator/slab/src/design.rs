//! The interface of a design: hits and misses, frees and overflows, trims, counts.
//!
//! The library has one design, [`Sheafed`](crate::Sheafed). Another design builds on the same
//! backend. Everything it is made of is exported here.
//!
//! Invariant `backend-of-a-design`: [`Backend`], [`CacheInfo`] and what belongs to them are made by
//! [`Slabs`](crate::Slabs). Only its design sees them, in the calls of [`SlabDesign`]. Their
//! methods are safe to call; the implementer of that trait answers for the consequences.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::cache_info::CacheSpec;
use crate::caller::Caller;
use crate::error::FreeFault;
use crate::geometry::{Geometry, ShapeError};
use crate::layout::CacheId;
use crate::local::Local;
use crate::plan::SlabPlan;
use crate::rows::Rows;
use crate::sizes;
use crate::source::PageSource;
use crate::statistics::CacheNumbers;

pub use crate::backend::{Backend, LoosePages};
pub use crate::cache_info::CacheInfo;
pub use crate::caller::Inside;
pub use crate::object_checks::{overwritten, refuse_late};
pub use crate::pages::{Pages, SlabRecord};
pub use crate::plan::Footprint;
pub use crate::slab_list::{Gone, OwnedSlabs};

/// The backend of a design's slabs.
pub type BackendOf<'m, D> =
    Backend<'m, <D as SlabDesign<'m>>::Source, <D as SlabDesign<'m>>::Local>;

/// The way in which free objects wait for their next use: per CPU, per node, in slabs. All
/// addresses are those of an object's place in its slab.
///
/// # Safety
/// Typed caches write values into the objects that come out of a design, and their users write no
/// `unsafe`. So:
/// - [`hit`](SlabDesign::hit), [`miss`](SlabDesign::miss) and [`miss_on`](SlabDesign::miss_on)
///   return an object of that cache (`object-bytes`). It belongs to the caller alone until it comes
///   back.
/// - Pages go back only when all objects of their slab are in it, and not while
///   [`look`](SlabDesign::look) runs its closure.
/// - When nothing of a cache is out and [`is_clear`](SlabDesign::is_clear) is true, the cache has
///   left nothing that the next cache of its number could take for its own.
/// - Slabs hold the objects that their [shape](SlabDesign::shape) says. A general size serves each
///   layout that is [of its class](SlabDesign::class_of).
/// - A design that passes calls on to another design's state, to count or to delay them, passes on
///   the backend, cache and handle that it was called with. State belongs to one system, and nobody
///   keeps a cache (`backend-of-a-design`).
pub unsafe trait SlabDesign<'m>: Sized + Sync + 'm {
    /// The source of pages.
    type Source: PageSource;
    /// The way in which a CPU reaches its own words.
    type Local: Local;

    /// The design's name.
    const NAME: &'static str;

    /// The general sizes, ascending; by default a kernel's.
    const SIZES: &'static [u32] = &sizes::SIZES;

    /// The bytes that it keeps in the caller's memory.
    const FOOTPRINT: Footprint;

    /// Makes the state in the caller's memory, with these rows, or else with rows in the same
    /// memory. `None` if that memory is too small. A design without rows drops them.
    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self>;

    /// Returns the number of the smallest general size that serves `layout`, as
    /// [`sizes::class_of`].
    #[inline]
    #[must_use]
    fn class_of(layout: Layout) -> Option<usize> {
        sizes::class_of(layout)
    }

    /// Returns the name of a general size's cache.
    #[must_use]
    fn size_name(size: u32) -> &'static str {
        sizes::name_of(size)
    }

    /// Returns how many bytes the design wants behind each object of `spec`, for what it keeps in
    /// free objects. A multiple of a word. See [`CacheInfo::tail`].
    #[must_use]
    fn tail_of(_spec: &CacheSpec) -> usize {
        0
    }

    /// Returns the shape of slabs whose places have `size` bytes and are multiples of `align`, on
    /// pages of `page_bytes`.
    ///
    /// # Errors
    /// [`ShapeError`].
    fn shape(size: usize, align: usize, page_bytes: usize) -> Result<Geometry, ShapeError> {
        Geometry::new(size, align, page_bytes)
    }

    /// Called when a cache has been made and before anybody uses it.
    fn open(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Returns where the design finds the CPUs' words of a cache. The users of the cache work it
    /// out once and keep it. By default it is the cache's number.
    fn handle(&self, cache: CacheId) -> usize {
        usize::from(cache)
    }

    /// Takes an object of the cache with this [handle](SlabDesign::handle) by the fast path. `None`
    /// on a miss, and always for a cache that is checked.
    fn hit<C: Caller>(&self, backend: &BackendOf<'m, Self>, handle: usize) -> Option<NonNull<u8>>;

    /// Puts an object back by the fast path. False if the object has to go by
    /// [`SlabDesign::overflow`].
    ///
    /// # Safety
    /// The conditions of [`RawCache::free`](crate::RawCache::free), for the cache with this handle.
    unsafe fn put<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool;

    /// Returns an object after [`SlabDesign::hit`] had none, and refills the queues. `None`: no
    /// memory.
    fn miss<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
    ) -> Option<NonNull<u8>>;

    /// Returns an object for a request that names a node: from that node's memory if there is some,
    /// else from any. A design that does not tell nodes apart takes the nearest.
    fn miss_on<C: Caller>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        _node: usize,
    ) -> Option<NonNull<u8>> {
        self.miss::<C>(backend, info)
    }

    /// Takes an object back after [`SlabDesign::put`] refused it, and flushes the queues.
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
    /// called every few seconds on each CPU. Must not be called in an interrupt that is not allowed
    /// to use the cache; nor must the next two.
    fn trim<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Gives back all that lies in this CPU's queues.
    fn drain<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Gives back all that lies in queues that CPUs share.
    fn shrink<C: Caller>(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo);

    /// Returns true if no CPU holds anything of the cache, not even an empty queue. It is asked
    /// when nobody uses the cache any more and all that can be reached has been drained. Only if it
    /// is true may another cache get its number. A design whose `open` makes all queues new can
    /// always return true.
    fn is_clear(&self, _kind: &CacheInfo) -> bool {
        true
    }

    /// Adds the statistics of a cache, except those that follow from the geometry.
    fn numbers(&self, backend: &BackendOf<'m, Self>, info: &CacheInfo, numbers: &mut CacheNumbers);

    /// Calls `look` with the place of the object at `index` and where the object is, if a slab of
    /// the cache begins at page `head`. The slab stays as long as `look` runs: the lock under which
    /// slabs go is held. So `look` must return soon and call nothing. For callers that do not hold
    /// the object; holding it would keep the slab.
    fn look<R>(
        &self,
        backend: &BackendOf<'m, Self>,
        info: &CacheInfo,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R>;
}

/// The whereabouts of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// In its slab.
    InSlab,
    /// In use, or in a queue.
    Out,
}
