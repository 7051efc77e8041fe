//! Caches of objects: what every design and every level of checking has to keep.

use core::ptr::NonNull;

use brickyard::OneCpu;
use brickyard::sync::TicketLock;
use brickyard_slab::sheaf::{Kernel, Process, Purpose};
use brickyard_slab::{CacheSpec, FreeFault, Pinned, RawCache, Sheafed, SlabPlan, TaskOnly};

use crate::lasting::{give, give_shuffled, take};
use crate::pages::TestPages;
use crate::slabs::{Bench, pinned};

/// The default design, as these have it.
type For<'p, P = Kernel> = Sheafed<'p, &'p TestPages, Pinned<OneCpu>, TicketLock, P>;

/// Runs a test with a cache of small objects, over so many pages.
fn with_cache<P: Purpose>(
    pages: usize,
    test: impl for<'m> FnOnce(RawCache<'_, 'm, For<'m, P>, TaskOnly>),
) {
    let source = TestPages::new(pages, 1);
    let mut bench = Bench::new::<For<'_, P>>(SlabPlan::new(4, 1), &source);
    let slabs = bench.slabs::<For<'_, P>>(&source, pinned(OneCpu));
    test(slabs.cache(CacheSpec::new("a", 48)).unwrap());
}

#[test]
fn objects_are_apart_aligned_and_come_back() {
    let source = TestPages::new(1024, 1);
    let plan = SlabPlan::new(60, 1);
    let mut bench = Bench::new::<For<'_>>(plan, &source);
    let slabs = bench.slabs::<For<'_>>(&source, pinned(OneCpu));
    for (size, align) in [
        (1, 1),
        (16, 16),
        (40, 8),
        (64, 64),
        (100, 4),
        (600, 8),
        (1216, 64),
        (5000, 512),
        (32768, 4096),
    ] {
        let spec = CacheSpec::new("test", size).align(align);
        let cache = slabs.cache::<TaskOnly>(spec).unwrap();
        let many = (400_000 / size).min(2000);
        let mut objects = take(&cache, many);
        for (i, object) in objects.iter().enumerate() {
            assert!(object.addr().get().is_multiple_of(align), "{size} {align}");
            // SAFETY: the object is as large.
            unsafe { object.write_bytes(i as u8, size) };
        }
        for (i, object) in objects.iter().enumerate() {
            for byte in 0..size {
                // SAFETY: inside the object, and written above.
                let found = unsafe { object.add(byte).read() };
                assert_eq!(found, i as u8, "{size} {i} {byte} {object:?}");
            }
        }
        objects.sort_unstable();
        let apart = |pair: &[NonNull<u8>]| pair[1].addr().get() - pair[0].addr().get() >= size;
        assert!(objects.windows(2).all(apart));
        give(&cache, &objects);
        cache.destroy().unwrap();
    }
    // Nothing is left but what the slabs themselves keep.
    assert!(source.taken() <= 1, "{}", source.taken());
}

#[test]
fn bad_frees_on_the_slow_path_are_refused() {
    let source = TestPages::new(64, 1);
    let plan = SlabPlan::new(4, 0);
    let mut bench = Bench::new::<For<'_>>(plan, &source);
    let slabs = bench.slabs::<For<'_>>(&source, pinned(OneCpu));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap();
    let other = slabs.cache::<TaskOnly>(CacheSpec::new("b", 64)).unwrap();
    let object = cache.alloc().unwrap();
    let keeper = cache.alloc().unwrap();
    let mut outside = 0_u64;
    // SAFETY: none of them is used any more; what is no object is refused.
    unsafe {
        let (wrong, id) = (other.free(object), cache.id());
        assert_eq!(wrong, Err(FreeFault::WrongCache { cache: id }));
        assert_eq!(cache.free(object.add(8)), Err(FreeFault::OffGrid));
        let outside = NonNull::from(&mut outside).cast();
        assert_eq!(cache.free(outside), Err(FreeFault::NotASlab));
        cache.free(object).unwrap();
        assert_eq!(cache.free(object), Err(FreeFault::DoubleFree));
        cache.free(keeper).unwrap();
    }
}

/// Objects that are freed in an order of their own lie scattered. As many as a barn may hold would
/// keep nearly all slabs.
#[test]
fn what_is_freed_in_any_order_does_not_keep_its_slabs() {
    freed_in_any_order::<Kernel>(3 << 20);
    freed_in_any_order::<Process>(1 << 20);
}

fn freed_in_any_order<P: Purpose>(most: u64) {
    with_cache::<P>(3000, |cache| {
        let mut state = 1;
        for count in [240_000, 60_000, 90_000, 150_000, 240_000] {
            let mut objects = take(&cache, count);
            give_shuffled(&cache, &mut objects, 0, &mut state);
            let after = cache.numbers();
            assert_eq!(after.in_use(), 0);
            assert!(after.slabs * 4096 <= most, "{count}: {after:?}");
        }
        cache.destroy().unwrap();
    });
}

/// Where what is in use keeps the slabs, it would be of no use to empty the barn, and each refill
/// would have to take objects out of slabs.
#[test]
fn a_barn_fills_again_where_what_is_in_use_keeps_the_slabs() {
    fills_again::<Kernel>();
    fills_again::<Process>();
}

fn fills_again<P: Purpose>() {
    with_cache::<P>(8000, |cache| {
        let mut state = 1;
        let mut objects = take(&cache, 600_000);
        give_shuffled(&cache, &mut objects, 100_000, &mut state);
        let before = cache.numbers();
        assert!(before.slabs > 6000, "{before:?}");
        let bursts = 20;
        for _ in 0..bursts {
            give_shuffled(&cache, &mut take(&cache, 5000), 0, &mut state);
        }
        let flushed = cache.numbers().flushed - before.flushed;
        assert!(flushed < bursts * 5000 / 10, "{flushed}");
        give_shuffled(&cache, &mut objects, 0, &mut state);
        cache.destroy().unwrap();
    });
}
