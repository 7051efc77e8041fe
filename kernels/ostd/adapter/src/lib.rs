//! Brickyard as the frame allocator of an [OSTD](ostd) kernel, without unsafe code:
//!
//! ```ignore
//! use brickyard_ostd::{Frames, Metadata, blocks, words};
//!
//! /// For memory below 16 GiB, and 8 CPUs.
//! static METADATA: Metadata<{ words(16) }, { blocks(16) }, 8> = Metadata::new();
//!
//! #[ostd::global_frame_allocator]
//! static FRAMES: Frames = Frames::new(&METADATA);
//! ```
//!
//! OSTD's frame allocator works before its heap, and OSTD gives no memory to write to by then. So
//! the metadata is static, for a span and a number of CPUs that the kernel chooses: 0.01 % of the
//! span, and 13 KiB for each CPU. Memory beyond the span is left out, with a line in the log that
//! says so. CPUs with higher numbers are served without a stash.
//!
//! OSTD's other allocator, the heap, cannot be Brickyard's slabs: a `HeapSlot` is made only by
//! OSTD's own `Slab` and `HeapSlot::alloc_large`. Their frames come from here.

#![no_std]
#![forbid(unsafe_code)]

use core::alloc::Layout;

use brickyard::bitmap::{Bitmap, SetAside};
use brickyard::block::Census;
use brickyard::check::Violation;
use brickyard::stash::{CpuStash, Stash, StashSizes};
use brickyard::sync::{AtomicU8, AtomicU64, Shared, Slot};
use brickyard::{
    AnyZone, FrameRange, FreeError, Mobility, Order, Platform, Request, Zone, ZoneKind,
};
use ostd::cpu::CpuId;
use ostd::irq;
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};

// What OSTD's log puts before each line.
macro_rules! __log_prefix {
    () => {
        "brickyard: "
    };
}

/// All calls are made with local interrupts off. So nobody leaves their CPU, and nothing on it is
/// interrupted in the middle of a call: there is nothing to pin or to mask.
#[derive(Debug)]
struct Masked;

impl Platform for Masked {
    fn cpu(&self) -> usize {
        u32::from(CpuId::current_racy()) as usize
    }
}

/// Returns the frames below so many GiB.
const fn span(gib: usize) -> FrameRange {
    FrameRange::new(0, (gib << 30) / PAGE_SIZE)
}

/// Returns the words of metadata for the memory below so many GiB.
#[must_use]
pub const fn words(gib: usize) -> usize {
    Bitmap::words(span(gib), Order::MAX, Order::HUGE)
}

/// Returns the page blocks of the memory below so many GiB.
#[must_use]
pub const fn blocks(gib: usize) -> usize {
    Bitmap::classes(span(gib), Order::HUGE)
}

/// The metadata of a [`Frames`]: for the memory below some GiB, with that many [`words`] and
/// [`blocks`], and for `CPUS` CPUs.
#[derive(Debug)]
pub struct Metadata<const WORDS: usize, const BLOCKS: usize, const CPUS: usize> {
    bits: [AtomicU64; WORDS],
    classes: [AtomicU8; BLOCKS],
    stashes: [Slot<Shared, CpuStash>; CPUS],
}

impl<const WORDS: usize, const BLOCKS: usize, const CPUS: usize> Metadata<WORDS, BLOCKS, CPUS> {
    /// The GiB that so much metadata is for. A compile error, if it is for none.
    const GIB: usize = {
        // A GiB has 512 page blocks of 2 MiB.
        let gib = BLOCKS / 512;
        assert!(
            gib > 0 && words(gib) == WORDS && blocks(gib) == BLOCKS,
            "metadata is `Metadata<{{ words(GIB) }}, {{ blocks(GIB) }}, CPUS>`"
        );
        gib
    };

    /// Makes metadata of a zone without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bits: [const { AtomicU64::new(0) }; WORDS],
            classes: [const { AtomicU8::new(0) }; BLOCKS],
            stashes: [const { Slot::new(CpuStash::new()) }; CPUS],
        }
    }
}

