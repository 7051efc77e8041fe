//! Every schedule of two or three threads at the queues of `slqb-2008`, as loom explores them: the
//! incoming queue by itself, and the whole design on tiny pages.
//!
//! Proved, for these sizes, within the preemption bounds given below and for every outcome that the
//! memory orderings allow:
//!
//! - an object never has two owners, and an owner reads what the owner before wrote to it,
//!   whichever way the object went;
//! - links, counts and lists are accessed by one thread at a time (loom reports any unordered
//!   access to a guarded word);
//! - `flag-follows-queue`: when all threads are done, the check flag is set if a batch waits;
//! - nothing is lost: in the end all objects are in their slabs, and all slabs are given back.
//!
//! The last section breaks locks on purpose, and expects loom to report it.

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use brickyard::sync::{AtomicU32, GuardedU32, GuardedU64, RawLock, TicketLock};
use brickyard::{Order, Platform};
use brickyard_designs::slqb::Slqb2008;
use brickyard_designs::slqb::queue::{Broken, Incoming, Links, ObjectList};
use brickyard_slab::{
    CacheSpec, PageAsk, PageSource, Pinned, RawCache, Reporter, SlabPlan, Slabs, TaskOnly,
};
use loom::sync::Mutex;
use loom::thread::{self, JoinHandle};

/// How often a thread retries before loom abandons the schedule.
const MAX_RETRIES: usize = 2;

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static RETRIES: Cell<usize> = Cell::new(0);
}

/// Each modelled thread runs on the CPU that it sets with [`move_to`].
#[derive(Debug, Clone, Copy)]
struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn relax(&self) {
        relax();
    }
}

fn relax() {
    let retries = RETRIES.with(|retries| retries.replace(retries.get() + 1));
    if retries >= MAX_RETRIES {
        loom::skip_branch();
    }
    thread::yield_now();
}

fn move_to(cpu: usize) {
    CPU.with(|own| own.set(cpu));
}

/// The stack of a modelled thread, in words.
const STACK: usize = 1 << 16;

/// Starts a thread on `cpu`.
fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let other = thread::Builder::new().stack_size(STACK);
    let other = other.spawn(move || {
        move_to(cpu);
        work()
    });
    go_second();
    other.unwrap()
}

std::thread_local! {
    // Whether a started thread runs before its starter, for the model on this system thread: loom's
    // threads are coroutines of it.
    static SWAPPED: Cell<bool> = const { Cell::new(false) };
}

/// Yields to a new thread in the second run of a model. Loom remembers one last access per word, so
/// that a thread which reads before it writes hides another thread's earlier read. So each model
/// runs twice: with the starter of a thread going on first, and with the new thread first.
fn go_second() {
    if SWAPPED.get() {
        thread::yield_now();
    }
}

/// Runs `model` in every schedule with at most `bound` preemptions. `LOOM_MAX_PREEMPTIONS`
/// overrides the bound.
fn explore(
    name: &str,
    bound: impl Into<Option<usize>>,
    model: impl Fn() + Clone + Sync + Send + 'static,
) {
    let bound = bound.into();
    let mut most = 0;
    for swapped in [false, true] {
        SWAPPED.set(swapped);
        let start = std::time::Instant::now();
        let schedules = Arc::new(AtomicUsize::new(0));
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(bound);
        builder.max_branches = 50_000;
        let counted = Arc::clone(&schedules);
        let model = model.clone();
        builder.check(move || {
            // Relaxed: a word outside the model, of one system thread.
            counted.fetch_add(1, Ordering::Relaxed);
            let model = model.clone();
            let first = thread::Builder::new().stack_size(STACK).spawn(model);
            first.unwrap().join().unwrap();
        });
        let schedules = schedules.load(Ordering::Relaxed);
        let bound = builder.preemption_bound;
        let turn = if swapped { ", swapped" } else { "" };
        println!(
            "{name}{turn}: {schedules} schedules, preemption bound {bound:?} {:?}",
            start.elapsed()
        );
        most = most.max(schedules);
    }
    assert!(most > 1, "{name}: one schedule proves nothing");
}

