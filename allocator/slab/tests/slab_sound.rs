//! What safe code can not do to the memory of slabs, whatever it calls, and what panics leave
//! behind.

#![cfg(not(loom))]

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::catch_unwind;

use brickyard::sync::AtomicUsize;
use brickyard::{OneCpu, Platform};
use brickyard_slab::design::{BackendOf, CacheInfo, Footprint, Whereabouts};
use brickyard_slab::{
    BuildError, CacheId, CacheNumbers, CacheSpec, Caller, Everywhere, FreeFault, Parts, Pinned,
    Rows, Sheafed, SlabDesign, SlabPlan, Slabs, TaskOnly,
};

use crate::adversary::{
    self, Claims, Hooked, NO_MASK, PAGES, PIN_PANICS_AT, PINS, Reused, pages as some_pages, panics,
};
use crate::lasting::{build, give, memory, pinned};
use crate::pages::TestPages;

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

#[test]
fn a_slab_goes_while_a_bad_free_is_told_in_sheaves() {
    adversary::a_slab_goes_while_a_bad_free_is_told::<Over<Hooked, Reused>>();
}

#[test]
fn a_slab_goes_while_what_is_in_use_is_listed_in_sheaves() {
    adversary::a_slab_goes_while_what_is_in_use_is_listed::<Over<Hooked, Reused>>();
}

#[test]
fn a_mask_that_panics_leaves_nobody_pinned() {
    let slabs = build::<Over<Hooked>>(SlabPlan::new(4, 1), some_pages(), pinned(Hooked));
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

#[test]
fn a_constructor_that_panics_loses_nothing_in_sheaves() {
    adversary::a_constructor_that_panics_loses_nothing::<Over<OneCpu>>(
        |_| assert!(!CONSTRUCTOR_PANICS.load(Ordering::Relaxed)),
        &CONSTRUCTOR_PANICS,
    );
}

/// Wherever a platform's pin panics while a cache is destroyed: who trims or counts all caches
/// comes to it as before, or it is gone.
#[test]
fn a_cache_whose_destruction_panics_stays_open() {
    let slabs = build::<Over<Hooked>>(SlabPlan::new(100, 1), some_pages(), pinned(Hooked));
    let mut there = slabs.numbers().count();
    for at in 1..100 {
        let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
        let object = cache.alloc().unwrap();
        give(&cache, &[object]);
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
        let count = slabs.numbers().count();
        assert_eq!(count, there, "closed for good, at pin {at}");
    }
    panic!("it never came to its end");
}

#[test]
fn what_cannot_be_is_refused_by_sheaves() {
    adversary::what_cannot_be_is_refused::<Over<OneCpu, Claims>>();
}

fn words(count: usize) -> &'static mut [AtomicUsize] {
    let words: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
    words.leak()
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
    let slabs = Slabs::<Design>::in_parts(plan, some_pages(), pinned(OnCpu), parts).unwrap();
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    for cpu in 0..3 {
        ON_CPU.set(cpu);
        let object = cache.alloc().unwrap();
        give(&cache, &[object]);
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
    let slabs = Slabs::<Over<OneCpu>>::in_parts(plan, some_pages(), pinned(OneCpu), parts);
    assert_eq!(slabs.unwrap_err(), BuildError::Rows { needed: 256 });
}

/// Queues that count requests and leave the rest to the library's: a design of one's own. Whoever
/// writes one answers for what typed caches put into its objects, so it cannot be done safely.
#[derive(Debug)]
struct Counting<'m> {
    sheaves: Inner<'m>,
    requests: AtomicUsize,
}

type Inner<'m> = Sheafed<'m, &'static TestPages, Pinned<OneCpu>>;
type CountingBackend<'m> = BackendOf<'m, Inner<'m>>;

// SAFETY: every call goes to the library's own queues, with the backend that it came with.
unsafe impl<'m> SlabDesign<'m> for Counting<'m> {
    type Source = &'static TestPages;
    type Local = Pinned<OneCpu>;

    const NAME: &'static str = "counting";
    const FOOTPRINT: Footprint = Inner::FOOTPRINT;

    fn new(
        plan: &SlabPlan,
        rows: Option<Rows<'m>>,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Option<Self> {
        Some(Self {
            sheaves: Inner::new(plan, rows, memory)?,
            requests: AtomicUsize::new(0),
        })
    }

    fn open(&self, backend: &CountingBackend<'m>, kind: &CacheInfo) {
        self.sheaves.open(backend, kind);
    }

    fn handle(&self, cache: CacheId) -> usize {
        self.sheaves.handle(cache)
    }

    fn hit<C: Caller>(&self, backend: &CountingBackend<'m>, handle: usize) -> Option<NonNull<u8>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.sheaves.hit::<C>(backend, handle)
    }

    unsafe fn put<C: Caller>(
        &self,
        backend: &CountingBackend<'m>,
        handle: usize,
        object: NonNull<u8>,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.sheaves.put::<C>(backend, handle, object) }
    }

    fn miss<C: Caller>(
        &self,
        backend: &CountingBackend<'m>,
        kind: &CacheInfo,
    ) -> Option<NonNull<u8>> {
        self.sheaves.miss::<C>(backend, kind)
    }

    unsafe fn overflow<C: Caller>(
        &self,
        backend: &CountingBackend<'m>,
        kind: &CacheInfo,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        // SAFETY: passed on.
        unsafe { self.sheaves.overflow::<C>(backend, kind, object) }
    }

    fn trim<C: Caller>(&self, backend: &CountingBackend<'m>, kind: &CacheInfo) {
        self.sheaves.trim::<C>(backend, kind);
    }

    fn drain<C: Caller>(&self, backend: &CountingBackend<'m>, kind: &CacheInfo) {
        self.sheaves.drain::<C>(backend, kind);
    }

    fn shrink<C: Caller>(&self, backend: &CountingBackend<'m>, kind: &CacheInfo) {
        self.sheaves.shrink::<C>(backend, kind);
    }

    fn is_clear(&self, kind: &CacheInfo) -> bool {
        self.sheaves.is_clear(kind)
    }

    fn numbers(&self, backend: &CountingBackend<'m>, kind: &CacheInfo, numbers: &mut CacheNumbers) {
        self.sheaves.numbers(backend, kind, numbers);
    }

    fn look<R>(
        &self,
        backend: &CountingBackend<'m>,
        kind: &CacheInfo,
        head: usize,
        index: usize,
        look: impl FnOnce(NonNull<u8>, Whereabouts) -> R,
    ) -> Option<R> {
        self.sheaves.look(backend, kind, head, index, look)
    }
}

#[test]
fn queues_of_one_s_own_are_a_promise() {
    let slabs = build::<Counting<'_>>(SlabPlan::new(4, 1), some_pages(), pinned(OneCpu));
    let texts = slabs.typed::<&str, TaskOnly>("texts").unwrap();
    let held: Vec<_> = (0..300).map(|_| texts.alloc("text").unwrap()).collect();
    assert!(held.iter().all(|text| **text == "text"));
    assert_eq!(slabs.queues().requests.load(Ordering::Relaxed), 300);
    drop(held);
    texts.destroy().unwrap();
}
