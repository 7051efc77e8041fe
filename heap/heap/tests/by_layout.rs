//! Memory of Rust's allocator between objects and pages: zeros above 32 KiB are pages, all else up
//! to 128 KiB are objects, and both are resized and freed by the same calls.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::alloc::{GlobalAlloc as _, Layout};
use core::slice;
use std::thread;

use brickyard_heap::{Global, Object};

/// Memory, its layout, and the byte that all of it holds.
struct Held {
    memory: *mut u8,
    layout: Layout,
    with: u8,
}

impl Held {
    /// Allocates memory, as zeros if `round` says so, and fills it.
    fn new(layout: Layout, round: usize) -> Self {
        let is_zeroed = round.is_multiple_of(2);
        let with = round as u8 | 1;
        // SAFETY: the layout is not empty, and the memory is this caller's.
        unsafe {
            let memory = match is_zeroed {
                true => Global.alloc_zeroed(layout),
                false => Global.alloc(layout),
            };
            assert!(!memory.is_null() && memory.addr().is_multiple_of(layout.align()));
            let mut held = Self {
                memory,
                layout,
                with: 0,
            };
            if is_zeroed {
                assert!(held.is_whole(layout.size()), "zeros of {layout:?}");
            }
            held.fill(with);
            held
        }
    }

    fn fill(&mut self, with: u8) {
        self.with = with;
        // SAFETY: it has so many bytes.
        unsafe { self.memory.write_bytes(with, self.layout.size()) };
    }

    fn is_whole(&self, bytes: usize) -> bool {
        // SAFETY: it has so many bytes, and all of them were written.
        let memory = unsafe { slice::from_raw_parts(self.memory, bytes) };
        memory.iter().all(|&byte| byte == self.with)
    }

    fn resize(&mut self, bytes: usize) {
        let kept = bytes.min(self.layout.size());
        // SAFETY: allocated with this layout, and not used by its old address any more.
        self.memory = unsafe { Global.realloc(self.memory, self.layout, bytes) };
        assert!(!self.memory.is_null());
        self.layout = Layout::from_size_align(bytes, self.layout.align()).unwrap();
        assert!(self.memory.addr().is_multiple_of(self.layout.align()));
        assert!(self.is_whole(kept), "{bytes} bytes");
        self.fill(self.with.wrapping_add(2));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        assert!(self.is_whole(self.layout.size()), "{:?}", self.layout);
        // SAFETY: allocated with this layout, and not used any more.
        unsafe { Global.dealloc(self.memory, self.layout) };
    }
}

fn churn(seed: usize) {
    let mut state = seed as u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) as usize % below
    };
    let mut held: Vec<Held> = Vec::new();
    let mut boxes = Vec::new();
    for round in 0..4000 {
        // Just above a size, all sizes, and what is far from all of this.
        let bytes = match round % 4 {
            0 => (4096 << next(6)) + 1 + next(3),
            3 => 1 + next(1000),
            _ => (30 << 10) + next(110 << 10),
        };
        let align = 1 << [0, 4, 6, 12, 13, 16][next(6)];
        held.push(Held::new(
            Layout::from_size_align(bytes, align).unwrap(),
            next(256),
        ));
        if round % 64 == 0 {
            boxes.push(Object::new([round as u8; 40_000]).unwrap());
        }
        if round % 3 == 0 {
            let place = next(held.len());
            held[place].resize(1 + next(140 << 10));
        }
        if held.len() > 60 {
            held.swap_remove(next(60));
        }
    }
    for object in boxes {
        assert!(object.iter().all(|&byte| byte == object[0]));
    }
}

#[test]
fn objects_and_pages_are_resized_and_freed_alike() {
    thread::scope(|scope| {
        for seed in 1..4 {
            scope.spawn(move || churn(seed));
        }
    });
}

/// An object just freed is the next one that is allocated. So zeros are no object if they lie
/// elsewhere: pages, which need not be written.
#[test]
fn large_zeros_are_pages_whatever_their_alignment() {
    for align in [1, 16, 64, 4096] {
        let layout = Layout::from_size_align(64 << 10, align).unwrap();
        // It is not the next where the thread moved to another CPU in between, or another thread
        // took it: then once more.
        assert!(
            (0..1000).any(|_| zeros_pass_an_object_by(layout)),
            "{align}"
        );
    }
}

/// Returns true if the object that was freed before zeros were taken is the next after them.
fn zeros_pass_an_object_by(layout: Layout) -> bool {
    // SAFETY: the layout is not empty, and the memory is this caller's until it is freed.
    unsafe {
        let object = Global.alloc(layout);
        object.write_bytes(7, layout.size());
        Global.dealloc(object, layout);
        let zeros = Global.alloc_zeroed(layout);
        assert_ne!(zeros, object, "{layout:?}");
        assert!((0..layout.size()).all(|byte| zeros.add(byte).read() == 0));
        let again = Global.alloc(layout);
        Global.dealloc(again, layout);
        Global.dealloc(zeros, layout);
        again == object
    }
}