/// Calls `work` with a value that lives as long as one run of a model.
fn with_lent<T: 'static>(value: T, work: impl FnOnce(&'static T)) {
    let value = Box::into_raw(Box::new(value));
    // SAFETY: made above, and given back below; a model joins its threads before it returns.
    work(unsafe { &*value });
    // SAFETY: as above; the threads that shared it are gone.
    drop(unsafe { Box::from_raw(value) });
}

// ---- the incoming queue by itself ----

/// Objects of a model, numbered from 1: their links, and words that their owners write.
struct Objects {
    links: Vec<GuardedU64>,
    bodies: Vec<GuardedU32>,
}

impl Objects {
    fn new(many: usize) -> Self {
        Self {
            links: (0..=many).map(|_| GuardedU64::new(99)).collect(),
            bodies: (0..=many).map(|_| GuardedU32::new(0)).collect(),
        }
    }

    /// Uses an object as its owner, which must read what the owner before wrote.
    fn use_it(&self, object: usize) {
        let body = &self.bodies[object];
        body.set(body.get() + 1);
    }
}

impl Links for Objects {
    fn next(&self, object: usize) -> usize {
        self.links[object].get() as usize
    }

    fn set_next(&self, object: usize, next: usize) {
        self.links[object].set(next as u64);
    }

    fn is_object(&self, address: usize) -> bool {
        (1..self.links.len()).contains(&address)
    }
}

/// An incoming queue, its owner's flag, and its objects.
struct Queue<K> {
    objects: Objects,
    incoming: Incoming<K>,
    check: AtomicU32,
}

const BATCH: u32 = 3;

impl<K: RawLock> Queue<K> {
    /// Makes a queue with every word of it accessed once, as loom needs.
    fn new(many: usize) -> Self {
        let queue = Self {
            objects: Objects::new(many),
            incoming: Incoming::default(),
            check: AtomicU32::new(0),
        };
        queue.incoming.receive(
            &queue.objects,
            ObjectList::EMPTY,
            BATCH,
            &queue.check,
            || unreachable!(),
        );
        assert_eq!((queue.incoming.waiting(), queue.flag()), (0, 0));
        queue
    }

    fn flag(&self) -> u32 {
        // Relaxed: as the owner reads it.
        self.check.load(Ordering::Relaxed)
    }

    /// Frees these objects to the queue, as one list.
    fn send(&self, objects: core::ops::RangeInclusive<usize>) {
        let mut list = ObjectList::EMPTY;
        for object in objects {
            self.objects.use_it(object);
            list.append(&self.objects, ObjectList::one(&self.objects, object));
        }
        self.incoming
            .receive(&self.objects, list, BATCH, &self.check, relax);
    }

    /// Claims the queue, and pops it object by object.
    fn claim(&self) -> Vec<usize> {
        let mut list = self.incoming.claim(&self.check, relax);
        let mut broken = Broken::default();
        let mut all = Vec::new();
        while let Some(object) = list.pop(&self.objects, &mut broken) {
            self.objects.use_it(object);
            all.push(object);
        }
        assert_eq!(broken, Broken::default());
        all
    }
}

/// Two CPUs send while the owner claims: each object comes once, whole lists in order.
#[test]
fn what_is_sent_is_claimed_once() {
    explore("two senders, one claim", None, || {
        with_lent(Queue::<TicketLock>::new(4), |queue| {
            let senders = [
                on_cpu(1, || queue.send(1..=2)),
                on_cpu(2, || queue.send(3..=4)),
            ];
            let mut all = queue.claim();
            for sender in senders {
                sender.join().unwrap();
            }
            all.extend(queue.claim());
            assert!(all == [1, 2, 3, 4] || all == [3, 4, 1, 2], "{all:?}");
            assert_eq!((queue.incoming.waiting(), queue.flag()), (0, 0));
        });
    });
}

