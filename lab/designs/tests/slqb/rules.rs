//! `slqb-2008`: each rule of the design, with its numbers.

use core::ptr::NonNull;

use brickyard_designs::slqb::Marks;
use brickyard_slab::{Everywhere, PageSource, SlabDesign, SlabPlan, TaskOnly};

use crate::slqb::support;
use support::{
    Cache, Slqb, assert_nothing_held, cache, give, masks, move_to, set_interrupt, since, slabs,
    source, take,
};

/// Objects of 64 KiB: one per slab, a batch of 4, a mark of 16.
const HUGE: usize = 64 << 10;
const BATCH: usize = 4;
const HIGH: usize = 16;

fn addresses(objects: &[NonNull<u8>]) -> Vec<usize> {
    objects.iter().map(|object| object.addr().get()).collect()
}

/// Destroys the cache: all its pages come back, and nothing is lost.
fn finish<C: brickyard_slab::Caller>(cache: Cache<'_, C>, source: &support::Source) {
    move_to(0);
    cache.destroy().unwrap();
    assert_eq!(source.pages.taken(), 0);
    assert_nothing_held();
}

#[test]
fn batches_and_marks_are_piggin_s() {
    for (size, batch) in [(8, 2048), (64, 256), (1024, 256), (4096, 64), (HUGE, BATCH)] {
        let marks = Marks::of(&<Slqb>::shape(size, 8, 4096).unwrap(), 4096);
        assert_eq!(marks.batch as usize, batch, "{size}");
        assert_eq!(marks.high as usize, 4 * batch, "{size}");
    }
}

#[test]
fn memory_is_linear_in_cpus_nodes_and_caches() {
    let bytes = |caches, cpus, nodes| {
        let plan = SlabPlan {
            nodes,
            ..SlabPlan::new(caches, cpus)
        };
        <Slqb>::FOOTPRINT.bytes(&plan)
    };
    let alignment = bytes(1, 0, 0);
    for caches in [1, 10, 200] {
        for cpus in [0, 1, 2, 64, 1000] {
            for nodes in [1, 2, 16] {
                let expected = 384 * (cpus + nodes) * (caches + 2) + alignment;
                assert_eq!(bytes(caches, cpus, nodes), expected);
            }
        }
    }
}

#[test]
fn the_last_one_freed_is_the_next_one_taken() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 1), source);
    let cache = cache::<TaskOnly, _>(&slabs, 64);
    let objects = take(&cache, 100);
    let before = cache.numbers();
    give(&cache, &objects);
    let mut again = take(&cache, 100);
    again.reverse();
    assert_eq!(again, objects);
    let now = cache.numbers();
    // Only the LIFO was touched.
    assert_eq!(since(&before, &now), []);
    assert_eq!(now.hits, Some(before.hits.unwrap() + 100));
    assert_eq!(now.free_hits, Some(100));
    give(&cache, &again);
    finish(cache, source);
}

#[test]
fn above_the_mark_a_batch_goes_from_the_head() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 1), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let objects = take(&cache, HIGH + 1);
    let before = cache.numbers();
    give(&cache, &objects[..HIGH]);
    let full = cache.numbers();
    assert_eq!(since(&before, &full), [("queued", HIGH as i64)]);
    give(&cache, &objects[HIGH..]);
    let now = cache.numbers();
    // Each object of the batch was its slab's last, so the slab was given back at once.
    assert_eq!(
        since(&full, &now),
        [
            ("slabs", -4),
            ("queued", 1 - 4),
            ("out", -4),
            ("free_misses", 1),
            ("flushes", 1),
            ("flushed", 4),
            ("slabs_gone", 4),
        ]
    );
    assert_eq!(source.pages.taken(), (HIGH + 1 - BATCH) * 16);
    // The cache-hottest objects are gone (weakness 2 of the design).
    let mut left = take(&cache, HIGH + 1 - BATCH);
    left.reverse();
    assert_eq!(left, objects[..HIGH + 1 - BATCH]);
    give(&cache, &left);
    finish(cache, source);
}

