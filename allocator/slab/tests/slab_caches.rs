//! What caches must keep to when CPUs cannot be reached, when interrupts come by, and when caches
//! come and go.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt::{self, Write};
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brickyard::sync::{RawLock, TicketLock};
use brickyard::{InterruptState, OneCpu, Platform};
use brickyard_slab::{
    CacheError, CacheNumbers, CacheSpec, Checks, Everywhere, FreeFault, Pinned, RawCache, Remains,
    Sheafed, SlabError, SlabPlan, Slabs, TaskOnly,
};

use crate::lasting::{Call, Told, build, general_among, give, leaked, pinned, take};
use crate::pages::TestPages;

const PAGES: usize = 512;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static INTERRUPT: Cell<bool> = const { Cell::new(false) };
    static PINS: Cell<usize> = const { Cell::new(0) };
}

/// A thread is on the CPU that it says; others are not reached.
#[derive(Debug, Clone, Copy)]
struct Apart;

impl Platform for Apart {
    fn cpu(&self) -> usize {
        CPU.get()
    }
}

/// Work on another CPU is an interrupt there.
#[derive(Debug, Clone, Copy)]
struct ByInterrupt;

impl Platform for ByInterrupt {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    fn in_interrupt(&self) -> bool {
        INTERRUPT.get()
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let here = CPU.replace(cpu);
        in_interrupt(work);
        CPU.set(here);
        true
    }
}

fn in_interrupt<R>(work: impl FnOnce() -> R) -> R {
    let was = INTERRUPT.replace(true);
    let done = work();
    INTERRUPT.set(was);
    done
}

fn on<R>(cpu: usize, work: impl FnOnce() -> R) -> R {
    let here = CPU.replace(cpu);
    let done = work();
    CPU.set(here);
    done
}

fn pages() -> &'static TestPages {
    leaked(TestPages::new(PAGES, 1))
}

type Over<P, S = &'static TestPages, K = TicketLock> = Sheafed<'static, S, Pinned<P>, K>;

fn sheafed<P: Platform + 'static>(plan: SlabPlan, platform: P) -> &'static Slabs<'static, Over<P>> {
    build(plan, pages(), pinned(platform))
}

#[test]
fn a_number_is_not_given_on_while_a_cpu_has_an_empty_sheaf_of_it() {
    let slabs = sheafed(SlabPlan::new(8, 2), Apart);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 4096)).unwrap();
    // All that the sheaf holds, so that an empty one stays.
    let objects: Vec<_> = on(1, || (0..16).map(|_| cache.alloc().unwrap()).collect());
    give(&cache, &objects);
    let (cache, leak) = cache.destroy().unwrap_err();
    assert_eq!((leak.objects, leak.remains), (0, Remains::Queues));
    // It is used as before, by who comes by its number too.
    let object = cache.alloc().unwrap();
    give(&cache, &[object]);
    on(1, || slabs.drain());
    cache.destroy().unwrap();
    let checked = CacheSpec::new("b", 64).checks(Checks::ALL);
    let cache = slabs.cache::<TaskOnly>(checked).unwrap();
    on(1, || {
        let [object, kept] = [cache.alloc().unwrap(), cache.alloc().unwrap()];
        give(&cache, &[object]);
        // SAFETY: refused.
        let again = unsafe { cache.free(object) };
        assert_eq!(again, Err(FreeFault::DoubleFree), "unchecked");
        give(&cache, &[kept]);
    });
    cache.destroy().unwrap();
}

static ARMED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicBool = AtomicBool::new(false);
static OPEN: AtomicBool = AtomicBool::new(false);

