//! Every schedule of two or three threads on a tiny zone, as loom explores them: magazines, per-CPU lists, drains, bulk policies.
//!
//! draft
#![cfg(loom)]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use brickyard::bulk::{Batch, BulkPolicy, Tuning};
use brickyard::design::{Classic, Design};
use brickyard::front::{Direct, Front, ListSizes, MagazineSizes, Magazines, PerCpuLists};
use brickyard::store::buddy::Buddy;
use brickyard::store::grouping::{Grouping, NoGrouping};
use brickyard::sync::{AtomicU32, Exclusive, GuardedU32, RawLock, Shared, TicketLock};
use brickyard::zone::{Placed, Zone, ZonePlan};
use brickyard::{
    AllocError, Context, Frame, FrameRange, Mobility, Order, Platform, Request, ZoneKind,
};
use loom::sync::atomic::AtomicBool;
use loom::thread::{self, JoinHandle};

// ---- the machine ----

/// How often a thread waits before loom stops trying other schedules for what follows.
///
/// Two threads that wait for a third could look in turn for ever. Looks in vain change nothing.
const LOOKS: usize = 4;

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static LOOKED: Cell<usize> = Cell::new(0);
}

/// Each modelled thread is a CPU of the number that it was started with.
#[derive(Debug, Clone, Copy)]
struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn relax(&self) {
        let looked = LOOKED.with(|looked| looked.replace(looked.get() + 1));
        if looked >= LOOKS {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

type Behind<F, L = TicketLock> = Classic<'static, NoGrouping, F, L, Modelled>;
type Magazined = Behind<Magazines<'static, TicketLock>>;
type Listed = Behind<PerCpuLists<'static, Shared>>;

/// A design whose zones can be built from a plan.
trait Built: Design<Platform = Modelled> + 'static {
    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Zone<Self>;
    fn bytes(plan: &ZonePlan) -> usize;
}

impl<G, F, L> Built for Classic<'static, G, F, L, Modelled>
where
    G: Grouping + Placed<'static> + 'static,
    F: Front<Buddy<'static, G>, L, Modelled> + Placed<'static> + 'static,
    L: RawLock + 'static,
{
    fn build(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Zone<Self> {
        Self::zone(plan, Modelled, memory).unwrap()
    }

    fn bytes(plan: &ZonePlan) -> usize {
        Self::bytes(plan)
    }
}

/// A zone of one run of a model, and what the threads keep of its frames.
struct World<D: Design> {
    zone: Zone<D>,
    // Frame by frame: has it an owner? Two owners at once are caught here.
    owned: Vec<AtomicBool>,
    // Frame by frame, the page itself: an owner that does not see what the one before wrote is caught here.
    pages: Vec<GuardedU32>,
}

const PAGE: Request = Request::page(Mobility::Movable);

impl<D: Built> World<D> {
    /// The zone with all its memory free, every atomic word touched.
    fn new(plan: &ZonePlan, memory: &'static mut [MaybeUninit<u8>]) -> Self {
        let frames = plan.span.len();
        let world = Self {
            zone: D::build(plan, memory),
            owned: (0..frames).map(|_| AtomicBool::new(false)).collect(),
            pages: (0..frames).map(|_| GuardedU32::new(0)).collect(),
        };
        world.zone.add(plan.span).unwrap();
        // A miss goes through every lock of the front, and through the count of moves.
        assert!(
            world
                .zone
                .alloc(&Request::new(Order::MAX, Mobility::Movable))
                .is_err()
        );
        world
    }

    /// A block, if there is one, whose frames nobody owns.
    fn try_take(&self, request: &Request) -> Option<Frame> {
        let first = match self.zone.alloc(request) {
            Ok(first) => first,
            Err(AllocError::Exhausted { .. } | AllocError::Fragmented { .. }) => return None,
            Err(other) => panic!("{other}"),
        };
        for frame in FrameRange::of_block(first, request.order).frames() {
            // Relaxed: adds no order to the allocator's own.
            let taken = self.owned[frame.number()].swap(true, Ordering::Relaxed);
            assert!(!taken, "{frame} has two owners");
            let page = &self.pages[frame.number()];
            page.set(page.get() + 1);
        }
        Some(first)
    }

    /// A frame; there must be one.
    fn take(&self) -> Frame {
        self.try_take(&PAGE).expect("order-0-succeeds")
    }

    fn give_block(&self, first: Frame, order: Order) {
        for frame in FrameRange::of_block(first, order).frames() {
            self.disown(frame);
        }
        self.zone.free(first, order).unwrap();
    }

    fn disown(&self, frame: Frame) {
        let page = &self.pages[frame.number()];
        page.set(page.get() + 1);
        // Relaxed: as above.
        self.owned[frame.number()].store(false, Ordering::Relaxed);
    }

    fn give(&self, frame: Frame) {
        self.give_block(frame, Order::ZERO);
    }

    fn take_and_give(&self) {
        let frame = self.take();
        self.give(frame);
    }

    /// Everything was given back: nothing is lost, and nothing hides in a cache.
    fn finish(&self, frames: usize) {
        self.zone.drain();
        let census = self.zone.check().unwrap();
        assert_eq!(census.free, frames, "{census:?}");
        assert_eq!(self.zone.free_frames(), frames);
        let all: Vec<_> = (0..frames).map(|_| self.take()).collect();
        // Would wait for ever if a move had not ended.
        assert_eq!(self.try_take(&PAGE), None);
        for frame in all {
            self.disown(frame);
        }
    }
}

/// Starts a thread on `cpu`.
fn on_cpu<T: 'static>(cpu: usize, work: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    thread::spawn(move || {
        CPU.with(|own| own.set(cpu));
        work()
    })
}