#[test]
fn objects_move_between_cpus_of_a_node_on_the_lifo() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let objects = take(&cache, HIGH + 1);
    move_to(1);
    let before = cache.numbers();
    give(&cache, &objects[..HIGH]);
    // CPU 0's objects, on the LIFO of CPU 1; not a remote free, since the node is the same.
    assert_eq!(since(&before, &cache.numbers()), [("queued", 16)]);
    assert_eq!(cache.alloc().unwrap(), objects[HIGH - 1]);
    give(&cache, &objects[HIGH - 1..]);
    // The flush finds that they are CPU 0's: a batch goes there, and sets the flag.
    assert_eq!(
        since(&before, &cache.numbers()),
        [
            ("queued", 17),
            ("free_misses", 1),
            ("flushes", 1),
            ("flushed", 4),
            ("flushed_remote", 4),
            ("outgoing_flushes", 1),
            ("outgoing_flushed", 4),
        ]
    );
    move_to(0);
    let before = cache.numbers();
    let claimed = take(&cache, BATCH);
    assert_eq!(
        since(&before, &cache.numbers()),
        [("queued", -4), ("misses", 1), ("claims", 1), ("claimed", 4)]
    );
    // In the order sent: the last one freed first.
    assert_eq!(
        claimed,
        [objects[16], objects[15], objects[14], objects[13]]
    );
    give(&cache, &claimed);
    finish(cache, source);
}

#[test]
fn the_check_flag_is_set_when_a_batch_waits() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let objects = take(&cache, BATCH);
    move_to(1);
    let before = cache.numbers();
    give(&cache, &objects[..BATCH - 1]);
    // Another node's objects never touch the LIFO.
    assert_eq!(
        since(&before, &cache.numbers()),
        [("queued", 3), ("free_misses", 3), ("remote_frees", 3)]
    );
    slabs.trim();
    assert_eq!(cache.numbers().more.outgoing_flushes, 1);
    // One object less than a batch waits: CPU 0 does not look, and takes a new slab (weakness 4 of
    // the design).
    move_to(0);
    let before = cache.numbers();
    let new = take(&cache, 1);
    let made = since(&before, &cache.numbers());
    assert!(made.contains(&("slabs_new", 1)) && !made.contains(&("claims", 1)));
    // The fourth crosses the batch.
    move_to(1);
    give(&cache, &objects[BATCH - 1..]);
    slabs.trim();
    move_to(0);
    let before = cache.numbers();
    let claimed = take(&cache, BATCH);
    assert_eq!(
        since(&before, &cache.numbers()),
        [("queued", -4), ("misses", 1), ("claims", 1), ("claimed", 4)]
    );
    assert_eq!(claimed, objects);
    // The claim cleared the flag: an object sent then is not looked for.
    move_to(1);
    give(&cache, &claimed[..1]);
    slabs.trim();
    move_to(0);
    let before = cache.numbers();
    let another = take(&cache, 1);
    assert_eq!(cache.numbers().claims, before.claims);
    give(&cache, &claimed[1..]);
    give(&cache, &another);
    give(&cache, &new);
    finish(cache, source);
}

#[test]
fn a_claim_above_the_mark_flushes_a_batch() {
    let source = source(4096, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 4), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    let (batch, high) = (256, 1024);
    // Two CPUs send until objects go straight to the slabs.
    let objects = take(&cache, 2 * high);
    for (part, cpu) in objects.chunks(high).zip([1, 3]) {
        move_to(cpu);
        give(&cache, part);
    }
    let waiting = cache.numbers().queued as usize;
    // A batch is still queued when half the mark waits.
    assert_eq!(waiting, high / 2 + batch);
    move_to(0);
    let before = cache.numbers();
    let one = take(&cache, 1);
    let now = cache.numbers();
    assert_eq!((now.claims, now.more.claimed), (1, waiting as u64));
    // 768 are below the mark, so nothing was flushed.
    assert_eq!(now.flushes, before.flushes);
    give(&cache, &one);
    // With a LIFO nearly at the mark, a trim's claim exceeds it, and a batch is flushed.
    let more = take(&cache, high);
    move_to(1);
    give(&cache, &more[..batch]);
    move_to(0);
    give(&cache, &more[batch..]);
    let before = cache.numbers();
    slabs.trim();
    let changed = since(&before, &cache.numbers());
    assert!(changed.contains(&("claimed", batch as i64)), "{changed:?}");
    assert!(changed.contains(&("flushed", batch as i64)), "{changed:?}");
    finish(cache, source);
}

