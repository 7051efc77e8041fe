//! What safe code can not do to the memory of slabs, whatever it calls, and what panics leave
//! behind.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::catch_unwind;

use brickyard::sync::{AtomicUsize, TicketLock};
use brickyard::{InterruptState, OneCpu, Order, Platform};
use brickyard_slab::debug::User;
use brickyard_slab::geometry::Shape;
use brickyard_slab::sheaf::Sheaves;
use brickyard_slab::sizes::Sizes;
use brickyard_slab::{
    BuildError, CacheId, CacheNumbers, CacheSpec, Caller, Checks, Everywhere, Finding, Footing,
    Footprint, FreeFault, Ground, Kind, MAX_PAGES, PageAsk, PageSource, Parts, Pinned, Queues,
    RawCache, Rows, Sheafed, SlabDesign, SlabPlan, Slabs, Slqb2008, Tables, TaskOnly, Whereabouts,
};

#[path = "support/pages.rs"]
mod pages;
use pages::TestPages;

const PAGES: usize = 64;

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn memory(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    vec![MaybeUninit::uninit(); bytes].leak()
}

/// Slabs that live as long as the test process.
fn build<D: SlabDesign<'static>>(
    plan: SlabPlan,
    source: D::Source,
    local: D::Local,
) -> &'static Slabs<'static, D> {
    let bytes = Slabs::<D>::bytes(&plan.over(&source));
    leaked(Slabs::new(plan, source, local, memory(bytes)).unwrap())
}

fn pinned<P: Platform>(platform: P) -> Pinned<P> {
    // SAFETY: each test has slabs of its own, which its one thread uses.
    unsafe { Pinned::new(platform) }
}

/// Calls `work`, which panics, and says nothing about it.
fn panics<R>(work: impl FnOnce() -> R) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "no panic");
}

thread_local! {
    static PINS: Cell<isize> = const { Cell::new(0) };
    static BEHIND_UNPIN: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    static UNPINS_BEFORE: Cell<usize> = const { Cell::new(0) };
    static PIN_PANICS_AT: Cell<usize> = const { Cell::new(0) };
    static NO_MASK: Cell<bool> = const { Cell::new(false) };
}

/// Pins are counted, and may panic; something may come right behind one; masking may panic.
#[derive(Debug, Clone, Copy)]
struct Hooked;

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
#[derive(Debug, Clone, Copy)]
struct Reused(&'static TestPages);

// SAFETY: as the pages inside.
unsafe impl PageSource for Reused {
    fn start(&self) -> NonNull<u8> {
        self.0.start()
    }

    fn pages(&self) -> usize {
        PageSource::pages(&self.0)
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        self.0.take(ask)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        // SAFETY: nobody else's before they are given back.
        unsafe { first.write_bytes(0x41, order.frames() << 12) };
        // SAFETY: passed on.
        unsafe { self.0.give(first, order) };
    }
}

thread_local! {
    static ON_CPU: Cell<usize> = const { Cell::new(0) };
}

/// The thread is on the CPU that it says.
#[derive(Debug, Clone, Copy)]
struct OnCpu;

impl Platform for OnCpu {
    fn cpu(&self) -> usize {
        ON_CPU.get()
    }
}

type Over<P, S = &'static TestPages> = Sheafed<'static, S, Pinned<P>>;
type Linked<P, S = &'static TestPages> = Slqb2008<'static, S, Pinned<P>>;

fn pages() -> &'static TestPages {
    leaked(TestPages::new(PAGES, 1))
}

