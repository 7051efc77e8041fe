//! Slabs on two nodes: a CPU whose own node is full takes what is free elsewhere, and takes no more
//! than it needs.

use core::ptr::NonNull;

use brickyard_slab::{CacheSpec, FreeFault, Pinned, Sheafed, SlabPlan, Slabs, TaskOnly};

use crate::lasting::{build, give, leaked, pinned, take, take_all};
use crate::nodes::{On, PAGES, PER_PAGE, SIZE, asks_its_own_node, takes_what_it_needs};
use crate::pages::TestPages;

type Design = Sheafed<'static, &'static TestPages, Pinned<&'static On>>;

/// Slabs of two nodes, with rows for so many CPUs.
fn two_nodes(
    cpus: usize,
) -> (
    &'static Slabs<'static, Design>,
    &'static TestPages,
    &'static On,
) {
    let (source, platform) = (leaked(TestPages::new(PAGES, 2)), leaked(On::default()));
    let slabs = build::<Design>(SlabPlan::new(4, cpus), source, pinned(platform));
    (slabs, source, platform)
}

#[test]
fn a_cpu_whose_node_is_full_takes_no_more_than_it_needs() {
    let (slabs, source, _) = two_nodes(2);
    takes_what_it_needs(slabs, source);
}

/// All pages of node 0 are taken by another cache: not one object of this one can be of that node.
#[test]
fn a_cpu_whose_node_has_nothing_is_served_by_the_other() {
    let (slabs, source, _) = two_nodes(2);
    let large = slabs
        .cache::<TaskOnly>(CacheSpec::new("large", 4096))
        .unwrap();
    // One page is left to node 0 at most, for sheaves.
    let filling = take(&large, PAGES / 2);
    let before = source.taken();
    let small = slabs
        .cache::<TaskOnly>(CacheSpec::new("small", SIZE))
        .unwrap();
    let held = take(&small, PER_PAGE * 4);
    let taken = source.taken() - before;
    assert!(taken <= 8, "{taken} pages for {} objects", held.len());
    give(&small, &held);
    give(&large, &filling);
    small.destroy().unwrap();
    large.destroy().unwrap();
    slabs.shrink();
    assert_eq!(source.taken(), 0);
}

/// No CPU has a row, so each object is a miss, wherever it comes from.
#[test]
fn what_another_node_gives_is_counted() {
    let (slabs, source, _) = two_nodes(0);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", SIZE)).unwrap();
    let objects = take_all(&cache);
    assert_eq!(source.taken(), PAGES);
    assert_eq!(cache.numbers().misses, objects.len() as u64);
    give(&cache, &objects);
    cache.destroy().unwrap();
}

#[test]
fn a_request_for_the_own_node_does_not_go_elsewhere() {
    let (slabs, source, _) = two_nodes(2);
    asks_its_own_node(slabs, source);
}

/// A source is asked for the node of its own pages only: what lies outside the span is refused
/// before.
#[test]
fn an_address_outside_the_span_is_refused_on_two_nodes() {
    // No CPU has a row, so that every free is looked at.
    let (slabs, _, platform) = two_nodes(0);
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
