//! A place for a value that is put in once, while others may look, and is constant from then on.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;

use crate::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const BUSY: u32 = 1;
const SET: u32 = 2;

/// A place for one value. Nobody waits: who comes while another puts its value in finds the place taken, and who looks too early finds nothing.
///
/// Invariant `set-means-there`: while `state` is `SET` the value is there and is not changed; while it is `BUSY` only the one who turned it from `EMPTY`
/// touches the value.
pub struct OnceSlot<T> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: `set-means-there`: the value is shared as `&T` only, and moves in and out by one thread at a time.
unsafe impl<T: Send + Sync> Sync for OnceSlot<T> {}

impl<T: Copy> OnceSlot<T> {
    /// A place without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Puts a value in, if the place has none and nobody is just putting one in.
    ///
    /// # Errors
    /// The value, where the place is taken.
    pub fn set(&self, value: T) -> Result<&T, T> {
        // Acquire: pairs with the release in `clear`, whose caller was done with the last value. Relaxed where it fails: then nothing is read.
        let busy = self
            .state
            .compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if busy.is_err() {
            return Err(value);
        }
        // SAFETY: `set-means-there`: this caller turned the state to `BUSY`.
        let value = unsafe { (*self.value.get()).write(value) };
        // Release: pairs with the acquire in `get`.
        self.state.store(SET, Ordering::Release);
        Ok(value)
    }

    /// The value, if one is there.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the release in `set`.
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: `set-means-there`.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Empties the place.
    ///
    /// # Safety
    /// Nobody has a reference to the value any more, or gets one meanwhile.
    pub unsafe fn clear(&self) {
        // Release: pairs with the acquire in `set` of who comes next. The value is `Copy`, so there is nothing to drop.
        self.state.store(EMPTY, Ordering::Release);
    }
}

impl<T: Copy> Default for OnceSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for OnceSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceSlot").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn takes_one_value_until_it_is_cleared() {
        let slot = OnceSlot::new();
        assert_eq!(slot.get(), None);
        assert_eq!(slot.set(1), Ok(&1));
        assert_eq!(slot.set(2), Err(2));
        assert_eq!(slot.get(), Some(&1));
        // SAFETY: no reference is left.
        unsafe { slot.clear() };
        assert_eq!(slot.get(), None);
        assert_eq!(slot.set(3), Ok(&3));
    }
}
