//! A child process can use the heap even if its parent built the heap while it was being forked.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard_heap as heap;

/// The other threads may begin: a fork is under way.
static FORKING: AtomicBool = AtomicBool::new(false);
/// The child is there.
static STOP: AtomicBool = AtomicBool::new(false);
/// How often the other threads have allocated.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// Allocates runs of pages and keeps them, so that the heap has to grow, under its lock, every few
/// rounds.
fn grow(rounds: usize) {
    for _ in 0..rounds {
        assert!(!heap::alloc(1 << 20).is_null());
    }
}

/// Called by `fork` before the process is copied. It is registered before the heap is used, and
/// what is registered last is called first.
unsafe extern "C" fn others_build_the_heap() {
    FORKING.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    // Where the C library keeps a lock meanwhile that the heap needs to be built, it is not built.
    while ALLOCATED.load(Ordering::SeqCst) < 4 && begun.elapsed() < Duration::from_millis(300) {
        thread::yield_now();
    }
}

/// Waits for a child for at most 20 seconds, and returns its status.
fn status_of(child: libc::pid_t) -> Option<i32> {
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: `status` can be written.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            // SAFETY: the child is this process's own, and not yet waited for.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Some(status)
}

/// Makes a process whose first fork meets a heap that is being built. That process ends with 0 if
/// its child could use the heap.
fn a_process_whose_first_fork_meets_it() -> i32 {
    // SAFETY: the function is there as long as the program.
    unsafe { libc::pthread_atfork(Some(others_build_the_heap), None, None) };
    let others = [(); 3].map(|()| {
        thread::spawn(|| {
            while !FORKING.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            while !STOP.load(Ordering::SeqCst) && ALLOCATED.load(Ordering::SeqCst) < 20_000 {
                grow(1);
                ALLOCATED.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    // SAFETY: the child calls nothing but the heap, and ends without returning.
    let child = unsafe { libc::fork() };
    if child == 0 {
        grow(300);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    let status = status_of(child);
    STOP.store(true, Ordering::SeqCst);
    for other in others {
        other.join().unwrap();
    }
    i32::from(status != Some(0))
}

#[test]
fn a_child_of_the_first_moment_finds_no_lock_held() {
    const VARIABLE: &str = "BRICKYARD_TEST_FIRST_FORK";
    if std::env::var_os(VARIABLE).is_some() {
        std::process::exit(a_process_whose_first_fork_meets_it());
    }
    // In processes of their own: each has only one first moment.
    for _ in 0..100 {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("--quiet")
            .env(VARIABLE, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "the child stood still");
    }
}
