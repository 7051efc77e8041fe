//! Whether the system filters this process's calls (seccomp), and which calls are better left out
//! then.
//!
//! A filter may end the process at a call that it does not know. The calls of a process with one
//! thread are those of every allocator. But the background thread has to be made, and goes to other
//! CPUs, which programs may not expect:
//!
//! - It does not go to other CPUs in a process that is filtered (`SystemCallFilter=~@resources` of
//!   systemd forbids that).
//! - It is not started where a filter came after the heap was built: the program's own, which may
//!   forbid new threads once all have been made.

use core::sync::atomic::{AtomicBool, Ordering};

use brickyard_arena::rows::keeping_errno;

/// Whether the process was filtered when the heap was built.
static FROM_THE_START: AtomicBool = AtomicBool::new(false);

/// Notes what there is before the program runs.
pub(crate) fn note() {
    // Relaxed, here and below: written while the heap is built, and a hint.
    FROM_THE_START.store(is_there(), Ordering::Relaxed);
}

/// Returns true if calls are filtered.
pub(crate) fn is_there() -> bool {
    // SAFETY: a plain call.
    keeping_errno(|| unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) }) > 0
}

/// Returns true if calls are filtered that were not when the heap was built.
pub(crate) fn is_new() -> bool {
    !FROM_THE_START.load(Ordering::Relaxed) && is_there()
}
