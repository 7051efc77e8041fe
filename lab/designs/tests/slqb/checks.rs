//! `slqb-2008`: detection of programs that write where they must not, or free what they must not.

use core::cell::RefCell;
use core::ptr::NonNull;

use brickyard_designs::slqb::Plain;
use brickyard_slab::{
    CacheSpec, Checks, Finding, FreeFault, Reporter, SlabPlan, TaskOnly, debug::Fault,
};

use crate::slqb::support;
use support::{Cache, assert_nothing_held, cache, give, move_to, slabs, slabs_with, source, take};

thread_local! {
    static FOUND: RefCell<Vec<Finding>> = const { RefCell::new(Vec::new()) };
}

fn note(finding: &Finding) {
    // No lock is held, no caller pinned, nothing masked: a report may be slow.
    assert_nothing_held();
    FOUND.with_borrow_mut(|found| found.push(*finding));
}

fn found() -> Vec<Finding> {
    FOUND.take()
}

fn plan() -> SlabPlan {
    SlabPlan {
        report: Reporter::Plain(note),
        ..SlabPlan::new(3, 2)
    }
}

/// What a program writes to an object that it has freed.
const GARBAGE: [usize; 5] = [
    0,
    0x4141_4141_4141_4141,
    usize::MAX,
    1,
    0x0000_7fff_ffff_f000,
];

/// Writes to the first word of an object, where its link is.
fn overwrite(object: NonNull<u8>, word: usize) {
    // SAFETY: the memory is still a slab's; writing to a free object is the mistake under test.
    unsafe { object.cast::<usize>().write(word) };
}

fn read(object: NonNull<u8>) -> usize {
    // SAFETY: as above.
    unsafe { object.cast::<usize>().read() }
}

fn assert_broken(object: NonNull<u8>, lost: u32) {
    let found = found();
    assert_eq!(found.len(), 1, "{found:?}");
    let title = "link of a free object written over";
    assert_eq!(found[0].fault, Fault::Overwritten { title, lost });
    assert_eq!(found[0].object, object.addr().get());
    assert_eq!(found[0].cache, "test");
    let text = found[0].to_string();
    assert!(text.contains(title), "{text}");
}

#[test]
fn a_link_that_was_written_over_is_noticed_on_the_lifo() {
    for garbage in GARBAGE {
        let source = source(1024, 1, 0);
        let slabs = slabs(plan(), source);
        let cache = cache::<TaskOnly, _>(&slabs, 64);
        let objects = take(&cache, 50);
        give(&cache, &objects[..40]);
        overwrite(objects[30], garbage);
        // The objects before it are good, and so is the object itself.
        for expected in objects[30..40].iter().rev() {
            assert_eq!(cache.alloc().unwrap(), *expected);
        }
        assert_broken(objects[30], 30);
        assert_eq!(cache.numbers().more.lost, 30);
        // The rest is left out; other objects can be allocated.
        let more = take(&cache, 100);
        assert!(more.iter().all(|object| !objects[..30].contains(object)));
        give(&cache, &more);
        give(&cache, &objects[30..]);
        let (_, leak) = cache.destroy().unwrap_err();
        assert_eq!(leak.objects, 30);
        assert_eq!(found(), []);
    }
}

/// As an overflow by one from the object before leaves it.
#[test]
fn a_single_byte_written_over_is_noticed_at_the_next_hit() {
    for byte in 0..8 {
        for change in [0x01, 0x08, 0x40, 0x80, 0xff_u8] {
            let source = source(1024, 1, 0);
            let slabs = slabs(plan(), source);
            let cache = cache::<TaskOnly, _>(&slabs, 64);
            let objects = take(&cache, 20);
            give(&cache, &objects);
            let word = read(objects[19]);
            overwrite(objects[19], word ^ usize::from(change) << (8 * byte));
            assert_eq!(cache.alloc().unwrap(), objects[19]);
            assert_broken(objects[19], 19);
        }
    }
}

