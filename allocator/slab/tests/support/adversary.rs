// What safe code tries on slabs of any design, and what panics leave behind.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::catch_unwind;

use brickyard::{InterruptState, OneCpu, Order, Platform};
use brickyard_slab::debug::User;
use brickyard_slab::{
    BuildError, CacheSpec, Checks, Finding, FreeFault, MAX_PAGES, PageAsk, PageSource, Parts,
    Pinned, RawCache, SlabDesign, SlabPlan, Slabs, Tables, TaskOnly,
};

use crate::lasting::{Call, Told, build, give, leaked, memory, pinned, take};
use crate::pages::TestPages;

pub(crate) const PAGES: usize = 64;

/// Calls `work`, which panics, and says nothing about it.
pub(crate) fn panics<R>(work: impl FnOnce() -> R) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "no panic");
}

thread_local! {
    pub(crate) static PINS: Cell<isize> = const { Cell::new(0) };
    pub(crate) static BEHIND_UNPIN: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    pub(crate) static UNPINS_BEFORE: Cell<usize> = const { Cell::new(0) };
    pub(crate) static PIN_PANICS_AT: Cell<usize> = const { Cell::new(0) };
    pub(crate) static NO_MASK: Cell<bool> = const { Cell::new(false) };
}

/// Pins are counted, and may panic; something may come right behind one; masking may panic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hooked;

impl Platform for Hooked {
    fn cpu(&self) -> usize {
        0
    }

    fn pin(&self) -> usize {
        let left = PIN_PANICS_AT.get();
        PIN_PANICS_AT.set(left.saturating_sub(1));
        assert!(left != 1, "no pin");
        PINS.set(PINS.get() + 1);
        0
    }

    fn unpin(&self) {
        PINS.set(PINS.get() - 1);
        let before = UNPINS_BEFORE.get();
        UNPINS_BEFORE.set(before.saturating_sub(1));
        if PINS.get() == 0
            && before == 0
            && let Some(hook) = BEHIND_UNPIN.take()
        {
            hook();
        }
    }

    fn mask_interrupts(&self) -> InterruptState {
        assert!(!NO_MASK.replace(false), "no mask");
        InterruptState(0)
    }
}

/// Pages whose bytes are somebody else's as soon as they are given back.
pub(crate) type Reused = Told;

fn reused(call: Call) {
    if let Call::Give(first, order) = call {
        // SAFETY: nobody else's before they are given back.
        unsafe { first.write_bytes(0x41, order.frames() << 12) };
    }
}

pub(crate) fn pages() -> &'static TestPages {
    leaked(TestPages::new(PAGES, 1))
}

/// Right behind an unpin, after so many others, an object is freed, and the pages of its slab are
/// somebody else's.
pub(crate) fn goes_behind_unpin<D>(
    unpins: usize,
    cache: &'static Watched<D>,
    source: &'static TestPages,
    object: NonNull<u8>,
) where
    D: SlabDesign<'static>,
{
    let before = source.taken();
    UNPINS_BEFORE.set(unpins);
    BEHIND_UNPIN.set(Some(Box::new(move || {
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
        assert!(source.taken() < before, "its slab has gone");
    })));
}

pub(crate) type Watched<D> = RawCache<'static, 'static, D, TaskOnly>;

/// A cache that tells who took and freed its objects, and what it takes pages from.
pub(crate) fn watched<D>(report: fn(&Finding)) -> (&'static Watched<D>, &'static TestPages)
where
    D: SlabDesign<'static, Source = Reused, Local = Pinned<Hooked>>,
{
    let source = pages();
    let plan = SlabPlan {
        report: brickyard_slab::Reporter::Plain(report),
        ..SlabPlan::new(4, 1)
    };
    let slabs = build::<D>(plan, Told(source, reused), pinned(Hooked));
    let spec = CacheSpec::new("watched", 64).checks(Checks::TRACK);
    (leaked(slabs.cache(spec).unwrap()), source)
}

/// Between the look at an object's slab and the look at who took it.
pub(crate) fn a_slab_goes_while_what_is_in_use_is_listed<D>()
where
    D: SlabDesign<'static, Source = Reused, Local = Pinned<Hooked>>,
{
    let (cache, source) = watched::<D>(|_| ());
    let object = cache.alloc().unwrap();
    goes_behind_unpin(0, cache, source, object);
    let mut found = Vec::new();
    cache.each_in_use(|object, track| found.push((object, track.is_some())));
    assert!(BEHIND_UNPIN.take().is_none(), "it was freed meanwhile");
    assert_eq!(found, [(object, true)], "read in pages of somebody else's");
}

