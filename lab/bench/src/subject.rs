//! What the measured loops allocate from. The loops are compiled for each implementation, so there
//! is no indirection between them and the allocator.

use brickyard::{Frame, Order};

/// An allocator that threads share.
pub trait Subject: Sync {
    /// One thread's access to it.
    type Handle<'s>: Handle
    where
        Self: 's;

    /// Returns the calling thread's access to blocks of this order.
    fn handle(&self, order: Order) -> Self::Handle<'_>;
}

/// One thread's access to blocks of one order. A [`Frame`] has the number of a block's first frame,
/// or its address, whichever the allocator uses.
pub trait Handle {
    /// Allocates a block; `None` if the allocator has none.
    fn alloc(&mut self) -> Option<Frame>;

    /// Frees a block that any handle of this order has allocated.
    fn free(&mut self, block: Frame);

    /// Allocates blocks to fill `out`; returns how many there were. One by one where the allocator
    /// has no bulk operation.
    #[inline]
    fn alloc_bulk(&mut self, out: &mut [Frame]) -> usize {
        for (had, place) in out.iter_mut().enumerate() {
            match self.alloc() {
                Some(block) => *place = block,
                None => return had,
            }
        }
        out.len()
    }

    /// Frees blocks, one by one where the allocator has no bulk operation.
    #[inline]
    fn free_bulk(&mut self, blocks: &[Frame]) {
        for &block in blocks {
            self.free(block);
        }
    }

    /// Returns what is cached for this thread to the shared store.
    fn settle(&mut self) {}
}
