//! `frame-alloc`: its lock-free buddy of bitmaps with a summary, behind its per-CPU magazines of
//! 128 frames and a depot of 512, its default sizes. Each magazine has an internal lock. A thread
//! acts as a CPU. The bitmaps are in the memory that it manages, so it needs real memory here.

use core::num::NonZeroUsize;
use core::ptr::{NonNull, with_exposed_provenance_mut};

use anyhow::ensure;
use brickyard::{Frame, Order, Platform};
use brickyard_bench::peer::{Machine, Peer};
use brickyard_bench::rounds::{Rounds, Taken};
use brickyard_bench::subject::{Handle, Subject};
use brickyard_measure::threads::Threads;
use frame_alloc::{
    CpuId, DepotAllocator, PageSize, PhysicalAllocator, Provenance, RegionInit,
    SummaryBuddyAllocator,
};

use crate::region::{FRAME_BYTES, Region};

/// The peer.
#[derive(Debug)]
pub(crate) struct Depot;

const PAGE: PageSize = PageSize::from_log2(FRAME_BYTES.trailing_zeros() as u8);
/// Orders 0 to 10.
const ORDERS: usize = 11;
/// The number of magazines; up to so many threads have one of their own.
const SLOTS: usize = 64;

type Frames = DepotAllocator<SummaryBuddyAllocator<ORDERS, Exposed>, ThreadNumber, SLOTS>;

impl Peer for Depot {
    fn name(&self) -> &'static str {
        "frame-alloc"
    }

    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken> {
        ensure!(
            machine.threads < SLOTS,
            "frame-alloc is measured with fewer than {SLOTS} threads"
        );
        let region = Region::of(machine)?;
        let frames = Box::new(Frames::new(PAGE, SummaryBuddyAllocator::new(PAGE)));
        // SAFETY: the region is this function's alone, mapped at its addresses, and outlives the
        // allocator: locals are dropped last first. No other thread has the allocator yet.
        unsafe { frames.init_region(region.start().addr().get(), region.bytes()) };
        Ok(rounds.on(&Shared(frames)))
    }
}

/// Uses a thread's number as its CPU's.
struct ThreadNumber;

impl CpuId for ThreadNumber {
    #[inline]
    fn current_cpu() -> usize {
        Threads.cpu()
    }
}

/// Physical addresses are addresses in a [`Region`].
struct Exposed;

// SAFETY: a region is one allocation whose provenance was exposed, so the provenance that `create`
// recovers covers all of it; `destroy` has nothing to do.
unsafe impl Provenance for Exposed {
    unsafe fn create(phys: usize) -> NonNull<u8> {
        // SAFETY: the caller passes an address in a region, and none of those is null.
        unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(phys)) }
    }

    unsafe fn destroy<T>(pointer: NonNull<T>) -> usize {
        pointer.addr().get()
    }
}

struct Shared(Box<Frames>);

struct Blocks<'s> {
    frames: &'s Frames,
    count: NonZeroUsize,
}

impl Subject for Shared {
    type Handle<'s> = Blocks<'s>;

    fn handle(&self, order: Order) -> Blocks<'_> {
        Blocks {
            frames: &self.0,
            // A block has at least one frame.
            count: NonZeroUsize::new(order.frames()).unwrap_or(NonZeroUsize::MIN),
        }
    }
}

impl Handle for Blocks<'_> {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        let block = self.frames.allocate_physical(PAGE, self.count);
        block.ok().map(Frame::new)
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        // SAFETY: `Handle` promises a block that a handle of this order allocated, so with this
        // count, and that is not freed yet.
        unsafe {
            self.frames
                .deallocate_physical(PAGE, self.count, block.number());
        }
    }

    /// Flushes other threads' magazines too: none of the threads is measuring then.
    fn settle(&mut self) {
        self.frames.flush();
    }
}
