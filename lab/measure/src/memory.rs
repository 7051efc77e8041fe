//! Memory of this process as the frames of a zone, for measurements and tests that access it.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::{alloc_zeroed, dealloc};

use anyhow::Context;
use brickyard::{Frame, FrameRange, Order, Platform};

use crate::threads::Threads;

/// The bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

/// So many bytes are the largest block, to which memory is aligned.
const BLOCK_BYTES: usize = Order::DEFAULT_MAX.frames() * FRAME_BYTES;

/// Zeroed memory, all of it resident, of which each page is a frame. The platform of [`Threads`],
/// with addresses.
#[derive(Debug)]
pub struct FrameMemory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns the memory, and gives out addresses only.
unsafe impl Send for FrameMemory {}
// SAFETY: as above.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    /// Allocates so many bytes, rounded up to whole blocks, and touches each page, so that the
    /// system gives none during a measurement.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn new(bytes: usize) -> anyhow::Result<Self> {
        let too_much = || format!("this host does not have {bytes} bytes");
        let whole = bytes.max(1).checked_next_multiple_of(BLOCK_BYTES);
        let layout = Layout::from_size_align(whole.with_context(too_much)?, BLOCK_BYTES)?;
        // SAFETY: it has at least a block.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).with_context(too_much)?;
        for page in (0..layout.size()).step_by(FRAME_BYTES) {
            // SAFETY: inside the memory, which nobody else knows yet. Volatile: what is zero
            // already is written too.
            unsafe { start.add(page).write_volatile(0) };
        }
        Ok(Self { start, layout })
    }

    /// Returns its frames.
    #[must_use]
    pub fn frames(&self) -> FrameRange {
        let first = Frame::new(self.start.addr().get() / FRAME_BYTES);
        FrameRange::at(first, self.layout.size() / FRAME_BYTES)
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and whoever has an address has promised not to use it
        // for longer.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Platform for FrameMemory {
    #[inline]
    fn cpu(&self) -> usize {
        Threads.cpu()
    }

    #[inline]
    fn relax(&self) {
        Threads.relax();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        Threads.run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        Threads.ticks()
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let all = self.frames();
        all.contains(frame).then(|| {
            let offset = (frame.number() - all.start.number()) * FRAME_BYTES;
            // SAFETY: the frame is inside the memory.
            unsafe { self.start.add(offset) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_its_own_zeroed_page() {
        let memory = FrameMemory::new(1).unwrap();
        let frames = memory.frames();
        assert_eq!(frames.len(), BLOCK_BYTES / FRAME_BYTES);
        for frame in frames.frames() {
            let page = memory.address(frame).unwrap();
            assert!(page.addr().get().is_multiple_of(FRAME_BYTES));
            // SAFETY: a page of the memory.
            assert_eq!(unsafe { page.add(FRAME_BYTES - 1).read() }, 0);
            // SAFETY: as above.
            unsafe { page.write_bytes(1, FRAME_BYTES) };
        }
        assert!(memory.address(frames.end).is_none());
        assert!(FrameMemory::new(usize::MAX / 2).is_err());
    }
}
