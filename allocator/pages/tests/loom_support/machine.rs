//! What a model runs on: a store by itself, or a zone with one.

use core::mem::{MaybeUninit, align_of, size_of};

use brickyard::bitmap::Bitmap;
use brickyard::block::Census;
use brickyard::patience::Patience;
use brickyard::sync::{AtomicU8, AtomicU64, Exclusive, SlotAccess, place};
use brickyard::watermark::{Mark, Marks};
use brickyard::{
    AnyZone, Frame, FrameRange, FreeError, Mobility, Order, Platform, RangeError, Request, Zone,
    ZoneKind, ZonePlan,
};

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
/// A zone without stashes.
pub(crate) type Bricks = Zone<'static, Modelled, Exclusive>;
/// Stashes that others visit.
pub(crate) type Stashed = Zone<'static, Modelled, Lent>;
/// Stashes that only their owners enter.
pub(crate) type Alone = Zone<'static, Exclusively, Exclusive>;

/// Has a zone stashes?
pub(crate) trait Stashes {
    const ANY: bool;

    /// The plan of such a zone.
    fn plan(plan: &ZonePlan) -> ZonePlan {
        let cpus = if Self::ANY { plan.cpus } else { 0 };
        ZonePlan { cpus, ..*plan }
    }
}

impl Stashes for Bricks {
    const ANY: bool = false;
}

impl Stashes for Stashed {
    const ANY: bool = true;
}

impl Stashes for Alone {
    const ANY: bool = true;
}

pub(crate) const fn request(order: u8) -> Request {
    Request::new(Order::new(order), Mobility::Movable)
}

impl Machine for Bare {
    fn bytes(plan: &ZonePlan) -> usize {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        let classes = Self::classes(plan.span, plan.page_block_order);
        let bytes = words * size_of::<AtomicU64>() + classes * size_of::<AtomicU8>();
        bytes + align_of::<AtomicU64>() - 1 + align_of::<AtomicU8>() - 1
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let words = Self::words(plan.span, plan.max_order, plan.page_block_order);
        let (words, rest) = place(memory, words, || AtomicU64::new(0)).unwrap();
        let classes = Self::classes(plan.span, plan.page_block_order);
        let (classes, _) = place(rest, classes, || AtomicU8::new(0)).unwrap();
        let (max_order, block_order) = (plan.max_order, plan.page_block_order);
        Self::new(plan.span, max_order, block_order, words, classes)
    }

    fn add(&self, range: FrameRange) {
        Bitmap::add(self, range).unwrap();
    }

    fn take(&self, request: &Request) -> Option<Frame> {
        Bitmap::take(self, request)
    }

    fn take_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        Bitmap::take_at(self, frame, request)
    }

    fn take_singles(&self, request: &Request, out: &mut [Frame]) -> usize {
        self.take_frames(request, out)
    }

    fn give(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        Bitmap::give(self, frame, order)
    }

    fn give_singles(&self, frames: &[Frame]) {
        assert_eq!(self.give_frames(frames), (frames.len(), None));
    }

    fn check(&self) -> Census {
        Bitmap::check(self).unwrap()
    }

    fn free_frames(&self) -> usize {
        Bitmap::free_frames(self)
    }

    fn touch(&self) {
        let _ = self.fallbacks();
        let _ = self.refused_late();
    }
}

impl<P, A> Machine for Zone<'static, P, A>
where
    Self: Stashes,
    P: Platform + Default + 'static,
    A: SlotAccess + 'static,
{
    fn bytes(plan: &ZonePlan) -> usize {
        Self::bytes(&Self::plan(plan))
    }

    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        Self::new(&Self::plan(plan), P::default(), memory).unwrap()
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
        // What reads every count there is: a request that must leave more than there is.
        let marks = |min, low, high| {
            self.watermarks()
                .set(Marks { min, low, high }, [0; ZoneKind::COUNT])
        };
        marks(usize::MAX, usize::MAX, usize::MAX);
        let patience = Patience::new();
        let drained = self.alloc_drained(&request(0), Mark::Min, &patience);
        assert_eq!(drained, None);
        let aside = self.alloc_set_aside(&request(0), Mark::Min, &patience);
        assert_eq!(aside, None);
        marks(0, 0, 0);
        let _ = (self.activity(), self.fallbacks());
    }
}
