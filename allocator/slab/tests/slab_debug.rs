//! Planted bugs: each level of checking finds what it says it finds, and names the object, the
//! cache and who.

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use brickyard::Platform;
use brickyard_slab::debug::{Fault, Moment};
use brickyard_slab::{
    CacheSpec, Checks, Counted, DebugRule, FreeFault, Pinned, RuleText, Sheafed, SlabPlan, Slabs,
};

use crate::lasting::{give, take};
use crate::pages::TestPages;
use crate::planted::{
    self, Watched, above, finds_planted_bugs, found, free, make, past, plan, report, text,
    the_finding, with_slabs, write,
};
use crate::slabs::{Bench, pinned};

type Default<'p> = Sheafed<'p, &'p TestPages, Pinned<Watched>>;

mod sheafed {
    use super::*;

    finds_planted_bugs!(Default);
}

/// Slabs of the default with this plan.
fn with(plan: SlabPlan, work: impl for<'m> FnOnce(&Slabs<'m, Default<'m>>)) {
    with_slabs!(Default, plan, work);
}

#[test]
fn rules_decide_by_name() {
    const fn rule(pattern: &'static str, checks: Checks) -> DebugRule {
        DebugRule { pattern, checks }
    }
    static RULES: &[DebugRule] = &[rule("inode*", Checks::RED_ZONES), rule("*", Checks::FREES)];
    let text = RuleText::parse("Z,inode*;F").unwrap();
    for plan in [
        SlabPlan::new(60, 4).debug(RULES, report),
        SlabPlan::new(60, 4).debug_text(text, report),
    ] {
        with(plan, |slabs| {
            let inodes = make(slabs, CacheSpec::new("inode-ext", 48));
            let others = make(slabs, CacheSpec::new("dentry", 48));
            let pair = [inodes.alloc().unwrap(), others.alloc().unwrap()];
            assert!(inodes.numbers().stride > others.numbers().stride);
            write(pair[0], 48, 0);
            assert_eq!(free(&inodes, pair[0]), Err(FreeFault::Damaged));
            assert_eq!(the_finding().cache, "inode-ext");
            let off = past(pair[1], 8);
            assert_eq!(free(&others, off), Err(FreeFault::OffGrid));
            assert_eq!(the_finding().cache, "dentry");
        });
    }
}

#[test]
fn the_last_one_freed_is_always_compared_with() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("plain", 64));
        let objects = take(&cache, 400);
        for &object in &objects {
            free(&cache, object).unwrap();
            assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
            let told = text(&the_finding());
            let refused = above(2);
            let fault = "slab: double free: cache `plain`, object OBJECT of 64 bytes";
            assert!(told.starts_with(fault) && told.contains(&refused), "{told}");
        }
        let mut again = take(&cache, 400);
        again.sort_unstable();
        assert!(again.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(cache.numbers().in_use(), 400);
        give(&cache, &again);
        assert_eq!(cache.numbers().in_use(), 0);
        cache.destroy().unwrap();
    });
}

#[test]
fn what_was_freed_twice_is_told_when_it_reaches_its_slab() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("late", 64));
        let objects = take(&cache, 3);
        for index in [0, 1, 0] {
            free(&cache, objects[index]).unwrap();
        }
        assert!(found().is_empty());
        cache.shrink();
        let finding = the_finding();
        let found = (finding.fault, finding.moment);
        assert_eq!(found, (Fault::DoubleFree, Moment::Flush));
        assert_eq!(finding.object, objects[0].addr().get());
        assert_eq!(cache.numbers().refused, 1);
        assert_eq!(cache.numbers().out, 1);
        let late = "found when put back into its slab, some time after it was freed";
        assert!(text(&finding).contains(late));
        free(&cache, objects[2]).unwrap();
        cache.destroy().unwrap();
    });
}

/// A CPU a thread, by a number that the thread sets.
#[derive(Debug)]
struct Threads;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
}

impl Platform for Threads {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    fn task(&self) -> u64 {
        CPU.get() as u64
    }

    fn relax(&self) {
        std::thread::yield_now();
    }
}

