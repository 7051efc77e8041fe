//! A second free is found where the object's page is at home on another thread's row, by whatever
//! function it is freed.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::alloc::{GlobalAlloc as _, Layout};
use std::process::Command;
use std::thread;

use brickyard_heap::{Global, Object, free};

const LAYOUT: Layout = Layout::new::<[u64; 4]>();

/// Allocates on a thread that ends, and frees here by one function, and again by another.
fn twice(how: &str) {
    let object = thread::spawn(|| {
        // SAFETY: the layout has bytes.
        let objects = [(); 100].map(|()| unsafe { Global.alloc(LAYOUT) }.addr());
        objects[50]
    });
    // This thread has a row of its own, with a sheaf.
    // SAFETY: as above; and it is freed once.
    unsafe { free(Global.alloc(LAYOUT)) };
    let object: *mut u8 = core::ptr::with_exposed_provenance_mut(object.join().unwrap());
    for way in how.split(' ') {
        // SAFETY: the first time it is in use; the second time the process ends.
        unsafe {
            match way {
                "free" => free(object),
                "global" => Global.dealloc(object, LAYOUT),
                _ => drop(Object::<[u64; 4]>::from_raw(
                    core::ptr::NonNull::new(object.cast()).unwrap(),
                )),
            }
        }
    }
}

#[test]
fn a_second_free_away_from_home_is_found() {
    if let Ok(how) = std::env::var("FREED_TWICE") {
        return twice(&how);
    }
    let ways = ["free", "global", "object"];
    for how in ways
        .iter()
        .flat_map(|first| ways.map(|second| format!("{first} {second}")))
    {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_second_free_away_from_home_is_found",
                "--nocapture",
            ])
            .env("FREED_TWICE", &how)
            .env("BRICKYARD_ROWS", "thread")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(
            !child.status.success() && said.contains("bad free: freed twice"),
            "{how}: {:?} {said}",
            child.status
        );
    }
}