#[test]
fn a_plain_link_that_is_no_address_of_the_cache_is_noticed() {
    let source = source(1024, 1, 0);
    let slabs = slabs_with::<Plain>(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let objects = take(&cache, 50);
    give(&cache, &objects);
    // Stored plain: the next object's address.
    assert_eq!(read(objects[30]), objects[29].addr().get());
    // In a slab of the cache, so a hit would follow it; a flush checks that an object begins there.
    overwrite(objects[45], objects[3].addr().get() + 8);
    assert_eq!(found(), []);
    slabs.drain();
    assert_broken(objects[45], 45);
}

#[test]
fn encoded_links_show_no_address_and_fit_one_place_only() {
    let source = source(1024, 1, 0);
    let slabs = slabs(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let objects = take(&cache, 50);
    give(&cache, &objects);
    for pair in objects.windows(2) {
        assert_ne!(read(pair[1]), pair[0].addr().get());
    }
    // A link copied from another object does not decode here.
    overwrite(objects[20], read(objects[10]));
    slabs.drain();
    assert_broken(objects[20], 20);
}

#[test]
fn a_link_that_was_written_over_is_noticed_in_a_slab() {
    for garbage in GARBAGE {
        let source = source(1024, 1, 0);
        let slabs = slabs(plan(), source);
        let cache = cache::<TaskOnly, _>(&slabs, 1024);
        let objects = take(&cache, 4);
        give(&cache, &objects[..3]);
        slabs.drain();
        // Flushed from the head: 2, 1, 0; so 0 is the first to be taken again.
        overwrite(objects[1], garbage);
        assert_eq!(cache.alloc().unwrap(), objects[0]);
        assert_eq!(cache.alloc().unwrap(), objects[1]);
        assert_broken(objects[1], 1);
        // The slab counts as full.
        let next = cache.alloc().unwrap();
        assert_ne!(next, objects[2]);
        give(&cache, &[objects[0], objects[1], objects[3], next]);
        let (_, leak) = cache.destroy().unwrap_err();
        assert_eq!(leak.objects, 1);
    }
}

#[test]
fn a_link_that_was_written_over_is_noticed_between_cpus() {
    let source = source(2048, 2, 0);
    let slabs = slabs(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    let objects = take(&cache, 256);
    move_to(1);
    give(&cache, &objects);
    // A batch, which now waits for its owner.
    overwrite(objects[100], 7);
    move_to(0);
    let again = take(&cache, 101);
    assert_eq!(again, objects[..101]);
    assert_broken(objects[100], 155);
    assert_eq!(cache.numbers().in_use(), 256);
}

#[test]
fn bad_frees_are_refused_on_the_fast_path_too() {
    let source = source(1024, 1, 0);
    let slabs = slabs(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let other = slabs
        .cache::<TaskOnly>(CacheSpec::new("other", 64))
        .unwrap();
    let objects = take(&cache, 100);
    give(&cache, &objects[..50]);
    let object = objects[60];
    let before = cache.numbers();
    let mut outside = [7_u64; 8];
    // SAFETY: none of these is an object in use, but for one that the wrong cache refuses.
    unsafe {
        assert_eq!(cache.free(objects[49]), Err(FreeFault::DoubleFree));
        assert_eq!(cache.free(object.add(8)), Err(FreeFault::OffGrid));
        assert_eq!(cache.free(object.add(3)), Err(FreeFault::OffGrid));
        assert!(matches!(
            other.free(object),
            Err(FreeFault::WrongCache { .. })
        ));
        let outside = NonNull::from(&mut outside).cast();
        assert_eq!(cache.free(outside), Err(FreeFault::NotASlab));
    }
    assert_eq!(outside, [7; 8]);
    assert_eq!(cache.numbers(), before);
    give(&cache, &objects[50..]);
    other.destroy().unwrap();
    cache.destroy().unwrap();
}

#[test]
fn a_double_free_to_the_outgoing_queue_s_end_is_refused() {
    let source = source(2048, 2, 0);
    let slabs = slabs(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let objects = take(&cache, 3);
    move_to(1);
    give(&cache, &objects[..2]);
    // SAFETY: it is not in use.
    let freed = unsafe { cache.free(objects[1]) };
    assert_eq!(freed, Err(FreeFault::DoubleFree));
    give(&cache, &objects[2..]);
    move_to(0);
    cache.destroy().unwrap();
}

#[test]
fn a_double_free_that_reaches_its_slab_is_refused_there_and_reported() {
    let source = source(1024, 1, 0);
    let slabs = slabs(plan(), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let objects = take(&cache, 3);
    give(&cache, &objects[..1]);
    slabs.drain();
    // It is in its slab, so nothing on this CPU shows that it is free.
    give(&cache, &objects[..1]);
    assert_eq!(found(), []);
    slabs.drain();
    let reports = found();
    assert_eq!((reports.len(), reports[0].fault), (1, Fault::DoubleFree));
    assert_eq!(reports[0].object, objects[0].addr().get());
    let numbers = cache.numbers();
    assert_eq!((numbers.refused, numbers.out), (1, 2));
    give(&cache, &objects[1..]);
    cache.destroy().unwrap();
    assert_eq!(source.pages.taken(), 0);
}

fn checked<'s>(slabs: &'s support::System, checks: Checks) -> Cache<'s> {
    Cache::of(slabs, CacheSpec::new("test", 200).checks(checks))
}

#[test]
fn objects_of_checked_caches_are_in_no_queue() {
    for nodes in [1, 2] {
        for checks in [Checks::FREES, Checks::RED_ZONES, Checks::ALL] {
            let source = source(1024, nodes, 0);
            let slabs = slabs(plan(), source);
            let cache = checked(&slabs, checks);
            let objects = take(&cache, 200);
            move_to(1);
            give(&cache, &objects[..100]);
            let numbers = cache.numbers();
            assert_eq!((numbers.hits, numbers.free_hits), (Some(0), Some(0)));
            assert_eq!((numbers.out, numbers.queued), (100, 0));
            // Each double free is detected, not only the last one; or its slab is gone.
            for &object in &objects[..100] {
                // SAFETY: it is not in use.
                let freed = unsafe { cache.free(object) };
                assert!(
                    matches!(freed, Err(FreeFault::DoubleFree | FreeFault::NotASlab)),
                    "{freed:?}"
                );
            }
            assert_eq!(found().len(), 100);
            // A CPU beyond the plan.
            move_to(9);
            give(&cache, &objects[100..]);
            give(&cache, &take(&cache, 10));
            move_to(0);
            cache.destroy().unwrap();
            assert_eq!(source.pages.taken(), 0);
            assert_eq!(found(), []);
        }
    }
}

#[test]
fn what_a_constructor_made_lasts() {
    fn make(object: NonNull<u8>) {
        // SAFETY: a new object, of 40 bytes.
        unsafe { object.write_bytes(0x77, 40) };
    }
    for checks in [Checks::NONE, Checks::FREES, Checks::ALL] {
        let source = source(1024, 1, 0);
        let slabs = slabs(plan(), source);
        let spec = CacheSpec::new("made", 40).constructor(make).checks(checks);
        let cache: Cache<'_> = Cache::of(&slabs, spec);
        for _ in 0..3 {
            let objects = take(&cache, 500);
            for &object in &objects {
                for byte in 0..40 {
                    // SAFETY: an object in hand.
                    assert_eq!(unsafe { object.add(byte).read() }, 0x77);
                }
            }
            give(&cache, &objects);
            slabs.trim();
        }
        cache.destroy().unwrap();
        assert_eq!(found(), []);
    }
}