/// Runs `work` on four threads, each a CPU of its own, with the objects of a cache.
fn on_four_cpus(
    checks: Checks,
    work: impl Fn(usize, &dyn Fn() -> usize, &dyn Fn(usize) -> Result<(), FreeFault>) + Sync,
) {
    type Many<'p> = Sheafed<'p, &'p TestPages, Pinned<Threads>>;
    let source = TestPages::new(1024, 1);
    let mut bench = Bench::new::<Many<'_>>(plan(), &source);
    let slabs = bench.slabs::<Many<'_>>(&source, pinned(Threads));
    let cache = make(&slabs, CacheSpec::new("shared", 100).checks(checks));
    std::thread::scope(|scope| {
        for cpu in 0..4 {
            let (cache, work) = (&cache, &work);
            scope.spawn(move || {
                CPU.set(cpu);
                let take = || cache.alloc().unwrap().as_ptr().expose_provenance();
                let give = |object: usize| {
                    let object = NonNull::new(core::ptr::with_exposed_provenance_mut(object));
                    // SAFETY: objects of the cache; what is freed twice is freed so on purpose.
                    unsafe { cache.free(object.unwrap()) }
                };
                work(cpu, &take, &give);
            });
        }
    });
    assert_eq!(cache.numbers().in_use(), 0);
    cache.destroy().unwrap();
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    // Objects go from thread to thread by a queue in the middle.
    let between = Mutex::new(Vec::new());
    let left = AtomicUsize::new(4);
    on_four_cpus(Checks::ALL, |cpu, take, give| {
        for round in 0..2000 {
            let object = take();
            // SAFETY: 100 bytes that are this thread's.
            unsafe {
                core::ptr::with_exposed_provenance_mut::<u8>(object).write_bytes(cpu as u8, 100)
            };
            between.lock().unwrap().push(object);
            let other = between.lock().unwrap().swap_remove(0);
            if round % 3 == 0 {
                between.lock().unwrap().push(other);
            } else {
                give(other).unwrap();
            }
        }
        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
            for object in between.lock().unwrap().drain(..) {
                give(object).unwrap();
            }
        }
        assert!(found().is_empty());
    });
}

#[test]
fn of_two_frees_at_once_one_is_done() {
    let (object, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = Barrier::new(4);
    on_four_cpus(Checks::FREES, |cpu, take, give| {
        for _ in 0..200 {
            if cpu == 0 {
                object.store(take(), Ordering::SeqCst);
            }
            barrier.wait();
            match give(object.load(Ordering::SeqCst)) {
                Ok(()) => {
                    done.fetch_add(1, Ordering::SeqCst);
                }
                // The slab may be gone already.
                Err(fault) => {
                    assert!(matches!(fault, FreeFault::DoubleFree | FreeFault::NotASlab));
                    assert_eq!(the_finding().noticed.cpu, cpu);
                }
            }
            barrier.wait();
        }
    });
    assert_eq!(done.into_inner(), 200);
}

#[test]
fn numbers_add_up() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("inode", 600));
        let objects = take(&cache, 1000);
        give(&cache, &objects[..700]);
        let numbers = cache.numbers();
        assert_eq!(numbers.in_use(), 300);
        assert_eq!(numbers.out, 300 + numbers.queued);
        assert!(numbers.queued > 0 && numbers.misses > 0 && numbers.free_misses > 0);
        assert_eq!((numbers.hits, numbers.remote_frees), (None, 0));
        let waste = numbers.waste();
        let used = numbers.objects() * numbers.size;
        assert_eq!(used + waste.around + waste.ends, numbers.bytes());
        assert_eq!(waste.around, numbers.objects() * 8);
        assert_eq!(waste.tables, numbers.slabs * numbers.pages_per_slab * 65);
        assert_eq!(waste.total(), waste.around + waste.ends + waste.tables);
        cache.shrink();
        let shrunk = cache.numbers();
        assert_eq!((shrunk.in_use(), shrunk.queued, shrunk.out), (300, 0, 300));
        give(&cache, &objects[700..]);
        cache.destroy().unwrap();
    });
}

