//! Information for sanitizers that they cannot find themselves; no code without a sanitizer (see
//! `.ci/sanitizers`).
//!
//! The address sanitizer tracks accessible memory of `malloc` and the stack. Of memory from a page
//! source it has to be told which part is in use. The thread sanitizer does not see into std, which
//! is not built for it: a lock of std that had to wait orders nothing for it.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(sanitizer = "address")]
unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const core::ffi::c_void, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const core::ffi::c_void, bytes: usize);
}

#[cfg(sanitizer = "thread")]
unsafe extern "C" {
    fn __tsan_acquire(word: *mut core::ffi::c_void);
    fn __tsan_release(word: *mut core::ffi::c_void);
}

/// Makes any access to these bytes an error from now on.
pub(crate) fn close(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitizer = "address")]
    // SAFETY: marks bytes in the sanitizer's own tables.
    unsafe {
        __asan_poison_memory_region(start.as_ptr().cast(), bytes);
    }
    let _ = (start, bytes);
}

/// Makes these bytes accessible again.
pub(crate) fn open(start: NonNull<u8>, bytes: usize) {
    #[cfg(sanitizer = "address")]
    // SAFETY: as above.
    unsafe {
        __asan_unpoison_memory_region(start.as_ptr().cast(), bytes);
    }
    let _ = (start, bytes);
}

/// Locks a mutex in a way that the thread sanitizer sees. Ignores poisoning: the panic has already
/// been reported.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexHeld<'_, T> {
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(sanitizer = "thread")]
    // SAFETY: an address in the sanitizer's own tables.
    unsafe {
        __tsan_acquire(core::ptr::from_ref(mutex).cast_mut().cast());
    }
    MutexHeld { mutex, guard }
}

/// A locked mutex.
#[derive(Debug)]
pub(crate) struct MutexHeld<'m, T> {
    mutex: &'m Mutex<T>,
    guard: MutexGuard<'m, T>,
}

impl<T> Deref for MutexHeld<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexHeld<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> Drop for MutexHeld<'_, T> {
    fn drop(&mut self) {
        #[cfg(sanitizer = "thread")]
        // SAFETY: as above. The mutex is unlocked after this.
        unsafe {
            __tsan_release(core::ptr::from_ref(self.mutex).cast_mut().cast());
        }
        let _ = self.mutex;
    }
}
