//! A cache of values of one type. This is the one part of slabs that holds values without `unsafe`
//! code of its users.
//!
//! Why that is sound, beside `object-bytes` and `owns-its-value`:
//! - **Threads.** Only bytes pass through a cache. A value comes in by [`Cache::alloc`] from the
//!   caller that made it, and goes with its [`Object`]. The object can be sent and shared as the
//!   value itself can. So the cache can be shared whatever the type is.
//! - **Lifetimes.** An object borrows its cache, and the cache borrows the slabs, which own the
//!   source of pages. So neither is destroyed, dropped or moved while a value is there. The cache
//!   is invariant in the type, so it lives no longer than what values borrow.
//! - **Forgotten objects** count as in use for good: the cache is not destroyed, and their pages
//!   stay with it. Where the slabs go all the same, no reference to the value is left, since each
//!   borrowed the object.
//! - **Panics.** A value whose drop panics is not dropped again, and its memory is never freed.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::cache::{Leak, RawCache};
use crate::cache_info::CacheSpec;
use crate::caller::Caller;
use crate::design::SlabDesign;
use crate::error::{CacheError, FreeFault, SlabError};
use crate::slabs::Slabs;

/// A cache of values of type `T`. See [`RawCache`].
#[derive(Debug)]
pub struct Cache<'s, 'm, T, D: SlabDesign<'m>, C> {
    raw: RawCache<'s, 'm, D, C>,
    of: PhantomData<fn(T) -> T>,
}

impl<'s, 'm, T, D: SlabDesign<'m>, C: Caller> Cache<'s, 'm, T, D, C> {
    pub(crate) const fn of(raw: RawCache<'s, 'm, D, C>) -> Self {
        Self {
            raw,
            of: PhantomData,
        }
    }

    /// Moves `value` into an object of its own.
    ///
    /// # Errors
    /// [`SlabError`]; the value is dropped.
    #[inline]
    #[track_caller]
    pub fn alloc(&self, value: T) -> Result<Object<'_, 's, 'm, T, D, C>, SlabError> {
        let memory = self.alloc_uninit()?;
        let memory = memory.cast::<T>();
        // SAFETY: `object-bytes`: the object is large enough for `T`, aligned for it, and belongs
        // to this caller.
        unsafe { memory.write(value) };
        Ok(Object {
            memory,
            cache: self,
        })
    }

    /// Allocates memory for a value. Give it back by [`Cache::free`].
    ///
    /// # Errors
    /// [`SlabError`].
    #[inline(always)]
    #[track_caller]
    pub fn alloc_uninit(&self) -> Result<NonNull<MaybeUninit<T>>, SlabError> {
        Ok(self.raw.alloc()?.cast())
    }

    /// Takes a value's memory back, without dropping the value.
    ///
    /// # Safety
    /// The conditions of [`RawCache::free`]: the memory came from [`Object::into_raw`] or
    /// [`Cache::alloc_uninit`], and is freed once.
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn free(&self, memory: NonNull<MaybeUninit<T>>) -> Result<(), FreeFault> {
        // SAFETY: passed on.
        unsafe { self.raw.free(memory.cast()) }
    }

    /// Returns the cache as one of bytes.
    #[must_use]
    pub const fn raw(&self) -> &RawCache<'s, 'm, D, C> {
        &self.raw
    }

    /// Ends the cache. See [`RawCache::destroy`].
    ///
    /// # Errors
    /// The cache, and how many values are in use.
    pub fn destroy(self) -> Result<(), (Self, Leak)> {
        self.raw
            .destroy()
            .map_err(|(raw, leak)| (Self::of(raw), leak))
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Makes a cache of values of type `T`.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn typed<T, C: Caller>(
        &self,
        name: &'static str,
    ) -> Result<Cache<'_, 'm, T, D, C>, CacheError> {
        let spec = CacheSpec::new(name, size_of::<T>().max(1)).align(align_of::<T>());
        Ok(Cache::of(self.cache(spec)?))
    }
}

/// A value in an object of a cache. Dropping this drops the value and gives its memory back. (An
/// interrupt must not drop one of a task-only cache: the value is dropped, but the memory is lost,
/// and debug builds panic.)
///
/// Invariant `owns-its-value`: the memory holds a value from construction to drop, and belongs to
/// this object alone.
pub struct Object<'c, 's, 'm, T, D: SlabDesign<'m>, C: Caller> {
    memory: NonNull<T>,
    cache: &'c Cache<'s, 'm, T, D, C>,
}

// SAFETY: it owns the value as a box does; the cache can be used from anywhere.
unsafe impl<'m, T: Send, D: SlabDesign<'m>, C: Caller> Send for Object<'_, '_, 'm, T, D, C> where
    Slabs<'m, D>: Sync
{
}
// SAFETY: as above.
unsafe impl<'m, T: Sync, D: SlabDesign<'m>, C: Caller> Sync for Object<'_, '_, 'm, T, D, C> where
    Slabs<'m, D>: Sync
{
}

impl<'m, T, D: SlabDesign<'m>, C: Caller> Object<'_, '_, 'm, T, D, C> {
    /// Returns its memory, with the value in it. Give it back by [`Cache::free`].
    #[must_use]
    pub fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).memory
    }
}

impl<'m, T, D: SlabDesign<'m>, C: Caller> Deref for Object<'_, '_, 'm, T, D, C> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: by `owns-its-value`.
        unsafe { self.memory.as_ref() }
    }
}

impl<'m, T, D: SlabDesign<'m>, C: Caller> DerefMut for Object<'_, '_, 'm, T, D, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `owns-its-value`.
        unsafe { self.memory.as_mut() }
    }
}

impl<'m, T, D: SlabDesign<'m>, C: Caller> Drop for Object<'_, '_, 'm, T, D, C> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `owns-its-value`, which ends here.
        let freed = unsafe {
            self.memory.drop_in_place();
            self.cache.free(self.memory.cast())
        };
        debug_assert!(freed.is_ok(), "an object of its own cache: {freed:?}");
    }
}

impl<'m, T: fmt::Debug, D: SlabDesign<'m>, C: Caller> fmt::Debug for Object<'_, '_, 'm, T, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
