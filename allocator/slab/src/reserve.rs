//! Objects set aside for allocations that must not fail.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::cache::RawCache;
use crate::caller::Caller;
use crate::design::SlabDesign;
use crate::error::SlabError;

/// Up to `N` objects of a cache, in hand before they are needed. A caller that may not fail halfway
/// takes them first, while failing is still allowed. It has one owner. What is left goes back when
/// it is dropped.
#[derive(Debug)]
pub struct Reserve<'c, 's, 'm, D: SlabDesign<'m>, C: Caller, const N: usize> {
    cache: &'c RawCache<'s, 'm, D, C>,
    objects: [MaybeUninit<NonNull<u8>>; N],
    /// Invariant `filled-up-to`: the first so many are there.
    filled: usize,
}

impl<'s, 'm, D: SlabDesign<'m>, C: Caller> RawCache<'s, 'm, D, C> {
    /// Sets `N` objects aside.
    ///
    /// # Errors
    /// [`SlabError`], if not all of them can be had; then none is taken.
    #[track_caller]
    pub fn reserve<const N: usize>(&self) -> Result<Reserve<'_, 's, 'm, D, C, N>, SlabError> {
        let mut reserve = Reserve {
            cache: self,
            objects: [const { MaybeUninit::uninit() }; N],
            filled: 0,
        };
        reserve.refill()?;
        Ok(reserve)
    }
}

impl<'m, D: SlabDesign<'m>, C: Caller, const N: usize> Reserve<'_, '_, 'm, D, C, N> {
    /// Returns how many objects are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.filled
    }

    /// Returns an object, as long as one is left. Takes no lock, and fails only when none is left.
    pub const fn alloc(&mut self) -> Option<NonNull<u8>> {
        let Some(last) = self.filled.checked_sub(1) else {
            return None;
        };
        self.filled = last;
        // SAFETY: `filled-up-to`.
        Some(unsafe { self.objects[last].assume_init() })
    }

    /// Fills it again to `N`.
    ///
    /// # Errors
    /// [`SlabError`], if not all can be had; it keeps what it has.
    #[track_caller]
    pub fn refill(&mut self) -> Result<(), SlabError> {
        while self.filled < N {
            self.objects[self.filled].write(self.cache.alloc()?);
            self.filled += 1;
        }
        Ok(())
    }
}

impl<'m, D: SlabDesign<'m>, C: Caller, const N: usize> Drop for Reserve<'_, '_, 'm, D, C, N> {
    fn drop(&mut self) {
        while let Some(object) = self.alloc() {
            // SAFETY: it is an object of the cache that nobody has used.
            let freed = unsafe { self.cache.free(object) };
            debug_assert!(freed.is_ok(), "an object of its own cache: {freed:?}");
        }
    }
}