/// Right behind an unpin, after so many others, an object is freed, and the pages of its slab are
/// somebody else's.
fn goes_behind_unpin<D>(
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

type Watched<D> = RawCache<'static, 'static, D, TaskOnly>;

/// A cache that tells who took and freed its objects, and what it takes pages from.
fn watched<D>(report: fn(&Finding)) -> (&'static Watched<D>, &'static TestPages)
where
    D: SlabDesign<'static, Source = Reused, Local = Pinned<Hooked>>,
{
    let source = pages();
    let plan = SlabPlan {
        report,
        ..SlabPlan::new(4, 1)
    };
    let slabs = build::<D>(plan, Reused(source), pinned(Hooked));
    let spec = CacheSpec::new("watched", 64).checks(Checks::TRACK);
    (leaked(slabs.cache(spec).unwrap()), source)
}

/// Between the look at an object's slab and the look at who took it.
fn a_slab_goes_while_what_is_in_use_is_listed<D>()
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
fn a_slab_goes_while_a_bad_free_is_told<D>()
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

#[test]
fn a_slab_goes_while_a_bad_free_is_told_in_sheaves() {
    a_slab_goes_while_a_bad_free_is_told::<Over<Hooked, Reused>>();
}

#[test]
fn a_slab_goes_while_a_bad_free_is_told_in_lists() {
    a_slab_goes_while_a_bad_free_is_told::<Linked<Hooked, Reused>>();
}

#[test]
fn a_slab_goes_while_what_is_in_use_is_listed_in_sheaves() {
    a_slab_goes_while_what_is_in_use_is_listed::<Over<Hooked, Reused>>();
}

#[test]
fn a_slab_goes_while_what_is_in_use_is_listed_in_lists() {
    a_slab_goes_while_what_is_in_use_is_listed::<Linked<Hooked, Reused>>();
}

#[test]
fn a_mask_that_panics_leaves_nobody_pinned() {
    let slabs = build::<Over<Hooked>>(SlabPlan::new(4, 1), pages(), pinned(Hooked));
    let cache = slabs.cache::<Everywhere>(CacheSpec::new("a", 64)).unwrap();
    let object = cache.alloc().unwrap();
    let pins = PINS.get();
    NO_MASK.set(true);
    panics(|| cache.alloc());
    NO_MASK.set(true);
    // SAFETY: not used any more.
    panics(|| unsafe { cache.free(object) });
    assert_eq!(PINS.get(), pins);
}

static CONSTRUCTOR_PANICS: AtomicBool = AtomicBool::new(false);

fn a_constructor_that_panics_loses_nothing<D>(constructor: fn(NonNull<u8>), panic: &AtomicBool)
where
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
    let objects: Vec<_> = (0..200).map(|_| cache.alloc().unwrap()).collect();
    panic.store(true, Ordering::Relaxed);
    panics(|| {
        loop {
            let _ = cache.alloc().unwrap();
        }
    });
    // What was taken on the way there is in use for good; the rest is all there.
    let taken = cache.numbers();
    for object in objects {
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
    }
    let lost = taken.in_use() - 200;
    cache.shrink();
    let slabs_left = cache.numbers().slabs;
    assert_eq!(cache.numbers().out, lost);
    let sheaves = slabs.numbers().next().unwrap();
    assert_eq!(sheaves.out, 0, "a sheaf is lost");
    assert_eq!(source.taken() as u64, slabs_left, "pages are lost");
}

#[test]
fn a_constructor_that_panics_loses_nothing_in_sheaves() {
    a_constructor_that_panics_loses_nothing::<Over<OneCpu>>(
        |_| assert!(!CONSTRUCTOR_PANICS.load(Ordering::Relaxed)),
        &CONSTRUCTOR_PANICS,
    );
}

#[test]
fn a_constructor_that_panics_loses_nothing_in_lists() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    a_constructor_that_panics_loses_nothing::<Linked<OneCpu>>(
        |_| assert!(!PANICS.load(Ordering::Relaxed)),
        &PANICS,
    );
}

/// Wherever a platform's pin panics while a cache is destroyed: who trims or counts all caches
/// comes to it as before, or it is gone.
#[test]
fn a_cache_whose_destruction_panics_stays_open() {
    let slabs = build::<Over<Hooked>>(SlabPlan::new(100, 1), pages(), pinned(Hooked));
    let mut there = slabs.numbers().count();
    for at in 1..100 {
        let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
        let object = cache.alloc().unwrap();
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
        PIN_PANICS_AT.set(at);
        let done = catch_unwind(AssertUnwindSafe(|| cache.destroy().is_ok()));
        PIN_PANICS_AT.set(0);
        match done {
            Ok(true) => {
                assert!(at > 5, "a few pins at least");
                return;
            }
            Ok(false) => panic!("nothing is in use"),
            Err(_) => there += 1,
        }
        assert_eq!(
            slabs.numbers().count(),
            there,
            "closed for good, at pin {at}"
        );
    }
    panic!("it never came to its end");
}

