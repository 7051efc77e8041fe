//! A child process can use the heap, whatever other threads of its parent were doing when it was
//! made.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brickyard_heap as heap;

/// Allocates and frees memory of all kinds; every byte must be its owner's. False if one was not.
fn churn(seed: usize, rounds: usize) -> bool {
    let mut held = [(core::ptr::null_mut::<u8>(), 0_usize); 64];
    let mut state = seed as u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let mut good = true;
    for _ in 0..rounds {
        let (place, kind) = (next() % held.len(), next() % 200);
        let bytes = match kind {
            0 => 3 << 20,
            1..4 => 40_000 + next() % 200_000,
            _ => 1 + next() % 5000,
        };
        let (memory, length) = held[place];
        if !memory.is_null() {
            // SAFETY: this function's own memory, of which it wrote the first and the last byte.
            unsafe {
                good &= *memory == place as u8 && *memory.add(length - 1) == place as u8;
                heap::free(memory);
            }
        }
        let memory = heap::alloc(bytes);
        good &= !memory.is_null();
        // SAFETY: so many bytes are this function's own.
        unsafe {
            *memory = place as u8;
            *memory.add(bytes - 1) = place as u8;
        }
        held[place] = (memory, bytes);
    }
    for (memory, _) in held {
        // SAFETY: null, or this function's own.
        unsafe { heap::free(memory) };
    }
    good
}

#[test]
fn a_child_finds_no_lock_held() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 1..=3 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert!(churn(seed, 500));
                }
            });
        }
        let mut good = true;
        for seed in 0..40 {
            // SAFETY: the child calls nothing but the heap, and ends without returning.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let good = churn(seed, 300);
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(i32::from(!good)) };
            }
            let mut status = 0;
            // SAFETY: `status` can be written.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            good &= child > 0 && (waited, status) == (child, 0);
        }
        // Before a failure is told, which waits for the threads.
        stop.store(true, Ordering::Relaxed);
        assert!(good);
    });
}
