//! Frames for the mappers of the crate `x86_64`: page tables, and pages of all three sizes.

use brickyard::{Frame, Mobility, Order, Request};
use x86_64::PhysAddr;
use x86_64::structures::paging::{FrameAllocator, FrameDeallocator, PageSize, PhysFrame};

use crate::Frames;

/// Frames as the mappers of the crate `x86_64` take them (`FrameAllocator`) and give them back
/// (`FrameDeallocator`), in all three sizes: 4 KiB of order 0, 2 MiB of order 9, 1 GiB of order 18.
/// A size above the zones' highest order is never available: 1 GiB needs
/// `ZonePlan { max_order: Order::MAX, .. }`, where 1 GiB in one piece is free.
///
/// ```
/// # use core::mem::MaybeUninit;
/// use brickyard::{FrameRange, OneCpu, Zone, ZoneKind, ZonePlan};
/// use brickyard_adapters::PhysFrames;
/// use x86_64::structures::paging::{FrameAllocator, PhysFrame, Size2MiB, Size4KiB};
///
/// # const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 2048), 1);
/// # let mut memory = [MaybeUninit::uninit(); Zone::<OneCpu>::bytes(&PLAN)];
/// # let zone = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut memory)?;
/// # zone.add(FrameRange::new(256, 2048))?;
/// // SAFETY: frame `i` of the zone is the unused memory at `i << 12`, and nobody frees a frame that
/// // they do not hold.
/// let mut frames = unsafe { PhysFrames::new(&zone) };
/// let table: Option<PhysFrame<Size4KiB>> = frames.allocate_frame();
/// let large: Option<PhysFrame<Size2MiB>> = frames.allocate_frame();
/// assert_eq!(large.map(|frame| frame.start_address().as_u64() % (2 << 20)), Some(0));
/// # assert!(table.is_some());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PhysFrames<F> {
    frames: F,
    request: Request,
    refused: usize,
}

impl<F: Frames> PhysFrames<F> {
    /// Makes one that asks for unmovable frames as a caller that may not sleep: a mapper has page
    /// tables in hand.
    ///
    /// # Safety
    /// Invariant `frames-to-map`: as long as this value lives, `frames` hands out frames of 4 KiB
    /// by their numbers, physical address / 4096, each to one owner, and their memory is nobody
    /// else's. So nobody frees a frame that they do not hold: [`Zone::free`](brickyard::Zone::free)
    /// is safe, and takes any frame back from any caller.
    #[must_use]
    pub const unsafe fn new(frames: F) -> Self {
        Self {
            frames,
            request: Request::page(Mobility::Unmovable).atomic(),
            refused: 0,
        }
    }

    /// Sets what all requests ask for but their order: mobility, context, highest zone, limit.
    #[must_use]
    pub const fn with(mut self, request: &Request) -> Self {
        self.request = *request;
        self
    }

    /// Returns how many frames were given back that were refused: free already, of another size, or
    /// never handed out. They have changed nothing. A mapper's interface has no error for them.
    #[must_use]
    pub const fn refused(&self) -> usize {
        self.refused
    }
}

/// Returns the order of a page's size.
const fn order_of<S: PageSize>() -> Order {
    Order::new((S::SIZE / 4096).trailing_zeros() as u8)
}

// SAFETY: `frames-to-map`: what is handed out is unused, and has no other owner.
unsafe impl<S: PageSize, F: Frames> FrameAllocator<S> for PhysFrames<F> {
    fn allocate_frame(&mut self) -> Option<PhysFrame<S>> {
        let order = order_of::<S>();
        let frame = self
            .frames
            .alloc(&Request {
                order,
                ..self.request
            })
            .ok()?;
        let address = (frame.number() as u64).checked_mul(4096);
        let address = address.and_then(|address| PhysAddr::try_new(address).ok());
        let mapped = address.and_then(|at| PhysFrame::from_start_address(at).ok());
        if mapped.is_none() {
            // Beyond what page tables can address: it goes back.
            let freed = self.frames.free(frame, order);
            debug_assert!(freed.is_ok(), "a frame just taken: {freed:?}");
        }
        mapped
    }
}

impl<S: PageSize, F: Frames> FrameDeallocator<S> for PhysFrames<F> {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame<S>) {
        let number = (frame.start_address().as_u64() / 4096) as usize;
        if self
            .frames
            .free(Frame::new(number), order_of::<S>())
            .is_err()
        {
            self.refused += 1;
        }
    }
}
