//! Slabs on two nodes: a CPU whose own node is full takes what is free elsewhere, and takes no more
//! than it needs.

use core::ptr::NonNull;

use brickyard_slab::{CacheSpec, FreeFault, Pinned, Sheafed, SlabPlan, TaskOnly};

use crate::nodes;
use crate::pages;
use crate::slabs;
use nodes::{On, PAGES, PER_PAGE, SIZE, asks_its_own_node, takes_what_it_needs};
use pages::TestPages;
use slabs::{Bench, pinned};

#[test]
fn a_cpu_whose_node_is_full_takes_no_more_than_it_needs() {
    let source = TestPages::new(PAGES, 2);
    let platform = On::default();
    let plan = SlabPlan::new(4, 2);
    type Parts<'p> = Sheafed<'p, &'p TestPages, Pinned<&'p On>>;
    let mut bench = Bench::new::<Parts<'_>>(plan, &source);
    takes_what_it_needs::<Parts<'_>>(&bench.slabs(&source, pinned(&platform)), &source);
}

/// All pages of node 0 are taken by another cache: not one object of this one can be of that node.
#[test]
fn a_cpu_whose_node_has_nothing_is_served_by_the_other() {
    let source = TestPages::new(PAGES, 2);
    let platform = On::default();
    let plan = SlabPlan::new(4, 2);
    type Parts<'p> = Sheafed<'p, &'p TestPages, Pinned<&'p On>>;
    let mut bench = Bench::new::<Parts<'_>>(plan, &source);
    let slabs = bench.slabs::<Parts<'_>>(&source, pinned(&platform));
    let large = slabs
        .cache::<TaskOnly>(CacheSpec::new("large", 4096))
        .unwrap();
    // One page is left to node 0 at most, for sheaves.
    let filling: Vec<_> = (0..PAGES / 2).map(|_| large.alloc().unwrap()).collect();
    let before = source.taken();
    let small = slabs
        .cache::<TaskOnly>(CacheSpec::new("small", SIZE))
        .unwrap();
    let held: Vec<_> = (0..PER_PAGE * 4).map(|_| small.alloc().unwrap()).collect();
    let taken = source.taken() - before;
    assert!(taken <= 8, "{taken} pages for {} objects", held.len());
    for object in held {
        // SAFETY: the objects are the cache's, and not used any more.
        unsafe { small.free(object) }.unwrap();
    }
    for object in filling {
        // SAFETY: as above.
        unsafe { large.free(object) }.unwrap();
    }
    small.destroy().unwrap();
    large.destroy().unwrap();
    slabs.shrink();
    assert_eq!(source.taken(), 0);
}

/// No CPU has a row, so each object is a miss, wherever it comes from.
#[test]
fn what_another_node_gives_is_counted() {
    let source = TestPages::new(PAGES, 2);
    let platform = On::default();
    type Parts<'p> = Sheafed<'p, &'p TestPages, Pinned<&'p On>>;
    let mut bench = Bench::new::<Parts<'_>>(SlabPlan::new(4, 0), &source);
    let slabs = bench.slabs::<Parts<'_>>(&source, pinned(&platform));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", SIZE)).unwrap();
    let mut objects = Vec::new();
    while let Ok(object) = cache.alloc() {
        objects.push(object);
    }
    assert_eq!(source.taken(), PAGES);
    assert_eq!(cache.numbers().misses, objects.len() as u64);
    for object in objects {
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
    }
    cache.destroy().unwrap();
}

#[test]
fn a_request_for_the_own_node_does_not_go_elsewhere() {
    let source = TestPages::new(PAGES, 2);
    let platform = On::default();
    let plan = SlabPlan::new(4, 2);
    type Parts<'p> = Sheafed<'p, &'p TestPages, Pinned<&'p On>>;
    let mut bench = Bench::new::<Parts<'_>>(plan, &source);
    asks_its_own_node::<Parts<'_>>(&bench.slabs(&source, pinned(&platform)), &source);
}

/// A source is asked for the node of its own pages only: what lies outside the span is refused
/// before.
#[test]
fn an_address_outside_the_span_is_refused_on_two_nodes() {
    let source = TestPages::new(PAGES, 2);
    let platform = On::default();
    type Parts<'p> = Sheafed<'p, &'p TestPages, Pinned<&'p On>>;
    // No CPU has a row, so that every free is looked at.
    let mut bench = Bench::new::<Parts<'_>>(SlabPlan::new(4, 0), &source);
    let slabs = bench.slabs::<Parts<'_>>(&source, pinned(&platform));
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", SIZE)).unwrap();
    for address in [8, usize::MAX - 7] {
        let outside = NonNull::new(core::ptr::without_provenance_mut(address)).unwrap();
        for cpu in 0..2 {
            platform.go(cpu);
            // SAFETY: it is no object of the cache.
            let freed = unsafe { cache.free(outside) };
            assert_eq!(freed, Err(FreeFault::NotASlab));
        }
    }
}
