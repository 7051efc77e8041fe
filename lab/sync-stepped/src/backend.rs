//! The words of the real machine, with a call before each access of an atomic one.

use core::sync::atomic::{self, Ordering};
use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();
/// The calls of [`before_each_access`] that have not returned.
static CALLS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);

/// Runs `work`, and calls `hook` before each atomic access meanwhile, on this thread and on others.
/// The hook may do what it likes, accesses of its own included.
///
/// # Panics
/// If another hook was used before, in this process.
pub fn before_each_access<R>(hook: fn(), work: impl FnOnce() -> R) -> R {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            // Relaxed: this thread's own accesses are what matters.
            CALLS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    assert!(
        core::ptr::fn_addr_eq(*HOOK.get_or_init(|| hook), hook),
        "one hook in a process"
    );
    // Relaxed: as above.
    CALLS.fetch_add(1, Ordering::Relaxed);
    let _ends = Ends;
    work()
}

#[inline]
fn step() {
    #[inline(never)]
    fn call() {
        HOOK.get().expect("set before it is used")();
    }
    // Relaxed: as above.
    if CALLS.load(Ordering::Relaxed) > 0 {
        call();
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// An atomic word; another CPU may run before each access.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$name);

        impl $name {
            /// A word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            atomic!(@forward load() -> $value, store(value: $value) -> (),
                swap(value: $value) -> $value, fetch_add(value: $value) -> $value,
                fetch_sub(value: $value) -> $value, fetch_or(value: $value) -> $value,
                fetch_and(value: $value) -> $value);

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
                step();
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
    (@forward $($name:ident($($value:ident: $type:ty)?) -> $result:ty),+) => {$(
        /// See `core::sync::atomic`.
        #[inline]
        pub fn $name(&self, $($value: $type,)? order: Ordering) -> $result {
            step();
            self.0.$name($($value,)? order)
        }
    )+};
}

atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicUsize, usize);

macro_rules! guarded {
    ($name:ident, $atomic:ident, $value:ty) => {
        /// A word that its lock, its slot or its frame makes private to the code that accesses it.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$atomic);

        impl $name {
            /// A word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(atomic::$atomic::new(value))
            }

            /// Returns the value; the caller holds the word's guard.
            #[inline]
            #[must_use]
            pub fn get(&self) -> $value {
                // Relaxed: what guards the word has ordered this after the last `set`.
                self.0.load(Ordering::Relaxed)
            }

            /// Sets the value; the caller holds the word's guard.
            #[inline]
            pub fn set(&self, value: $value) {
                // Relaxed: as above.
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

guarded!(GuardedU32, AtomicU32, u32);
guarded!(GuardedU64, AtomicU64, u64);

/// Does nothing: a hint has no effect that a test could see.
#[inline]
pub fn prefetch(_address: usize) {}

/// Does nothing, as [`prefetch`].
#[inline]
pub fn prefetch_to_write(_address: usize) {}

/// Does nothing: the test's platform decides who runs while somebody waits.
#[inline]
pub fn spin_hint() {}
