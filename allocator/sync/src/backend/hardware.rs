//! The words of the real machine: `core`'s atomics, and guarded words that cost as little as a
//! plain access.
//!
//! Invariant `prefetch-is-a-hint`: an instruction that fetches a cache line in advance has no
//! effect that a program could tell, whatever the address.

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
use core::arch::asm;

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

macro_rules! prefetch {
    ($(#[$doc:meta])* $name:ident: $x86_64:literal, $aarch64:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(address: usize) {
            // SAFETY: `prefetch-is-a-hint`: on both CPUs the instruction changes no register and no
            // memory, and faults on no address. CPUs too old to know it execute it as `nop`.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            unsafe {
                asm!($x86_64, in(reg) address, options(nostack, preserves_flags, readonly));
            }
            // SAFETY: `prefetch-is-a-hint`.
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            unsafe {
                asm!($aarch64, in(reg) address, options(nostack, preserves_flags, readonly));
            }
            let _ = address;
        }
    };
}

prefetch!(
    /// Fetches the cache line of an address in advance, for reads. A hint, which does nothing on
    /// CPUs that it was not written for, and under Miri. Any address may be given.
    prefetch: "prefetcht0 byte ptr [{}]", "prfm pldl1keep, [{}]"
);
prefetch!(
    /// Fetches a line that will be written: other CPUs lose their copies of it.
    prefetch_to_write: "prefetchw byte ptr [{}]", "prfm pstl1keep, [{}]"
);

/// Tells the CPU that the caller waits for another CPU.
#[inline(always)]
pub fn spin_hint() {
    core::hint::spin_loop();
}
