//! Planted bugs: each level of checking finds what it says it finds, and names the object, the cache and who.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::{Cell, RefCell};
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use brickyard::Platform;
use brickyard_slab::debug::{Fault, Moment, User};
use brickyard_slab::{
    CacheSpec, Checks, Counted, DebugRule, Finding, FreeFault, Pinned, RawCache, RuleText, Sheafed,
    SlabDesign, SlabPlan, Slabs, Slqb2008, TaskOnly,
};

#[path = "support/pages.rs"]
mod pages;
use pages::TestPages;
#[path = "support/slabs.rs"]
mod slabs;
use slabs::{Bench, pinned};

/// CPU 3, task 77, and a clock that goes on by 1 whenever it is asked.
#[derive(Debug, Default)]
struct Watched(AtomicU64);

impl Platform for Watched {
    fn cpu(&self) -> usize {
        3
    }

    fn task(&self) -> u64 {
        77
    }

    fn ticks(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        if cpu == 3 {
            work();
        }
        cpu == 3
    }
}

thread_local! {
    static FOUND: RefCell<Vec<Finding>> = const { RefCell::new(Vec::new()) };
}

fn report(finding: &Finding) {
    FOUND.with_borrow_mut(|found| found.push(*finding));
}

/// What was found since the last time.
fn found() -> Vec<Finding> {
    FOUND.take()
}

/// The one thing that was found.
fn the_finding() -> Finding {
    let found = found();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn plan() -> SlabPlan {
    SlabPlan::new(60, 4).debug(&[], report)
}

type Default<'p> = Sheafed<'p, &'p TestPages, Pinned<Watched>>;
type Linked<'p> = Slqb2008<'p, &'p TestPages, Pinned<Watched>>;

/// Slabs of this design and plan.
macro_rules! with_slabs {
    ($design:ident, $plan:expr, $work:expr) => {{
        let source = TestPages::new(1024, 1);
        let mut bench = Bench::new::<$design<'_>>($plan, &source);
        let slabs = bench.slabs::<$design<'_>>(&source, pinned(Watched::default()));
        $work(&slabs);
    }};
}

/// Tests that run on slabs of every design: generic functions of `&Slabs<'m, D>`.
macro_rules! on_every_design {
    ($($name:ident)*) => {
        mod sheafed {
            use super::*;
            $(
                #[test]
                fn $name() {
                    with_slabs!(Default, plan(), super::$name);
                }
            )*
        }

        mod slqb_2008 {
            use super::*;
            $(
                #[test]
                fn $name() {
                    with_slabs!(Linked, plan(), super::$name);
                }
            )*
        }
    };
}

on_every_design! {
    one_byte_behind_is_found
    one_byte_before_is_found
    far_overflows_do_not_hide_who
    double_frees_are_found_by_every_check
    use_after_free_is_found_at_the_next_alloc
    a_free_object_s_red_zone_is_watched
    writes_are_found_before_the_slab_goes
    foreign_frees_are_found
    what_a_constructor_made_lasts
    leaks_are_named
    checked_objects_are_whole_and_aligned
    general_sizes_have_names_of_their_own
}

type Raw<'s, 'm, D> = RawCache<'s, 'm, D, TaskOnly>;

fn make<'s, 'm, D: SlabDesign<'m>>(slabs: &'s Slabs<'m, D>, spec: CacheSpec) -> Raw<'s, 'm, D> {
    slabs.cache(spec).unwrap()
}

/// Frees what may be no object of the cache, or free already.
#[track_caller]
fn free<'m, D: SlabDesign<'m>>(
    cache: &Raw<'_, 'm, D>,
    object: NonNull<u8>,
) -> Result<(), FreeFault> {
    // SAFETY: where it is an object in use, the test does not use it any more; where it is not, that is the test.
    unsafe { cache.free(object) }
}

fn write(object: NonNull<u8>, offset: isize, value: u8) {
    // SAFETY: all that is written here, right or wrong, lies in slabs of the test's own.
    unsafe { object.offset(offset).write(value) };
}

fn fill(object: NonNull<u8>, value: u8, bytes: usize) {
    // SAFETY: the object is the caller's, and as large.
    unsafe { object.write_bytes(value, bytes) };
}

fn read(object: NonNull<u8>, offset: usize) -> u8 {
    // SAFETY: a byte of an object, which has been written.
    unsafe { object.add(offset).read() }
}