impl<const WORDS: usize, const BLOCKS: usize, const CPUS: usize> Default
    for Metadata<WORDS, BLOCKS, CPUS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// The frame allocator, for `#[ostd::global_frame_allocator]`.
#[derive(Debug)]
pub struct Frames {
    zone: Zone<'static, Masked, Shared>,
}

/// How much memory is where, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// All that OSTD has added, or freed for the first time.
    pub managed: usize,
    /// Free in the store.
    pub free: usize,
    /// Free in the stashes of CPUs.
    pub cached: usize,
}

const fn range(at: Paddr, bytes: usize) -> FrameRange {
    FrameRange::new(at / PAGE_SIZE, (at + bytes) / PAGE_SIZE)
}

impl Frames {
    /// Makes an allocator of this metadata. One allocator has it: a second one would be a zone with
    /// the same words, and both would hand out the same frames.
    #[must_use]
    pub const fn new<const WORDS: usize, const BLOCKS: usize, const CPUS: usize>(
        metadata: &'static Metadata<WORDS, BLOCKS, CPUS>,
    ) -> Self {
        let store = Bitmap::new(
            span(Metadata::<WORDS, BLOCKS, CPUS>::GIB),
            Order::MAX,
            Order::HUGE,
            &metadata.bits,
            &metadata.classes,
        );
        let stash = Stash::new(&metadata.stashes, StashSizes::DEFAULT);
        // Every request is atomic, so there is nobody to set anything aside for.
        let store = store.with_set_aside(SetAside::NONE);
        Self {
            zone: Zone::of(ZoneKind::Normal, Masked, store, stash),
        }
    }

    /// Returns how much memory is where. A hint while others use it.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers {
            managed: self.zone.managed_frames(),
            free: self.zone.free_frames(),
            cached: self.zone.cached_frames(),
        }
    }

    /// Tests every invariant, while nobody else uses the allocator.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        let _masked = irq::disable_local();
        self.zone.check()
    }

    /// Takes frames back. What OSTD's early allocator gave out before this one had any memory comes
    /// back here without ever having been added: it is then.
    fn free(&self, frames: FrameRange) -> Result<(), FreeError> {
        let freed = match frames.len() {
            1 => self.zone.free(frames.start, Order::ZERO),
            _ => self.zone.free_range(frames),
        };
        match freed {
            Err(FreeError::NotOwned) if self.zone.add(frames) == Ok(frames.len()) => Ok(()),
            other => other,
        }
    }
}

impl GlobalFrameAllocator for Frames {
    fn alloc(&self, layout: Layout) -> Option<Paddr> {
        let _masked = irq::disable_local();
        let frames = layout.size() / PAGE_SIZE;
        let order = Order::holding(layout.align().div_ceil(PAGE_SIZE))?;
        let request = Request::new(order, Mobility::Unmovable).atomic();
        let first = match (frames, order) {
            // Most requests; a stash may have it at hand.
            (1, Order::ZERO) => self.zone.alloc(&request).ok()?,
            _ => self.zone.alloc_range(&request, frames).ok()?.start,
        };
        Some(first.number() * PAGE_SIZE)
    }

    fn dealloc(&self, addr: Paddr, size: usize) {
        let _masked = irq::disable_local();
        if let Err(why) = self.free(range(addr, size)) {
            ostd::error!("the free of {size:#x} bytes at {addr:#x} is refused: {why}");
        }
    }

    fn add_free_memory(&self, addr: Paddr, size: usize) {
        let _masked = irq::disable_local();
        let all = range(addr, size);
        let served = all.intersection(self.zone.span());
        let added = if served.is_empty() {
            Ok(0)
        } else {
            self.zone.add(served)
        };
        match added {
            Ok(frames) if frames == all.len() => {}
            Ok(frames) => ostd::error!(
                "of the memory in frames {all:?} only {frames} are used: give `Metadata` more GiB"
            ),
            Err(why) => ostd::error!("the memory in frames {all:?} is not added: {why}"),
        }
    }
}