/// Between the look whether an object is free, and the look at who freed it.
pub(crate) fn a_slab_goes_while_a_bad_free_is_told<D>()
where
    D: SlabDesign<'static, Source = Reused, Local = Pinned<Hooked>>,
{
    thread_local!(static TOLD: Cell<Option<[User; 2]>> = const { Cell::new(None) });
    let (cache, source) = watched::<D>(|finding| {
        TOLD.set(Some([finding.allocated, finding.freed]));
    });
    let [object, other] = [cache.alloc().unwrap(), cache.alloc().unwrap()];
    // SAFETY: not used any more, and then refused, twice.
    unsafe {
        cache.free(object).unwrap();
        assert_eq!(cache.free(object), Err(FreeFault::DoubleFree));
        let told = TOLD.take().unwrap();
        assert!(told.iter().all(|user| user.track().is_some()), "{told:?}");
        goes_behind_unpin(1, cache, source, other);
        assert_eq!(cache.free(object), Err(FreeFault::DoubleFree));
    }
    assert!(BEHIND_UNPIN.take().is_none(), "its slab has gone meanwhile");
    let told = TOLD.take().unwrap();
    assert_eq!(
        told,
        [User::Untracked; 2],
        "read in pages of somebody else's"
    );
}

pub(crate) fn a_constructor_that_panics_loses_nothing<D>(
    constructor: fn(NonNull<u8>),
    panic: &AtomicBool,
) where
    D: SlabDesign<'static, Source = &'static TestPages, Local = Pinned<OneCpu>>,
{
    let source = pages();
    let slabs = build::<D>(SlabPlan::new(4, 1), source, pinned(OneCpu));
    let spec = CacheSpec::new("made", 64).constructor(constructor);
    let cache = slabs.cache::<TaskOnly>(spec).unwrap();
    for _ in 0..3 {
        panic.store(true, Ordering::Relaxed);
        panics(|| cache.alloc());
    }
    panic.store(false, Ordering::Relaxed);
    let objects = take(&cache, 200);
    panic.store(true, Ordering::Relaxed);
    panics(|| {
        loop {
            let _ = cache.alloc().unwrap();
        }
    });
    // What was taken on the way there is in use for good; the rest is all there.
    let taken = cache.numbers();
    give(&cache, &objects);
    let lost = taken.in_use() - 200;
    cache.shrink();
    let slabs_left = cache.numbers().slabs;
    assert_eq!(cache.numbers().out, lost);
    let sheaves = slabs.numbers().next().unwrap();
    assert_eq!(sheaves.out, 0, "a sheaf is lost");
    assert_eq!(source.taken() as u64, slabs_left, "pages are lost");
}

/// A source that says that it has as many pages as it was told.
#[derive(Debug)]
pub(crate) struct Claims {
    pages: usize,
    page_shift: u32,
}

// SAFETY: it gives none.
unsafe impl PageSource for Claims {
    fn start(&self) -> NonNull<u8> {
        NonNull::dangling()
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn page_shift(&self) -> u32 {
        self.page_shift
    }

    fn take(&self, _: PageAsk) -> Option<NonNull<u8>> {
        None
    }

    unsafe fn give(&self, _: NonNull<u8>, _: Order) {}
}

/// How a design refuses such a source.
fn refused<D>(pages: usize, page_shift: u32, plan: SlabPlan) -> BuildError
where
    D: SlabDesign<'static, Source = Claims, Local = Pinned<OneCpu>>,
{
    // SAFETY: there is no byte that is not zero. Too few for any tables, and not to be touched.
    let tables = unsafe { Tables::zeroed(memory(0)) };
    let parts = Parts {
        tables: Some(tables),
        ..Parts::of(memory(1 << 20))
    };
    let source = Claims { pages, page_shift };
    Slabs::<D>::in_parts(plan, source, pinned(OneCpu), parts).unwrap_err()
}

/// What no design can be built of is refused: more pages than can be numbered, pages that no slab
/// is made of, a plan of more than memory can be.
pub(crate) fn what_cannot_be_is_refused<D>()
where
    D: SlabDesign<'static, Source = Claims, Local = Pinned<OneCpu>>,
{
    let plan = SlabPlan::new(4, 1);
    for pages in [1 << 32, MAX_PAGES + 1, usize::MAX] {
        let error = refused::<D>(pages, 12, plan);
        assert_eq!(error, BuildError::TooManyPages { pages });
        let text = error.to_string();
        assert!(
            text.contains(&MAX_PAGES.to_string()) && text.contains("larger pages"),
            "{text}"
        );
    }
    let needed = Tables::bytes(MAX_PAGES);
    assert!(needed > MAX_PAGES);
    let error = refused::<D>(MAX_PAGES, 12, plan);
    assert_eq!(error, BuildError::Tables { needed });
    assert_eq!(Tables::bytes(usize::MAX), usize::MAX, "no sum that wraps");
    for page_shift in [0, 9, 17, 63, 64, u32::MAX] {
        let error = refused::<D>(PAGES, page_shift, plan);
        assert_eq!(error, BuildError::PageSize { page_shift });
        assert!(error.to_string().contains("64 KiB"), "{error}");
    }
    for cpus in [1 << 40, usize::MAX / 2, usize::MAX] {
        let error = refused::<D>(PAGES, 12, SlabPlan::new(4, cpus));
        assert!(
            matches!(error, BuildError::Memory { needed } if needed > 1 << 40),
            "{cpus}: {error:?}"
        );
    }
}
