// Planted bugs, and what each level of checking finds of them, on slabs of any design.

#![allow(dead_code, reason = "not every test uses all of it")]

use core::cell::RefCell;
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use brickyard::Platform;
use brickyard_slab::debug::{Fault, Moment, User};
use brickyard_slab::{
    CacheSpec, Checks, Finding, FreeFault, RawCache, RuleText, SlabDesign, SlabPlan, Slabs,
    TaskOnly,
};

use crate::lasting::{give, take};

/// CPU 3, task 77, and a clock that goes on by 1 whenever it is asked.
#[derive(Debug, Default)]
pub(crate) struct Watched(AtomicU64);

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

pub(crate) fn report(finding: &Finding) {
    FOUND.with_borrow_mut(|found| found.push(*finding));
}

/// What was found since the last time.
pub(crate) fn found() -> Vec<Finding> {
    FOUND.take()
}

/// The one thing that was found.
pub(crate) fn the_finding() -> Finding {
    let found = found();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

pub(crate) fn plan() -> SlabPlan {
    SlabPlan::new(60, 4).debug(&[], report)
}

/// A plan that checks the general sizes.
pub(crate) fn checked_plan() -> SlabPlan {
    let text = RuleText::parse("FZPU,general-*").unwrap();
    SlabPlan::new(60, 4).debug_text(text, report)
}

/// Slabs of this design and plan.
macro_rules! with_slabs {
    ($design:ident, $plan:expr, $work:expr) => {{
        let source = TestPages::new(1024, 1);
        let mut bench = Bench::new::<$design<'_>>($plan, &source);
        let slabs = bench.slabs::<$design<'_>>(&source, pinned(planted::Watched::default()));
        $work(&slabs);
    }};
}

/// A test of each planted bug on slabs of this design.
macro_rules! finds_planted_bugs {
    ($design:ident) => {
        finds_planted_bugs! {
            $design
            one_byte_behind_is_found plan
            one_byte_before_is_found plan
            far_overflows_do_not_hide_who plan
            double_frees_are_found_by_every_check plan
            use_after_free_is_found_at_the_next_alloc plan
            a_free_object_s_red_zone_is_watched plan
            writes_are_found_before_the_slab_goes plan
            foreign_frees_are_found plan
            what_a_constructor_made_lasts plan
            leaks_are_named plan
            checked_objects_are_whole_and_aligned plan
            general_sizes_have_names_of_their_own plan
            general_sizes_are_checked checked_plan
        }
    };
    ($design:ident $($name:ident $plan:ident)*) => {
        $(
            #[test]
            fn $name() {
                with_slabs!($design, planted::$plan(), planted::$name);
            }
        )*
    };
}

pub(crate) use {finds_planted_bugs, with_slabs};

pub(crate) type Raw<'s, 'm, D> = RawCache<'s, 'm, D, TaskOnly>;

pub(crate) fn make<'s, 'm, D: SlabDesign<'m>>(
    slabs: &'s Slabs<'m, D>,
    spec: CacheSpec,
) -> Raw<'s, 'm, D> {
    slabs.cache(spec).unwrap()
}

/// Frees what may be no object of the cache, or free already.
#[track_caller]
pub(crate) fn free<'m, D: SlabDesign<'m>>(
    cache: &Raw<'_, 'm, D>,
    object: NonNull<u8>,
) -> Result<(), FreeFault> {
    // SAFETY: where it is an object in use, the test does not use it any more; where it is not,
    // that is the test.
    unsafe { cache.free(object) }
}

pub(crate) fn write(object: NonNull<u8>, offset: isize, value: u8) {
    // SAFETY: all that is written here, right or wrong, lies in slabs of the test's own.
    unsafe { object.offset(offset).write(value) };
}

pub(crate) fn fill(object: NonNull<u8>, value: u8, bytes: usize) {
    // SAFETY: the object is the caller's, and as large.
    unsafe { object.write_bytes(value, bytes) };
}

pub(crate) fn read(object: NonNull<u8>, offset: usize) -> u8 {
    // SAFETY: a byte of an object, which has been written.
    unsafe { object.add(offset).read() }
}

pub(crate) fn past(object: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    // SAFETY: inside the same slab.
    unsafe { object.add(bytes) }
}