/// A source that says that it has as many pages as it was told.
#[derive(Debug)]
struct Claims {
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

/// How both designs refuse such a source.
fn refused(pages: usize, page_shift: u32, plan: SlabPlan) -> [BuildError; 2] {
    fn built<D>(source: D::Source, plan: SlabPlan) -> BuildError
    where
        D: SlabDesign<'static, Local = Pinned<OneCpu>>,
    {
        // SAFETY: there is no byte that is not zero. Too few for any tables, and not to be touched.
        let tables = unsafe { Tables::zeroed(memory(0)) };
        let parts = Parts {
            tables: Some(tables),
            ..Parts::of(memory(1 << 20))
        };
        Slabs::<D>::in_parts(plan, source, pinned(OneCpu), parts).unwrap_err()
    }
    let source = || Claims { pages, page_shift };
    let sheaves = built::<Over<OneCpu, Claims>>(source(), plan);
    let lists = built::<Linked<OneCpu, Claims>>(source(), plan);
    [sheaves, lists]
}

#[test]
fn more_pages_than_can_be_numbered_are_refused() {
    let plan = SlabPlan::new(4, 1);
    for pages in [1 << 32, MAX_PAGES + 1, usize::MAX] {
        let [error, other] = refused(pages, 12, plan);
        assert_eq!([error, other], [BuildError::TooManyPages { pages }; 2]);
        let text = error.to_string();
        assert!(
            text.contains(&MAX_PAGES.to_string()) && text.contains("larger pages"),
            "{text}"
        );
    }
    let needed = Tables::bytes(MAX_PAGES);
    assert!(needed > MAX_PAGES);
    let errors = refused(MAX_PAGES, 12, plan);
    assert_eq!(errors, [BuildError::Tables { needed }; 2]);
    assert_eq!(Tables::bytes(usize::MAX), usize::MAX, "no sum that wraps");
}

#[test]
fn pages_that_no_slab_is_made_of_are_refused() {
    let plan = SlabPlan::new(4, 1);
    for page_shift in [0, 9, 17, 63, 64, u32::MAX] {
        let [error, other] = refused(PAGES, page_shift, plan);
        assert_eq!([error, other], [BuildError::PageSize { page_shift }; 2]);
        assert!(error.to_string().contains("64 KiB"), "{error}");
    }
}

fn words(count: usize) -> &'static mut [AtomicUsize] {
    (0..count)
        .map(|_| AtomicUsize::new(0))
        .collect::<Vec<_>>()
        .leak()
}

#[test]
fn rows_of_one_s_own_are_used_and_no_words_behind_the_last() {
    type Design = Over<OnCpu>;
    let plan = SlabPlan::new(8, 2).pages(PAGES);
    let needed = Slabs::<Design>::row_bytes(&plan);
    assert_eq!(needed, 256);
    // Two whole rows and most of a third.
    let rows = Rows::new(words(128 + 60), 9).unwrap();
    assert_eq!(rows.rows(), 2);
    assert!(rows.place(2, 2).is_none() && rows.place(1, 63).is_some());
    let first = rows.start().addr();
    let bytes = Slabs::<Design>::bytes_beside_rows(&plan);
    assert_eq!(bytes + 2 * needed, Slabs::<Design>::bytes(&plan));
    let parts = Parts {
        rows: Some(rows),
        ..Parts::of(memory(bytes))
    };
    let slabs = Slabs::<Design>::in_parts(plan, pages(), pinned(OnCpu), parts).unwrap();
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    for cpu in 0..3 {
        ON_CPU.set(cpu);
        let object = cache.alloc().unwrap();
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
    }
    let rows = slabs.queues().rows();
    assert_eq!((rows.start().addr(), rows.rows()), (first, 2));
    assert!(cache.numbers().queued > 0);
}

#[test]
fn rows_that_are_none_are_refused() {
    for row_shift in [0, 3, 6, 63, 64, u32::MAX] {
        let error = Rows::new(words(1024), row_shift).unwrap_err();
        assert_eq!(error, BuildError::Rows { needed: 128 }, "{row_shift}");
    }
    assert_eq!(Rows::new(words(1024), 62).unwrap().rows(), 0);
    let plan = SlabPlan::new(8, 1);
    let rows = Rows::new(words(1024), 7).unwrap();
    let parts = Parts {
        rows: Some(rows),
        ..Parts::of(memory(1 << 20))
    };
    let slabs = Slabs::<Over<OneCpu>>::in_parts(plan, pages(), pinned(OneCpu), parts);
    assert_eq!(slabs.unwrap_err(), BuildError::Rows { needed: 256 });
}

