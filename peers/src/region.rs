//! Memory for allocators that keep metadata in the memory that they manage.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::{alloc, dealloc, handle_alloc_error};

use brickyard_bench::peer::Machine;

/// The bytes of a frame.
pub(crate) const FRAME_BYTES: usize = 4096;

/// The alignment of a region: 4 MiB, a block of order 10.
const ALIGN: usize = FRAME_BYTES << 10;

/// A region of memory, of which the operating system backs the pages that are touched. Its
/// provenance is exposed, so that an address in it can be made a pointer again.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

impl Region {
    /// Allocates a region as large as the machine's memory.
    pub(crate) fn of(machine: &Machine) -> anyhow::Result<Self> {
        let bytes = machine.frames.max(1) * FRAME_BYTES;
        let layout = Layout::from_size_align(bytes, ALIGN)?;
        // SAFETY: the layout has at least one frame, so it is not empty.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        let _ = start.as_ptr().expose_provenance();
        Ok(Self { start, layout })
    }

    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, by the same allocator, and the allocator that
        // managed it is gone: it borrowed the region or was dropped first.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