#[test]
fn what_finds_half_the_mark_waiting_goes_straight_into_slabs() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let objects = take(&cache, HIGH);
    move_to(1);
    // 4, 8 and 12 wait; the fourth batch finds more than 8.
    give(&cache, &objects[..HIGH - BATCH]);
    let before = cache.numbers();
    assert_eq!(
        (
            before.queued,
            before.more.outgoing_flushes,
            before.slabs_gone
        ),
        (12, 3, 0)
    );
    give(&cache, &objects[HIGH - BATCH..]);
    assert_eq!(
        since(&before, &cache.numbers()),
        [
            ("slabs", -4),
            ("out", -4),
            ("free_misses", 4),
            ("remote_frees", 4),
            ("outgoing_flushes", 1),
            ("outgoing_flushed", 4),
            ("slabs_gone", 4),
        ]
    );
    finish(cache, source);
}

#[test]
fn a_change_of_destination_flushes_the_outgoing_queue() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 4), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let ours = take(&cache, 3);
    move_to(2);
    let theirs = take(&cache, 3);
    move_to(1);
    for (a, b) in ours.iter().zip(&theirs) {
        give(&cache, &[*a, *b]);
    }
    // Owners alternate: each object but the last was sent alone (weakness 3 of the design).
    let now = cache.numbers();
    assert_eq!(
        (now.more.outgoing_flushes, now.more.outgoing_flushed),
        (5, 5)
    );
    assert_eq!((now.remote_frees, now.queued), (6, 6));
    finish(cache, source);
}

#[test]
fn slabs_are_of_order_0_where_a_quarter_at_most_is_wasted() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(15, 1), source);
    let general = slabs.general::<TaskOnly>().unwrap();
    assert_eq!(slabs.numbers().count(), 1 + 15);
    for numbers in slabs.numbers().filter(|numbers| numbers.size <= 4096) {
        assert_eq!(numbers.pages_per_slab, 1, "{numbers:?}");
    }
    let layout = core::alloc::Layout::from_size_align(100, 8).unwrap();
    let memory = general.alloc(layout).unwrap();
    assert_eq!(general.usable(memory), 128);
    assert_eq!(source.pages.taken(), 1);
    // SAFETY: it was taken with this layout.
    unsafe { general.free(memory, layout) }.unwrap();
}

#[test]
fn new_slabs_are_linked_upwards_from_their_colour_on() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 1), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1216);
    // 448 bytes are left over in each slab: eight colours.
    let objects = take(&cache, 3 * 18);
    for (i, slab) in addresses(&objects).chunks(3).enumerate() {
        let colour = i % 8 * 64;
        assert_eq!(slab[0] % 4096, colour, "slab {i}");
        assert_eq!([slab[1] - slab[0], slab[2] - slab[1]], [1216, 1216]);
    }
    give(&cache, &objects);
    finish(cache, source);
}

#[test]
fn a_partial_slab_gives_one_object_per_lock() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 1), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    let mut objects = take(&cache, 4);
    let numbers = cache.numbers();
    // A refill takes one object at a time (weakness 1 of the design), and a full slab is on no
    // list.
    assert_eq!(
        (numbers.misses, numbers.filled, numbers.slabs_new),
        (4, 4, 1)
    );
    assert_eq!(numbers.partial_slabs, 0);
    objects.push(cache.alloc().unwrap());
    let numbers = cache.numbers();
    assert_eq!((numbers.slabs_new, numbers.partial_slabs), (2, 1));
    give(&cache, &objects[..1]);
    slabs.drain();
    // The full slab has a free object again.
    let numbers = cache.numbers();
    assert_eq!((numbers.partial_slabs, numbers.more.slabs_partial), (2, 1));
    // It comes first now.
    assert_eq!(cache.alloc().unwrap(), objects[0]);
    give(&cache, &objects);
    finish(cache, source);
}

#[test]
fn an_empty_slab_is_given_back_at_once() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(2, 1), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    let objects = take(&cache, 8);
    assert_eq!(source.pages.taken(), 2);
    give(&cache, &objects[..4]);
    assert_eq!(source.pages.taken(), 2);
    slabs.drain();
    assert_eq!(source.pages.taken(), 1);
    give(&cache, &objects[4..7]);
    slabs.drain();
    assert_eq!(source.pages.taken(), 1);
    give(&cache, &objects[7..]);
    slabs.drain();
    assert_eq!(source.pages.taken(), 0);
    finish(cache, source);
}

