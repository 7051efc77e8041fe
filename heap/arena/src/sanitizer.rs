//! What the thread sanitizer is told that it cannot see itself (see `.ci/sanitizers`): it does not see into std, which is not
//! built for it, so a lock of std that had to wait orders nothing for it. Compiled for it alone.

use core::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

unsafe extern "C" {
    fn __tsan_acquire(word: *mut core::ffi::c_void);
    fn __tsan_release(word: *mut core::ffi::c_void);
}

/// A locked mutex, whose order is told.
pub(crate) struct Told<'m, T>(MutexGuard<'m, T>);

impl<'m, T> Told<'m, T> {
    pub(crate) fn of(guard: MutexGuard<'m, T>) -> Self {
        // SAFETY: an address in the sanitizer's own tables.
        unsafe { __tsan_acquire(core::ptr::from_ref(&*guard).cast_mut().cast()) };
        Self(guard)
    }
}

impl<T> Deref for Told<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Told<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Told<'_, T> {
    fn drop(&mut self) {
        // SAFETY: as above. It is unlocked behind this.
        unsafe { __tsan_release(core::ptr::from_ref(&*self.0).cast_mut().cast()) };
    }
}
