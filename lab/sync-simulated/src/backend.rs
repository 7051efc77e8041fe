//! The words of the simulated machine: each is in the host's memory, and the machine is called
//! before every access.
//!
//! One host thread runs all CPUs of a machine, one at a time, so the host's own accesses can be
//! relaxed: the effect of an ordering is modelled by the machine (`brickyard_machine`,
//! happens-before). Nothing may come between the return of that call and the access.

use core::sync::atomic::{self, Ordering};

use brickyard_machine::seam::{self, AccessKind, Exchanged};

/// The read-modify-write operations.
macro_rules! exchange {
    ($value:ty: $($name:ident),+) => {$(
        /// See `core::sync::atomic`.
        #[inline]
        pub fn $name(&self, value: $value, order: Ordering) -> $value {
            self.exchange(order, |word| word.$name(value, Ordering::Relaxed))
        }
    )+};
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// An atomic word whose every access is charged.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$name);

        impl $name {
            /// A word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            #[inline]
            fn at(&self) -> usize {
                self.0.as_ptr().addr()
            }

            /// See `core::sync::atomic`.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                seam::begin(self.at(), AccessKind::Load);
                let value = self.0.load(Ordering::Relaxed);
                seam::loaded(self.at(), order);
                value
            }

            /// See `core::sync::atomic`.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                seam::begin(self.at(), AccessKind::Store);
                self.0.store(value, Ordering::Relaxed);
                seam::stored(self.at(), order);
            }

            exchange!($value: swap, fetch_add, fetch_sub, fetch_or, fetch_and);

            /// See `core::sync::atomic`.
            ///
            /// # Errors
            /// The value found, when it was not `current`.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                seam::begin(self.at(), AccessKind::Exchange);
                let done =
                    self.0
                        .compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed);
                match done {
                    Ok(_) => seam::exchanged(self.at(), success, Exchanged::Done),
                    Err(_) => seam::exchanged(self.at(), failure, Exchanged::Refused),
                }
                done
            }

            #[inline]
            fn exchange(
                &self,
                order: Ordering,
                change: impl FnOnce(&atomic::$name) -> $value,
            ) -> $value {
                seam::begin(self.at(), AccessKind::Exchange);
                let before = change(&self.0);
                seam::exchanged(self.at(), order, Exchanged::Done);
                before
            }
        }
    };
}

atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicUsize, usize);

macro_rules! guarded {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $value:ty) => {
        $(#[$doc])*
        ///
        /// Where the machine checks for races, an access that is not ordered after the last
        /// conflicting one ends the run.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$atomic);

        impl $name {
            /// A word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(atomic::$atomic::new(value))
            }

            #[inline]
            fn at(&self) -> usize {
                self.0.as_ptr().addr()
            }

            /// Returns the value; the caller holds the word's guard.
            #[inline]
            #[must_use]
            pub fn get(&self) -> $value {
                seam::guarded_read(self.at());
                self.0.load(Ordering::Relaxed)
            }

            /// Sets the value; the caller holds the word's guard.
            #[inline]
            pub fn set(&self, value: $value) {
                seam::guarded_write(self.at());
                self.0.store(value, Ordering::Relaxed);
            }

            /// Adds to the value, wrapping around; the caller holds the word's guard.
            #[inline]
            pub fn add(&self, more: $value) {
                self.set(self.get().wrapping_add(more));
            }
        }
    };
}

guarded!(
    /// A 32-bit word that is private to the holder of its lock or the owner of its frame.
    GuardedU32, AtomicU32, u32
);
guarded!(
    /// A 64-bit word that is private to the holder of its lock.
    GuardedU64, AtomicU64, u64
);

/// Does nothing: the machine executes one access after the other, so none can begin early.
#[inline]
pub fn prefetch(_address: usize) {}

/// Does nothing, as [`prefetch`].
#[inline]
pub fn prefetch_to_write(_address: usize) {}

/// Reports to the machine that the caller waits for another CPU.
#[inline]
pub fn spin_hint() {
    seam::spin();
}
