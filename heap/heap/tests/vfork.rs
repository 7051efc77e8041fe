//! Around a `vfork` fast paths are closed, memory comes and goes all the same, and afterwards they
//! are open again. In a process of its own, since it is about all its threads.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use brickyard_heap::{after_vfork, alloc, before_vfork, free, quick, quick_free, wants_hardening};

/// Whether a request that was served a moment ago is served by the fast path now.
fn is_quick() -> bool {
    let memory = alloc(100);
    assert!(!memory.is_null());
    // SAFETY: just allocated.
    unsafe { free(memory) };
    // What is interrupted midway is tried again.
    (0..1000).any(|_| {
        let memory = quick(100);
        // SAFETY: just allocated, if it is not null.
        !memory.is_null() && unsafe { quick_free(memory) }
    })
}

fn takes_and_gives() {
    let held: Vec<_> = (1..3000_usize).map(|bytes| (alloc(bytes), bytes)).collect();
    for &(memory, bytes) in &held {
        assert!(!memory.is_null());
        // SAFETY: allocated above, with so many bytes.
        unsafe { memory.write_bytes(bytes as u8, bytes) };
    }
    for (memory, bytes) in held {
        // SAFETY: as above, and freed once.
        unsafe {
            assert_eq!(
                (memory.read(), memory.add(bytes - 1).read()),
                (bytes as u8, bytes as u8)
            );
            free(memory);
        }
    }
}

#[test]
fn fast_paths_are_closed_meanwhile_and_open_afterwards() {
    if wants_hardening() {
        println!("skipped: the hardened heap has no such fast paths");
        return;
    }
    takes_and_gives();
    let was_quick = is_quick();
    let before = before_vfork();
    assert!(!is_quick());
    takes_and_gives();
    // A child that calls it too, and goes on; and one that does not come back.
    let nested = before_vfork();
    after_vfork(nested);
    assert!(!is_quick());
    let _lost = before_vfork();
    after_vfork(before);
    assert_eq!(is_quick(), was_quick);
    takes_and_gives();
    // Another thread's is not over yet.
    let (to, from) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let before = before_vfork();
        to.send(()).unwrap();
        ended.recv().unwrap();
        after_vfork(before);
    });
    from.recv().unwrap();
    let before = before_vfork();
    after_vfork(before);
    assert!(!is_quick());
    // A child of fork does not have that thread.
    // SAFETY: the child looks, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(is_quick() != was_quick));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0);
    }
    end.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(is_quick(), was_quick);
}
