//! A place for a value that is put in once, while other CPUs may look. The value is constant until
//! it is taken out.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;

use crate::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const BUSY: u32 = 1;
/// The value is there, but no new leases are given.
const CLOSED: u32 = 2;
/// The value is there. Numbers above this one count the leases that are out.
const SET: u32 = 3;

/// A place for one value. Nothing here waits. A caller that comes while another puts its value in
/// finds the place taken. A caller that looks too early finds nothing.
///
/// Invariant `set-means-there`: while `state` is `CLOSED`, `SET` or above, the value is there and
/// does not change; while it is `BUSY`, only the caller that turned it from `EMPTY` touches the
/// value.
///
/// Numbers of `state` above `SET` count [leases](OnceSlot::lease). [`OnceSlot::close`] does not
/// wait for leases; it refuses while there are some. They are counted up to the last number and not
/// beyond it. So forgotten leases only keep a place from being closed.
pub struct OnceSlot<T> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: `set-means-there`: the value is shared as `&T` only, and is moved in and out by one
// thread at a time.
unsafe impl<T: Send + Sync> Sync for OnceSlot<T> {}

impl<T: Copy> OnceSlot<T> {
    /// Returns a place without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Puts a value in, if the place has none and no other caller is putting one in.
    ///
    /// # Errors
    /// The value, if the place is taken.
    pub fn set(&self, value: T) -> Result<&T, T> {
        self.set_prepared(value, |_| ())
    }

    /// Puts a value in as [`OnceSlot::set`] does, and calls `prepare` with it before any other
    /// caller finds it. If that panics, the place stays taken, and seems to have no value.
    ///
    /// # Errors
    /// The value, if the place is taken.
    pub fn set_prepared(&self, value: T, prepare: impl FnOnce(&T)) -> Result<&T, T> {
        // Acquire: pairs with the release in `clear`, whose caller was done with the last value.
        // Relaxed on failure: nothing is read then.
        let busy = self
            .state
            .compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if busy.is_err() {
            return Err(value);
        }
        // SAFETY: `set-means-there`: this caller turned the state to `BUSY`.
        let value = unsafe { &*(*self.value.get()).write(value) };
        prepare(value);
        // Release: pairs with the acquire in `get`.
        self.state.store(SET, Ordering::Release);
        Ok(value)
    }

    /// Returns the value, if there is one. A caller that empties the place must know of all callers
    /// that read it in this way; see also [`OnceSlot::lease`].
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the release in `set`.
        if self.state.load(Ordering::Acquire) < CLOSED {
            return None;
        }
        // SAFETY: `set-means-there`.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Returns a lease of the value, if there is one and the place is not closed.
    /// [`OnceSlot::close`] refuses as long as the lease lives. Also returns `None` if 2^32 - 4
    /// leases are out, which can only happen if they were forgotten: with one more, the place would
    /// seem empty.
    #[must_use]
    pub fn lease(&self) -> Option<Lease<'_, T>> {
        // Relaxed: the exchange below decides.
        let mut state = self.state.load(Ordering::Relaxed);
        while (SET..u32::MAX).contains(&state) {
            // Acquire: pairs with the release in `set`, also through other leases' exchanges.
            let leased =
                self.state
                    .compare_exchange(state, state + 1, Ordering::Acquire, Ordering::Relaxed);
            match leased {
                Ok(_) => return Some(Lease { slot: self }),
                Err(found) => state = found,
            }
        }
        None
    }

    /// Stops giving leases from now on. Returns false, and changes nothing, if leases are out or
    /// there is no value.
    #[must_use]
    pub fn close(&self) -> bool {
        // Acquire: pairs with the release of each lease that ended.
        let closed = self
            .state
            .compare_exchange(SET, CLOSED, Ordering::Acquire, Ordering::Relaxed);
        closed.is_ok()
    }

    /// Gives leases again after [`OnceSlot::close`].
    pub fn reopen(&self) {
        // Release: as in `set`, for a caller that gets a lease because of this. Fails if the place
        // was not closed, and then there is nothing to do.
        let _ = self
            .state
            .compare_exchange(CLOSED, SET, Ordering::Release, Ordering::Relaxed);
    }

    /// Empties the place.
    ///
    /// # Safety
    /// No caller has a reference to the value or a lease any more, or gets one meanwhile.
    /// [`OnceSlot::close`] ensures this for leases, unless another caller
    /// [reopens](OnceSlot::reopen) the place.
    pub unsafe fn clear(&self) {
        // Release: pairs with the acquire in `set` by the next caller. The value is `Copy`, so
        // there is nothing to drop.
        self.state.store(EMPTY, Ordering::Release);
    }
}

/// The value of a [`OnceSlot`], which stays there as long as this lease lives.
pub struct Lease<'s, T: Copy> {
    slot: &'s OnceSlot<T>,
}

impl<T: Copy> Deref for Lease<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `set-means-there`: the state has been above `SET` since the lease began.
        unsafe { (*self.slot.value.get()).assume_init_ref() }
    }
}

impl<T: Copy> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `close`.
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Lease<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
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
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

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

    #[test]
    fn more_leases_than_can_be_counted_are_refused() {
        let slot = OnceSlot::new();
        let seen = slot.set(1).unwrap();
        // All leases but two of those that can be counted have been forgotten.
        slot.state.store(u32::MAX - 2, Ordering::Relaxed);
        let (a, b) = (slot.lease().unwrap(), slot.lease().unwrap());
        assert!(slot.lease().is_none());
        assert_eq!((slot.set(2), slot.get(), *seen), (Err(2), Some(&1), 1));
        drop(a);
        let again = slot.lease().unwrap();
        assert!(slot.lease().is_none() && !slot.close());
        assert_eq!((*again, *b), (1, 1));
    }

    #[test]
    fn is_not_closed_while_leases_are_out() {
        let slot = OnceSlot::new();
        assert!(slot.lease().is_none() && !slot.close());
        assert_eq!(slot.set(1), Ok(&1));
        let (a, b) = (slot.lease().unwrap(), slot.lease().unwrap());
        assert_eq!((*a, *b, slot.get()), (1, 1, Some(&1)));
        assert!(!slot.close());
        drop(a);
        assert!(!slot.close());
        drop(b);
        assert!(slot.close() && !slot.close());
        assert!(slot.lease().is_none());
        assert_eq!((slot.get(), slot.set(2)), (Some(&1), Err(2)));
        slot.reopen();
        assert_eq!(slot.lease().map(|lease| *lease), Some(1));
        assert!(slot.close());
        // SAFETY: closed, and no reference is left.
        unsafe { slot.clear() };
        slot.reopen();
        assert_eq!((slot.get(), slot.set(3)), (None, Ok(&3)));
    }
}