#[test]
fn remote_frees_are_counted() {
    type Two<'p> = Sheafed<'p, &'p TestPages, Pinned<Threads>>;
    let source = TestPages::new(1024, 2);
    let mut bench = Bench::new::<Two<'_>>(plan(), &source);
    let slabs = bench.slabs::<Two<'_>>(&source, pinned(Threads));
    let cache = make(&slabs, CacheSpec::new("away", 64));
    // CPU 0 is at node 0, CPU 1 at node 1.
    CPU.set(0);
    let objects = take(&cache, 300);
    let own = cache.alloc().unwrap();
    free(&cache, own).unwrap();
    CPU.set(1);
    for &object in &objects {
        free(&cache, object).unwrap();
        assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
        the_finding();
    }
    let numbers = cache.numbers();
    assert_eq!(numbers.in_use(), 0);
    assert!(
        numbers.remote_frees >= 200,
        "what is on its way is counted when it goes"
    );
    slabs.drain();
    assert_eq!(cache.numbers().remote_frees, 300);
    CPU.set(0);
    slabs.drain();
    cache.destroy().unwrap();
}

#[test]
fn hits_are_counted_where_that_was_chosen() {
    type Counting<'p> = Sheafed<'p, &'p TestPages, Counted<'p, Pinned<Watched>>>;
    let source = TestPages::new(1024, 1);
    let mut counts = vec![core::mem::MaybeUninit::uninit(); Counted::<()>::bytes(4)];
    let counted = Counted::new(pinned(Watched::default()), 4, &mut counts).unwrap();
    let mut bench = Bench::new::<Counting<'_>>(plan(), &source);
    let slabs = bench.slabs::<Counting<'_>>(&source, counted);
    let cache = make(&slabs, CacheSpec::new("counted", 64));
    let objects = take(&cache, 1000);
    give(&cache, &objects);
    let numbers = cache.numbers();
    assert_eq!(numbers.hits.unwrap() + numbers.misses, 1000);
    assert!(numbers.hits.unwrap() > 900);
    assert!(numbers.free_hits.unwrap() > 900 && numbers.free_hits.unwrap() <= 1000);
    cache.destroy().unwrap();
    let next = make(&slabs, CacheSpec::new("next", 64));
    assert_eq!(next.numbers().hits, Some(0));
}

/// Batches that begin anywhere in a sheaf: where one begins at an end, the next ones find what they
/// need at hand all the same.
#[test]
fn who_comes_and_goes_over_the_end_of_a_sheaf_misses_seldom() {
    type Counting<'p> = Sheafed<'p, &'p TestPages, Counted<'p, Pinned<Watched>>>;
    for (size, most) in [(64, 15), (1024, 8), (4096, 4)] {
        let source = TestPages::new(4096, 1);
        let mut counts = vec![core::mem::MaybeUninit::uninit(); Counted::<()>::bytes(4)];
        let counted = Counted::new(pinned(Watched::default()), 4, &mut counts).unwrap();
        let mut bench = Bench::new::<Counting<'_>>(plan(), &source);
        let slabs = bench.slabs::<Counting<'_>>(&source, counted);
        let cache = make(&slabs, CacheSpec::new("batches", size));
        let hits = || {
            let numbers = cache.numbers();
            (numbers.hits.unwrap() + numbers.free_hits.unwrap()) as usize
        };
        let mut kept = Vec::new();
        for _ in 0..200 {
            for batch in 1..=most {
                let before = hits();
                for _ in 0..20 {
                    give(&cache, &take(&cache, batch));
                }
                let missed = 2 * 20 * batch - (hits() - before);
                // Until the sheaves are as they are best for batches like this one.
                assert!(
                    missed <= 4,
                    "{size} bytes, {} kept: {missed} in batches of {batch}",
                    kept.len()
                );
            }
            kept.extend(take(&cache, 1));
        }
        give(&cache, &kept);
        cache.destroy().unwrap();
    }
}

#[test]
fn slabinfo_is_linux_s() {
    with(plan(), |slabs| {
        let inodes = make(slabs, CacheSpec::new("inode", 600));
        let long = make(
            slabs,
            CacheSpec::new("a_name_of_more_than_17", 24).checks(Checks::FREES),
        );
        let _objects: Vec<_> = (0..13).map(|_| inodes.alloc().unwrap()).collect();
        let _few: Vec<_> = (0..2).map(|_| long.alloc().unwrap()).collect();
        let expected = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
sheaf                  2      4   1024    4    1 : tunables    0    0    0 : slabdata      1      1      0
inode                 13     18    608    6    1 : tunables    0    0    0 : slabdata      3      3      0
a_name_of_more_than_17      2    128     32  128    1 : tunables    0    0    0 : slabdata      1      1      0
";
        assert_eq!(slabs.slab_info().to_string(), expected);
    });
}
