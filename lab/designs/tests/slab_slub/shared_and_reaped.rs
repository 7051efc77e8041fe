//! The rules of SLAB's shared arrays, and of what a trim gives back: which objects and slabs go,
//! and what counts as a use.

use core::ptr::NonNull;

use brickyard_slab::{PageSource, Slabs};

use crate::slab_slub::rules::{Arrays, CPUS, Raw, Setup, cache, give, take};
use crate::slabs::pinned;

/// Trims of one CPU after which the lists of its node are trimmed: two of each CPU.
const ROUND: usize = 2 * CPUS;

fn trims<'p>(slabs: &Slabs<'p, Arrays<'p>>, many: usize) {
    for _ in 0..many {
        slabs.trim();
    }
}

/// Takes objects until so many slabs of `each` are full; returns them slab by slab.
fn slabs_of<'p>(cache: &Raw<'_, 'p, Arrays<'p>>, slabs: usize, each: usize) -> Vec<NonNull<u8>> {
    let mut objects = take(cache, slabs * each);
    objects.sort_by_key(|object| object.addr());
    objects
}

fn page(object: NonNull<u8>) -> usize {
    object.addr().get() >> 12
}

#[test]
fn one_cpu_has_no_shared_array() {
    for cpus in [1, 2] {
        let mut setup = Setup::of_cpus::<Arrays<'_>>(cpus, 1);
        let slabs = setup
            .bench
            .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
        let cache = cache(&slabs, 64);
        let objects = take(&cache, 1000);
        give(&cache, &objects);
        let now = cache.numbers();
        // Half an array at a time, into slabs: all but the 61 to 120 of the CPU's array; or into
        // the shared array first, eight times.
        assert_eq!((now.claims, now.stored), (0, if cpus == 1 { 0 } else { 8 }));
        let shared = if cpus == 1 { 0 } else { 480 };
        assert!((61..=120).contains(&(now.queued - shared)), "{now:?}");
        assert_eq!(now.flushed, now.filled - now.queued);
        cache.destroy().unwrap();
        assert_eq!(setup.source.taken(), 0);
    }
}

#[test]
fn what_was_stored_last_is_the_first_that_another_cpu_gets() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let objects = take(&cache, 300);
    // The 54 that were left over and the first 66 fill the array; then the oldest 60 leave it.
    give(&cache, &objects[..67]);
    assert_eq!(cache.numbers().stored, 1);
    setup.platform.go(1);
    let others = take(&cache, 6);
    let expected: Vec<_> = objects[..6].iter().rev().copied().collect();
    assert_eq!(others, expected);
}

#[test]
fn taking_from_the_shared_array_does_not_spare_it() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let objects = take(&cache, 300);
    give(&cache, &objects);
    setup.platform.go(1);
    let _mine = take(&cache, 1);
    assert_eq!(cache.numbers().claims, 1);
    // The array of this CPU is empty, so what is trimmed is the shared one, by a fifth.
    setup.platform.go(2);
    let before = cache.numbers().queued;
    trims(&slabs, ROUND);
    assert_eq!(before - cache.numbers().queued, 480 / 5);
}

#[test]
fn objects_from_another_node_spare_the_shared_array_once() {
    let mut setup = Setup::new::<Arrays<'_>>(2);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    let near = slabs.source().local_node(0);
    let objects: Vec<_> = (0..13).map(|_| cache.alloc_on(1 - near).unwrap()).collect();
    give(&cache, &objects);
    let home = (0..CPUS).find(|&cpu| slabs.source().local_node(cpu) != near);
    setup.platform.go(home.unwrap());
    let before = cache.numbers();
    assert_eq!((before.stored, before.queued), (1, 13));
    // A node of two CPUs.
    trims(&slabs, ROUND / 2);
    assert_eq!(cache.numbers().queued, 13);
    // Twelve are fewer than a fifth of the room, so half of them go.
    trims(&slabs, ROUND / 2);
    assert_eq!(cache.numbers().queued, 13 - 6);
}

#[test]
fn an_array_that_a_trim_finds_empty_still_counts_as_used() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 64);
    // All of the first 16, which is what an unused array is filled with.
    take(&cache, 16);
    slabs.trim();
    let before = cache.numbers().filled;
    take(&cache, 1);
    // A batch, as far as there are objects: the rest of the slab.
    assert_eq!(cache.numbers().filled - before, 59 - 16);
}

#[test]
fn asking_for_an_empty_slab_in_vain_spares_the_next_ones() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 192);
    let mut objects = take(&cache, 16);
    // The first slab was asked for; from here on nothing was.
    trims(&slabs, ROUND);
    // The last four of the slab: a batch would have been 60, and there is no empty slab.
    objects.extend(take(&cache, 1));
    give(&cache, &objects);
    slabs.drain();
    assert_eq!((cache.numbers().slabs, cache.numbers().queued), (1, 0));
    trims(&slabs, ROUND);
    assert_eq!(cache.numbers().slabs, 1);
    trims(&slabs, ROUND);
    assert_eq!(cache.numbers().slabs, 0);
}

#[test]
fn a_trim_gives_back_the_slabs_that_were_emptied_first() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 192);
    let objects = slabs_of(&cache, 6, 20);
    slabs.drain();
    give(&cache, &objects);
    slabs.drain();
    assert_eq!((cache.numbers().slabs, cache.numbers().queued), (6, 0));
    trims(&slabs, ROUND);
    assert_eq!(cache.numbers().slabs, 6);
    // A fifth of the limit of 5 * 60 + 20 free objects, in slabs of 20, rounded up.
    trims(&slabs, ROUND);
    assert_eq!(cache.numbers().slabs, 6 - 4);
    // Both that are left were emptied last, and the last one is the first to be used again: another
    // CPU's array is filled with sixteen first.
    setup.platform.go(1);
    let again = take(&cache, 40);
    let last = page(objects[119]);
    assert!(again[..16].iter().all(|&object| page(object) == last));
    assert_eq!(cache.numbers().slabs, 2);
    assert!(again.iter().all(|object| objects[80..].contains(object)));
}

#[test]
fn partial_slabs_are_used_before_empty_ones() {
    let mut setup = Setup::new::<Arrays<'_>>(1);
    let slabs = setup
        .bench
        .slabs::<Arrays<'_>>(&setup.source, pinned(&setup.platform));
    let cache = cache(&slabs, 192);
    let objects = slabs_of(&cache, 3, 20);
    // One slab is emptied; five objects of the next come back, then five of the last.
    give(&cache, &objects[..20]);
    give(&cache, &objects[20..25]);
    give(&cache, &objects[40..45]);
    slabs.drain();
    assert_eq!((cache.numbers().slabs, cache.numbers().queued), (3, 0));
    setup.platform.go(1);
    // Sixteen: first the slab that became partial first, then the other, then the empty one. The
    // array hands out what it got last.
    let again = take(&cache, 16);
    let pages: Vec<_> = again.iter().rev().map(|&object| page(object)).collect();
    let expected = [(20, 5), (40, 5), (0, 6)];
    let expected: Vec<_> = expected
        .into_iter()
        .flat_map(|(first, many)| vec![page(objects[first]); many])
        .collect();
    assert_eq!(pages, expected);
}