/// Stops in the first `give` after it was armed, until it is let go.
fn gate(call: Call) {
    if matches!(call, Call::Give(..)) && ARMED.swap(false, Ordering::SeqCst) {
        INSIDE.store(true, Ordering::SeqCst);
        while !OPEN.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_cache_is_not_destroyed_while_it_is_drained() {
    let slabs = build::<Over<Apart, Told>>(SlabPlan::new(1, 2), Told(pages(), gate), pinned(Apart));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let objects = take(&cache, 128);
    give(&cache, &objects);
    ARMED.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| slabs.drain());
        while !INSIDE.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let (cache, leak) = on(1, || cache.destroy()).unwrap_err();
        let next = slabs.cache::<TaskOnly>(CacheSpec::new("b", 32768));
        assert!(next.is_err(), "the number is in use");
        OPEN.store(true, Ordering::SeqCst);
        drain.join().unwrap();
        assert_eq!((leak.objects, leak.remains), (0, Remains::Users));
        cache.destroy().unwrap();
    });
}

#[test]
fn numbers_are_of_one_cache_while_caches_come_and_go() {
    let slabs = sheafed(SlabPlan::new(1, 2), Apart);
    let done = AtomicBool::new(false);
    let looked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            CPU.set(1);
            while !done.load(Ordering::Relaxed) {
                for numbers in slabs.numbers() {
                    let pair = (numbers.name, numbers.size);
                    let known = [("sheaf", 1024), ("a", 64), ("bbbbbbbbbbbbbbbb", 4096)];
                    assert!(known.contains(&pair), "{pair:?}");
                }
                looked.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 0..20_000 {
            let (name, size) = [("a", 64), ("bbbbbbbbbbbbbbbb", 4096)][round % 2];
            let mut cache = slabs.cache::<TaskOnly>(CacheSpec::new(name, size)).unwrap();
            while let Err((same, leak)) = cache.destroy() {
                assert_eq!(leak.remains, Remains::Users);
                cache = same;
            }
        }
        while looked.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn interrupts_leave_caches_for_tasks_alone() {
    let slabs = sheafed(SlabPlan::new(8, 2), ByInterrupt);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let object = on(1, || cache.alloc().unwrap());
    on(1, || give(&cache, &[object]));
    let queued = cache.numbers().queued;
    assert!(queued > 0);
    cache.shrink();
    assert_eq!(cache.numbers().queued, queued, "drained by an interrupt");
    in_interrupt(|| {
        on(1, || {
            slabs.drain();
            slabs.trim();
            cache.shrink();
        });
        let names: Vec<_> = slabs.numbers().map(|numbers| numbers.name).collect();
        assert_eq!(names, ["sheaf"]);
        assert!(!slabs.slab_info().to_string().contains("\na "));
        let numbers = cache.numbers();
        assert_eq!((numbers.size, numbers.slabs), (64, 0));
    });
    assert_eq!(cache.numbers().queued, queued);
    let (cache, leak) = in_interrupt(|| cache.destroy()).unwrap_err();
    assert_eq!(leak.remains, Remains::Users);
    let (cache, leak) = cache.destroy().unwrap_err();
    assert_eq!(leak.remains, Remains::Objects);
    on(1, || slabs.drain());
    cache.destroy().unwrap();
}

/// Pins are counted.
#[derive(Debug, Clone, Copy)]
struct Pins;

impl Platform for Pins {
    fn cpu(&self) -> usize {
        0
    }

    fn pin(&self) -> usize {
        PINS.set(PINS.get() + 1);
        0
    }

    fn unpin(&self) {
        PINS.set(PINS.get() - 1);
    }
}

/// A text. While a cache's name is copied into it, the cache's owner tries to end it, so often.
struct Ending(
    Option<RawCache<'static, 'static, Over<OneCpu>, TaskOnly>>,
    usize,
);

impl Write for Ending {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.contains("a driver's")
            && let Some(cache) = self.0.take()
        {
            let (cache, leak) = cache.destroy().unwrap_err();
            assert_eq!(leak.remains, Remains::Users, "its name is being read");
            self.0 = Some(cache);
            self.1 += 1;
        }
        Ok(())
    }
}

#[test]
fn a_cache_is_not_destroyed_while_its_name_is_written() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a driver's", 64));
    let mut text = Ending(cache.ok(), 0);
    write!(text, "{}", slabs.slab_info()).unwrap();
    write!(text, "{:?}", slabs.slab_info()).unwrap();
    assert_eq!(text.1, 2, "written twice");
    text.0.unwrap().destroy().unwrap();
}