fn past(object: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    // SAFETY: inside the same slab.
    unsafe { object.add(bytes) }
}

/// A finding's text, with the object's address as `OBJECT` and no column numbers.
fn text(finding: &Finding) -> String {
    let text = finding.to_string();
    let text = text.replace(&format!("{:#x}", finding.object), "OBJECT");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(file!()) {
        let line = at + file!().len() + 1;
        let column = line + rest[line..].find(':').unwrap();
        plain.push_str(&rest[..column]);
        rest = rest[column + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    plain + rest
}

/// `file:line` of the caller, `lines` lines above.
#[track_caller]
fn above(lines: u32) -> String {
    let here = Location::caller();
    format!("{}:{}", here.file(), here.line() - lines)
}

fn one_byte_behind_is_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let checks = Checks::RED_ZONES.with(Checks::TRACK);
    let cache = make(slabs, CacheSpec::new("inode", 60).checks(checks));
    let object = cache.alloc().unwrap();
    let allocated = above(1);
    for offset in 0..60 {
        write(object, offset, 0x41);
    }
    write(object, 60, 0x41);
    let freed = free(&cache, object);
    let refused = above(1);
    assert_eq!(freed, Err(FreeFault::Damaged));
    let finding = the_finding();
    let expected = format!(
        "\
slab: written behind an object's end: cache `inode`, object OBJECT of 60 bytes
  1 byte wrong from offset 60 on: found 41, expected cc
  found when freed: {refused}, CPU 3, task 77, time 1; the free is refused
  allocated by: {allocated}, CPU 3, task 77, time 0
  last freed by: nobody since its slab was made"
    );
    assert_eq!(text(&finding), expected);
    assert_eq!(finding.object, object.addr().get());
    // Nothing else has changed: mended, it can be freed.
    write(object, 60, 0xcc);
    free(&cache, object).unwrap();
    assert!(found().is_empty());
    cache.destroy().unwrap();
}

fn one_byte_before_is_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let spec = CacheSpec::new("dentry", 64).align(64);
    let cache = make(slabs, spec.checks(Checks::RED_ZONES));
    let object = cache.alloc().unwrap();
    write(object, -1, 0);
    assert_eq!(free(&cache, object), Err(FreeFault::Damaged));
    let refused = above(1);
    let found = text(&the_finding());
    let expected = format!(
        "\
slab: written before an object's begin: cache `dentry`, object OBJECT of 64 bytes
  1 byte wrong from offset -1 on: found 00, expected cc
  found when freed: {refused}, CPU 3, task 77, time 0; the free is refused
  allocated by: (not tracked: add U to the cache's checks)
  last freed by: (not tracked: add U to the cache's checks)"
    );
    assert_eq!(found, expected);
}

fn far_overflows_do_not_hide_who<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let cache = make(slabs, CacheSpec::new("far", 40).checks(Checks::ALL));
    let object = cache.alloc().unwrap();
    // Over the red zone, the link and half of who allocated it; then told as overwritten, not followed.
    for offset in 40..90 {
        write(object, offset, 0x41);
    }
    assert_eq!(free(&cache, object), Err(FreeFault::Damaged));
    let finding = the_finding();
    assert!(matches!(finding.fault, Fault::WrittenBehind(damage) if damage.offset == 40));
    assert_eq!(finding.allocated, User::Overwritten);
    assert!(text(&finding).contains("allocated by: (the record has been overwritten)"));
}

fn double_frees_are_found_by_every_check<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    for checks in [
        Checks::FREES,
        Checks::RED_ZONES,
        Checks::POISON,
        Checks::TRACK,
        Checks::ALL,
    ] {
        let cache = make(slabs, CacheSpec::new("twice", 100).checks(checks));
        let objects: Vec<_> = (0..3).map(|_| cache.alloc().unwrap()).collect();
        let allocated = above(1);
        free(&cache, objects[1]).unwrap();
        let freed = above(1);
        // Others in between: it is not the last one.
        free(&cache, objects[2]).unwrap();
        let twice = free(&cache, objects[1]);
        let refused = above(1);
        assert_eq!(twice, Err(FreeFault::DoubleFree), "{checks}");
        let finding = the_finding();
        assert_eq!(
            (finding.cache, finding.object, finding.fault),
            ("twice", objects[1].addr().get(), Fault::DoubleFree)
        );
        let told = text(&finding);
        assert!(told.starts_with("slab: double free: cache `twice`, object OBJECT of 100 bytes\n"));
        assert!(told.contains(&format!("found when freed: {refused}, CPU 3, task 77")));
        if checks.has(Checks::TRACK) {
            assert!(told.contains(&format!("allocated by: {allocated}, CPU 3, task 77")));
            assert!(told.contains(&format!("last freed by: {freed}, CPU 3, task 77")));
        }
        // It is in there once.
        let again: Vec<_> = (0..2).map(|_| cache.alloc().unwrap()).collect();
        assert_ne!(again[0], again[1]);
        for object in [objects[0], again[0], again[1]] {
            free(&cache, object).unwrap();
        }
        assert!(found().is_empty());
        cache.destroy().unwrap();
    }
}

