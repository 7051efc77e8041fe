//! What the measured loops allocate from. The loops are compiled for each implementation, so
//! nothing stands between them and the allocator.

use brickyard::{Frame, Order};

/// An allocator that threads share.
pub trait Subject: Sync {
    /// How one thread reaches it.
    type Handle<'s>: Handle
    where
        Self: 's;

    /// The calling thread's way to blocks of this order.
    fn handle(&self, order: Order) -> Self::Handle<'_>;
}

/// One thread's way to blocks of one order. A block is named by its frame, or by its address,
/// whichever the allocator deals in, as a [`Frame`].
pub trait Handle {
    /// A block; none where the allocator has none.
    fn alloc(&mut self) -> Option<Frame>;

    /// Takes back a block that any handle of this order gave out.
    fn free(&mut self, block: Frame);

    /// Fills `out` as far as can be, and says how far. One by one where the allocator has no
    /// operation for many.
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

    /// Takes back blocks. One by one where the allocator has no operation for many.
    #[inline]
    fn free_bulk(&mut self, blocks: &[Frame]) {
        for &block in blocks {
            self.free(block);
        }
    }

    /// Gives what is cached for this thread back to where all can have it.
    fn settle(&mut self) {}
}