thread_local! {
    /// What strikes when a lock has just been taken, and before it is given up: an interrupt that
    /// nothing masks.
    static STRIKE: Cell<Option<fn()>> = const { Cell::new(None) };
    static STRUCK: Cell<Option<&'static StruckCache>> = const { Cell::new(None) };
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

type StruckCache = RawCache<'static, 'static, Over<Unmasked, &'static TestPages, Struck>, TaskOnly>;

/// One CPU, on which an interrupt waits for nobody.
#[derive(Debug, Clone, Copy)]
struct Unmasked;

impl Platform for Unmasked {
    fn cpu(&self) -> usize {
        0
    }

    fn in_interrupt(&self) -> bool {
        INTERRUPT.get()
    }

    fn relax(&self) {
        unreachable!("it would wait for a lock of its own CPU");
    }

    fn run_on(&self, _: usize, work: &mut dyn FnMut()) -> bool {
        assert!(!INTERRUPT.get(), "it would wait for another task");
        work();
        true
    }
}

/// A lock whose holder is interrupted twice each time, whatever it masks.
struct Struck(TicketLock);

// SAFETY: as the lock inside.
unsafe impl RawLock for Struck {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
        if let Some(strike) = STRIKE.get() {
            in_interrupt(strike);
        }
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        if let Some(strike) = STRIKE.get() {
            in_interrupt(strike);
        }
        // SAFETY: passed on.
        unsafe { self.0.unlock() };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

/// Calls everything that a task-only cache has, as an interrupt.
fn try_all() {
    let Some(cache) = STRUCK.get() else { return };
    let object = NonNull::dangling();
    assert_eq!(cache.alloc(), Err(SlabError::TaskOnly));
    assert_eq!(cache.alloc_on(0), Err(SlabError::TaskOnly));
    // SAFETY: refused, whatever it is.
    unsafe {
        assert_eq!(cache.free(object), Err(FreeFault::TaskOnly));
    }
    assert_eq!(cache.numbers().slabs, 0);
    cache.shrink();
    cache.each_in_use(|object, _| unreachable!("{object:?}"));
    REFUSED.set(REFUSED.get() + 1);
}

/// So a task-only cache can be called in an interrupt that nothing masks, wherever it comes: it
/// refuses, and waits for no lock.
#[test]
fn a_task_only_cache_refuses_an_interrupt_that_nothing_masks() {
    type Design = Over<Unmasked, &'static TestPages, Struck>;
    let slabs = build::<Design>(SlabPlan::new(4, 1), pages(), pinned(Unmasked));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    STRUCK.set(Some(leaked(cache)));
    STRIKE.set(Some(try_all));
    let cache = STRUCK.get().unwrap();
    let objects = take(cache, 3000);
    give(cache, &objects);
    slabs.trim();
    cache.shrink();
    STRIKE.set(None);
    assert!(REFUSED.get() > 100, "{}", REFUSED.get());
    assert_eq!(cache.numbers().slabs, 0);
}

/// Other CPUs are asked to run something by callers that may sleep, and by no others.
#[test]
fn an_interrupt_asks_no_other_cpu() {
    let slabs = build::<Over<Unmasked>>(SlabPlan::new(4, 4), pages(), pinned(Unmasked));
    let tasks = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let all = slabs.cache::<Everywhere>(CacheSpec::new("b", 64)).unwrap();
    give(&tasks, &[tasks.alloc().unwrap()]);
    let object = all.alloc().unwrap();
    // SAFETY: not used any more.
    unsafe { all.free(object) }.unwrap();
    let (tasks, all) = in_interrupt(|| {
        tasks.shrink();
        let (tasks, leak) = tasks.destroy().unwrap_err();
        assert_eq!(leak.remains, Remains::Users);
        // What is its own goes back, so the cache can end.
        all.shrink();
        assert_eq!(all.numbers().slabs, 0);
        (tasks, all.destroy())
    });
    all.unwrap();
    assert_eq!((tasks.numbers().slabs, tasks.numbers().out > 0), (1, true));
    tasks.destroy().unwrap();
}

/// Another CPU uses a cache by its number whenever this one masks interrupts.
#[derive(Debug, Clone, Copy)]
struct Eager;

thread_local! {
    static EAGER: Cell<Option<&'static Slabs<'static, Over<Eager>>>> = const { Cell::new(None) };
}

impl Platform for Eager {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    fn mask_interrupts(&self) -> InterruptState {
        if let Some(slabs) = EAGER.take() {
            let here = Location::caller();
            let early = on(1, || slabs.alloc_slow::<TaskOnly>(2, here));
            assert_eq!(early, Err(SlabError::Exhausted), "it is not made yet");
            on(1, || slabs.trim());
        }
        InterruptState(0)
    }
}

/// A design makes its queues of a cache new before anybody can use it.
#[test]
fn a_number_is_not_used_before_its_queues_are_made() {
    let slabs = sheafed(SlabPlan::new(4, 2), Eager);
    EAGER.set(Some(slabs));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    assert!(EAGER.get().is_none(), "another CPU has been there");
    assert_eq!(cache.id(), 2);
    let object = slabs.alloc_slow::<TaskOnly>(2, Location::caller()).unwrap();
    give(&cache, &[object]);
    cache.destroy().unwrap();
}

type RefilledCache = RawCache<'static, 'static, Over<Apart, Told>, TaskOnly>;

thread_local! {
    static REFILL: Cell<Option<&'static RefilledCache>> = const { Cell::new(None) };
    static REFILLS: Cell<usize> = const { Cell::new(0) };
}

/// Whenever a page is given back, another CPU leaves sheaves in the barn.
fn refill(call: Call) {
    // Not in the middle of this.
    if let Call::Given = call
        && let Some(cache) = REFILL.take()
    {
        REFILLS.set(REFILLS.get() + 1);
        assert!(REFILLS.get() < 10_000, "it does not end");
        on(1, || give(cache, &take(cache, 64)));
        REFILL.set(Some(cache));
    }
}

#[test]
fn a_shrink_ends_while_others_fill_the_barn() {
    let source = Told(pages(), refill);
    let slabs = build::<Over<Apart, Told>>(SlabPlan::new(4, 2), source, pinned(Apart));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 4096)).unwrap();
    let cache = leaked(cache);
    let objects = take(cache, 64);
    give(cache, &objects);
    REFILL.set(Some(cache));
    slabs.shrink();
    let shrunk = REFILLS.get();
    assert!(shrunk > 1, "others have filled it meanwhile");
    cache.shrink();
    slabs.trim();
    REFILL.set(None);
    assert!(cache.numbers().queued > 0, "it is full again");
    slabs.shrink();
    assert!(cache.numbers().queued <= 64, "what lies with CPUs");
}

