//! What a model runs on: a store by itself, or a zone with one.

use core::mem::{MaybeUninit, align_of, size_of};

use brickyard::design::{Brickyard, LockFree};
use brickyard::front::{Direct, Front};
use brickyard::store::bitmap::Bitmap;
use brickyard::store::{Census, Store};
use brickyard::sync::{AtomicU64, Exclusive, TicketLock, place};
use brickyard::zone::{Placed, Zone, ZonePlan};
use brickyard::{Frame, FrameRange, FreeError, Mobility, Order, Platform, RangeError, Request};

use super::platform::{CPUS, Exclusively, Lent, Modelled, move_to};

/// A store by itself, or a zone with one.
pub(crate) trait Machine: Sized + Sync + 'static {
    fn bytes(plan: &ZonePlan) -> usize;
    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self;
    fn add(&self, range: FrameRange);
    fn take(&self, request: &Request) -> Option<Frame>;
    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError>;
    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize;
    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError>;
    fn give_singles(&self, frames: &[Frame]);
    fn check(&self) -> Census;
    fn free_frames(&self) -> usize;

    /// Brings what caches hold back to the store.
    fn drain(&self) {}

    /// Goes through every atomic word that [`Machine::check`] leaves out.
    fn touch(&self) {}
}

pub(crate) type Bare = Bitmap<'static>;
pub(crate) type Behind<F, P = Modelled> = Zone<LockFree<'static, F, TicketLock, P>>;
pub(crate) type Bricks = Behind<Direct>;
pub(crate) type StashedDesign = Brickyard<'static, Modelled, Lent>;
pub(crate) type Stashed = Zone<StashedDesign>;
pub(crate) type Alone = Zone<Brickyard<'static, Exclusively, Exclusive>>;

pub(crate) const fn request(order: u8) -> Request {
    Request::new(Order::new(order), Mobility::Movable)
}

impl Machine for Bare {
    fn bytes(plan: &ZonePlan) -> usize {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        words * size_of::<AtomicU64>() + align_of::<AtomicU64>() - 1
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        let (words, _) = place(memory, words, || AtomicU64::new(0)).unwrap();
        Self::new(plan.span, plan.max_order, plan.page_block_order, words)
    }

    fn add(&self, range: FrameRange) {
        Store::add(self, range).unwrap();
    }

    fn take(&self, request: &Request) -> Option<Frame> {
        Store::take(self, request).map(|taken| taken.frame)
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        Store::take_at(self, frame, request)
    }

    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        self.take_frames(request, out)
    }

    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        Store::give(self, frame, order).map(|_| ())
    }

    fn give_singles(&self, frames: &[Frame]) {
        assert_eq!(self.give_frames(frames), (frames.len(), None));
    }

    fn check(&self) -> Census {
        Store::check(self).unwrap()
    }

    fn free_frames(&self) -> usize {
        Store::free_frames(self)
    }

    fn touch(&self) {
        self.fallbacks();
        let _ = self.refused_late();
    }
}

impl<F, P> Machine for Behind<F, P>
where
    F: Front<Bitmap<'static>, TicketLock, P> + Placed<'static> + 'static,
    P: Platform + Default + 'static,
{
    fn bytes(plan: &ZonePlan) -> usize {
        LockFree::<F, TicketLock, P>::bytes(plan)
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        LockFree::zone(plan, P::default(), memory).unwrap()
    }

    fn add(&self, range: FrameRange) {
        Zone::add(self, range).unwrap();
    }

    fn take(&self, request: &Request) -> Option<Frame> {
        self.alloc(request).ok()
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.alloc_at(frame, request)
    }

    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        self.alloc_bulk(request, out).unwrap_or(0)
    }

    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        self.free(frame, order)
    }

    fn give_singles(&self, frames: &[Frame]) {
        self.free_bulk(frames).unwrap();
    }

    fn check(&self) -> Census {
        Zone::check(self).unwrap()
    }

    fn free_frames(&self) -> usize {
        Zone::free_frames(self)
    }

    fn drain(&self) {
        Zone::drain(self);
    }

    fn touch(&self) {
        // What a stash is reached by, on each CPU that has one.
        for cpu in 0..CPUS {
            move_to(cpu);
            if let Some(frame) = self.take(&request(0)) {
                self.give(frame, Order::ZERO).unwrap();
            }
            self.drain();
        }
        move_to(0);
        // What reads every count there is: a request that nothing can serve.
        assert!(
            self.alloc(&Request::new(Order::MAX, Mobility::Movable))
                .is_err()
        );
        let _ = self.meter();
    }
}