fn use_after_free_is_found_at_the_next_alloc<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let checks = Checks::POISON.with(Checks::TRACK);
    let cache = make(slabs, CacheSpec::new("socket", 1216).checks(checks));
    let keeper = cache.alloc().unwrap();
    let object = cache.alloc().unwrap();
    free(&cache, object).unwrap();
    let freed = above(1);
    assert_eq!(read(object, 100), 0x6b);
    for offset in 5..25 {
        write(object, offset, offset as u8);
    }
    write(object, 1215, 0);
    // The next object is another one.
    let mut taken = Vec::new();
    while FOUND.with_borrow(Vec::is_empty) {
        taken.push(cache.alloc().unwrap());
        assert!(taken.len() < 100, "the object is never handed out");
    }
    let noticed = above(3);
    assert!(!taken.contains(&object));
    let finding = the_finding();
    assert_eq!(finding.moment, Moment::Alloc);
    let told = text(&finding);
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(
        told[0],
        "slab: use after free: cache `socket`, object OBJECT of 1216 bytes"
    );
    assert_eq!(
        told[1],
        "  1211 bytes wrong from offset 5 on: found 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14, \
         expected 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b (the first 16)"
    );
    assert!(told[2].starts_with(&format!(
        "  found when allocated: {noticed}, CPU 3, task 77"
    )));
    assert!(told[2].ends_with("; the object is left out"));
    assert!(told[4].starts_with(&format!("  last freed by: {freed}, CPU 3, task 77")));
    for object in taken.into_iter().chain([keeper]) {
        free(&cache, object).unwrap();
    }
    // It is never handed out again, and that is told when the cache is destroyed.
    let (_, leak) = cache.destroy().unwrap_err();
    assert_eq!(leak.objects, 1);
}

fn a_free_object_s_red_zone_is_watched<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let checks = Checks::RED_ZONES.with(Checks::TRACK);
    let cache = make(slabs, CacheSpec::new("zone", 32).checks(checks));
    let _keeper = cache.alloc().unwrap();
    let object = cache.alloc().unwrap();
    free(&cache, object).unwrap();
    write(object, 33, 0x41);
    for _ in 0..200 {
        assert_ne!(cache.alloc().unwrap(), object);
    }
    let finding = the_finding();
    let told = text(&finding);
    assert!(told.starts_with("slab: written behind a free object's end: cache `zone`"));
    assert!(told.contains("1 byte wrong from offset 33 on: found 41, expected bb"));
    // Whoever still has its address and frees it once more is told what that is, as far as the red zones are whole.
    write(object, 33, 0xbb);
    assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
    assert_eq!(the_finding().fault, Fault::DoubleFree);
}

fn writes_are_found_before_the_slab_goes<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let cache = make(slabs, CacheSpec::new("gone", 100).checks(Checks::ALL));
    let objects = [cache.alloc().unwrap(), cache.alloc().unwrap()];
    free(&cache, objects[0]).unwrap();
    let freed = above(1);
    write(objects[0], 99, 0);
    free(&cache, objects[1]).unwrap();
    assert_eq!(cache.numbers().slabs, 0);
    let finding = the_finding();
    assert_eq!(finding.object, objects[0].addr().get());
    let told = text(&finding);
    assert!(told.starts_with("slab: use after free: cache `gone`"));
    assert!(told.contains("1 byte wrong from offset 99 on: found 00, expected a5"));
    assert!(told.contains("found when its slab was given back: "));
    assert!(told.contains(&format!("last freed by: {freed}")), "{told}");
    cache.destroy().unwrap();
}