#[test]
fn locks_are_held_pinned_and_pages_taken_unpinned() {
    type Design = Over<Pins, Told, Struck>;
    STRIKE.set(Some(|| {
        assert!(PINS.get() > 0, "a lock's holder can be preempted")
    }));
    // Pages are taken and given by who may sleep.
    let source = Told(pages(), |_| assert_eq!(PINS.get(), 0));
    let constructor = |_: NonNull<u8>| assert_eq!(PINS.get(), 0);
    let slabs = build::<Design>(SlabPlan::new(4, 1), source, pinned(Pins));
    let spec = CacheSpec::new("a", 64).constructor(constructor);
    let cache = slabs.cache::<TaskOnly>(spec).unwrap();
    let objects = take(&cache, 3000);
    give(&cache, &objects);
    slabs.trim();
    assert!(slabs.numbers().count() == 2);
    cache.destroy().unwrap();
    assert_eq!(PINS.get(), 0);
}

#[test]
fn general_sizes_take_back_what_is_theirs_alone() {
    let slabs = sheafed(SlabPlan::new(60, 1), OneCpu);
    let before = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let general = slabs.general::<Everywhere>().unwrap();
    let after = slabs.cache::<TaskOnly>(CacheSpec::new("b", 64)).unwrap();
    for cache in [before, after] {
        let object = cache.alloc().unwrap();
        // SAFETY: refused.
        let freed = unsafe { general.free_unsized(object) };
        let wrong = matches!(freed, Err(FreeFault::WrongCache { .. }));
        assert!(wrong, "{freed:?}");
        assert_eq!(general.usable(object), 0);
        assert_eq!(general.object_around(object), None);
        give(&cache, &[object]);
        cache.destroy().unwrap();
    }
    for size in [1, 32768] {
        let layout = Layout::from_size_align(size, 1).unwrap();
        let memory = general.alloc(layout).unwrap();
        assert!(general.usable(memory) >= size);
        for inside in [0, 1, size / 2, size - 1] {
            // SAFETY: an address inside it.
            let around = general.object_around(unsafe { memory.add(inside) });
            assert_eq!(around.map(|(start, _)| start), Some(memory), "{inside}");
        }
        // SAFETY: not used any more.
        unsafe { general.free_unsized(memory) }.unwrap();
    }
}