/// The owner claims only if the flag is set; when the senders are done the flag is set if a batch
/// waits.
#[test]
fn the_flag_follows_the_queue() {
    explore("two senders, the owner follows the flag", 3, || {
        with_lent(Queue::<TicketLock>::new(5), |queue| {
            let senders = [
                on_cpu(1, || queue.send(1..=2)),
                on_cpu(2, || queue.send(3..=5)),
            ];
            let mut claimed = 0;
            if queue.flag() != 0 {
                claimed = queue.claim().len();
            }
            for sender in senders {
                sender.join().unwrap();
            }
            let waiting = queue.incoming.waiting();
            assert_eq!(waiting as usize + claimed, 5);
            assert_eq!(queue.flag() != 0, waiting >= BATCH, "{waiting} wait");
            claimed += queue.claim().len();
            assert_eq!((claimed, queue.flag()), (5, 0));
        });
    });
}

/// Two CPUs claim one queue (its owner, and one that shrinks the cache) while a third sends.
#[test]
fn two_claims_share_what_is_there() {
    explore("two claims, one sender", 3, || {
        with_lent(Queue::<TicketLock>::new(4), |queue| {
            queue.send(1..=2);
            let sender = on_cpu(1, || queue.send(3..=4));
            let other = on_cpu(2, || queue.claim());
            let mut all = queue.claim();
            sender.join().unwrap();
            all.extend(other.join().unwrap());
            all.extend(queue.claim());
            all.sort_unstable();
            assert_eq!(all, [1, 2, 3, 4]);
        });
    });
}

// ---- the whole design ----

/// log2 of a page: small, so that a batch is of two objects and the mark is at eight.
const PAGE_SHIFT: u32 = 11;
/// Bytes of an object; each has a slab of its own.
const OBJECT: usize = 64 << 10;
/// Objects that the source has memory for, split evenly between its nodes.
const OBJECTS: usize = 18;
const NODES: usize = 2;

/// Memory for some slabs.
struct Source {
    start: NonNull<u8>,
    // Loom's mutex, since a source orders giving a page before taking it again.
    taken: Mutex<[bool; OBJECTS]>,
}

impl Source {
    fn layout() -> Layout {
        Layout::from_size_align(OBJECTS * OBJECT, OBJECT).unwrap()
    }

    fn new() -> Self {
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc(Self::layout()) }).unwrap();
        Self {
            start,
            taken: Mutex::new([false; OBJECTS]),
        }
    }

    fn index(&self, address: NonNull<u8>) -> usize {
        (address.addr().get() - self.start.addr().get()) / OBJECT
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout()) };
    }
}

// SAFETY: an address; the memory behind it is handed out part by part.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

// SAFETY: each part is given to one caller at a time, aligned to its size.
unsafe impl PageSource for &'static Source {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        (OBJECTS * OBJECT) >> PAGE_SHIFT
    }

    fn page_shift(&self) -> u32 {
        PAGE_SHIFT
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        assert_eq!(ask.order.frames() << PAGE_SHIFT, OBJECT);
        let mut taken = self.taken.lock().unwrap();
        let of_node = |i: &usize| ask.node.is_none_or(|node| i * NODES / OBJECTS == node);
        let free = (0..OBJECTS).find(|i| of_node(i) && !taken[*i])?;
        taken[free] = true;
        // SAFETY: inside the allocation.
        Some(unsafe { self.start.add(free * OBJECT) })
    }

    unsafe fn give(&self, first: NonNull<u8>, _order: Order) {
        let was = core::mem::replace(&mut self.taken.lock().unwrap()[self.index(first)], false);
        assert!(was, "given back twice");
    }

    fn nodes(&self) -> usize {
        NODES
    }

    fn node_of(&self, page: NonNull<u8>) -> usize {
        self.index(page) * NODES / OBJECTS
    }

    fn local_node(&self, cpu: usize) -> usize {
        cpu % NODES
    }
}

type Design<K> = Slqb2008<'static, &'static Source, Pinned<Modelled>, K>;

const CPUS: usize = 3;

/// The cache of one run of a model, and the threads' record of its objects.
struct World<K: RawLock> {
    cache: RawCache<'static, 'static, Design<K>, TaskOnly>,
    slabs: &'static Slabs<'static, Design<K>>,
    source: &'static Source,
    // By object: whether it has an owner, and a word that its owners write.
    owned: Vec<AtomicBool>,
    bodies: Vec<GuardedU32>,
}

