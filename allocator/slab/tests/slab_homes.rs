//! Pages with homes: what was freed away from home serves nobody there, goes to where it is wanted,
//! and is neither lost nor kept from those who need it.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;
use std::collections::HashSet;

use brickyard_slab::{
    BuildError, CacheSpec, Homes, Parts, Pinned, RawCache, Sheafed, SlabPlan, Slabs, TaskOnly,
};

use crate::lasting::{give, give_shuffled, leaked, memory, pinned, take, take_all};
use crate::nodes::On;
use crate::pages::TestPages;

const PAGES: usize = 256;
const CPUS: usize = 4;
const SIZE: usize = 32;
const PER_PAGE: usize = 4096 / SIZE;

type Design = Sheafed<'static, &'static TestPages, Pinned<&'static On>>;
type Objects<'s> = RawCache<'s, 'static, Design, TaskOnly>;

const fn plan() -> SlabPlan {
    SlabPlan::new(4, CPUS).with_homes()
}

/// Slabs over `source`, whose memory is leaked, with homes for so many pages.
fn slabs_over(
    source: &'static TestPages,
    platform: &'static On,
    plan: SlabPlan,
    homes: Option<usize>,
) -> Result<Slabs<'static, Design>, BuildError> {
    let homes = homes.map(|pages| (0..pages).map(|_| AtomicU8::new(0)).collect::<Vec<_>>());
    let parts = Parts {
        homes: homes.map(|homes| Homes::new(homes.leak())),
        ..Parts::of(memory(Slabs::<Design>::bytes(&plan.over(&source))))
    };
    Slabs::in_parts(plan, source, pinned(platform), parts)
}

/// Runs a test with a cache of a machine of four CPUs.
fn with_cache(test: impl FnOnce(&Objects<'_>, &Slabs<'static, Design>, &TestPages, &On)) {
    with_cache_of(PAGES, plan(), test);
}

/// Runs a test with a cache of slabs of so many pages, and looks that nothing of it is left.
fn with_cache_of(
    pages: usize,
    plan: SlabPlan,
    test: impl FnOnce(&Objects<'_>, &Slabs<'static, Design>, &TestPages, &On),
) {
    let (source, platform) = (leaked(TestPages::new(pages, 1)), leaked(On::default()));
    let slabs = slabs_over(source, platform, plan, Some(pages)).unwrap();
    let cache = objects_of(&slabs, SIZE);
    test(&cache, &slabs, source, platform);
    cache.destroy().unwrap();
    slabs.shrink();
    assert_eq!(source.taken(), 0, "all pages have gone back");
}

fn objects_of<'s>(slabs: &'s Slabs<'static, Design>, size: usize) -> Objects<'s> {
    slabs.cache(CacheSpec::new("a", size)).unwrap()
}

fn page(object: NonNull<u8>) -> usize {
    object.addr().get() >> 12
}

fn pages(objects: &[NonNull<u8>]) -> HashSet<usize> {
    objects.iter().map(|&object| page(object)).collect()
}

/// The load `cache-scratch`: one CPU has allocated for all, each frees its object and goes on.
#[test]
fn a_cpu_is_not_given_what_it_freed_of_another_ones_page() {
    with_cache(|cache, _, _, platform| {
        let handed: Vec<_> = take(cache, CPUS);
        let mine = page(handed[0]);
        let mut scratch = Vec::new();
        for (cpu, object) in handed.into_iter().enumerate() {
            platform.go(cpu);
            give(cache, &[object]);
            for _ in 0..3 * PER_PAGE {
                let object = cache.alloc().unwrap();
                assert_eq!(page(object) == mine, cpu == 0, "on {cpu}");
                give(cache, &[object]);
            }
            scratch.push(cache.alloc().unwrap());
        }
        assert_eq!(pages(&scratch).len(), CPUS);
        assert_eq!(cache.numbers().in_use(), CPUS as u64);
        give(cache, &scratch);
    });
}