#[test]
fn who_comes_by_number_comes_as_the_cache_s_own_callers() {
    let slabs = sheafed(SlabPlan::new(60, 2), ByInterrupt);
    let general = slabs.general::<TaskOnly>().unwrap();
    let (here, id) = (Location::caller(), general.first());
    let wrong = slabs.alloc_slow::<Everywhere>(id, here);
    assert_eq!(wrong, Err(SlabError::TaskOnly));
    let interrupt = in_interrupt(|| slabs.alloc_slow::<TaskOnly>(id, here));
    assert_eq!(interrupt, Err(SlabError::TaskOnly));
    let object = slabs.alloc_slow::<TaskOnly>(id, here).unwrap();
    // SAFETY: refused, but for the last, and then not used any more.
    unsafe {
        let wrong = slabs.free_slow::<Everywhere>(id, object, here);
        assert_eq!(wrong, Err(FreeFault::TaskOnly));
        let interrupt = in_interrupt(|| slabs.free_slow::<TaskOnly>(id, object, here));
        assert_eq!(interrupt, Err(FreeFault::TaskOnly));
        slabs.free_slow::<TaskOnly>(id, object, here).unwrap();
    }
    let none = slabs.alloc_slow::<TaskOnly>(200, here);
    assert_eq!(none, Err(SlabError::Exhausted));
}

#[test]
fn what_was_freed_last_is_known_after_a_trim() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let object = cache.alloc().unwrap();
    let kept = cache.alloc().unwrap();
    give(&cache, &[object]);
    slabs.trim();
    slabs.trim();
    // SAFETY: refused.
    let again = unsafe { cache.free(object) };
    assert_eq!(again, Err(FreeFault::DoubleFree));
    give(&cache, &[kept]);
    cache.destroy().unwrap();
}

#[test]
fn a_double_free_leaves_full_sheaves_where_they_are() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let objects = take(&cache, 2 * 125 + 3);
    let [object, kept, last] = [objects[0], objects[1], objects[2]];
    give(&cache, &[object]);
    slabs.drain();
    // Both sheaves of the CPU are full now.
    give(&cache, &objects[3..]);
    let before = cache.numbers();
    assert_eq!(before.queued, 2 * 125);
    // SAFETY: refused.
    let again = unsafe { cache.free(object) };
    assert_eq!(again, Err(FreeFault::DoubleFree));
    let after = cache.numbers();
    let state = |numbers: &CacheNumbers| (numbers.queued, numbers.stored, numbers.free_misses);
    assert_eq!(state(&after), state(&before));
    give(&cache, &[last]);
    let exchanged = cache.numbers();
    assert_eq!(exchanged.queued, 2 * 125 + 1);
    assert_eq!(exchanged.stored, before.stored + 1);
    give(&cache, &[kept]);
    cache.destroy().unwrap();
}

