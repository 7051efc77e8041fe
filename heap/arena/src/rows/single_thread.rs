//! Whether a process has one thread, as the C library knows it.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU8, Ordering};

// Weak: null where the C library has none.
global_asm!(".weak __libc_single_threaded");

/// Returns false if the C library says that the process has, or has had, more than one thread
/// (glibc from 2.32 on). A child process may inherit that. Costs two loads.
#[must_use]
pub fn is_alone() -> bool {
    // Relaxed: a hint, and this thread sees what it has written itself.
    alone().load(Ordering::Relaxed) != 0
}

/// Returns the byte that is not 0 as long as [`is_alone`] is true, for a custom fast path to read.
#[must_use]
pub fn alone() -> &'static AtomicU8 {
    static ALWAYS: AtomicU8 = AtomicU8::new(1);
    let single = weak_address!("__libc_single_threaded").cast::<AtomicU8>();
    // SAFETY: a byte of the C library, by its manual, which is there as long as the process.
    unsafe { single.as_ref() }.unwrap_or(&ALWAYS)
}

#[cfg(test)]
mod tests {
    use super::is_alone;

    #[test]
    fn who_has_started_a_thread_is_not_alone() {
        // Tests run in threads of their own, if there are threads at all.
        std::thread::spawn(|| assert!(!is_alone())).join().unwrap();
    }
}