/// A finding's text, with the object's address as `OBJECT` and no column numbers.
#[track_caller]
pub(crate) fn text(finding: &Finding) -> String {
    let text = finding.to_string();
    let text = text.replace(&format!("{:#x}", finding.object), "OBJECT");
    let mut plain = String::new();
    let mut rest = text.as_str();
    let file = Location::caller().file();
    while let Some(at) = rest.find(file) {
        let line = at + file.len() + 1;
        let column = line + rest[line..].find(':').unwrap();
        plain.push_str(&rest[..column]);
        rest = rest[column + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    plain + rest
}

/// `file:line` of the caller, `lines` lines above.
#[track_caller]
pub(crate) fn above(lines: u32) -> String {
    let here = Location::caller();
    format!("{}:{}", here.file(), here.line() - lines)
}

pub(crate) fn one_byte_behind_is_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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

pub(crate) fn one_byte_before_is_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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

pub(crate) fn far_overflows_do_not_hide_who<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let cache = make(slabs, CacheSpec::new("far", 40).checks(Checks::ALL));
    let object = cache.alloc().unwrap();
    // Over the red zone, the link and half of who allocated it; then told as overwritten, not
    // followed.
    for offset in 40..90 {
        write(object, offset, 0x41);
    }
    assert_eq!(free(&cache, object), Err(FreeFault::Damaged));
    let finding = the_finding();
    assert!(matches!(finding.fault, Fault::WrittenBehind(damage) if damage.offset == 40));
    assert_eq!(finding.allocated, User::Overwritten);
    assert!(text(&finding).contains("allocated by: (the record has been overwritten)"));
}

pub(crate) fn double_frees_are_found_by_every_check<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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
        let again = take(&cache, 2);
        assert_ne!(again[0], again[1]);
        for object in [objects[0], again[0], again[1]] {
            free(&cache, object).unwrap();
        }
        assert!(found().is_empty());
        cache.destroy().unwrap();
    }
}

pub(crate) fn use_after_free_is_found_at_the_next_alloc<'m, D: SlabDesign<'m>>(
    slabs: &Slabs<'m, D>,
) {
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

pub(crate) fn a_free_object_s_red_zone_is_watched<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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
    // Whoever still has its address and frees it once more is told what that is, as far as the red
    // zones are whole.
    write(object, 33, 0xbb);
    assert_eq!(free(&cache, object), Err(FreeFault::DoubleFree));
    assert_eq!(the_finding().fault, Fault::DoubleFree);
}

pub(crate) fn writes_are_found_before_the_slab_goes<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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

pub(crate) fn foreign_frees_are_found<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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

        give(&cache, &objects);
        free(&other, theirs).unwrap();
        assert!(found().is_empty());
        cache.destroy().unwrap();
        other.destroy().unwrap();
    }
}

pub(crate) fn what_a_constructor_made_lasts<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    fn construct(object: NonNull<u8>) {
        fill(object, 0x77, 48);
    }
    for checks in [Checks::NONE, Checks::POISON, Checks::ALL] {
        let spec = CacheSpec::new("made", 48).constructor(construct);
        let cache = make(slabs, spec.checks(checks));
        for _ in 0..3 {
            let objects = take(&cache, 300);
            for &object in &objects {
                assert!((0..48).all(|byte| read(object, byte) == 0x77), "{checks}");
            }
            give(&cache, &objects);
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

pub(crate) fn leaks_are_named<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let cache = make(slabs, CacheSpec::new("leaky", 200).checks(Checks::TRACK));
    let objects = take(&cache, 50);
    let lost = cache.alloc().unwrap();
    let allocated = above(1);
    give(&cache, &objects);
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

pub(crate) fn checked_objects_are_whole_and_aligned<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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
            let spec = CacheSpec::new("whole", size).align(align);
            let cache = make(slabs, spec.checks(checks));
            for _ in 0..2 {
                let objects = take(&cache, 100);
                for (i, object) in objects.iter().enumerate() {
                    assert!(object.addr().get().is_multiple_of(align), "{size} {checks}");
                    fill(*object, i as u8, size);
                }
                for (i, object) in objects.iter().enumerate() {
                    assert!((0..size).all(|byte| read(*object, byte) == i as u8));
                }
                give(&cache, &objects);
            }
            let numbers = cache.numbers();
            assert_eq!((numbers.in_use(), numbers.queued, numbers.slabs), (0, 0, 0));
            cache.destroy().unwrap();
        }
    }
    assert!(found().is_empty());
}

pub(crate) fn general_sizes_have_names_of_their_own<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
    let general = slabs.general::<TaskOnly>().unwrap();
    let mut names: Vec<_> = slabs.numbers().map(|numbers| numbers.name).collect();
    let many = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), many, "a name of its own for each cache");
    assert_eq!(general.max_size(), 32 << 10);
}

pub(crate) fn general_sizes_are_checked<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) {
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