fn foreign_frees_are_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    for checks in [Checks::FREES, Checks::ALL] {
        let cache = make(slabs, CacheSpec::new("pages", 128).checks(checks));
        let other = make(slabs, CacheSpec::new("other", 128).checks(checks));
        let objects = [cache.alloc().unwrap(), cache.alloc().unwrap()];
        let allocated = above(1);
        let theirs = other.alloc().unwrap();

        // Another cache's.
        let freed = free(&other, objects[1]);
        let refused = above(1);
        assert!(matches!(freed, Err(FreeFault::WrongCache { .. })));
        let finding = the_finding();
        let told = text(&finding);
        assert!(told.starts_with(
            "slab: freed to the wrong cache: cache `other`, object OBJECT of 128 bytes\n  it belongs to cache `pages`\n"
        ));
        assert!(told.contains(&refused));
        assert_eq!(told.contains(&allocated), checks.has(Checks::TRACK));

        // Off the grid.
        let off = past(objects[1], 24);
        assert_eq!(free(&cache, off), Err(FreeFault::OffGrid));
        let told = text(&the_finding());
        let inside = format!(
            "\n  it is at offset 24 of the object {:#x}\n",
            objects[1].addr().get()
        );
        assert!(told.starts_with("slab: freed where no object begins: cache `pages`"));
        assert!(told.contains(&inside), "{told}");
        assert_eq!(told.contains(&allocated), checks.has(Checks::TRACK));

        // In no slab.
        let mut mine = [0_u64; 16];
        let mine = NonNull::from(&mut mine).cast();
        assert_eq!(free(&cache, mine), Err(FreeFault::NotASlab));
        let told = text(&the_finding());
        assert!(told.starts_with("slab: freed what lies in no slab: cache `pages`, object OBJECT"));

        for object in objects {
            free(&cache, object).unwrap();
        }
        free(&other, theirs).unwrap();
        assert!(found().is_empty());
        cache.destroy().unwrap();
        other.destroy().unwrap();
    }
}

fn what_a_constructor_made_lasts<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    fn construct(object: NonNull<u8>) {
        fill(object, 0x77, 48);
    }
    for checks in [Checks::NONE, Checks::POISON, Checks::ALL] {
        let spec = CacheSpec::new("made", 48).constructor(construct);
        let cache = make(slabs, spec.checks(checks));
        for _ in 0..3 {
            let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
            for &object in &objects {
                assert!((0..48).all(|byte| read(object, byte) == 0x77), "{checks}");
            }
            for object in objects {
                free(&cache, object).unwrap();
            }
        }
        if checks.has(Checks::RED_ZONES) {
            let object = cache.alloc().unwrap();
            write(object, 48, 0);
            assert_eq!(free(&cache, object), Err(FreeFault::Damaged));
            assert!(matches!(the_finding().fault, Fault::WrittenBehind(_)));
        } else {
            cache.destroy().unwrap();
        }
        assert!(found().is_empty());
    }
}

fn leaks_are_named<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let cache = make(slabs, CacheSpec::new("leaky", 200).checks(Checks::TRACK));
    let objects: Vec<_> = (0..50).map(|_| cache.alloc().unwrap()).collect();
    let lost = cache.alloc().unwrap();
    let allocated = above(1);
    for object in objects {
        free(&cache, object).unwrap();
    }
    let (cache, leak) = cache.destroy().unwrap_err();
    assert_eq!(
        leak.to_string(),
        "1 objects are still in use: free them before the cache is destroyed"
    );
    let mut named = Vec::new();
    cache.each_in_use(|object, track| named.push((object, track.unwrap())));
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].0, lost);
    let told = named[0].1.to_string();
    assert!(told.starts_with(&allocated), "{told}");
    assert!(told.contains(", CPU 3, task 77, time "));
    free(&cache, lost).unwrap();
    cache.destroy().unwrap();
}

