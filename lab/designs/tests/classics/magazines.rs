//! The magazines of 2013, by the rules after the last of the 22 patches: which one a CPU prefers,
//! what is locked and in which order, how much moves, and that a drain interrupts no CPU.

use crate::classics::support;

use brickyard::block::Use;
use brickyard::{AnyZone, Context, Frame, Mobility};
use brickyard_designs::classics::front::{Direct, MagazineSizes};
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{LabPlan, LabZone};

use support::{
    Blocks, Cpus, MOVABLE, MagazineLock, Mags, Parts, RECLAIMABLE, UNMOVABLE, ZoneLock, count_free,
    exhausted, free, full, give, request, small, sound, take, take_all, usage,
};

/// Frames of one kind.
type Plain = Parts<NoGrouping, Mags>;
/// Frames of three kinds.
type Grouped = Parts<Blocks, Mags>;

/// Runs `work`; returns how often the zone's lock and magazines' locks were taken, and the result.
fn holds<R>(work: impl FnOnce() -> R) -> (usize, usize, R) {
    let (zone, (magazines, result)) = ZoneLock::holds_during(|| MagazineLock::holds_during(work));
    (zone, magazines, result)
}

/// Makes a zone of 4096 frames with empty magazines, and holds `frames` of the frames.
fn holding(frames: usize) -> (Plain, Vec<Frame>) {
    let zone: Plain = full(&small(4096), Cpus::new());
    let held = take(&zone, frames, Mobility::Movable);
    zone.drain();
    assert_eq!(zone.cached_frames(), 0);
    (zone, held)
}

/// Makes such a zone, and holds `each` frames of each kind: unmovable, movable, reclaimable.
fn holding_three_kinds(each: usize) -> (Grouped, [Vec<Frame>; 3]) {
    let zone: Grouped = full(&small(4096), Cpus::new());
    let held = [UNMOVABLE, MOVABLE, RECLAIMABLE].map(|page| take(&zone, each, page.mobility));
    zone.drain();
    (zone, held)
}

// ---- sizes ----

#[test]
fn limit_refill_and_drain_are_as_posted() {
    let sizes = MagazineSizes::POSTED_2013;
    assert_eq!(small(1).magazine, sizes);
    assert_eq!(small(1).magazines, 2);
    assert_eq!(sizes.limit, 1024);
    assert_eq!((sizes.refill.least, sizes.refill.most), (16, 384));
    assert_eq!((sizes.drain.least, sizes.drain.most), (16, 64));
}

// ---- which magazine ----

/// Returns the magazine that each of `cpus` CPUs prefers, found by freeing one frame to each
/// magazine and checking which frame each CPU gets first.
fn preferences(magazines: usize, cpus: usize) -> Vec<usize> {
    let plan = LabPlan {
        magazines,
        ..small(4096)
    };
    let platform = Cpus::new();
    let zone: Plain = full(&plan, platform);
    let held = take(&zone, magazines, Mobility::Movable);
    zone.drain();
    // One frame in each magazine: CPU 2n prefers magazine n if there are enough.
    for (i, &at) in held.iter().enumerate() {
        platform.switch_to(2 * i);
        free(&zone, at, 0);
    }
    let ask = |cpu| {
        platform.switch_to(cpu);
        let got = zone.alloc(&MOVABLE).expect("a frame in its magazine");
        free(&zone, got, 0);
        held.iter().position(|&at| at == got)
    };
    let found: Option<Vec<_>> = (0..cpus).map(ask).collect();
    sound(&zone);
    found.expect("one of the frames in the magazines")
}

