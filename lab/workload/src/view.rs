//! The state of memory at one moment, frame by frame, for pictures.

use brickyard::block::Use;
use brickyard::node::Nodes;
use brickyard::stats::FreeCounts;
use brickyard::{AnyZone, Frame, Order};
use brickyard_designs::classics::LabZone;

use crate::kernel::Kernel;
use crate::outcome::Sample;
use crate::pages::Role;

/// The use of a frame, from the allocator and the model kernel together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUse {
    /// Not memory of any zone.
    Absent,
    /// Free, in the store.
    Free,
    /// Free, in a CPU's cache or a magazine.
    Cached,
    /// In use: its role and [marks](crate::pages::mark).
    Used(Role, u8),
}

/// The state of memory at one moment of a replay.
#[derive(Debug)]
pub struct View<'a, 'z, Z: LabZone> {
    kernel: &'a Kernel<'z, Z>,
    nodes: &'a Nodes<'z, Z>,
    time: u64,
}

impl<'a, 'z, Z: LabZone> View<'a, 'z, Z> {
    pub(crate) const fn new(kernel: &'a Kernel<'z, Z>, nodes: &'a Nodes<'z, Z>, time: u64) -> Self {
        Self {
            kernel,
            nodes,
            time,
        }
    }

    /// Nanoseconds since the trace began.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// The number of free blocks by order, over all zones.
    #[must_use]
    pub fn free_counts(&self) -> FreeCounts {
        free_counts(self.nodes)
    }

    /// Takes a sample, for huge pages of order `huge`.
    pub(crate) fn sample(&self, huge: Order) -> Sample {
        let free = self.free_counts();
        Sample {
            time: self.time,
            free: free.free_frames(),
            cached: self.cached(),
            huge: free.suitable(huge),
            unusable: free.unusable_index(huge),
            mixed: self.mixed_blocks(),
        }
    }

    /// The number of page blocks that hold more than one mobility.
    #[must_use]
    pub fn mixed_blocks(&self) -> u64 {
        self.kernel.look(|pages| pages.mixing().mixed())
    }

    /// The number of free frames in caches.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.nodes.zones().map(AnyZone::cached_frames).sum()
    }

    /// Calls `each` with the length and the use of every run of frames, zone by zone. O(blocks in
    /// use and free).
    pub fn runs(&self, mut each: impl FnMut(usize, FrameUse)) {
        self.blocks(|_, frames, usage| each(frames, usage));
    }

    /// Calls back with each run of [`View::runs`] and its first frame. A block in use is a run of its
    /// own.
    pub fn blocks(&self, mut each: impl FnMut(Frame, usize, FrameUse)) {
        for zone in self.nodes.zones() {
            let span = zone.span();
            let mut at = span.start;
            while at < span.end {
                let left = span.end.number() - at.number();
                let (frames, usage) = self.at(zone, at);
                let frames = frames.min(left);
                each(at, frames, usage);
                at = at.plus(frames);
            }
        }
    }

    fn at(&self, zone: &Z, at: Frame) -> (usize, FrameUse) {
        if let Some(block) = self.kernel.look(|pages| pages.block(at)) {
            let usage = FrameUse::Used(block.role, block.marks);
            return (block.order.frames(), usage);
        }
        let Some((first, state)) = zone.block_of(at) else {
            return (1, FrameUse::Absent);
        };
        let rest = first.number() + state.order.frames() - at.number();
        match state.usage {
            Use::Free => (rest, FrameUse::Free),
            // The store counts frames in a stash as in use; the model kernel has no record of them.
            Use::Cached | Use::Allocated => (rest, FrameUse::Cached),
            Use::Inner | Use::Reserved => (1, FrameUse::Absent),
        }
    }
}

/// Sums the free blocks by order over all zones.
pub(crate) fn free_counts<Z: LabZone>(nodes: &Nodes<'_, Z>) -> FreeCounts {
    let mut sum = FreeCounts::default();
    for zone in nodes.zones() {
        let counts = zone.free_counts();
        for order in Order::ZERO.up_to(Order::MAX) {
            sum.by_order[order.index()] += counts.by_order[order.index()];
        }
    }
    sum
}
