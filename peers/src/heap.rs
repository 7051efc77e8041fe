//! `talc`: a general-purpose heap, which writes a tag beside each allocation, so it needs real
//! memory here; a page is 4096 bytes at a multiple of 4096. Behind the crate's own `TalcLock`, with
//! a spin lock.

use core::alloc::Layout;
use core::ptr::{NonNull, with_exposed_provenance_mut};

use brickyard::{Frame, Order};
use brickyard_bench::peer::{Machine, Peer};
use brickyard_bench::rounds::{Rounds, Taken};
use brickyard_bench::subject::{Handle, Subject};
use talc::source::Manual;

use crate::region::{FRAME_BYTES, Region};

/// The peer.
#[derive(Debug)]
pub(crate) struct Heap;

type TalcLock = talc::TalcLock<spin::Mutex<()>, Manual>;

impl Peer for Heap {
    fn name(&self) -> &'static str {
        "talc"
    }

    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken> {
        let region = Region::of(machine)?;
        let talc = TalcLock::new(Manual);
        // SAFETY: the region is this function's alone, and outlives the heap in it: locals are
        // dropped last first.
        let claimed = unsafe { talc.lock().claim(region.start().as_ptr(), region.bytes()) };
        anyhow::ensure!(claimed.is_some(), "talc cannot use the memory");
        Ok(rounds.on(&Locked(talc)))
    }
}

struct Locked(TalcLock);

struct Blocks<'s> {
    talc: &'s TalcLock,
    layout: Layout,
}

impl Subject for Locked {
    type Handle<'s> = Blocks<'s>;

    fn handle(&self, order: Order) -> Blocks<'_> {
        // A block is aligned to its size. The orders are far too small for this to overflow.
        let bytes = FRAME_BYTES << order.get();
        let layout = Layout::from_size_align(bytes, bytes);
        Blocks {
            talc: &self.0,
            layout: layout.expect("a power of two is an alignment"),
        }
    }
}

impl Handle for Blocks<'_> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        // SAFETY: the layout is at least a frame.
        let block = unsafe { self.talc.lock().allocate(self.layout) };
        block.map(|block| Frame::new(block.as_ptr().expose_provenance()))
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        let block = with_exposed_provenance_mut(block.number());
        debug_assert!(NonNull::<u8>::new(block).is_some());
        // SAFETY: `Handle` promises a block that a handle of this order allocated, so with this
        // layout, and that is not freed yet; its provenance was exposed then.
        unsafe { self.talc.lock().deallocate(block, self.layout) };
    }
}
