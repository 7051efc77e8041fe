//! The rules of SLAB and SLUB, one by one: what moves where, and how many objects at a time.

use core::ptr::NonNull;

use brickyard_designs::slab_slub::{Slab2008, Slub2008};
use brickyard_slab::{
    CacheNumbers, CacheSpec, Everywhere, PageSource, Pinned, RawCache, SlabDesign, SlabPlan, Slabs,
};

use crate::nodes::On;
use crate::pages::TestPages;
use crate::slabs::{Bench, pinned};

pub(crate) type Arrays<'p> = Slab2008<'p, &'p TestPages, Pinned<&'p On>>;
type OwnSlabs<'p> = Slub2008<'p, &'p TestPages, Pinned<&'p On>>;
pub(crate) type Raw<'s, 'p, D> = RawCache<'s, 'p, D, Everywhere>;

pub(crate) const CPUS: usize = 4;

/// A machine, and its memory for slabs.
pub(crate) struct Setup {
    pub(crate) source: TestPages,
    pub(crate) platform: On,
    pub(crate) bench: Bench,
}

impl Setup {
    pub(crate) fn new<'p, D: SlabDesign<'p>>(nodes: usize) -> Self {
        Self::of_cpus::<D>(CPUS, nodes)
    }

    pub(crate) fn of_cpus<'p, D: SlabDesign<'p>>(cpus: usize, nodes: usize) -> Self {
        let source = TestPages::new(4096, nodes);
        let bench = Bench::new::<D>(SlabPlan::new(4, cpus), &source);
        Self {
            source,
            platform: On::default(),
            bench,
        }
    }
}

pub(crate) fn take<'p, D: SlabDesign<'p>>(cache: &Raw<'_, 'p, D>, many: usize) -> Vec<NonNull<u8>> {
    (0..many).map(|_| cache.alloc().unwrap()).collect()
}

pub(crate) fn give<'p, D: SlabDesign<'p>>(cache: &Raw<'_, 'p, D>, objects: &[NonNull<u8>]) {
    for &object in objects {
        // SAFETY: the tests free what they allocated.
        unsafe { cache.free(object) }.unwrap();
    }
}

pub(crate) fn cache<'s, 'p, D: SlabDesign<'p>>(
    slabs: &'s Slabs<'p, D>,
    size: usize,
) -> Raw<'s, 'p, D> {
    slabs.cache(CacheSpec::new("test", size)).unwrap()
}

/// Free objects in slabs.
fn idle(numbers: &CacheNumbers) -> u64 {
    numbers.objects() - numbers.out
}

#[test]
fn slab_fills_and_flushes_half_an_array() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    // An array that was not used yet is filled with 16, then with 60 at a time, but not with more
    // than there is: a slab has 59.
    let objects = take(&cache, 300);
    assert_eq!(
        (cache.numbers().misses, cache.numbers().filled),
        (7, 6 * 59)
    );
    give(&cache, &objects[..66]);
    assert_eq!((cache.numbers().stored, cache.numbers().queued), (0, 120));
    // Full: 60 go to the shared array, each time that there is no room for one more.
    give(&cache, &objects[66..]);
    let now = cache.numbers();
    assert_eq!((now.stored, now.flushed, now.queued), (4, 0, 6 * 59));
    // Another CPU takes them from there, 16 first, then all in batches.
    setup.platform.go(1);
    let more = take(&cache, 240);
    let now = cache.numbers();
    assert_eq!((now.claims, now.filled), (5, 6 * 59));
    give(&cache, &more);
    cache.destroy().unwrap();
    assert_eq!(setup.source.taken(), 0);
}

#[test]
fn slab_flushes_into_slabs_once_the_shared_array_is_full() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let objects = take(&cache, 1000);
    let before = cache.numbers();
    give(&cache, &objects);
    let now = cache.numbers();
    // 480 in the shared array, and 61 to 120 in the CPU's.
    assert_eq!(now.stored - before.stored, 8);
    let left = now.queued - 480;
    assert!((61..=120).contains(&left), "{now:?}");
    assert_eq!(now.flushed, now.filled - now.queued);
    assert_eq!((now.flushed % 60, now.flushes), (0, now.flushed / 60));
    // Not more than the limit of free objects: five batches for four CPUs, and a slab's, and what
    // the last slab has beside.
    assert!(idle(&now) <= 5 * 60 + 2 * now.per_slab, "{now:?}");
    assert!(now.slabs_gone > 0);
}

#[test]
fn slab_trims_a_fifth_of_an_array_that_was_not_used() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let objects = take(&cache, 100);
    give(&cache, &objects);
    let queued = || cache.numbers().queued;
    let before = queued();
    // Used since the last trim: nothing happens.
    slabs.trim();
    assert_eq!(queued(), before);
    for _ in 0..3 {
        let before = queued();
        slabs.trim();
        assert_eq!(before - queued(), 24);
    }
    for _ in 0..200 {
        slabs.trim();
    }
    // Half of what there is, in the end one.
    assert_eq!((queued(), cache.numbers().slabs), (0, 0));
}

