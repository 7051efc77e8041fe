// Slabs that live as long as the test process.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::mem::MaybeUninit;

use brickyard::Platform;
use brickyard_slab::{CacheError, CacheSpec, Pinned, SlabDesign, SlabPlan, Slabs, TaskOnly};

pub(crate) fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

pub(crate) fn memory(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    vec![MaybeUninit::uninit(); bytes].leak()
}

/// Slabs that live as long as the test process.
pub(crate) fn build<D: SlabDesign<'static>>(
    plan: SlabPlan,
    source: D::Source,
    local: D::Local,
) -> &'static Slabs<'static, D> {
    let bytes = Slabs::<D>::bytes(&plan.over(&source));
    leaked(Slabs::new(plan, source, local, memory(bytes)).unwrap())
}

pub(crate) fn pinned<P: Platform>(platform: P) -> Pinned<P> {
    // SAFETY: each test has slabs of its own, which its one thread uses.
    unsafe { Pinned::new(platform) }
}

/// Makes `caches` caches, of which every `nth` stays, then the general sizes as often as they find
/// room.
pub(crate) fn general_among<D: SlabDesign<'static>>(
    (caches, nth): (usize, usize),
    source: D::Source,
    local: D::Local,
) -> (Vec<u8>, CacheError) {
    let slabs = build::<D>(SlabPlan::new(254, 1), source, local);
    let mut kept = Vec::new();
    let made: Vec<_> = (0..caches)
        .map(|_| slabs.cache::<TaskOnly>(CacheSpec::new("a", 64)).unwrap())
        .collect();
    for (i, cache) in made.into_iter().enumerate() {
        if i % nth == 0 {
            kept.push(cache);
        } else {
            cache.destroy().unwrap();
        }
    }
    let mut firsts = Vec::new();
    let error = loop {
        match slabs.general::<TaskOnly>() {
            Ok(general) => firsts.push(general.first()),
            Err(error) => break error,
        }
    };
    // What a failure began is undone.
    let numbers = slabs.numbers().count();
    let sizes = if firsts.is_empty() {
        0
    } else {
        firsts.len() * D::SIZES.len()
    };
    assert_eq!(numbers, 1 + kept.len() + sizes);
    (firsts, error)
}