/// Runs `model` on a new zone in every schedule in which running threads are interrupted no more often than `bound` times.
/// `LOOM_MAX_PREEMPTIONS` takes the place of the bound.
fn explore<D: Built>(
    name: &str,
    bound: usize,
    plan: ZonePlan,
    model: impl Fn(&'static World<D>) + Clone + Sync + Send + 'static,
) {
    let schedules = Arc::new(AtomicUsize::new(0));
    let start = std::time::Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(bound));
    builder.max_branches = 20_000;
    let counted = Arc::clone(&schedules);
    builder.check(move || {
        // Relaxed: a word outside the model, of one system thread.
        counted.fetch_add(1, Ordering::Relaxed);
        let model = model.clone();
        // A zone is large, and the stack on which loom runs this is not.
        let first = thread::Builder::new().stack_size(1 << 15);
        let first = first.spawn(move || in_new_world(&plan, model));
        first.unwrap().join().unwrap();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    let bound = builder.preemption_bound;
    println!(
        "{name}: {schedules} schedules, preemption bound {bound:?}, {:?}",
        start.elapsed()
    );
}

fn in_new_world<D: Built>(plan: &ZonePlan, model: impl Fn(&'static World<D>)) {
    let memory: Box<[MaybeUninit<u8>]> = vec![MaybeUninit::uninit(); D::bytes(plan)].into();
    let memory = Box::into_raw(memory);
    // SAFETY: just made, and given back below, after the zone.
    let world = World::<D>::new(plan, unsafe { &mut *memory });
    let world = Box::into_raw(Box::new(world));
    {
        // SAFETY: just made, and given back below. A model joins its threads before it returns.
        let world = unsafe { &*world };
        model(world);
        world.finish(plan.span.len());
    }
    // SAFETY: both come from `Box::into_raw`; the threads that shared them are gone, and the zone goes before its memory.
    unsafe {
        drop(Box::from_raw(world));
        drop(Box::from_raw(memory));
    }
}

// ---- plans ----

const fn plan(frames: usize, cpus: usize) -> ZonePlan {
    let batch = Batch { least: 1, most: 2 };
    let mut plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, frames), cpus);
    plan.max_order = Order::new(1);
    plan.page_block_order = Order::new(1);
    plan.magazines = 1;
    plan.lists = ListSizes { batch: 1, high: 2 };
    plan.magazine = MagazineSizes {
        limit: 2,
        refill: batch,
        drain: batch,
    };
    plan
}

// ---- one owner ----

#[test]
fn b() {
    for b in [2, 3, 4] {
        explore::<Listed>("per-CPU", b, plan(4, 2), |world| {
            let other = on_cpu(1, || world.take_and_give());
            world.take_and_give();
            other.join().unwrap();
        });
        explore::<Listed>("per-CPU N=2", b, plan(2, 2), |world| {
            let other = on_cpu(1, || world.take_and_give());
            world.take_and_give();
            other.join().unwrap();
        });
        explore::<Listed>("per-CPU N=2, both in the other's", b, plan(2, 2), |world| {
            let (a, b) = (world.take(), world.take());
            world.give(a);
            world.give(b);
            let other = on_cpu(1, || world.take_and_give());
            world.take_and_give();
            other.join().unwrap();
        });
        if b < 4 {
            explore::<Magazined>("one magazine N=2", b, plan(2, 2), |world| {
                let other = on_cpu(1, || world.take_and_give());
                world.take_and_give();
                other.join().unwrap();
            });
            let mut two = plan(2, 4);
            two.magazines = 2;
            explore::<Magazined>("two magazine N=2", b, two, |world| {
                let other = on_cpu(2, || world.take_and_give());
                world.take_and_give();
                other.join().unwrap();
            });
        }
    }
}


#[test]
fn c1() {
    let mut p = plan(2, 3);
    p.lists.high = 3;
    for b in [1, 2] {
    explore::<Listed>("migrating user, lists", b, p, |world| {
        CPU.with(|c| c.set(1));
        let (a, b) = (world.take(), world.take());
        world.give(b);
        let other = on_cpu(0, move || {
            world.give(a);
            CPU.with(|c| c.set(1));
            world.take()
        });
        CPU.with(|c| c.set(2));
        let c = world.take();
        let d = other.join().unwrap();
        world.give(c);
        world.give(d);
    });}
}
#[test]
fn c2() {
    let mut p = plan(2, 3);
    p.magazines = 2;
    for b in [1, 2, 3] {
    explore::<Magazined>("migrating user, magazines", b, p, |world| {
        CPU.with(|c| c.set(2));
        let (a, b) = (world.take(), world.take());
        world.give(b);
        let other = on_cpu(0, move || {
            world.give(a);
            CPU.with(|c| c.set(2));
            world.take()
        });
        CPU.with(|c| c.set(0));
        let c = world.take();
        let d = other.join().unwrap();
        world.give(c);
        world.give(d);
    });}
}
#[test]
fn c3() {
    for b in [3, 4, 5] {
    explore::<Magazined>("limited", b, plan(2, 2), |world| {
        let (a, b) = (world.take(), world.take());
        assert_eq!(b.number(), 1);
        world.give(a);
        let other = on_cpu(0, move || {
            world.zone.drain();
            world.give(b);
            world.try_take(&PAGE.below(Frame::new(1)))
        });
        let c = world.take();
        let d = other.join().unwrap();
        world.give(c);
        if let Some(d) = d { world.give(d); }
    });}
}
