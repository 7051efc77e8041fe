//! The words under loom: every atomic access is a choice point of the model, and every guarded
//! access is checked for races.
//!
//! Loom's own types can only be made inside a model run, and not in constants. So each word here
//! keeps its first value, and makes its loom twin at the first access. To loom, making the twin is
//! a write by the thread that came first. So a model must touch all its atomic words before it
//! starts its threads (for example, by asking each lock whether it is held). If it forgets one and
//! two threads race for it, loom reports the race, so nothing is missed.
//!
//! Invariant `one-thread-at-a-time`: loom runs its threads as coroutines of one system thread and
//! switches only inside loom's own operations, so no cell is entered twice at once.
//!
//! After a model has failed, guards are dropped while the panic unwinds. Their accesses then do
//! nothing: another switch between threads, or a second panic, would hide the first report.

use core::cell::OnceCell;
use core::fmt;

use super::super::Ordering;

/// Returns true if the model has already failed.
fn unwinding() -> bool {
    std::thread::panicking()
}

/// The operations that exchange a word's value for another.
macro_rules! exchange {
    ($value:ty: $($name:ident),+) => {$(
        /// See `core::sync::atomic`.
        #[track_caller]
        pub fn $name(&self, value: $value, order: Ordering) -> $value {
            if unwinding() {
                return self.first;
            }
            self.word().$name(value, order)
        }
    )+};
}

/// A word that makes its twin of loom at the first access.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $value:ty, $twin:ty) => {
        $(#[$doc])*
        pub struct $name {
            first: $value,
            twin: OnceCell<$twin>,
        }

        // SAFETY: by `one-thread-at-a-time`.
        unsafe impl Sync for $name {}
        // SAFETY: as above.
        unsafe impl Send for $name {}

        impl $name {
            /// Returns a word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self {
                    first: value,
                    twin: OnceCell::new(),
                }
            }

            fn word(&self) -> &$twin {
                self.twin.get_or_init(|| <$twin>::new(self.first))
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        word!(
            /// An atomic word; loom explores its every access.
            $name, $value, loom::sync::atomic::$name
        );

        impl $name {
            /// See `core::sync::atomic`.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                if unwinding() {
                    return self.first;
                }
                self.word().load(order)
            }

            /// See `core::sync::atomic`.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                if unwinding() {
                    return;
                }
                self.word().store(value, order);
            }

            exchange!($value: swap, fetch_add, fetch_sub, fetch_or, fetch_and);

            /// See `core::sync::atomic`.
            ///
            /// # Errors
            /// The value found, if it was not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if unwinding() {
                    return Ok(current);
                }
                self.word().compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicUsize, usize);

macro_rules! guarded {
    ($name:ident, $value:ty) => {
        word!(
            /// A guarded word; loom reports an access that nothing ordered.
            $name, $value, loom::cell::Cell<$value>
        );

        impl $name {
            /// Returns the value. The caller holds what guards the word.
            #[must_use]
            #[track_caller]
            pub fn get(&self) -> $value {
                if unwinding() {
                    return self.first;
                }
                self.word().get()
            }

            /// Stores `value`. The caller holds what guards the word.
            #[track_caller]
            pub fn set(&self, value: $value) {
                if unwinding() {
                    return;
                }
                self.word().set(value);
            }

            /// Adds to the value, wrapping around. The caller holds what guards the word.
            #[track_caller]
            pub fn add(&self, more: $value) {
                self.set(self.get().wrapping_add(more));
            }
        }
    };
}

guarded!(GuardedU32, u32);
guarded!(GuardedU64, u64);

/// Does nothing: no cache is modelled.
pub fn prefetch(_address: usize) {}

/// Does nothing: no cache is modelled.
pub fn prefetch_to_write(_address: usize) {}

/// Lets another modelled thread run, since a spinning thread makes no progress by itself.
pub fn spin_hint() {
    if !unwinding() {
        loom::thread::yield_now();
    }
}
