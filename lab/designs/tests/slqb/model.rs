//! `slqb-2008` against a model: random work on several CPUs and nodes, one after the other and
//! concurrently. Every byte of an object in use keeps its owner's mark.

use core::ptr::NonNull;
use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex};

use brickyard_designs::slqb::{Encoded, FreePointers, Plain};
use brickyard_slab::{Caller, Everywhere, Reporter, SlabPlan, TaskOnly};

use crate::slqb::support;
use support::{Cache, assert_nothing_held, cache, move_to, slabs, slabs_with, source};

/// Pseudo-random numbers (xorshift), the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// An object, all of whose bytes hold its owner's mark.
#[derive(Debug)]
struct Owned {
    object: NonNull<u8>,
    size: usize,
    mark: u8,
}

// SAFETY: it is the only pointer to its object in use.
unsafe impl Send for Owned {}

impl Owned {
    fn take<C: Caller, F: FreePointers>(
        cache: &Cache<'_, C, F>,
        size: usize,
        mark: u8,
    ) -> Option<Self> {
        let object = cache.alloc().ok()?;
        // SAFETY: an object in hand.
        unsafe { object.write_bytes(mark, size) };
        Some(Self { object, size, mark })
    }

    fn give<C: Caller, F: FreePointers>(self, cache: &Cache<'_, C, F>) {
        // SAFETY: an object in hand; it is not used after this.
        unsafe {
            let bytes = core::slice::from_raw_parts(self.object.as_ptr(), self.size);
            // Without an early exit, so that the compiler vectorizes it.
            let wrong = bytes
                .iter()
                .fold(0, |wrong, byte| wrong | (byte ^ self.mark));
            assert_eq!(wrong, 0, "{self:?}");
            cache.free(self.object).unwrap();
        }
    }
}

fn plan(cpus: usize) -> SlabPlan {
    SlabPlan {
        report: Reporter::Plain(|finding| panic!("{finding}")),
        ..SlabPlan::new(2, cpus)
    }
}

fn one_after_the_other<C: Caller>(size: usize, nodes: usize, memoryless: usize, seed: u64) {
    if seed.is_multiple_of(4) {
        sequence::<C, Plain>(size, nodes, memoryless, seed);
    } else {
        sequence::<C, Encoded>(size, nodes, memoryless, seed);
    }
}

fn sequence<C: Caller, F: FreePointers>(size: usize, nodes: usize, memoryless: usize, seed: u64) {
    let source = source(4096, nodes, memoryless);
    let slabs = slabs_with::<F>(plan(5), source);
    let cache = cache::<C, _>(&slabs, size);
    let mut numbers = Numbers(seed * 2 + 1);
    let mut live: Vec<Owned> = Vec::new();
    let mut at = HashMap::new();
    let most = (4 << 20) / size;
    for step in 0..800_u32 {
        // Two CPUs more than the plan.
        move_to(numbers.below(7));
        match numbers.below(40) {
            0 => slabs.trim(),
            1 if step % 3 == 0 => slabs.drain(),
            2 if step % 3 == 0 => slabs.shrink(),
            way => {
                let many = 1 + numbers.below(most.min(300).min((1 << 20) / size));
                if way < 21 && live.len() + many < most {
                    for _ in 0..many {
                        let owned = Owned::take(&cache, size, step as u8).unwrap();
                        let twice = at.insert(owned.object, step);
                        assert_eq!(twice, None, "handed out twice: {owned:?}");
                        live.push(owned);
                    }
                } else {
                    for _ in 0..many.min(live.len()) {
                        let owned = live.swap_remove(numbers.below(live.len()));
                        at.remove(&owned.object);
                        owned.give(&cache);
                    }
                }
            }
        }
        if step % 64 == 0 {
            let now = cache.numbers();
            assert_eq!(now.in_use(), live.len() as u64, "step {step}: {now:?}");
            assert_eq!(now.slabs_new - now.slabs_gone, now.slabs);
            assert_eq!((now.more.lost, now.refused), (0, 0));
            let pages = now.slabs * now.pages_per_slab;
            assert_eq!(source.pages.taken() as u64, pages);
        }
    }
    for owned in live {
        owned.give(&cache);
    }
    move_to(0);
    cache.destroy().unwrap();
    assert_eq!(source.pages.taken(), 0);
    assert_nothing_held();
}