/// The barn holds a mebibyte of objects, and the CPU two sheaves.
#[test]
fn the_barn_has_room_for_a_mebibyte() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let sheaves = (1 << 20) / (125 * 64) + 2;
    let more = (sheaves + 4) * 125;
    let objects = take(&cache, more);
    let mut most = 0;
    for &object in &objects {
        give(&cache, &[object]);
        most = most.max(cache.numbers().queued);
    }
    assert_eq!(most, sheaves as u64 * 125);
    cache.destroy().unwrap();
}

#[test]
fn a_cache_begins_with_no_events_of_the_last_one() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    let counted = || {
        let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
        let begun = cache.numbers();
        let objects = take(&cache, 5 * 125);
        give(&cache, &objects);
        let again = take(&cache, 5 * 125);
        let numbers = cache.numbers();
        assert!(numbers.misses > 0 && numbers.free_misses > 0 && numbers.claims > 0);
        give(&cache, &again);
        cache.destroy().unwrap();
        let events = |of: &CacheNumbers| [of.misses, of.free_misses, of.claims, of.stored];
        (events(&begun), events(&numbers))
    };
    let (_, first) = counted();
    let (begun, second) = counted();
    assert_eq!(begun, [0; 4]);
    assert_eq!(first, second);
}

#[test]
fn general_sizes_are_served_by_number_without_a_lease() {
    let slabs = sheafed(SlabPlan::new(60, 2), ByInterrupt);
    let general = slabs.general::<TaskOnly>().unwrap();
    let other = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let (here, id) = (Location::caller(), general.first());
    let none = general.alloc_slow(other.id(), here);
    assert_eq!(none, Err(SlabError::Exhausted));
    let interrupt = in_interrupt(|| general.alloc_slow(id, here));
    assert_eq!(interrupt, Err(SlabError::TaskOnly));
    let object = general.alloc_slow(id, here).unwrap();
    // SAFETY: refused, but for the last, and then not used any more.
    unsafe {
        let wrong = general.free_slow(other.id(), object, here);
        assert_eq!(wrong, Err(FreeFault::NotASlab));
        let interrupt = in_interrupt(|| general.free_slow(id, object, here));
        assert_eq!(interrupt, Err(FreeFault::TaskOnly));
        general.free_slow(id, object, here).unwrap();
    }
}

#[test]
fn general_sizes_find_a_row_of_numbers() {
    // The caches have the numbers 2 to 13; 2, 5, 8, 11 stay.
    let (firsts, error) = general_among::<Over<OneCpu>>((12, 3), pages(), pinned(OneCpu));
    assert_eq!(firsts, [12, 52, 92, 132, 172, 212]);
    assert!(matches!(error, CacheError::TooMany { wanted: 40, .. }));
    assert!(error.to_string().contains("40 in a row"), "{error}");
    // No 40 in a row.
    let (firsts, _) = general_among::<Over<OneCpu>>((254, 40), pages(), pinned(OneCpu));
    assert_eq!(firsts, []);
    let (firsts, _) = general_among::<Over<OneCpu>>((254, 41), pages(), pinned(OneCpu));
    assert_eq!(firsts, [3, 44, 85, 126, 167, 208]);
}

#[test]
fn zeros_do_not_undo_a_constructor() {
    let slabs = sheafed(SlabPlan::new(4, 1), OneCpu);
    // SAFETY: an object is as large.
    let spec = CacheSpec::new("a", 64).constructor(|object| unsafe { object.write_bytes(7, 64) });
    let cache = slabs.cache::<TaskOnly>(spec).unwrap();
    assert_eq!(cache.alloc_zeroed(), Err(SlabError::Constructed));
    assert_eq!(cache.numbers().out, 0);
    cache.destroy().unwrap();
}

#[test]
fn a_cpu_of_any_number_is_served() {
    let slabs = sheafed(SlabPlan::new(4, 2), Apart);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    for cpu in [2, usize::MAX / 2, usize::MAX] {
        on(cpu, || {
            let object = cache.alloc().unwrap();
            slabs.trim();
            slabs.drain();
            give(&cache, &[object]);
        });
    }
    cache.destroy().unwrap();
}