#[test]
fn a_trim_gives_back_a_batch_of_each_queue() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let ours = take(&cache, HIGH);
    move_to(1);
    let theirs = take(&cache, BATCH - 1);
    move_to(0);
    give(&cache, &ours);
    give(&cache, &theirs);
    for round in 1..=4 {
        let before = cache.numbers();
        slabs.trim();
        let mut expected = vec![
            ("slabs", -4),
            ("queued", -4),
            ("out", -4),
            ("flushes", 1),
            ("flushed", 4),
            ("slabs_gone", 4),
        ];
        if round == 1 {
            // The first trim sent the outgoing queue.
            expected.insert(5, ("outgoing_flushes", 1));
            expected.insert(6, ("outgoing_flushed", 3));
        }
        assert_eq!(since(&before, &cache.numbers()), expected, "round {round}");
    }
    // What was sent waits for its owner's trim.
    assert_eq!(cache.numbers().queued, 3);
    move_to(1);
    slabs.trim();
    assert_eq!(cache.numbers().queued, 0);
    assert_eq!(source.pages.taken(), 0);
    finish(cache, source);
}

#[test]
fn a_slab_goes_to_the_list_of_the_node_whose_memory_it_is() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    // Node 0 has 1024 pages, 64 objects.
    let near = take(&cache, 64);
    let far = take(&cache, 2);
    assert!(near.iter().all(|&object| (&source).node_of(object) == 0));
    assert!(far.iter().all(|&object| (&source).node_of(object) == 1));
    // Their slabs are on the node's list: freed by CPU 1, of that node, they go to its LIFO;
    // flushed, to the node's list.
    move_to(1);
    let before = cache.numbers();
    give(&cache, &far);
    slabs.drain();
    let changed = since(&before, &cache.numbers());
    assert!(changed.contains(&("flushed_remote", 2)), "{changed:?}");
    // A trim of a CPU of that node claims and flushes it.
    slabs.trim();
    assert_eq!(cache.numbers().queued, 0);
    assert_eq!(source.pages.taken(), 64 * 16);
    move_to(0);
    give(&cache, &near);
    finish(cache, source);
}

#[test]
fn cpus_of_a_node_without_memory_use_another_node_s_list() {
    // Nodes 0 and 1; the latter has no memory.
    let source = source(1024, 1, 1);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    move_to(1);
    let mut objects = take(&cache, 400);
    // Not a slab for each object.
    assert_eq!(cache.numbers().slabs_new, 100);
    give(&cache, &objects[..256]);
    let now = cache.numbers();
    assert_eq!((now.remote_frees, now.more.outgoing_flushes), (256, 1));
    // They come back through the node's check flag.
    objects.drain(..256);
    objects.extend(take(&cache, 256));
    let now = cache.numbers();
    assert_eq!((now.slabs_new, now.claims, now.more.claimed), (100, 1, 256));
    give(&cache, &objects);
    // A trim of the CPU trims that list too.
    for _ in 0..3 {
        slabs.trim();
    }
    assert_eq!(cache.numbers().queued, 0);
    assert_eq!(source.pages.taken(), 0);
    finish(cache, source);
}

#[test]
fn cpus_beyond_the_plan_use_their_node_s_list() {
    for nodes in [1, 2] {
        let source = source(2048, nodes, 0);
        let slabs = slabs(SlabPlan::new(2, 1), source);
        let cache = cache::<TaskOnly, _>(&slabs, 1024);
        move_to(5);
        let near = 5 % nodes;
        let mut objects = take(&cache, 400);
        assert!(objects.iter().all(|&o| (&source).node_of(o) == near));
        assert_eq!(cache.numbers().slabs_new, 100);
        give(&cache, &objects[..256]);
        // A batch waits in the node's queue.
        assert_eq!(cache.numbers().queued, 256);
        objects.drain(..256);
        objects.extend(take(&cache, 256));
        let now = cache.numbers();
        assert_eq!((now.slabs_new, now.claims, now.hits), (100, 1, Some(0)));
        assert_eq!((now.misses, now.free_misses), (656, 256));
        // Freed on a CPU with a row, of this node or another.
        move_to(0);
        give(&cache, &objects);
        finish(cache, source);
    }
}