fn checked_objects_are_whole_and_aligned<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let levels = [
        Checks::FREES,
        Checks::RED_ZONES,
        Checks::POISON,
        Checks::TRACK,
        Checks::RED_ZONES.with(Checks::POISON),
        Checks::ALL,
    ];
    for checks in levels {
        for (size, align) in [
            (1, 1),
            (7, 1),
            (8, 8),
            (60, 4),
            (64, 64),
            (600, 8),
            (3000, 512),
        ] {
            let cache = make(
                slabs,
                CacheSpec::new("whole", size).align(align).checks(checks),
            );
            for _ in 0..2 {
                let objects: Vec<_> = (0..100).map(|_| cache.alloc().unwrap()).collect();
                for (i, object) in objects.iter().enumerate() {
                    assert!(object.addr().get().is_multiple_of(align), "{size} {checks}");
                    fill(*object, i as u8, size);
                }
                for (i, object) in objects.iter().enumerate() {
                    assert!((0..size).all(|byte| read(*object, byte) == i as u8));
                }
                for object in objects {
                    free(&cache, object).unwrap();
                }
            }
            let numbers = cache.numbers();
            assert_eq!((numbers.in_use(), numbers.queued, numbers.slabs), (0, 0, 0));
            cache.destroy().unwrap();
        }
    }
    assert!(found().is_empty());
}

fn general_sizes_have_names_of_their_own<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let general = slabs.general::<TaskOnly>().unwrap();
    let mut names: Vec<_> = slabs.numbers().map(|numbers| numbers.name).collect();
    let many = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), many, "a name of its own for each cache");
    assert_eq!(general.max_size(), 32 << 10);
}

/// Slabs of the default with this plan.
fn with(plan: SlabPlan, work: impl for<'m> FnOnce(&Slabs<'m, Default<'m>>)) {
    with_slabs!(Default, plan, work);
}

#[test]
fn rules_decide_by_name() {
    static RULES: &[DebugRule] = &[
        DebugRule {
            pattern: "inode*",
            checks: Checks::RED_ZONES,
        },
        DebugRule {
            pattern: "*",
            checks: Checks::FREES,
        },
    ];
    let text = RuleText::parse("Z,inode*;F").unwrap();
    for plan in [
        SlabPlan::new(60, 4).debug(RULES, report),
        SlabPlan::new(60, 4).debug_text(text, report),
    ] {
        with(plan, |slabs| {
            let inodes = make(slabs, CacheSpec::new("inode-ext", 48));
            let others = make(slabs, CacheSpec::new("dentry", 48));
            let pair = [inodes.alloc().unwrap(), others.alloc().unwrap()];
            assert!(inodes.numbers().stride > others.numbers().stride);
            write(pair[0], 48, 0);
            assert_eq!(free(&inodes, pair[0]), Err(FreeFault::Damaged));
            assert_eq!(the_finding().cache, "inode-ext");
            let off = past(pair[1], 8);
            assert_eq!(free(&others, off), Err(FreeFault::OffGrid));
            assert_eq!(the_finding().cache, "dentry");
        });
    }
}

#[test]
fn general_sizes_obey_a_pattern() {
    let text = RuleText::parse("FZPU,general-*").unwrap();
    let plan = SlabPlan::new(60, 4).debug_text(text, report);
    with_slabs!(Default, plan, general_sizes_are_checked);
    with_slabs!(Linked, plan, general_sizes_are_checked);
}

fn general_sizes_are_checked<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    use core::alloc::Layout;
    let general = slabs.general::<TaskOnly>().unwrap();
    for size in [1, 16, 100, 1000, 4096, 20000, 32768] {
        let layout = Layout::from_size_align(size, 8).unwrap();
        let object = general.alloc(layout).unwrap();
        let usable = general.usable(object);
        fill(object, 0x11, usable);
        write(object, usable as isize, 0x11);
        // SAFETY: nobody uses it any more.
        let given = unsafe { general.free_unsized(object) };
        assert_eq!(given, Err(FreeFault::Damaged));
        assert_eq!(the_finding().cache, format!("general-{usable}"));
    }
}

#[test]
fn the_last_one_freed_is_always_compared_with() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("plain", 64));
        let objects: Vec<_> = (0..400).map(|_| cache.alloc().unwrap()).collect();
        for &object in &objects {
            free(&cache, object).unwrap();
            assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
            let told = text(&the_finding());
            let refused = above(2);
            assert!(
                told.starts_with("slab: double free: cache `plain`, object OBJECT of 64 bytes")
            );
            assert!(told.contains(&refused), "{told}");
        }
        let mut again: Vec<_> = (0..400).map(|_| cache.alloc().unwrap()).collect();
        again.sort_unstable();
        assert!(again.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(cache.numbers().in_use(), 400);
        for &object in &again {
            free(&cache, object).unwrap();
        }
        assert_eq!(cache.numbers().in_use(), 0);
        cache.destroy().unwrap();
    });
}