impl<K: RawLock> World<K> {
    fn take(&self) -> Object {
        let object = self.cache.alloc().unwrap();
        let index = self.source.index(object);
        // Relaxed: the test must not add an ordering that the allocator lacks.
        let taken = self.owned[index].swap(true, Ordering::Relaxed);
        assert!(!taken, "{index} has two owners");
        self.write_to(index);
        Object(object)
    }

    fn write_to(&self, index: usize) {
        let body = &self.bodies[index];
        body.set(body.get() + 1);
    }

    fn give(&self, Object(object): Object) {
        let index = self.source.index(object);
        self.write_to(index);
        // Relaxed: as above.
        self.owned[index].store(false, Ordering::Relaxed);
        // SAFETY: it was taken above, and it is not used any more.
        unsafe { self.cache.free(object) }.unwrap();
    }

    /// Takes `N` objects on the caller's CPU.
    fn several<const N: usize>(&self) -> [Object; N] {
        core::array::from_fn(|_| self.take())
    }

    /// Accesses every atomic word once: objects go from every list to every other.
    fn touch(&self) {
        for page in 0..self.slabs.pages().count() {
            // SAFETY: inside the source's memory.
            let page = unsafe { self.source.start.add(page << PAGE_SHIFT) };
            assert_eq!(self.slabs.pages().cache_of(page), 0);
        }
        // The planned CPUs, and for each node one beyond the plan.
        for taker in [0, 1, 2, 4, 5] {
            for giver in [0, 1, 2] {
                move_to(taker);
                let objects: [_; 2] = self.several();
                move_to(giver);
                for object in objects {
                    self.give(object);
                }
                self.slabs.drain();
            }
        }
        self.finish();
    }

    /// Checks that everything was given back and nothing is lost.
    fn finish(&self) {
        for cpu in 0..CPUS {
            move_to(cpu);
            self.slabs.drain();
        }
        self.slabs.shrink();
        let numbers = self.cache.numbers();
        assert_eq!(
            (numbers.out, numbers.queued, numbers.slabs),
            (0, 0, 0),
            "{numbers:?}"
        );
        let more = self
            .slabs
            .queues()
            .counts(self.slabs.local(), self.cache.id());
        assert_eq!((more.lost, numbers.refused), (0, 0));
        assert_eq!(*self.source.taken.lock().unwrap(), [false; OBJECTS]);
    }
}

/// An object in hand.
#[derive(Clone, Copy)]
struct Object(NonNull<u8>);

// SAFETY: an address.
unsafe impl Send for Object {}

fn explore_design<K: RawLock>(
    name: &str,
    bound: impl Into<Option<usize>>,
    model: impl Fn(&'static World<K>) + Clone + Sync + Send + 'static,
) {
    explore(name, bound, move || {
        with_lent(Source::new(), |source| in_new_world(source, &model));
    });
}

fn in_new_world<K: RawLock>(source: &'static Source, model: &impl Fn(&'static World<K>)) {
    let plan = SlabPlan {
        report: Reporter::Plain(|finding| panic!("{finding}")),
        ..SlabPlan::new(1, CPUS)
    };
    let bytes = Slabs::<Design<K>>::bytes(&plan.over(&source));
    let memory: Box<[MaybeUninit<u8>]> = vec![MaybeUninit::uninit(); bytes].into();
    let memory = Box::into_raw(memory);
    // SAFETY: made above, not shared yet, and given back below, after the slabs in them. Threads
    // are on CPUs of their own, but in the model that breaks this on purpose.
    let slabs =
        unsafe { Slabs::<Design<K>>::new(plan, source, Pinned::new(Modelled), &mut *memory) };
    with_lent(slabs.unwrap(), |slabs| {
        let cache = slabs.cache(CacheSpec::new("modelled", OBJECT)).unwrap();
        let world = World {
            cache,
            slabs,
            source,
            owned: (0..OBJECTS).map(|_| AtomicBool::new(false)).collect(),
            bodies: (0..OBJECTS).map(|_| GuardedU32::new(0)).collect(),
        };
        with_lent(world, |world| {
            world.touch();
            move_to(0);
            model(world);
            world.finish();
        });
    });
    // SAFETY: both come from `Box::into_raw`, and nothing is in them any more.
    unsafe {
        drop(Box::from_raw(memory));
    }
}