/// Queues that count requests and leave the rest to the library's: a design of one's own. Whoever
/// writes one answers for what typed caches put into its objects, so it cannot be done safely.
struct Counting<'m> {
    sheaves: Sheaves<'m, TicketLock>,
    requests: AtomicUsize,
}

#[derive(Debug)]
enum CountingDesign {}

impl Footing for CountingDesign {
    type Source = &'static TestPages;
    type Local = Pinned<OneCpu>;
}

impl<'m> SlabDesign<'m> for CountingDesign {
    type Queues = Counting<'m>;
}

type CountingGround<'m> = Ground<'m, CountingDesign>;

// SAFETY: every call goes to the library's own queues, with the ground that it came with.
unsafe impl<'m> Queues<'m, CountingDesign> for Counting<'m> {
    const SHAPE: Shape = Shape::Bitmap;
    const SIZES: Sizes = Sizes::Fine;
    const NAME: &'static str = "counting";

    const FOOTPRINT: Footprint = <Sheaves<'m, TicketLock> as Queues<'m, CountingDesign>>::FOOTPRINT;

    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        type Inner<'m> = Sheaves<'m, TicketLock>;
        let new = <Inner<'m> as Queues<'m, CountingDesign>>::new;
        Some(Self {
            sheaves: new(plan, rows, memory)?,
            requests: AtomicUsize::new(0),
        })
    }

    fn open(&self, ground: &CountingGround<'m>, kind: &Kind) {
        self.sheaves.open(ground, kind);
    }

    fn handle(&self, cache: CacheId) -> usize {
        Queues::<'m, CountingDesign>::handle(&self.sheaves, cache)
    }

    fn hit<C: Caller>(&self, ground: &CountingGround<'m>, handle: usize) -> Option<NonNull<u8>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.sheaves.hit::<C>(ground, handle)
    }

    unsafe fn put<C: Caller>(
        &self,
        ground: &CountingGround<'m>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.sheaves.put::<C>(ground, handle, object) }
    }

    fn miss<C: Caller>(&self, ground: &CountingGround<'m>, kind: &Kind) -> Option<NonNull<u8>> {
        self.sheaves.miss::<C>(ground, kind)
    }

    unsafe fn overflow<C: Caller>(
        &self,
        ground: &CountingGround<'m>,
        kind: &Kind,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        // SAFETY: passed on.
        unsafe { self.sheaves.overflow::<C>(ground, kind, object) }
    }

    fn trim<C: Caller>(&self, ground: &CountingGround<'m>, kind: &Kind) {
        self.sheaves.trim::<C>(ground, kind);
    }

    fn drain<C: Caller>(&self, ground: &CountingGround<'m>, kind: &Kind) {
        self.sheaves.drain::<C>(ground, kind);
    }

    fn shrink<C: Caller>(&self, ground: &CountingGround<'m>, kind: &Kind) {
        self.sheaves.shrink::<C>(ground, kind);
    }

    fn is_clear(&self, kind: &Kind) -> bool {
        Queues::<'m, CountingDesign>::is_clear(&self.sheaves, kind)
    }

    fn numbers(&self, ground: &CountingGround<'m>, kind: &Kind, numbers: &mut CacheNumbers) {
        self.sheaves.numbers(ground, kind, numbers);
    }

    fn look<R>(
        &self,
        ground: &CountingGround<'m>,
        kind: &Kind,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R> {
        self.sheaves.look(ground, kind, head, index, look)
    }
}

#[test]
fn queues_of_one_s_own_are_a_promise() {
    let slabs = build::<CountingDesign>(SlabPlan::new(4, 1), pages(), pinned(OneCpu));
    let texts = slabs.typed::<&str, TaskOnly>("texts").unwrap();
    let held: Vec<_> = (0..300).map(|_| texts.alloc("text").unwrap()).collect();
    assert!(held.iter().all(|text| **text == "text"));
    assert_eq!(slabs.queues().requests.load(Ordering::Relaxed), 300);
    drop(held);
    texts.destroy().unwrap();
}

#[test]
fn a_plan_of_more_than_memory_can_be_is_refused() {
    for cpus in [1 << 40, usize::MAX / 2, usize::MAX] {
        for error in refused(PAGES, 12, SlabPlan::new(4, cpus)) {
            assert!(
                matches!(error, BuildError::Memory { needed } if needed > 1 << 40),
                "{cpus}: {error:?}"
            );
        }
    }
}
