// Slabs of `slqb-2008` on CPUs that the test moves between, on nodes of which some may lack memory.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::cell::Cell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::sync::TicketLock;
use brickyard::{InterruptState, Order, Platform};
use brickyard_designs::slqb::{Encoded, FreePointers, Slqb2008, SlqbNumbers};
use brickyard_slab::{
    CacheNumbers, CacheSpec, Caller, Leak, PageAsk, PageSource, Pinned, RawCache, SlabPlan, Slabs,
    TaskOnly,
};

use crate::pages::TestPages;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static PINS: Cell<usize> = const { Cell::new(0) };
    static MASKS: Cell<usize> = const { Cell::new(0) };
    static MASKED: Cell<usize> = const { Cell::new(0) };
    static INTERRUPT: Cell<bool> = const { Cell::new(false) };
}

/// Each thread is on the CPU that it sets with [`move_to`]; `run_on` moves it to another for one
/// call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpus;

pub(crate) fn move_to(cpu: usize) {
    CPU.set(cpu);
}

pub(crate) fn set_interrupt(inside: bool) {
    INTERRUPT.set(inside);
}

/// Returns how often this thread has masked interrupts.
pub(crate) fn masks() -> usize {
    MASKS.get()
}

impl Platform for Cpus {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    fn pin(&self) -> usize {
        PINS.set(PINS.get() + 1);
        CPU.get()
    }

    fn unpin(&self) {
        PINS.set(PINS.get() - 1);
    }

    fn in_interrupt(&self) -> bool {
        INTERRUPT.get()
    }

    fn mask_interrupts(&self) -> InterruptState {
        MASKS.set(MASKS.get() + 1);
        MASKED.set(MASKED.get() + 1);
        InterruptState(MASKED.get())
    }

    fn restore_interrupts(&self, found: InterruptState) {
        assert_eq!(MASKED.get(), found.0, "restored out of order");
        MASKED.set(MASKED.get() - 1);
    }

    fn relax(&self) {
        std::thread::yield_now();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        assert_nothing_held();
        let here = CPU.replace(cpu);
        work();
        CPU.set(here);
        true
    }
}

/// Asserts that this thread is not pinned and has nothing masked.
pub(crate) fn assert_nothing_held() {
    assert_eq!((PINS.get(), MASKED.get()), (0, 0));
}

/// Pages of nodes with memory, followed by `memoryless` nodes without. CPU `i` is nearest to node
/// `i % nodes`.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) pages: &'static TestPages,
    memoryless: usize,
    /// Number of blocks requested.
    pub(crate) asked: AtomicUsize,
}

// SAFETY: as the pages inside.
unsafe impl PageSource for &'static Source {
    fn start(&self) -> NonNull<u8> {
        self.pages.start()
    }

    fn pages(&self) -> usize {
        PageSource::pages(&self.pages)
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        assert_nothing_held();
        self.asked.fetch_add(1, Ordering::Relaxed);
        if ask.node.is_some_and(|node| node >= self.pages.nodes()) {
            return None;
        }
        self.pages.take(ask)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        assert_nothing_held();
        // SAFETY: passed on.
        unsafe { self.pages.give(first, order) };
    }

    fn nodes(&self) -> usize {
        self.pages.nodes() + self.memoryless
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        self.pages.node_of(page)
    }

    fn local_node(&self, cpu: usize) -> usize {
        cpu % self.nodes()
    }
}

pub(crate) type Slqb<F = Encoded> = Slqb2008<'static, &'static Source, Pinned<Cpus>, TicketLock, F>;
pub(crate) type System<F = Encoded> = Slabs<'static, Slqb<F>>;
type Raw<'s, C, F> = RawCache<'s, 'static, Slqb<F>, C>;

/// A cache, with all its counters.
pub(crate) struct Cache<'s, C = TaskOnly, F: FreePointers = Encoded> {
    raw: Raw<'s, C, F>,
    slabs: &'s System<F>,
}

impl<'s, C: Caller, F: FreePointers> Cache<'s, C, F> {
    pub(crate) fn of(slabs: &'s System<F>, spec: CacheSpec) -> Self {
        let raw = slabs.cache(spec).unwrap();
        Self { raw, slabs }
    }

    pub(crate) fn numbers(&self) -> Numbers {
        Numbers {
            numbers: self.raw.numbers(),
            more: self
                .slabs
                .queues()
                .counts(self.slabs.local(), self.raw.id()),
        }
    }