#[test]
fn one_node() {
    for (seed, size) in [8, 40, 200, 1216, 4096, 65536].into_iter().enumerate() {
        one_after_the_other::<TaskOnly>(size, 1, 0, seed as u64);
        one_after_the_other::<Everywhere>(size, 1, 0, seed as u64 + 10);
    }
}

#[test]
fn several_nodes() {
    for (seed, size) in [8, 40, 200, 1216, 4096, 65536].into_iter().enumerate() {
        one_after_the_other::<TaskOnly>(size, 2, 0, seed as u64 + 20);
        one_after_the_other::<Everywhere>(size, 2, 1, seed as u64 + 30);
    }
}

const THREADS: usize = 4;

/// Runs threads, each on a CPU of its own, that allocate objects, hand them on, and free those they
/// were handed.
fn at_the_same_time(size: usize, nodes: usize, rows: usize) {
    let source = source(8192, nodes, 0);
    let slabs = slabs(plan(rows), source);
    let cache = cache::<Everywhere, _>(&slabs, size);
    let handed: Vec<Mutex<Vec<Owned>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let barrier = Arc::new(Barrier::new(THREADS));
    let rounds: u64 = 80;
    std::thread::scope(|scope| {
        for cpu in 0..THREADS {
            let (cache, handed, slabs) = (&cache, &handed, &slabs);
            let barrier = Arc::clone(&barrier);
            scope.spawn(move || {
                move_to(cpu);
                let mut numbers = Numbers(cpu as u64 * 77 + size as u64 + 1);
                let mut mine = Vec::new();
                barrier.wait();
                for round in 0..rounds {
                    let many = 1 + numbers.below((1 << 20) / size).min(500);
                    for _ in 0..many {
                        mine.extend(Owned::take(cache, size, (round + cpu as u64) as u8));
                    }
                    let to = numbers.below(THREADS);
                    let part = mine.split_off(numbers.below(mine.len() + 1));
                    handed[to].lock().unwrap().extend(part);
                    let got = core::mem::take(&mut *handed[cpu].lock().unwrap());
                    for owned in got {
                        owned.give(cache);
                    }
                    while mine.len() > many {
                        mine.swap_remove(numbers.below(mine.len())).give(cache);
                    }
                    if round % 16 == cpu as u64 {
                        slabs.trim();
                        let _ = slabs.numbers().count();
                    }
                    if round % 64 == cpu as u64 {
                        slabs.shrink();
                    }
                }
                assert_nothing_held();
                // A barrier here would hang if this thread failed; so what is left goes to the
                // list.
                handed[cpu].lock().unwrap().append(&mut mine);
            });
        }
    });
    for (cpu, left) in handed.into_iter().enumerate() {
        move_to(cpu);
        for owned in left.into_inner().unwrap() {
            owned.give(&cache);
        }
    }
    move_to(0);
    let numbers = cache.numbers();
    assert_eq!((numbers.more.lost, numbers.refused), (0, 0));
    cache.destroy().unwrap();
    assert_eq!(source.pages.taken(), 0);
}

#[test]
fn threads_hand_objects_to_each_other() {
    for size in [64, 1216, 4096, 65536] {
        at_the_same_time(size, 1, THREADS);
        at_the_same_time(size, 2, THREADS);
    }
}

#[test]
fn threads_on_cpus_beyond_the_plan() {
    for size in [64, 4096, 65536] {
        at_the_same_time(size, 1, 2);
        at_the_same_time(size, 2, 0);
    }
}
