//! The words of the simulated machine: each lies in the host's memory, and the machine hears of
//! every access before it is made.
//!
//! One host thread runs all CPUs of a machine, one at a time, so that the host's own accesses can
//! be relaxed: what an ordering means, the machine watches (`brickyard_machine`, happens-before).
//! Nothing may come between the machine's answer and the access.

use core::sync::atomic::{self, Ordering};

use brickyard_machine::seam::{self, AccessKind, Exchanged};

/// The operations that exchange a word for another.
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
        /// Where the machine watches for races, an access that nothing ordered after the last one
        /// ends the run.
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

            /// The value; the caller holds what guards the word.
            #[inline]
            #[must_use]
            pub fn get(&self) -> $value {
                seam::guarded_read(self.at());
                self.0.load(Ordering::Relaxed)
            }

            /// Puts `value` in; the caller holds what guards the word.
            #[inline]
            pub fn set(&self, value: $value) {
                seam::guarded_write(self.at());
                self.0.store(value, Ordering::Relaxed);
            }

            /// Adds to the value, wrapping around; the caller holds what guards the word.
            #[inline]
            pub fn add(&self, more: $value) {
                self.set(self.get().wrapping_add(more));
            }
        }
    };
}

guarded!(
    /// A 32-bit word that a lock, or the ownership of a frame, makes private to whoever touches it.
    GuardedU32, AtomicU32, u32
);
guarded!(
    /// A 64-bit word that a lock makes private to whoever touches it.
    GuardedU64, AtomicU64, u64
);

/// Tells the machine that the caller waits for another CPU.
#[inline]
pub fn spin_hint() {
    seam::spin();
}