#[test]
fn pairs_of_cpus_share_a_magazine() {
    assert_eq!(preferences(2, 8), [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(preferences(4, 10), [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]);
    assert_eq!(preferences(1, 4), [0; 4]);
}

#[test]
fn three_magazines_are_shared_evenly_too() {
    assert_eq!(preferences(3, 8), [0, 0, 1, 1, 2, 2, 0, 0]);
}

/// Makes a zone with one frame in each of its two magazines; returns these frames too.
fn one_in_each() -> (Plain, Frame, Frame) {
    let (zone, held) = holding(2);
    for (cpu, &at) in [0, 2].into_iter().zip(&held) {
        zone.platform().switch_to(cpu);
        free(&zone, at, 0);
    }
    zone.platform().switch_to(0);
    (zone, held[0], held[1])
}

#[test]
fn a_request_takes_from_the_other_magazine_when_the_preferred_one_is_empty() {
    let (zone, preferred, other) = one_in_each();
    assert_eq!(zone.alloc(&MOVABLE), Ok(preferred));
    let (zone_holds, magazine_holds, got) = holds(|| zone.alloc(&MOVABLE));
    assert_eq!(got, Ok(other));
    // The empty one's count was read, but it was not locked.
    assert_eq!((zone_holds, magazine_holds), (0, 1));
}

#[test]
fn a_request_takes_from_the_other_magazine_when_the_preferred_one_is_locked() {
    let (zone, preferred, other) = one_in_each();
    MagazineLock::refuse_tries(1);
    assert_eq!(zone.alloc(&MOVABLE), Ok(other));
    assert_eq!(zone.alloc(&MOVABLE), Ok(preferred));
}

#[test]
fn a_request_waits_for_the_first_with_frames_when_all_are_locked() {
    let (zone, preferred, _) = one_in_each();
    MagazineLock::refuse_tries(2);
    let (zone_holds, _, got) = holds(|| zone.alloc(&MOVABLE));
    assert_eq!((zone_holds, got), (0, Ok(preferred)));
    // Nor does it wait for an empty one.
    let (zone, preferred, other) = one_in_each();
    assert_eq!(zone.alloc(&MOVABLE), Ok(preferred));
    MagazineLock::refuse_tries(1);
    assert_eq!(zone.alloc(&MOVABLE), Ok(other));
}

#[test]
fn a_refill_goes_to_the_first_magazine_that_is_not_locked() {
    for refused in 0..3 {
        let (zone, held) = holding(1);
        MagazineLock::refuse_tries(refused);
        let (zone_holds, magazine_holds, first) = holds(|| zone.alloc(&MOVABLE));
        assert!(first.is_ok());
        // Both magazines are empty: only the refill locks one.
        assert_eq!((zone_holds, magazine_holds), (1, 1));
        // A freed frame goes to the preferred magazine. A CPU that prefers the other gets it only
        // if the other is empty.
        free(&zone, held[0], 0);
        zone.platform().switch_to(2);
        let other_is_empty = zone.alloc(&MOVABLE) == Ok(held[0]);
        // The preferred one at the first try, the other at the second, and after two failed tries
        // the preferred one after a wait.
        assert_eq!(other_is_empty, refused != 1, "{refused} tries refused");
        sound(&zone);
    }
}

// ---- interrupts ----

#[test]
fn a_request_in_an_interrupt_goes_straight_to_the_store() {
    let (zone, held) = holding(3);
    free(&zone, held[0], 0);
    let inside = MOVABLE.in_context(Context::Interrupt);
    for platform_says_so in [false, true] {
        zone.platform().set_interrupt(platform_says_so);
        for request in [inside, if platform_says_so { MOVABLE } else { inside }] {
            let (zone_holds, magazine_holds, got) = holds(|| zone.alloc(&request));
            assert!(got.is_ok_and(|at| at != held[0]));
            assert_eq!((zone_holds, magazine_holds), (1, 0));
        }
    }
    assert_eq!(zone.cached_frames(), 1);
}

#[test]
fn a_free_in_an_interrupt_goes_straight_to_the_store() {
    let (zone, held) = holding(3);
    zone.platform().set_interrupt(true);
    let (zone_holds, magazine_holds, ()) = holds(|| free(&zone, held[0], 0));
    assert_eq!((zone_holds, magazine_holds), (1, 0));
    let (_, magazine_holds, freed) = holds(|| zone.free_bulk(&held[1..]));
    assert_eq!((magazine_holds, freed), (0, Ok(())));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
    sound(&zone);
}

#[test]
fn an_interrupt_locks_no_magazine_even_when_the_store_is_empty() {
    let zone: Plain = full(&small(64), Cpus::new());
    let held = take_all(&zone, Mobility::Movable);
    free(&zone, held[0], 0);
    zone.platform().set_interrupt(true);
    let inside = MOVABLE.in_context(Context::Interrupt);
    let (_, magazine_holds, refused) = holds(|| zone.alloc(&inside));
    assert_eq!((magazine_holds, refused), (0, Err(exhausted(0, 1))));
    assert_eq!(zone.cached_frames(), 1);
}

// ---- frees and the limit ----

#[test]
fn a_free_below_the_limit_takes_one_magazine_lock_and_no_other() {
    let (zone, held) = holding(1023);
    for &at in &held {
        let (zone_holds, magazine_holds, ()) = holds(|| free(&zone, at, 0));
        assert_eq!((zone_holds, magazine_holds), (0, 1));
    }
    assert_eq!(zone.cached_frames(), 1023);
    sound(&zone);
}

#[test]
fn at_the_1024th_frame_64_go_back() {
    let (zone, held) = holding(1024);
    give(&zone, &held[..1023]);
    let (zone_holds, magazine_holds, ()) = holds(|| free(&zone, held[1023], 0));
    assert_eq!((zone_holds, magazine_holds), (1, 1));
    assert_eq!(zone.cached_frames(), 1024 - 64);
    // The coldest frames.
    assert_eq!(count_free(&zone, &held[..64]), 64);
    let warm = &held[64..];
    assert!(warm.iter().all(|&at| usage(&zone, at) == Use::Cached));
    sound(&zone);
}

#[test]
fn the_limit_is_each_magazines_own() {
    let (zone, held) = holding(2046);
    give(&zone, &held[..1023]);
    zone.platform().switch_to(2);
    give(&zone, &held[1023..]);
    assert_eq!(zone.cached_frames(), 2046);
}

#[test]
fn a_drain_goes_round_the_lists_and_begins_after_the_one_freed_to() {
    for last in 0..3 {
        let (zone, held) = holding_three_kinds(342);
        give(&zone, &held[(last + 1) % 3]);
        give(&zone, &held[(last + 2) % 3]);
        give(&zone, &held[last][..340]);
        assert_eq!(zone.cached_frames(), 1024 - 64);
        // 64 are 3 * 21 and one: the list freed to is the last in each round, and the one after it
        // the first.
        let gone = held.each_ref().map(|frames| count_free(&zone, frames));
        assert_eq!((gone[last], gone[(last + 1) % 3]), (21, 22), "{gone:?}");
        assert_eq!(gone[(last + 2) % 3], 21);
        // From the tails.
        assert_eq!(count_free(&zone, &held[last][..21]), 21);
        sound(&zone);
    }
}

#[test]
fn a_list_after_an_empty_one_gives_twice_as_many() {
    // The lists in the order of the walk: unmovable, movable, reclaimable, and round again.
    for (empty, twice, once) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        let (zone, held) = holding_three_kinds(512);
        give(&zone, &held[twice]);
        give(&zone, &held[once]);
        let gone = held.each_ref().map(|frames| count_free(&zone, frames));
        assert_eq!(gone[empty], 0);
        assert_eq!(gone[twice] + gone[once], 64);
        assert!((41..=44).contains(&gone[twice]), "{gone:?}");
    }
}

#[test]
fn a_contended_drain_of_three_lists_ends_after_17() {
    let (zone, held) = holding_three_kinds(342);
    give(&zone, &held[0]);
    give(&zone, &held[1]);
    MagazineLock::while_contended(|| give(&zone, &held[2][..340]));
    assert_eq!(zone.cached_frames(), 1024 - 17);
}

#[test]
fn a_contended_drain_of_one_list_ends_after_two_runs_of_16() {
    // Contention is checked after each visit of a list, and 16 in a row leave the only list; after
    // the first run it is not yet more than 16.
    let (zone, held) = holding(1024);
    MagazineLock::while_contended(|| give(&zone, &held));
    assert_eq!(zone.cached_frames(), 1024 - 32);
}

#[test]
fn contention_for_the_zone_lock_does_not_end_a_drain() {
    let (zone, held) = holding(1024);
    ZoneLock::while_contended(|| give(&zone, &held));
    assert_eq!(zone.cached_frames(), 1024 - 64);
}

#[test]
fn a_bulk_free_holds_one_lock_and_drains_one_step() {
    let (zone, held) = holding(3000);
    let (zone_holds, magazine_holds, freed) = holds(|| zone.free_bulk(&held));
    assert_eq!(freed, Ok(()));
    assert_eq!((zone_holds, magazine_holds), (1, 1));
    assert_eq!(zone.cached_frames(), 3000 - 64);
    // The next free drains another step.
    let page = take(&zone, 1, Mobility::Movable);
    give(&zone, &page);
    assert_eq!(zone.cached_frames(), 3000 - 2 * 64);
    sound(&zone);
}

#[test]
fn the_zone_lock_is_taken_under_no_magazines_lock() {
    let (zone, held) = holding(2000);
    give(&zone, &held);
    assert_eq!(zone.free_bulk(&take(&zone, 500, Mobility::Movable)), Ok(()));
    zone.drain();
    take(&zone, 10, Mobility::Movable);
    assert_eq!(ZoneLock::nested(), 0);
}

// ---- refills ----

#[test]
fn a_refill_takes_384() {
    let zone: Plain = full(&small(4096), Cpus::new());
    let (zone_holds, _, got) = holds(|| zone.alloc(&MOVABLE));
    assert!(got.is_ok());
    assert_eq!(zone_holds, 1);
    assert_eq!(
        (zone.free_frames(), zone.cached_frames()),
        (4096 - 384, 383)
    );
    sound(&zone);
}

#[test]
fn a_refill_is_handed_out_from_the_frame_taken_last() {
    let zone: Plain = full(&small(4096), Cpus::new());
    let store: Parts<NoGrouping, Direct> = full(&small(4096), Cpus::new());
    for _ in 0..2 {
        let mut of_store = take(&store, 384, Mobility::Movable);
        of_store.reverse();
        assert_eq!(take(&zone, 384, Mobility::Movable), of_store);
    }
}

#[test]
fn a_contended_refill_takes_17() {
    let zone: Plain = full(&small(4096), Cpus::new());
    let got = ZoneLock::while_contended(|| zone.alloc(&MOVABLE));
    assert!(got.is_ok());
    assert_eq!(zone.cached_frames(), 16);
}

#[test]
fn contention_for_a_magazine_does_not_end_a_refill() {
    let zone: Plain = full(&small(4096), Cpus::new());
    let got = MagazineLock::while_contended(|| zone.alloc(&MOVABLE));
    assert!(got.is_ok());
    assert_eq!(zone.cached_frames(), 383);
}

#[test]
fn a_refill_takes_what_there_is() {
    let zone: Plain = full(&small(100), Cpus::new());
    take(&zone, 1, Mobility::Movable);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 99));
}