#[test]
fn a_request_names_a_node() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, HUGE);
    let near = cache.alloc_on(0).unwrap();
    let far: Vec<_> = (0..BATCH).map(|_| cache.alloc_on(1).unwrap()).collect();
    assert_eq!((&source).node_of(near), 0);
    assert!(far.iter().all(|&object| (&source).node_of(object) == 1));
    // Their slabs are on the node's list, and freed objects go there.
    give(&cache, &far);
    let before = cache.numbers();
    assert_eq!((before.more.outgoing_flushes, before.queued), (1, 4));
    let again: Vec<_> = (0..BATCH).map(|_| cache.alloc_on(1).unwrap()).collect();
    assert_eq!(again, far);
    let changed = since(&before, &cache.numbers());
    assert_eq!(
        changed,
        [("queued", -4), ("misses", 4), ("claims", 1), ("claimed", 4)]
    );
    // A node that is full, or does not exist: other memory.
    let rest: Vec<_> = (0..62).map(|_| cache.alloc_on(1).unwrap()).collect();
    assert_eq!((&source).node_of(rest[59]), 1);
    assert_eq!((&source).node_of(rest[60]), 0);
    let any = cache.alloc_on(7).unwrap();
    give(&cache, &[near, any]);
    give(&cache, &again);
    give(&cache, &rest);
    finish(cache, source);
}

#[test]
fn without_memory_other_nodes_lists_are_tried() {
    let source = source(2048, 2, 0);
    let slabs = slabs(SlabPlan::new(2, 2), source);
    let cache = cache::<TaskOnly, _>(&slabs, 1024);
    // Three free objects in a slab of node 1's list.
    let first = cache.alloc_on(1).unwrap();
    source.pages.limit(0);
    let rest = take(&cache, 3);
    assert!(rest.iter().all(|&object| (&source).node_of(object) == 1));
    assert_eq!(cache.alloc(), Err(brickyard_slab::SlabError::Exhausted));
    source.pages.limit(2048);
    let near = cache.alloc().unwrap();
    assert_eq!((&source).node_of(near), 0);
    give(&cache, &[first, near]);
    give(&cache, &rest);
    finish(cache, source);
}

#[test]
fn only_caches_used_in_interrupts_mask_them() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(3, 1), source);
    let tasks = cache::<TaskOnly, _>(&slabs, 1024);
    let before = masks();
    let objects = take(&tasks, 2000);
    give(&tasks, &objects);
    assert_eq!(masks(), before, "tasks only: nothing is masked");
    let all = cache::<Everywhere, _>(&slabs, 64);
    let before = masks();
    set_interrupt(true);
    let object = take(&all, 1);
    give(&all, &object);
    give(&all, &take(&all, 1));
    assert!(masks() >= before + 4);
    // An interrupt on this CPU does not touch the queues of a cache for tasks only.
    set_interrupt(false);
    let queued = tasks.numbers().queued;
    assert!(queued > 0);
    set_interrupt(true);
    slabs.drain();
    slabs.trim();
    slabs.shrink();
    set_interrupt(false);
    assert_eq!(tasks.numbers().queued, queued);
    all.destroy().unwrap();
    finish(tasks, source);
}

#[test]
fn a_leak_is_reported_and_the_cache_number_is_used_again() {
    let source = source(1024, 1, 0);
    let slabs = slabs(SlabPlan::new(1, 3), source);
    let first = cache::<TaskOnly, _>(&slabs, 200);
    let mut objects = take(&first, 50);
    move_to(1);
    give(&first, &objects.split_off(20));
    move_to(2);
    give(&first, &objects.split_off(3));
    let (first, leak) = first.destroy().unwrap_err();
    assert_eq!(leak.objects, 3);
    let mut found = Vec::new();
    first.each_in_use(|object, _| found.push(object));
    found.sort_unstable();
    objects.sort_unstable();
    assert_eq!(found, objects);
    give(&first, &objects);
    finish(first, source);
    // Nothing is left of it.
    let second = cache::<Everywhere, _>(&slabs, HUGE);
    let numbers = second.numbers();
    assert_eq!((numbers.slabs_new, numbers.hits), (0, Some(0)));
    for cpu in [0, 1, 2] {
        move_to(cpu);
        give(&second, &take(&second, HIGH));
    }
    finish(second, source);
}
