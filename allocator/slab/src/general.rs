//! Memory by size: a cache for each general size.

use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;

use crate::cache_info::CacheSpec;
use crate::caller::Caller;
use crate::design::SlabDesign;
use crate::error::{CacheError, FreeFault, SlabError};
use crate::layout::CacheId;
use crate::slabs::Slabs;
use crate::source::PageSource;

/// The caches of the general sizes: up to 32 KiB, or up to 128 in the heap of a process. For larger
/// memory, take pages.
pub struct General<'s, 'm, D: SlabDesign<'m>, C> {
    slabs: &'s Slabs<'m, D>,
    first: CacheId,
    caller: PhantomData<fn() -> C>,
}

impl<'m, D: SlabDesign<'m>, C> fmt::Debug for General<'_, 'm, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("General")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

impl<'s, 'm, D: SlabDesign<'m>, C: Caller> General<'s, 'm, D, C> {
    #[inline(never)]
    fn new(slabs: &'s Slabs<'m, D>) -> Result<Self, CacheError> {
        let sizes = D::SIZES.len();
        let mut none = CacheError::TooMany {
            planned: slabs.plan.caches,
            wanted: sizes,
        };
        let (mut first, last) = slabs.user_ids().into_inner();
        // The numbers are consecutive, so a size's cache has the first cache's number plus the
        // size's own.
        while usize::from(first) + sizes <= usize::from(last) + 1 {
            match Self::make_from(slabs, first) {
                Ok(()) => {
                    return Ok(Self {
                        slabs,
                        first,
                        caller: PhantomData,
                    });
                }
                // Tries again behind the number that is taken.
                Err((taken, CacheError::TooMany { .. })) => match taken.checked_add(1) {
                    Some(next) => first = next,
                    None => break,
                },
                Err((_, error)) => {
                    none = error;
                    break;
                }
            }
        }
        Err(none)
    }

    /// Makes the caches of all sizes, from the number `first` on, or none. On an error it also
    /// returns the number at which it failed.
    fn make_from(slabs: &Slabs<'m, D>, first: CacheId) -> Result<(), (CacheId, CacheError)> {
        for (id, &size) in (first..=CacheId::MAX).zip(D::SIZES) {
            let name = D::size_name(size);
            let align = 1_usize << size.trailing_zeros();
            let page_bytes = 1 << slabs.backend.source.page_shift();
            let spec = CacheSpec::new(name, size as usize).align(align.min(page_bytes));
            if let Err(error) = slabs.make::<C>(spec, id..=id) {
                (first..id).for_each(|made| slabs.unmake(made));
                return Err((id, error));
            }
        }
        Ok(())
    }

    /// Returns the number of the first size's cache; the others follow it.
    #[must_use]
    pub const fn first(&self) -> CacheId {
        self.first
    }

    /// Returns true if `cache` is one of these caches. No other may be touched: it may be
    /// destroyed, or made for another kind of callers.
    #[inline(always)]
    fn serves(&self, cache: CacheId) -> bool {
        // A number below the first one wraps to one above the last, since all sizes' numbers are
        // bytes.
        usize::from(cache.wrapping_sub(self.first)) < D::SIZES.len()
    }

    /// Returns the cache that serves `layout`, unless it is too large: see
    /// [`SlabDesign::class_of`].
    #[inline]
    #[must_use]
    pub fn cache_of(&self, layout: Layout) -> Option<CacheId> {
        Some(self.first + D::class_of(layout)? as CacheId)
    }

    /// Allocates memory for `layout`. An alignment above a page is not kept.
    ///
    /// # Errors
    /// [`SlabError::Exhausted`], also above the largest size; [`SlabError::TaskOnly`].
    #[inline(always)]
    #[track_caller]
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, SlabError> {
        let cache = self.cache_of(layout).ok_or(SlabError::Exhausted)?;
        self.slabs.take::<C>(cache, self.slabs.queues.handle(cache))
    }

    /// Takes memory back, by the layout that it was allocated with. The layout says which cache it
    /// belongs to. A wrong layout is noticed on the slow path only. Otherwise the wrong cache takes
    /// the memory and later hands it out as memory of another size.
    ///
    /// # Safety
    /// It came from here, for this layout or one that [`General::cache_of`] maps to the same cache.
    /// It was not freed since, and nobody uses it any more. (Caches that are checked: see
    /// [`RawCache::free`](crate::RawCache::free).)
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) -> Result<(), FreeFault> {
        let cache = self.cache_of(layout).ok_or(FreeFault::NotASlab)?;
        let handle = self.slabs.queues.handle(cache);
        // SAFETY: passed on.
        unsafe { self.slabs.give::<C>(cache, handle, memory) }
    }

    /// Takes memory back when its layout is not known any more: the tables of pages know its cache.
    /// Memory that lies in no slab of these caches is refused.
    ///
    /// # Safety
    /// If it lies in one, it came from here and was not freed since, and nobody uses it any more.
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed.
    #[inline]
    #[track_caller]
    pub unsafe fn free_unsized(&self, memory: NonNull<u8>) -> Result<(), FreeFault> {
        let cache = self.slabs.backend.pages.cache_of(memory);
        if !self.serves(cache) {
            return Err(match cache {
                0 => FreeFault::NotASlab,
                _ => FreeFault::WrongCache { cache },
            });
        }
        let handle = self.slabs.queues.handle(cache);
        // SAFETY: passed on.
        unsafe { self.slabs.give::<C>(cache, handle, memory) }
    }

    /// Allocates an object of one of these caches, by number, by the slow path. For callers with a
    /// fast path of their own. These caches are never destroyed, so unlike
    /// [`Slabs::alloc_slow`] it holds no lease, whose count would move from CPU to CPU.
    ///
    /// # Errors
    /// [`SlabError`]. [`SlabError::Exhausted`] too if it is none of these caches.
    pub fn alloc_slow(
        &self,
        cache: CacheId,
        caller: &'static Location<'static>,
    ) -> Result<NonNull<u8>, SlabError> {
        if !self.serves(cache) {
            return Err(SlabError::Exhausted);
        }
        if !self.slabs.backend.admits::<C>() {
            return Err(SlabError::TaskOnly);
        }
        self.slabs.alloc_by_handle::<C>(cache, caller)
    }

    /// Takes an object back to one of these caches, by number, by the slow path, as
    /// [`Slabs::free_slow`], but without a lease.
    ///
    /// # Safety
    /// The conditions of [`Slabs::free_slow`].
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed. [`FreeFault::NotASlab`] too if it is none of these
    /// caches.
    pub unsafe fn free_slow(
        &self,
        cache: CacheId,
        object: NonNull<u8>,
        caller: &'static Location<'static>,
    ) -> Result<(), FreeFault> {
        if !self.serves(cache) {
            return Err(FreeFault::NotASlab);
        }
        if !self.slabs.backend.admits::<C>() {
            return Err(FreeFault::TaskOnly);
        }
        // SAFETY: passed on.
        unsafe { self.slabs.free_by_handle::<C>(cache, object, caller) }
    }

    /// Returns the usable bytes of memory that was given for some layout; 0 if it was not.
    #[must_use]
    pub fn usable(&self, memory: NonNull<u8>) -> usize {
        let cache = self.slabs.backend.pages.cache_of(memory);
        if !self.serves(cache) {
            return 0;
        }
        self.slabs
            .backend
            .info(cache)
            .map_or(0, |info| info.spec.size)
    }

    /// Returns where the object of a general size begins in which an address lies, whether it is in
    /// use or not, and the number of its cache. `None` outside slabs of these, before the first and
    /// behind the last object of one, and past the first page of an object that is alone in a
    /// heap's slab. The answer means nothing if others may give the slab back meanwhile. Takes a
    /// few nanoseconds.
    #[inline]
    #[must_use]
    pub fn object_around(&self, memory: NonNull<u8>) -> Option<(NonNull<u8>, CacheId)> {
        let backend = &self.slabs.backend;
        let pages = &backend.pages;
        let page = pages.page_of(memory)?;
        let cache = pages.cache_of(memory);
        if !self.serves(cache) {
            return None;
        }
        let info = backend.info(cache)?;
        let head = pages.head_of(page);
        let first = pages.first_of(head);
        // An address below the first object, in its slab, wraps, and is in none.
        let index = info
            .geometry
            .index_around(memory.addr().get().wrapping_sub(first))?;
        Some((backend.place_of(info, head, index), cache))
    }

    /// Returns the largest size.
    #[must_use]
    pub const fn max_size(&self) -> usize {
        match D::SIZES.last() {
            Some(&largest) => largest as usize,
            None => 0,
        }
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Makes a cache for each general size.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn general<C: Caller>(&self) -> Result<General<'_, 'm, D, C>, CacheError> {
        General::new(self)
    }
}