#[test]
fn what_was_freed_twice_is_told_when_it_reaches_its_slab() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("late", 64));
        let objects: Vec<_> = (0..3).map(|_| cache.alloc().unwrap()).collect();
        for index in [0, 1, 0] {
            free(&cache, objects[index]).unwrap();
        }
        assert!(found().is_empty());
        cache.shrink();
        let finding = the_finding();
        assert_eq!(
            (finding.fault, finding.moment),
            (Fault::DoubleFree, Moment::Flush)
        );
        assert_eq!(finding.object, objects[0].addr().get());
        assert_eq!(cache.numbers().refused, 1);
        assert_eq!(cache.numbers().out, 1);
        assert!(
            text(&finding)
                .contains("found when put back into its slab, some time after it was freed")
        );
        free(&cache, objects[2]).unwrap();
        cache.destroy().unwrap();
    });
}

/// A CPU a thread, by a number that the thread sets.
#[derive(Debug)]
struct Threads;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
}

impl Platform for Threads {
    fn cpu(&self) -> usize {
        CPU.get()
    }

    fn task(&self) -> u64 {
        CPU.get() as u64
    }

    fn relax(&self) {
        std::thread::yield_now();
    }
}

/// Runs `work` on four threads, each a CPU of its own, with the objects of a cache.
fn on_four_cpus(
    checks: Checks,
    work: impl Fn(usize, &dyn Fn() -> usize, &dyn Fn(usize) -> Result<(), FreeFault>) + Sync,
) {
    type Many<'p> = Sheafed<'p, &'p TestPages, Pinned<Threads>>;
    let source = TestPages::new(1024, 1);
    let mut bench = Bench::new::<Many<'_>>(plan(), &source);
    let slabs = bench.slabs::<Many<'_>>(&source, pinned(Threads));
    let cache = make(&slabs, CacheSpec::new("shared", 100).checks(checks));
    std::thread::scope(|scope| {
        for cpu in 0..4 {
            let (cache, work) = (&cache, &work);
            scope.spawn(move || {
                CPU.set(cpu);
                let take = || cache.alloc().unwrap().as_ptr().expose_provenance();
                let give = |object: usize| {
                    let object = NonNull::new(core::ptr::with_exposed_provenance_mut(object));
                    // SAFETY: objects of the cache; what is freed twice is freed so on purpose.
                    unsafe { cache.free(object.unwrap()) }
                };
                work(cpu, &take, &give);
            });
        }
    });
    assert_eq!(cache.numbers().in_use(), 0);
    cache.destroy().unwrap();
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    // Objects go from thread to thread by a queue in the middle.
    let between = Mutex::new(Vec::new());
    let left = AtomicUsize::new(4);
    on_four_cpus(Checks::ALL, |cpu, take, give| {
        for round in 0..2000 {
            let object = take();
            // SAFETY: 100 bytes that are this thread's.
            unsafe {
                core::ptr::with_exposed_provenance_mut::<u8>(object).write_bytes(cpu as u8, 100)
            };
            between.lock().unwrap().push(object);
            let other = between.lock().unwrap().swap_remove(0);
            if round % 3 == 0 {
                between.lock().unwrap().push(other);
            } else {
                give(other).unwrap();
            }
        }
        if left.fetch_sub(1, Ordering::SeqCst) == 1 {
            for object in between.lock().unwrap().drain(..) {
                give(object).unwrap();
            }
        }
        assert!(found().is_empty());
    });
}

