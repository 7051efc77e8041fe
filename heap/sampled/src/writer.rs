//! The one thread that may write the profile at a time, and its memory, which is not its stack.

use core::cell::UnsafeCell;
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;

use brickyard_arena::Region;

/// The longest name of a file, with the 0 at its end.
pub(crate) const NAME_BYTES: usize = 4096;

/// What writing needs beside the profile.
pub(crate) struct Writer {
    /// Set where somebody has asked for the profile; taken back by who writes it.
    pub(crate) is_wanted: AtomicBool,
    /// Set while a thread writes. Invariant `one-profile-writer`: who has set it uses the buffers.
    pub(crate) is_busy: AtomicBool,
    /// How often it has been written.
    pub(crate) count: AtomicU64,
    buffers: UnsafeCell<&'static mut [Buffers]>,
}

/// The names of the file and of what is beside it, and a piece of what is written.
pub(crate) struct Buffers {
    pub(crate) name: [u8; NAME_BYTES],
    pub(crate) part: [u8; NAME_BYTES],
    pub(crate) piece: [u8; 4096],
}

// SAFETY: by `one-profile-writer`.
unsafe impl Sync for Writer {}

impl Writer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            is_wanted: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            count: AtomicU64::new(0),
            // SAFETY: bytes, of which zeros are some.
            buffers: UnsafeCell::new(unsafe { table(1)? }),
        })
    }
}

/// The caller writes as long as this lives.
pub(crate) struct WriterTurn<'w>(&'w Writer);

impl<'w> WriterTurn<'w> {
    pub(crate) fn of(writer: &'w Writer) -> Option<Self> {
        // Acquire: pairs with the release in `drop`.
        let was = writer.is_busy.swap(true, Ordering::Acquire);
        // Not made before it is known: its drop ends the turn.
        (!was).then(|| Self(writer))
    }

    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        // SAFETY: `one-profile-writer`: this is it, and there is one such value.
        unsafe { &mut (&mut *self.0.buffers.get())[0] }
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `of`.
        self.0.is_busy.store(false, Ordering::Release);
    }
}

/// Maps a table of so many values for ever.
///
/// # Safety
/// Zeros are a `T`.
pub(crate) unsafe fn table<T>(length: usize) -> io::Result<&'static mut [T]> {
    let memory = Region::map_for_ever(length * size_of::<T>())?;
    // SAFETY: the mapping has room for so many, begins with a page, is zero, and is this caller's.
    Ok(unsafe { slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), length) })
}