#[test]
fn slab_sends_objects_of_another_node_home_by_twelves() {
    let mut setup = Setup::new::<Arrays<'_>>(2);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let near = slabs.source().local_node(0);
    let objects: Vec<_> = (0..40).map(|_| cache.alloc_on(1 - near).unwrap()).collect();
    let before = cache.numbers();
    give(&cache, &objects[..12]);
    assert_eq!(cache.numbers().stored, before.stored);
    give(&cache, &objects[12..13]);
    let now = cache.numbers();
    assert_eq!((now.stored, now.remote_frees), (before.stored + 1, 13));
    give(&cache, &objects[13..]);
    assert_eq!(cache.numbers().stored, before.stored + 3);
    cache.destroy().unwrap();
    assert_eq!(setup.source.taken(), 0);
}

#[test]
fn slab_s_arrays_grow_with_the_square_of_nodes() {
    let bytes =
        |cpus, nodes| Slab2008::<&TestPages, Pinned<&On>>::linux_bytes(192, 4096, cpus, nodes);
    // Each CPU has 120 entries; each node 480, and one alien array of 12 for each other node.
    let own = 24 + 8 * 120;
    let node = 128 + 24 + 8 * 480;
    let alien = 24 + 8 * 12;
    // One CPU has no shared array, nor its head.
    assert_eq!(bytes(1, 1), own + 128);
    assert_eq!(bytes(2, 1), 2 * own + node);
    assert_eq!(bytes(32, 8), 32 * own + 8 * node + 56 * alien);
}

#[test]
fn slub_has_one_slab_for_each_cpu() {
    let mut setup = Setup::new::<OwnSlabs<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<OwnSlabs<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 192);
    // 21 to a slab: the fourth slab has three taken.
    let objects = take(&cache, 66);
    let now = cache.numbers();
    assert_eq!((now.slabs, now.partial_slabs, now.queued), (4, 0, 18));
    // A free into a full slab makes it partial; the last one ends it.
    give(&cache, &objects[..1]);
    assert_eq!(cache.numbers().partial_slabs, 1);
    give(&cache, &objects[1..21]);
    let now = cache.numbers();
    assert_eq!((now.slabs, now.slabs_gone, now.partial_slabs), (3, 1, 0));
    // The CPU's own slab takes them without a lock, and stays.
    give(&cache, &objects[63..]);
    let now = cache.numbers();
    assert_eq!((now.slabs, now.queued), (3, 21));
    // Objects of another CPU's slab go into the slab, out of that CPU's reach until it looks.
    let here = take(&cache, 21);
    setup.platform.go(1);
    give(&cache, &here[..5]);
    assert_eq!(cache.numbers().partial_slabs, 0);
    setup.platform.go(0);
    let misses = cache.numbers().misses;
    let again = take(&cache, 5);
    let now = cache.numbers();
    assert_eq!((now.misses - misses, now.slabs), (1, 3));
    give(&cache, &again);
    give(&cache, &here[5..]);
    give(&cache, &objects[21..63]);
    cache.destroy().unwrap();
    assert_eq!(setup.source.taken(), 0);
}

#[test]
fn slub_keeps_seven_empty_slabs_of_192_bytes() {
    let mut setup = Setup::new::<OwnSlabs<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<OwnSlabs<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 192);
    for round in 1..=10 {
        // A CPU that frees all of its slab, and then gives the slab up.
        for cpu in 0..CPUS {
            setup.platform.go(cpu);
            let objects = take(&cache, 21);
            give(&cache, &objects);
        }
        for cpu in 0..CPUS {
            setup.platform.go(cpu);
            slabs.drain();
        }
        let now = cache.numbers();
        assert_eq!(now.slabs, CPUS as u64, "round {round}: {now:?}");
    }
    // Nothing periodic gives them back.
    slabs.trim();
    assert_eq!(cache.numbers().slabs, CPUS as u64);
    let held: Vec<_> = (0..3 * CPUS)
        .flat_map(|turn| {
            setup.platform.go(turn % CPUS);
            take(&cache, 21)
        })
        .collect();
    let before = cache.numbers().slabs;
    assert_eq!(before, 3 * CPUS as u64);
    // One object of each slab keeps it; then the CPUs' own slabs take the last ones.
    setup.platform.go(0);
    give(&cache, &held);
    for cpu in 0..CPUS {
        setup.platform.go(cpu);
        slabs.drain();
    }
    let now = cache.numbers();
    assert_eq!((now.out, now.slabs), (0, CPUS as u64), "{now:?}");
    slabs.shrink();
    assert_eq!(setup.source.taken(), 0);
}
