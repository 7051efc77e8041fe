//! The words of the real machine: `core`'s atomics, and guarded words that cost as little as a
//! plain access.

pub use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

macro_rules! guarded {
    ($(#[$doc:meta])* $name:ident, $atomic:ty, $value:ty) => {
        $(#[$doc])*
        ///
        /// Reading and writing compile to one plain load and one plain store. A caller that breaks
        /// the rule reads a stale value; it never causes undefined behaviour.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name($atomic);

        impl $name {
            /// Returns a word that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }

            /// Returns the value. The caller holds what guards the word.
            #[inline(always)]
            #[must_use]
            pub fn get(&self) -> $value {
                // Relaxed: the lock that guards the word has ordered this after the last `set`.
                self.0.load(core::sync::atomic::Ordering::Relaxed)
            }

            /// Stores `value`. The caller holds what guards the word.
            #[inline(always)]
            pub fn set(&self, value: $value) {
                // Relaxed: releasing the lock that guards the word publishes this to its next
                // holder.
                self.0.store(value, core::sync::atomic::Ordering::Relaxed);
            }

            /// Adds to the value, wrapping around. The caller holds what guards the word.
            #[inline(always)]
            pub fn add(&self, more: $value) {
                self.set(self.get().wrapping_add(more));
            }
        }
    };
}

guarded!(
    /// A 32-bit word that a lock, or the ownership of a frame, makes private to the code that
    /// accesses it.
    GuardedU32, AtomicU32, u32
);
guarded!(
    /// A 64-bit word that a lock makes private to the code that accesses it.
    GuardedU64, AtomicU64, u64
);

/// Tells the CPU that the caller waits for another CPU.
#[inline(always)]
pub fn spin_hint() {
    core::hint::spin_loop();
}
