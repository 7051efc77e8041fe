// Slabs that live as long as the test process.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::Order;
use brickyard_slab::{
    CacheError, CacheSpec, PageAsk, PageSource, RawCache, SlabDesign, SlabPlan, Slabs, TaskOnly,
};

use crate::pages::TestPages;
pub(crate) use crate::slabs::pinned;

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

/// So many objects.
pub(crate) fn take<'m, D: SlabDesign<'m>>(
    cache: &RawCache<'_, 'm, D, TaskOnly>,
    count: usize,
) -> Vec<NonNull<u8>> {
    (0..count).map(|_| cache.alloc().unwrap()).collect()
}

/// Objects until there are no more.
pub(crate) fn take_all<'m, D: SlabDesign<'m>>(
    cache: &RawCache<'_, 'm, D, TaskOnly>,
) -> Vec<NonNull<u8>> {
    core::iter::from_fn(|| cache.alloc().ok()).collect()
}

/// Frees objects that the test has taken, and does not use any more.
pub(crate) fn give<'m, D: SlabDesign<'m>>(
    cache: &RawCache<'_, 'm, D, TaskOnly>,
    objects: &[NonNull<u8>],
) {
    for &object in objects {
        // SAFETY: not used any more.
        unsafe { cache.free(object) }.unwrap();
    }
}

/// Frees objects in an order of their own until so many are left.
pub(crate) fn give_shuffled<'m, D: SlabDesign<'m>>(
    cache: &RawCache<'_, 'm, D, TaskOnly>,
    objects: &mut Vec<NonNull<u8>>,
    left: usize,
    state: &mut u64,
) {
    while objects.len() > left {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
        let place = (*state >> 33) as usize % objects.len();
        give(cache, &[objects.swap_remove(place)]);
    }
}

/// A call of a page source.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// Pages are about to be taken.
    Take,
    /// These are about to be given back.
    Give(NonNull<u8>, Order),
    /// They have been.
    Given,
}

/// Pages, and who is told of each call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told(pub(crate) &'static TestPages, pub(crate) fn(Call));

// SAFETY: as the pages inside.
unsafe impl PageSource for Told {
    fn start(&self) -> NonNull<u8> {
        self.0.start()
    }

    fn pages(&self) -> usize {
        PageSource::pages(&self.0)
    }

    fn take(&self, ask: PageAsk) -> Option<NonNull<u8>> {
        (self.1)(Call::Take);
        self.0.take(ask)
    }

    unsafe fn give(&self, first: NonNull<u8>, order: Order) {
        (self.1)(Call::Give(first, order));
        // SAFETY: passed on.
        unsafe { self.0.give(first, order) };
        (self.1)(Call::Given);
    }
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