#[test]
fn frames_of_other_types_do_not_stop_a_refill() {
    let (zone, [_, movable, _]) = holding_three_kinds(200);
    give(&zone, &movable);
    let (zone_holds, _, got) = holds(|| zone.alloc(&UNMOVABLE));
    assert!(got.is_ok_and(|at| !movable.contains(&at)));
    assert_eq!(zone_holds, 1);
    assert_eq!(zone.cached_frames(), 200 + 383);
}

#[test]
fn frames_of_the_type_in_another_magazine_do_not_stop_a_refill() {
    let (zone, [unmovable, movable, _]) = holding_three_kinds(1);
    give(&zone, &movable);
    zone.platform().switch_to(2);
    give(&zone, &unmovable);
    zone.platform().switch_to(0);
    let (zone_holds, _, got) = holds(|| zone.alloc(&UNMOVABLE));
    assert!(got.is_ok());
    assert_eq!(zone_holds, 1);
}

#[test]
fn larger_blocks_bypass_the_magazines() {
    let zone: Plain = full(&small(4096), Cpus::new());
    let (_, magazine_holds, block) = holds(|| zone.alloc(&request(1, Mobility::Movable)));
    assert_eq!(magazine_holds, 0);
    let (_, magazine_holds, ()) = holds(|| free(&zone, block.unwrap(), 1));
    assert_eq!(magazine_holds, 0);
    assert_eq!(zone.free_frames(), 4096);
}

