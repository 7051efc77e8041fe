//! Memory, chance, and what fills memory so that a second owner is noticed.

#![allow(dead_code, reason = "not every set of features uses all of it")]

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::slice;

/// Memory that lives as long as the test, aligned.
pub(crate) fn leaked(bytes: usize, align: usize) -> &'static mut [MaybeUninit<u8>] {
    let layout = Layout::from_size_align(bytes, align).unwrap();
    // SAFETY: the layout has a size. The memory is freed by nobody, so it is this slice's for ever.
    unsafe {
        let start = std::alloc::alloc(layout);
        assert!(!start.is_null());
        slice::from_raw_parts_mut(start.cast(), bytes)
    }
}

/// Numbers that look random, the same in every run.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    /// One of these.
    pub(crate) fn one_of(&mut self, all: &[usize]) -> usize {
        all[self.below(all.len())]
    }
}

/// Memory in use: who has it knows what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) at: usize,
    pub(crate) layout: Layout,
    pub(crate) stamp: u8,
}

impl Held {
    /// Fills memory that was just taken.
    pub(crate) fn new(at: *mut u8, layout: Layout, stamp: u8) -> Self {
        assert!(!at.is_null());
        let held = Self {
            at: at.expose_provenance(),
            layout,
            stamp,
        };
        assert_eq!(held.at % layout.align(), 0, "{layout:?}");
        // SAFETY: it is this caller's, and has so many bytes.
        unsafe { at.write_bytes(stamp, layout.size()) };
        held
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.at)
    }

    /// All of it is as it was left: nobody else has written there.
    pub(crate) fn check(&self, bytes: usize) {
        // SAFETY: it is this caller's, and `new` has written all of it.
        let found = unsafe { slice::from_raw_parts(self.pointer(), bytes) };
        let damaged = found.iter().position(|&byte| byte != self.stamp);
        assert_eq!(damaged, None, "{self:?} has a second owner");
    }
}
