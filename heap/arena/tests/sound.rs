//! What panics and visitors that stand still leave of threads' numbers; slabs whose pages nobody
//! else can free.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use brickyard::Platform;
use brickyard::zone::ZonePlan;
use brickyard::{FrameRange, Order, Zone, ZoneKind};
use brickyard_arena::rows::{Rseq, ThreadRows};
use brickyard_arena::{Arena, MapPlan, Mapped, Threads};
use brickyard_slab::{
    DirectMap, DirectMapped, Pinned, Sheafed, SlabPlan, Slabs, TaskOnly, ZonePages,
};

/// Numbers are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a thread that has ended.
fn number_of_none(platform: &(impl Platform + Copy + Send + 'static)) -> usize {
    let platform = *platform;
    thread::spawn(move || platform.cpu()).join().unwrap()
}

/// Work that panics for another number leaves the caller its own, and the other free.
fn a_panic_ends_the_visit(platform: impl Platform + Copy + Send + 'static) {
    let own = platform.cpu();
    let other = number_of_none(&platform);
    assert_ne!(own, other);
    let mut calls = 0;
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            platform.run_on(other, &mut || {
                calls += 1;
                panic!("work that panics");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(platform.cpu(), own, "the caller goes by another's number");
    }
    assert_eq!(calls, 2);
    // Others come to the number as before, as visitors or as its thread.
    let ran = thread::spawn(move || platform.run_on(other, &mut || ()));
    assert!(ran.join().unwrap());
}

#[test]
fn a_panic_ends_the_visit_to_a_thread_s_row() {
    let _alone = alone();
    a_panic_ends_the_visit(ThreadRows::new());
}

#[test]
fn a_panic_ends_the_visit_to_a_thread_s_slots() {
    let _alone = alone();
    a_panic_ends_the_visit(Threads);
}

/// A visitor that does not come back is waited for as long as the platform says, and no longer.
fn a_visitor_that_stands_still_is_left(platform: impl Platform + Copy + Send + 'static) {
    let barrier = Barrier::new(2);
    let _own = platform.cpu();
    let number = AtomicUsize::new(0);
    thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            // Both threads have numbers of their own before there is one of nobody's.
            let _own = platform.cpu();
            barrier.wait();
            barrier.wait();
            platform.run_on(number.load(Ordering::Relaxed), &mut || {
                barrier.wait();
                // It stands still.
                barrier.wait();
            })
        });
        barrier.wait();
        let other = number_of_none(&platform);
        number.store(other, Ordering::Relaxed);
        barrier.wait();
        barrier.wait();
        let start = Instant::now();
        let ran = platform.run_on(other, &mut || panic!("it is visited"));
        let waited = start.elapsed();
        barrier.wait();
        assert!(!ran && visitor.join().unwrap());
        // As documented; a busy machine may take longer.
        let bounds = Duration::from_millis(900)..Duration::from_secs(60);
        assert!(bounds.contains(&waited), "{waited:?}");
        // And once it has gone, nobody waits.
        assert!(platform.run_on(other, &mut || ()));
    });
}

#[test]
fn a_visitor_that_stands_still_in_a_thread_s_row_is_left() {
    let _alone = alone();
    a_visitor_that_stands_still_is_left(ThreadRows::new());
}

#[test]
fn a_visitor_that_stands_still_in_a_thread_s_slots_is_left() {
    let _alone = alone();
    a_visitor_that_stands_still_is_left(Threads);
}

/// A number is its visitor's own meanwhile.
fn a_visitor_is_at_home(platform: impl Platform + Copy + Send + 'static) {
    let own = platform.cpu();
    let other = number_of_none(&platform);
    let mut runs = 0;
    assert!(platform.run_on(other, &mut || {
        assert_eq!(platform.cpu(), other);
        assert!(platform.run_on(other, &mut || runs += 1));
        assert!(!platform.run_on(own, &mut || panic!("it is somebody's")));
    }));
    assert_eq!((runs, platform.cpu()), (1, own));
}

#[test]
fn a_visitor_does_not_wait_for_itself() {
    let _alone = alone();
    a_visitor_is_at_home(ThreadRows::new());
    a_visitor_is_at_home(Threads);
}

#[test]
fn a_panic_on_another_cpu_leaves_the_thread_its_affinity() {
    let _alone = alone();
    let Some(rseq) = Rseq::registered() else {
        println!("skipped: no restartable sequences are registered here");
        return;
    };
    let affinity = || {
        // SAFETY: plain data, which the system writes.
        unsafe {
            let mut set: libc::cpu_set_t = core::mem::zeroed();
            assert_eq!(
                libc::sched_getaffinity(0, size_of_val(&set), &raw mut set),
                0
            );
            (0..1024)
                .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
                .collect::<Vec<_>>()
        }
    };
    let found = affinity();
    if found.len() < 2 {
        println!("skipped: the thread may use one CPU only");
        return;
    }
    for &cpu in &found {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            rseq.run_on(cpu, &mut || panic!("work that panics"))
        }));
        assert!(panicked.is_err());
        assert_eq!(affinity(), found);
    }
}

/// Slabs with a zone to themselves. (Who shares a zone with slabs promises in [`ZonePages::shared`]
/// to leave their frames alone: the zone itself takes any frame from anybody, and would hand a
/// slab's page out again.)
#[test]
fn nobody_frees_the_pages_of_slabs_that_have_a_zone_alone() {
    let _alone = alone();
    type Source<'z, 'a> = ZonePages<'z, Zone<'a, DirectMap<&'a Arena>>>;
    type System<'m, 'z, 'a> = Slabs<'m, Sheafed<'m, Source<'z, 'a>, Pinned<Threads>>>;
    let arena = Arena::new(MapPlan::new(16 << 20).align_to(4 << 20).map().unwrap());
    let plan = ZonePlan::new(ZoneKind::Normal, arena.frames(), 4);
    let mut metadata = Mapped::new(DirectMapped::<&Arena>::bytes(&plan)).unwrap();
    // SAFETY: frames are where the arena says, one behind the other; all of it can be used, and by
    // nobody else. Each thread has a number of its own.
    let map = unsafe { DirectMap::new(&arena, 12) };
    let mut zone = DirectMapped::<&Arena>::new(&plan, map, metadata.as_uninit()).unwrap();
    let free = zone.add(arena.frames()).unwrap();
    {
        let pages = ZonePages::new(&mut zone).unwrap();
        // SAFETY: each thread has a number of its own.
        let local = unsafe { Pinned::new(Threads) };
        let plan = SlabPlan::new(8, 4).over(&pages);
        let mut memory = vec![MaybeUninit::uninit(); System::bytes(&plan)];
        let slabs = System::new(plan, pages, local, &mut memory).unwrap();
        let numbers = slabs.typed::<[u64; 4], TaskOnly>("numbers").unwrap();
        let texts = slabs.typed::<[&str; 2], TaskOnly>("texts").unwrap();
        let mut number = numbers.alloc([1; 4]).unwrap();
        let text = texts.alloc(["a text", "another"]).unwrap();
        number[3] = 4;
        assert_eq!((*number, *text), ([1, 1, 1, 4], ["a text", "another"]));
        drop((number, text));
        for cache in [numbers.raw(), texts.raw()] {
            cache.shrink();
        }
        numbers.destroy().unwrap();
        texts.destroy().unwrap();
    }
    // The zone is everybody's again, and has all that it had.
    zone.drain();
    assert_eq!(zone.free_frames(), free);
    let first = FrameRange::at(arena.frames().start, 1);
    assert!(
        zone.free(first.start, Order::ZERO).is_err(),
        "nobody has it"
    );
}