    pub(crate) fn destroy(self) -> Result<(), (Self, Leak)> {
        let slabs = self.slabs;
        let raw = self.raw.destroy();
        raw.map_err(|(raw, leak)| (Self { raw, slabs }, leak))
    }
}

impl<C, F: FreePointers> fmt::Debug for Cache<'_, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl<'s, C, F: FreePointers> Deref for Cache<'s, C, F> {
    type Target = Raw<'s, C, F>;

    fn deref(&self) -> &Raw<'s, C, F> {
        &self.raw
    }
}

/// The counters of a cache: those of every design, and this design's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    numbers: CacheNumbers,
    pub(crate) more: SlqbNumbers,
}

impl Deref for Numbers {
    type Target = CacheNumbers;

    fn deref(&self) -> &CacheNumbers {
        &self.numbers
    }
}

/// Makes a source that lives as long as the test process.
pub(crate) fn source(pages: usize, nodes: usize, memoryless: usize) -> &'static Source {
    Box::leak(Box::new(Source {
        pages: Box::leak(Box::new(TestPages::new(pages, nodes))),
        memoryless,
        asked: AtomicUsize::new(0),
    }))
}

/// Makes slabs over `source`, and moves this thread to CPU 0.
pub(crate) fn slabs(plan: SlabPlan, source: &'static Source) -> System {
    slabs_with(plan, source)
}

/// Makes such slabs, with links of type `F`.
pub(crate) fn slabs_with<F: FreePointers>(plan: SlabPlan, source: &'static Source) -> System<F> {
    move_to(0);
    let bytes = System::<F>::bytes(&plan.over(&source));
    let memory = vec![MaybeUninit::uninit(); bytes].leak();
    // SAFETY: threads that share slabs move to CPUs of their own.
    let cpus = unsafe { Pinned::new(Cpus) };
    Slabs::new(plan, source, cpus, memory).unwrap()
}

/// Makes a cache with objects of `size` bytes, aligned to a word.
pub(crate) fn cache<C: Caller, F: FreePointers>(slabs: &System<F>, size: usize) -> Cache<'_, C, F> {
    Cache::of(slabs, CacheSpec::new("test", size))
}

/// Allocates objects, on the caller's CPU.
pub(crate) fn take<C: Caller, F: FreePointers>(
    cache: &Cache<'_, C, F>,
    many: usize,
) -> Vec<NonNull<u8>> {
    (0..many).map(|_| cache.alloc().unwrap()).collect()
}

/// Frees objects, in this order.
pub(crate) fn give<C: Caller, F: FreePointers>(cache: &Cache<'_, C, F>, objects: &[NonNull<u8>]) {
    for &object in objects {
        // SAFETY: the tests free what they allocated.
        unsafe { cache.free(object) }.unwrap();
    }
}

/// Returns the counters that changed between `before` and `now`, with the difference.
pub(crate) fn since(before: &Numbers, now: &Numbers) -> Vec<(&'static str, i64)> {
    let pairs = [
        ("slabs", before.slabs, now.slabs),
        ("queued", before.queued, now.queued),
        ("out", before.out, now.out),
        ("misses", before.misses, now.misses),
        ("free_misses", before.free_misses, now.free_misses),
        ("claims", before.claims, now.claims),
        ("claimed", before.more.claimed, now.more.claimed),
        ("flushes", before.flushes, now.flushes),
        ("flushed", before.flushed, now.flushed),
        (
            "flushed_remote",
            before.more.flushed_remote,
            now.more.flushed_remote,
        ),
        ("remote_frees", before.remote_frees, now.remote_frees),
        (
            "outgoing_flushes",
            before.more.outgoing_flushes,
            now.more.outgoing_flushes,
        ),
        (
            "outgoing_flushed",
            before.more.outgoing_flushed,
            now.more.outgoing_flushed,
        ),
        ("filled", before.filled, now.filled),
        ("slabs_new", before.slabs_new, now.slabs_new),
        ("slabs_gone", before.slabs_gone, now.slabs_gone),
        (
            "slabs_partial",
            before.more.slabs_partial,
            now.more.slabs_partial,
        ),
        ("refused", before.refused, now.refused),
        ("lost", before.more.lost, now.more.lost),
    ];
    let changed = pairs.into_iter().filter(|(_, was, is)| was != is);
    changed
        .map(|(name, was, is)| (name, is as i64 - was as i64))
        .collect()
}
