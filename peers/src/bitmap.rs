//! `bitmap-allocator`: a tree of 16-bit words over the bits, behind a spin lock, as in the kernels
//! that use it.

use anyhow::bail;
use bitmap_allocator::{BitAlloc, BitAlloc1M, BitAlloc16M};
use brickyard::{Frame, Order};
use brickyard_bench::peer::{Machine, Peer};
use brickyard_bench::rounds::{Rounds, Taken};
use brickyard_bench::subject::{Handle, Subject};
use spin::Mutex;

/// The peer.
#[derive(Debug)]
pub(crate) struct Bitmap;

impl Peer for Bitmap {
    fn name(&self) -> &'static str {
        "bitmap-allocator"
    }

    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken> {
        // The smallest that fits the machine, as its user would choose.
        match machine.frames {
            frames if frames <= BitAlloc1M::CAP => Ok(on::<BitAlloc1M>(frames, rounds)),
            frames if frames <= BitAlloc16M::CAP => Ok(on::<BitAlloc16M>(frames, rounds)),
            _ => bail!("bitmap-allocator is measured up to 64 GiB; give less --memory"),
        }
    }
}

fn on<B: BitAlloc + Send>(frames: usize, rounds: &Rounds<'_>) -> Taken {
    let bits = Locked(Mutex::new(Box::new(B::DEFAULT)));
    bits.0.lock().insert(0..frames);
    rounds.on(&bits)
}

struct Locked<B>(Mutex<Box<B>>);

struct Blocks<'s, B> {
    bits: &'s Mutex<Box<B>>,
    order: Order,
}

impl<B: BitAlloc + Send> Subject for Locked<B> {
    type Handle<'s>
        = Blocks<'s, B>
    where
        Self: 's;

    fn handle(&self, order: Order) -> Blocks<'_, B> {
        Blocks {
            bits: &self.0,
            order,
        }
    }
}

impl<B: BitAlloc> Handle for Blocks<'_, B> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        let mut bits = self.bits.lock();
        let first = if self.order == Order::ZERO {
            bits.alloc()
        } else {
            bits.alloc_contiguous(None, self.order.frames(), self.order.index())
        };
        first.map(Frame::new)
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        let mut bits = self.bits.lock();
        let freed = if self.order == Order::ZERO {
            bits.dealloc(block.number())
        } else {
            bits.dealloc_contiguous(block.number(), self.order.frames())
        };
        debug_assert!(freed, "the benchmark frees what it has allocated");
    }
}
