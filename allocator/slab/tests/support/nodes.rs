// What slabs of any design do on two nodes, and CPUs that the test chooses.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_slab::{CacheSpec, PageSource, SlabDesign, Slabs, TaskOnly};

use crate::lasting::{give, take};
use crate::pages::TestPages;

/// A CPU that the test chooses.
#[derive(Default)]
pub(crate) struct On(AtomicUsize);

impl On {
    pub(crate) fn go(&self, cpu: usize) {
        self.0.store(cpu, Ordering::Relaxed);
    }
}

impl Platform for On {
    fn cpu(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let here = self.0.swap(cpu, Ordering::Relaxed);
        work();
        self.go(here);
        true
    }
}

pub(crate) const PAGES: usize = 256;
/// Objects of 256 bytes, 16 a page.
pub(crate) const SIZE: usize = 256;
pub(crate) const PER_PAGE: usize = 4096 / SIZE;

/// Fills node 0 from its CPU, then goes on as long as node 1 must have room.
pub(crate) fn takes_what_it_needs<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>, source: &TestPages) {
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", SIZE)).unwrap();
    // Half of the other node's pages, less what queues and sheaves may hold.
    let objects = PER_PAGE * PAGES * 3 / 4;
    let held = take(&cache, objects);
    let needed = objects.div_ceil(PER_PAGE);
    let taken = source.taken();
    assert!(
        taken <= needed + needed / 8 + 16,
        "{taken} pages, {needed} are needed"
    );
    give(&cache, &held);
    cache.destroy().unwrap();
    slabs.shrink();
    assert_eq!(source.taken(), 0);
}

/// A CPU that got its last slab from another node still gets what its own node has, if it asks for
/// that.
pub(crate) fn asks_its_own_node<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>, source: &TestPages) {
    let node_of = |object: NonNull<u8>| PageSource::node_of(&source, object);
    let cache = slabs.cache::<TaskOnly>(CacheSpec::new("a", SIZE)).unwrap();
    let large = slabs
        .cache::<TaskOnly>(CacheSpec::new("large", 4096))
        .unwrap();
    let filling = take(&large, PAGES / 2);
    let away = cache.alloc().unwrap();
    give(&large, &filling);
    large.destroy().unwrap();
    let near = cache.alloc_on(0).unwrap();
    assert_eq!(node_of(near), 0, "the other one is of {}", node_of(away));
    give(&cache, &[near, away]);
    cache.destroy().unwrap();
}
