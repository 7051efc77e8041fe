//! Whether a process has one thread, as the C library knows it.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU8, Ordering};

// Weak: null where the C library has none.
global_asm!(".weak __libc_single_threaded");

/// Returns false if the C library says that the process has, or has had, more than one thread
/// (glibc from 2.32 on). A child process may inherit that. Costs two loads.
#[must_use]
pub fn is_alone() -> bool {
    let single = weak_address!("__libc_single_threaded").cast::<AtomicU8>();
    // SAFETY: a byte of the C library, by its manual, which is there as long as the process. Relaxed:
    // a hint, and this thread sees what it has written itself.
    single.is_null() || unsafe { (*single).load(Ordering::Relaxed) } != 0
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