#[test]
fn of_two_frees_at_once_one_is_done() {
    let (object, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = Barrier::new(4);
    on_four_cpus(Checks::FREES, |cpu, take, give| {
        for _ in 0..200 {
            if cpu == 0 {
                object.store(take(), Ordering::SeqCst);
            }
            barrier.wait();
            match give(object.load(Ordering::SeqCst)) {
                Ok(()) => {
                    done.fetch_add(1, Ordering::SeqCst);
                }
                // The slab may be gone already.
                Err(fault) => {
                    assert!(matches!(fault, FreeFault::DoubleFree | FreeFault::NotASlab));
                    assert_eq!(the_finding().noticed.cpu, cpu);
                }
            }
            barrier.wait();
        }
    });
    assert_eq!(done.into_inner(), 200);
}

#[test]
fn numbers_add_up() {
    with(plan(), |slabs| {
        let cache = make(slabs, CacheSpec::new("inode", 600));
        let objects: Vec<_> = (0..1000).map(|_| cache.alloc().unwrap()).collect();
        for &object in &objects[..700] {
            free(&cache, object).unwrap();
        }
        let numbers = cache.numbers();
        assert_eq!(numbers.in_use(), 300);
        assert_eq!(numbers.out, 300 + numbers.queued);
        assert!(numbers.queued > 0 && numbers.misses > 0 && numbers.free_misses > 0);
        assert_eq!((numbers.hits, numbers.remote_frees), (None, 0));
        let waste = numbers.waste();
        let used = numbers.objects() * numbers.size;
        assert_eq!(used + waste.around + waste.ends, numbers.bytes());
        assert_eq!(waste.around, numbers.objects() * 8);
        assert_eq!(waste.tables, numbers.slabs * numbers.pages_per_slab * 65);
        assert_eq!(waste.total(), waste.around + waste.ends + waste.tables);
        cache.shrink();
        let shrunk = cache.numbers();
        assert_eq!((shrunk.in_use(), shrunk.queued, shrunk.out), (300, 0, 300));
        for &object in &objects[700..] {
            free(&cache, object).unwrap();
        }
        cache.destroy().unwrap();
    });
}

#[test]
fn remote_frees_are_counted() {
    type Two<'p> = Sheafed<'p, &'p TestPages, Pinned<Threads>>;
    let source = TestPages::new(1024, 2);
    let mut bench = Bench::new::<Two<'_>>(plan(), &source);
    let slabs = bench.slabs::<Two<'_>>(&source, pinned(Threads));
    let cache = make(&slabs, CacheSpec::new("away", 64));
    // CPU 0 is at node 0, CPU 1 at node 1.
    CPU.set(0);
    let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
    let own = cache.alloc().unwrap();
    free(&cache, own).unwrap();
    CPU.set(1);
    for &object in &objects {
        free(&cache, object).unwrap();
        assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
        the_finding();
    }
    let numbers = cache.numbers();
    assert_eq!(numbers.in_use(), 0);
    assert!(
        numbers.remote_frees >= 200,
        "what is on its way is counted when it goes"
    );
    slabs.drain();
    assert_eq!(cache.numbers().remote_frees, 300);
    CPU.set(0);
    slabs.drain();
    cache.destroy().unwrap();
}

#[test]
fn hits_are_counted_where_that_was_chosen() {
    type Counting<'p> = Sheafed<'p, &'p TestPages, Counted<'p, Pinned<Watched>>>;
    let source = TestPages::new(1024, 1);
    let mut counts = vec![core::mem::MaybeUninit::uninit(); Counted::<()>::bytes(4)];
    let counted = Counted::new(pinned(Watched::default()), 4, &mut counts).unwrap();
    let mut bench = Bench::new::<Counting<'_>>(plan(), &source);
    let slabs = bench.slabs::<Counting<'_>>(&source, counted);
    let cache = make(&slabs, CacheSpec::new("counted", 64));
    let objects: Vec<_> = (0..1000).map(|_| cache.alloc().unwrap()).collect();
    for &object in &objects {
        free(&cache, object).unwrap();
    }
    let numbers = cache.numbers();
    assert_eq!(numbers.hits.unwrap() + numbers.misses, 1000);
    assert!(numbers.hits.unwrap() > 900);
    assert!(numbers.free_hits.unwrap() > 900 && numbers.free_hits.unwrap() <= 1000);
    cache.destroy().unwrap();
    let next = make(&slabs, CacheSpec::new("next", 64));
    assert_eq!(next.numbers().hits, Some(0));
}

#[test]
fn slabinfo_is_linux_s() {
    with(plan(), |slabs| {
        let inodes = make(slabs, CacheSpec::new("inode", 600));
        let long = make(
            slabs,
            CacheSpec::new("a_name_of_more_than_17", 24).checks(Checks::FREES),
        );
        let _objects: Vec<_> = (0..13).map(|_| inodes.alloc().unwrap()).collect();
        let _few: Vec<_> = (0..2).map(|_| long.alloc().unwrap()).collect();
        let expected = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
sheaf                  2      4   1024    4    1 : tunables    0    0    0 : slabdata      1      1      0
inode                 13     18    608    6    1 : tunables    0    0    0 : slabdata      3      3      0
a_name_of_more_than_17      2    128     32  128    1 : tunables    0    0    0 : slabdata      1      1      0
";
        assert_eq!(slabs.slab_info().to_string(), expected);
    });
}
