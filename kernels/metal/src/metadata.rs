//! Room for metadata, in the memory that the kernel manages: carved out of the map once, and used
//! anew in each round.

use core::mem::MaybeUninit;
use core::slice;

use crate::arch;

/// A piece of memory that is handed out from its start.
pub struct MetadataRoom {
    rest: &'static mut [MaybeUninit<u8>],
}

impl MetadataRoom {
    /// Returns the room of `bytes` bytes at a physical address.
    ///
    /// # Safety
    /// It is memory that nobody uses, and nobody is given, as long as what was made in it is used.
    pub unsafe fn new(address: usize, bytes: usize) -> Self {
        // SAFETY: the caller's promise.
        let rest = unsafe { slice::from_raw_parts_mut(arch::direct_map(address).cast(), bytes) };
        Self { rest }
    }

    /// Returns the next `bytes` bytes.
    ///
    /// # Panics
    /// If there are fewer: the room is sized by those who use it.
    pub fn bytes(&mut self, bytes: usize) -> &'static mut [MaybeUninit<u8>] {
        let rest = core::mem::take(&mut self.rest);
        assert!(bytes <= rest.len(), "the room for metadata is too small");
        let (ours, rest) = rest.split_at_mut(bytes);
        self.rest = rest;
        ours
    }

    /// Keeps a value here.
    pub fn keep<T>(&mut self, value: T) -> &'static T {
        let mut value = Some(value);
        let rest = core::mem::take(&mut self.rest);
        let made = brickyard::sync::place(rest, 1, || value.take());
        let Some(([Some(kept)], rest)) = made else {
            panic!("the room for metadata is too small");
        };
        self.rest = rest;
        kept
    }
}