/// A thread that is moved with all that it has in use gets to have its pages where it is.
#[test]
fn pages_follow_a_thread_that_is_moved() {
    with_cache(|cache, _, _, platform| {
        let mut live = take(cache, 40 * PER_PAGE);
        platform.go(1);
        let mut state = 1_u64;
        for _ in 0..200 * PER_PAGE {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
            let place = (state >> 33) as usize % live.len();
            give(cache, &[live[place]]);
            live[place] = cache.alloc().unwrap();
        }
        // An eighth of all, one for each CPU, and what lies in sheaves.
        let slabs = cache.numbers().slabs;
        assert!(slabs <= 40 * 8 / 7 + 2 * CPUS as u64 + 2, "{slabs}");
        let away = cache.numbers().remote_frees;
        for object in &mut live {
            give(cache, &[*object]);
            *object = cache.alloc().unwrap();
        }
        let later = cache.numbers().remote_frees - away;
        assert!(later <= 4 * PER_PAGE as u64, "{later} of {}", live.len());
        give(cache, &live);
    });
}

/// One CPU allocates, another frees: what comes back goes as a whole to the one that allocates.
#[test]
fn what_one_cpu_frees_serves_the_one_that_allocates() {
    with_cache(|cache, _, source, platform| {
        let mut seen = HashSet::new();
        for _ in 0..200 {
            platform.go(0);
            let some = take(cache, PER_PAGE);
            seen.extend(pages(&some));
            platform.go(1);
            give(cache, &some);
        }
        assert!(seen.len() <= 8, "{} pages", seen.len());
        assert!(source.taken() <= 12, "{}", source.taken());
        let numbers = cache.numbers();
        assert!(numbers.claims > 100, "{numbers:?}");
        // Not by way of the slabs.
        assert!(numbers.flushed < 20 * PER_PAGE as u64, "{numbers:?}");
        platform.go(0);
    });
}

/// What a CPU has left for others, and nobody wanted, serves it after all.
#[test]
fn what_nobody_wants_is_not_kept_from_its_cpu() {
    with_cache(|cache, _, _, platform| {
        let all = take(cache, 100 * PER_PAGE);
        platform.go(1);
        give(cache, &all);
        let mut again = take(cache, 10 * PER_PAGE);
        assert!(cache.numbers().slabs <= 102, "there is enough");
        again.extend(take(cache, 90 * PER_PAGE));
        // An eighth of all, and one for each CPU.
        let slabs = cache.numbers().slabs;
        assert!(slabs <= 100 * 8 / 7 + CPUS as u64 + 1, "{slabs}");
        give(cache, &again);
        platform.go(0);
    });
}

/// With no page left, an object that is at home elsewhere is better than none.
#[test]
fn the_last_objects_serve_whoever_asks() {
    with_cache(|cache, slabs, source, platform| {
        let large = objects_of(slabs, 4096);
        platform.go(1);
        let mut small = take(cache, PER_PAGE / 2);
        let filling = take_all(&large);
        assert!(source.taken() >= PAGES - 1);
        platform.go(0);
        small.extend(take_all(cache));
        // All but what lies in the other CPU's sheaves.
        assert!(small.len() >= PER_PAGE / 2, "{}", small.len());
        platform.go(1);
        small.extend(take_all(cache));
        assert_eq!(small.len() % PER_PAGE, 0, "none is lost");
        give(cache, &small);
        give(&large, &filling);
        large.destroy().unwrap();
    });
}

/// Larger objects are used again where they were freed, whoever had them.
#[test]
fn homes_do_not_matter_to_large_objects() {
    with_cache(|_, slabs, _, platform| {
        let cache = objects_of(slabs, Homes::STRIDE_BELOW as usize);
        let object = take(&cache, 1);
        platform.go(1);
        give(&cache, &object);
        assert_eq!(take(&cache, 1), object);
        give(&cache, &object);
        cache.destroy().unwrap();
    });
}

#[test]
fn a_plan_and_its_homes_have_to_agree() {
    let (source, platform) = (leaked(TestPages::new(PAGES, 1)), leaked(On::default()));
    let build = |plan, homes| slabs_over(source, platform, plan, homes).map(|_| ());
    let needed = |needed| Err(BuildError::Homes { needed });
    assert_eq!(build(plan(), None), needed(PAGES));
    assert_eq!(build(plan(), Some(PAGES - 1)), needed(PAGES));
    assert_eq!(build(SlabPlan::new(4, CPUS), Some(PAGES)), needed(0));
    assert_eq!(build(plan(), Some(PAGES)), Ok(()));
}

