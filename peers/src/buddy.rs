//! `buddy_system_allocator`: frame numbers in B-trees, one per size, behind the spin lock that the
//! crate provides.

use brickyard::{Frame, Order};
use brickyard_bench::peer::{Machine, Peer};
use brickyard_bench::rounds::{Rounds, Taken};
use brickyard_bench::subject::{Handle, Subject};
use buddy_system_allocator::LockedFrameAllocator;

/// The peer.
#[derive(Debug)]
pub(crate) struct Buddy;

impl Peer for Buddy {
    fn name(&self) -> &'static str {
        "buddy_system_allocator"
    }

    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken> {
        let frames = LockedFrameAllocator::<33>::new();
        frames.lock().add_frame(0, machine.frames);
        Ok(rounds.on(&Locked(frames)))
    }
}

struct Locked(LockedFrameAllocator<33>);

struct Blocks<'s> {
    frames: &'s LockedFrameAllocator<33>,
    count: usize,
}

impl Subject for Locked {
    type Handle<'s> = Blocks<'s>;

    fn handle(&self, order: Order) -> Blocks<'_> {
        Blocks {
            frames: &self.0,
            count: order.frames(),
        }
    }
}

impl Handle for Blocks<'_> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        self.frames.lock().alloc(self.count).map(Frame::new)
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        self.frames.lock().dealloc(block.number(), self.count);
    }
}