/// CPU 1, of the other node, frees two batches to CPU 0, which allocates meanwhile.
#[test]
fn a_batch_is_sent_while_its_owner_allocates() {
    explore_design::<TicketLock>("remote batch, owner allocates", 3, |world| {
        let objects: [_; 4] = world.several();
        let other = on_cpu(1, move || {
            for object in objects {
                world.give(object);
            }
        });
        let taken: [_; 3] = world.several();
        other.join().unwrap();
        let after = world.take();
        for object in taken {
            world.give(object);
        }
        world.give(after);
    });
}

/// Six wait for CPU 0, so another batch goes straight into the slabs, while CPU 0 claims.
#[test]
fn a_batch_goes_into_slabs_while_its_owner_claims() {
    explore_design::<TicketLock>("direct put, owner claims", 4, |world| {
        let objects: [_; 8] = world.several();
        move_to(1);
        for object in &objects[..7] {
            world.give(*object);
        }
        move_to(0);
        assert_eq!(world.cache.numbers().queued, 7);
        let last = objects[7];
        let other = on_cpu(1, move || {
            world.give(last);
        });
        let object = world.take();
        other.join().unwrap();
        world.give(object);
    });
}

/// CPUs 0 and 2 are of one node: an object of CPU 0 goes onto CPU 2's LIFO, and back by its flush,
/// while CPU 0 does the same with one of CPU 2.
#[test]
fn cpus_of_a_node_flush_to_each_other() {
    explore_design::<TicketLock>("two flush to each other", 4, |world| {
        let ours = world.take();
        move_to(2);
        let theirs = world.take();
        move_to(0);
        let other = on_cpu(2, move || {
            world.give(ours);
            world.slabs.drain();
        });
        world.give(theirs);
        world.slabs.drain();
        other.join().unwrap();
    });
}

/// A shrink by a CPU that owns no objects, while the owner claims.
#[test]
fn a_shrink_takes_what_waits_for_others() {
    explore_design::<TicketLock>("shrink against send and claim", 3, |world| {
        let [a, b] = world.several();
        move_to(1);
        world.give(a);
        world.give(b);
        move_to(0);
        let shrink = on_cpu(2, || world.slabs.shrink());
        let object = world.take();
        shrink.join().unwrap();
        world.give(object);
    });
}

/// Two CPUs beyond the plan share their node's list.
#[test]
fn cpus_without_rows_share_a_node_s_list() {
    explore_design::<TicketLock>("two without rows", 2, |world| {
        let other = on_cpu(5, || world.give(world.take()));
        move_to(7);
        world.give(world.take());
        other.join().unwrap();
    });
}

// ---- bugs that must be found ----

/// A lock that excludes, but does not publish what was written under it to the next holder.
struct Unpublished(AtomicU32);

// SAFETY: it admits one holder at a time. The models below must find that it does not publish, on
// words for which a race is a report and not undefined behaviour.
unsafe impl RawLock for Unpublished {
    const UNLOCKED: Self = Self(AtomicU32::new(0));

    fn lock(&self, mut relax: impl FnMut()) {
        while !self.try_lock() {
            relax();
        }
    }

    fn try_lock(&self) -> bool {
        // Relaxed: the mistake.
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        self.0.compare_exchange(0, 1, acquire, relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        // Relaxed: the mistake.
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_queue_s_lock_that_does_not_publish_is_found() {
    explore("broken queue lock", 2, || {
        with_lent(Queue::<Unpublished>::new(2), |queue| {
            let sender = on_cpu(1, || queue.send(1..=2));
            queue.claim();
            sender.join().unwrap();
        });
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_page_lock_that_does_not_publish_is_found() {
    explore_design::<Unpublished>("broken locks", 2, |world| {
        let other = on_cpu(5, || world.give(world.take()));
        move_to(7);
        world.give(world.take());
        other.join().unwrap();
    });
}

/// Two threads that both run as CPU 0.
#[test]
#[should_panic(expected = "Causality violation")]
fn two_threads_on_one_cpu_are_found() {
    explore_design::<TicketLock>("two on one CPU", 2, |world| {
        let other = on_cpu(0, || world.give(world.take()));
        world.give(world.take());
        other.join().unwrap();
    });
}