/// The thread that has allocated all is gone. What others have freed settles where it is used.
#[test]
fn pages_of_a_cpu_that_takes_no_part_any_more_move() {
    for cpus in [2, 3] {
        with_cache(|cache, _, _, platform| {
            for (object, cpu) in take(cache, 20 * PER_PAGE * cpus)
                .into_iter()
                .zip((1..=cpus).cycle())
            {
                platform.go(cpu);
                give(cache, &[object]);
            }
            let mut shared = 0;
            let mut before = 0;
            for round in 0..8000 {
                if round == 4000 {
                    (before, shared) = (cache.numbers().remote_frees, 0);
                }
                let objects = (1..=cpus).map(|cpu| {
                    platform.go(cpu);
                    cache.alloc().unwrap()
                });
                let objects: Vec<_> = objects.collect();
                shared += usize::from(pages(&objects).len() < cpus);
                for (object, cpu) in objects.into_iter().zip(1..) {
                    platform.go(cpu);
                    give(cache, &[object]);
                }
            }
            let away = cache.numbers().remote_frees - before;
            assert!(
                away <= 2 * PER_PAGE as u64 && shared <= 40,
                "{away} {shared}"
            );
        });
    }
}

/// What another CPU frees in an order of its own keeps no slabs either.
#[test]
fn what_is_freed_away_in_any_order_does_not_keep_its_slabs() {
    with_cache_of(2048, plan(), |cache, _, _, platform| {
        let mut all = take(cache, 1800 * PER_PAGE);
        platform.go(1);
        give_shuffled(cache, &mut all, 0, &mut 1);
        let after = cache.numbers();
        assert_eq!(after.in_use(), 0);
        assert!(after.slabs * 4096 <= 3 << 20, "{after:?}");
    });
}

/// With 512 CPUs no more than sixteen slabs and an eighth are kept apart.
#[test]
fn a_machine_of_many_cpus_keeps_no_more_apart() {
    let plan = SlabPlan::new(4, 512).with_homes();
    with_cache_of(2048, plan, |cache, slabs, _, platform| {
        let mut all = take(cache, 500 * PER_PAGE);
        let kept: Vec<_> = all.iter().copied().step_by(PER_PAGE).collect();
        all.retain(|object| !kept.contains(object));
        give(cache, &all);
        slabs.drain();
        slabs.shrink();
        platform.go(1);
        let more = take(cache, 480 * (PER_PAGE - 1));
        let count = cache.numbers().slabs;
        assert!(count <= 500 * 8 / 7 + 16, "{count}");
        give(cache, &more);
        give(cache, &kept);
    });
}

/// Of two full sheaves, the one behind serves the CPU where its objects are at home, and the other
/// one stays.
#[test]
fn a_sheaf_behind_another_serves_where_it_is_at_home() {
    with_cache(|cache, _, _, platform| {
        let mut left = Vec::new();
        for cpu in [0, 1] {
            platform.go(cpu);
            left.push(take(cache, 2 * PER_PAGE));
        }
        let mine = pages(&left[1]);
        platform.go(2);
        for objects in left.into_iter().rev() {
            give(cache, &objects);
        }
        platform.go(1);
        let flushed = cache.numbers().flushed;
        let held = take(cache, PER_PAGE * 3 / 2);
        let at_home = held.iter().filter(|&&object| mine.contains(&page(object)));
        assert!(at_home.count() > PER_PAGE, "{:?}", cache.numbers());
        assert_eq!(cache.numbers().flushed, flushed, "as it is");
        platform.go(0);
        let theirs = take(cache, PER_PAGE * 3 / 2);
        assert_eq!(cache.numbers().flushed, flushed, "so does the other");
        give(cache, &theirs);
        platform.go(1);
        give(cache, &held);
    });
}