#[test]
fn pages_of_other_types_are_kept_as_movable() {
    // A block for atomic requests: its single pages count as movable ones.
    let zone: Grouped = full(&small(4096), Cpus::new());
    let pair = zone.alloc(&request(1, Mobility::Unmovable).atomic());
    let page = pair.unwrap().plus(2);
    assert_eq!(zone.alloc_at(page, &UNMOVABLE), Ok(()));
    free(&zone, page, 0);
    assert_eq!(zone.cached_frames(), 1);
    let (zone_holds, _, got) = holds(|| zone.alloc(&MOVABLE));
    assert_eq!((zone_holds, got), (0, Ok(page)));
}

// ---- drains ----

#[test]
fn a_full_drain_empties_every_magazine_and_interrupts_no_cpu() {
    let (zone, held) = holding(2000);
    for (i, &at) in held.iter().enumerate() {
        zone.platform().switch_to(i % 4);
        free(&zone, at, 0);
    }
    assert_eq!(zone.cached_frames(), 2000);
    let (_, magazine_holds, drained) = holds(|| zone.drain());
    assert_eq!((magazine_holds, drained), (2, 2000));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (4096, 0));
    assert_eq!(zone.platform().interruptions(), 0);
    sound(&zone);
}

#[test]
fn contention_does_not_end_a_full_drain() {
    let (zone, held) = holding_three_kinds(300);
    for frames in &held {
        give(&zone, frames);
    }
    let drained = MagazineLock::while_contended(|| ZoneLock::while_contended(|| zone.drain()));
    assert_eq!((drained, zone.cached_frames()), (900, 0));
}

#[test]
fn order_0_succeeds_though_the_last_frame_is_of_another_type_and_in_another_magazine() {
    let zone: Grouped = full(&small(512), Cpus::new());
    let held = take_all(&zone, Mobility::Movable);
    zone.platform().switch_to(2);
    free(&zone, held[7], 0);
    zone.platform().switch_to(0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 1));
    assert_eq!(zone.alloc(&UNMOVABLE), Ok(held[7]));
    assert_eq!(zone.alloc(&UNMOVABLE), Err(exhausted(0, 0)));
    assert_eq!(zone.platform().interruptions(), 0);
    sound(&zone);
}
