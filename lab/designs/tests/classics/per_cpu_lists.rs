//! The per-CPU lists of 2013 (Linux 3.9), rule by rule: batch 31 and high 186, three lists, which
//! frames go back and from where, and which requests reach a frame in another CPU's lists.

use crate::classics::support;

use brickyard::block::Use;
use brickyard::sync::{Exclusive, Shared};
use brickyard::{AnyZone, Context, Frame, FrameRange, Mobility, Order, ZonePlan};
use brickyard_designs::classics::front::{Front, ListSizes};
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{LabPlan, LabZone, Placed};

use support::{
    Blocks, Cpus, Lists, MOVABLE, Parts, RECLAIMABLE, UNMOVABLE, ZoneLock, count_free, exhausted,
    free, full, give, request, small, sound, state, take, take_all, usage,
};

/// Frames of one kind, slots that only their owner enters.
type Plain = Parts<NoGrouping, Lists<Exclusive>>;
/// The same, slots that any CPU enters.
type SharedSlots = Parts<NoGrouping, Lists<Shared>>;
/// Frames of three kinds.
type Grouped = Parts<Blocks, Lists<Exclusive>>;

/// Makes a zone of `frames` frames for four CPUs.
fn four_cpus<F>(frames: usize, cpus: &'static Cpus) -> Parts<NoGrouping, F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let plan = LabPlan::of(ZonePlan {
        cpus: 4,
        ..small(frames).zone
    });
    full(&plan, cpus)
}

/// Runs `work`; returns how often the zone's lock was taken.
fn holds<R>(work: impl FnOnce() -> R) -> usize {
    ZoneLock::holds_during(work).0
}

// ---- sizes ----

#[test]
fn batch_is_31_and_high_is_186() {
    let sizes = ListSizes {
        batch: 31,
        high: 186,
    };
    assert_eq!(ListSizes::LINUX_2013, sizes);
    assert_eq!(small(1).lists, sizes);
    // From 512 MiB on.
    assert_eq!(ListSizes::for_zone(131_072), sizes);
    assert_eq!(ListSizes::for_zone(usize::MAX), sizes);
}

#[test]
fn smaller_zones_have_smaller_lists() {
    // 65536 / 1024 = 64, / 4 = 16, 16 + 8 down to 16, less 1; high is six batches.
    let of = |managed| {
        let ListSizes { batch, high } = ListSizes::for_zone(managed);
        (batch, high)
    };
    assert_eq!(of(65_536), (15, 90));
    // 24 / 4 = 6, 6 + 3 down to 8, less 1.
    assert_eq!(of(24 * 1024), (7, 42));
    assert_eq!(of(0), (1, 6));
}

// ---- requests ----

#[test]
fn an_empty_list_fetches_a_batch() {
    let zone: Plain = full(&small(1024), Cpus::new());
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 1);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1024 - 31, 30));
    sound(&zone);
}

#[test]
fn a_list_with_frames_fetches_nothing() {
    let zone: Plain = full(&small(1024), Cpus::new());
    take(&zone, 1, Mobility::Movable);
    assert_eq!(holds(|| take(&zone, 30, Mobility::Movable)), 0);
    assert_eq!(zone.cached_frames(), 0);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 1);
    assert_eq!(zone.cached_frames(), 30);
}

#[test]
fn each_kind_has_a_list_of_its_own() {
    let zone: Grouped = full(&small(1024), Cpus::new());
    for (i, mobility) in Mobility::ALL.into_iter().enumerate() {
        assert_eq!(holds(|| take(&zone, 1, mobility)), 1, "{mobility:?}");
        assert_eq!(zone.cached_frames(), (i + 1) * 30);
    }
    for mobility in Mobility::ALL {
        assert_eq!(holds(|| take(&zone, 30, mobility)), 0, "{mobility:?}");
    }
    sound(&zone);
}

#[test]
fn each_cpu_has_lists_of_its_own() {
    let cpus = Cpus::new();
    let zone: Plain = four_cpus(1024, cpus);
    for cpu in 0..4 {
        cpus.switch_to(cpu);
        assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 1);
        assert_eq!(zone.cached_frames(), (cpu + 1) * 30);
    }
}

#[test]
fn the_frame_freed_last_is_handed_out_first() {
    let zone: Plain = full(&small(1024), Cpus::new());
    let held = take(&zone, 40, Mobility::Movable);
    give(&zone, &held);
    let again = take(&zone, 40, Mobility::Movable);
    assert!(again.iter().eq(held.iter().rev()));
}

#[test]
fn larger_blocks_bypass_the_lists() {
    let zone: Plain = full(&small(1024), Cpus::new());
    let block = zone.alloc(&request(1, Mobility::Movable)).unwrap();
    assert_eq!(zone.cached_frames(), 0);
    // A part of it is freed to the store; the rest is a single frame.
    free(&zone, block, 0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1023, 0));
    free(&zone, block.plus(1), 0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1023, 1));
    zone.drain();
    let block = zone.alloc(&request(4, Mobility::Movable)).unwrap();
    free(&zone, block, 4);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1024, 0));
    sound(&zone);
}

#[test]
fn many_frames_at_once_cost_a_hold_for_each_batch() {
    let zone: Plain = full(&small(1024), Cpus::new());
    let mut frames = [Frame::new(0); 100];
    let (holds, taken) = ZoneLock::holds_during(|| zone.alloc_bulk(&MOVABLE, &mut frames));
    assert_eq!((holds, taken), (4, Ok(100)));
    assert_eq!(zone.cached_frames(), 4 * 31 - 100);
    let (holds, freed) = ZoneLock::holds_during(|| zone.free_bulk(&frames));
    assert_eq!((holds, freed), (0, Ok(())));
    assert_eq!(zone.cached_frames(), 4 * 31);
}

#[test]
fn each_frame_of_a_list_is_freed_under_a_mask_of_its_own() {
    let (zone, held) = holding(14);
    let before = zone.platform().masks();
    assert_eq!(zone.free_bulk(&held), Ok(()));
    assert_eq!(zone.platform().masks() - before, 14);
}

// ---- frees ----

/// Makes a zone with empty lists, and holds `frames` of the frames.
fn holding(frames: usize) -> (Plain, Vec<Frame>) {
    let zone: Plain = full(&small(1024), Cpus::new());
    let held = take(&zone, frames, Mobility::Movable);
    zone.drain();
    assert_eq!(zone.cached_frames(), 0);
    (zone, held)
}

#[test]
fn frees_below_high_stay_in_the_list() {
    let (zone, held) = holding(185);
    assert_eq!(holds(|| give(&zone, &held)), 0);
    assert_eq!(zone.cached_frames(), 185);
    sound(&zone);
}

#[test]
fn at_the_186th_frame_31_go_back() {
    let (zone, held) = holding(186);
    give(&zone, &held[..185]);
    assert_eq!(holds(|| free(&zone, held[185], 0)), 1);
    assert_eq!(zone.cached_frames(), 155);
    assert_eq!(zone.free_frames(), 1024 - 155);
    sound(&zone);
}

#[test]
fn another_31_frees_later_another_31_go_back() {
    let (zone, held) = holding(186 + 31);
    give(&zone, &held[..186]);
    assert_eq!(holds(|| give(&zone, &held[186..216])), 0);
    assert_eq!(holds(|| free(&zone, held[216], 0)), 1);
    assert_eq!(zone.cached_frames(), 155);
}

#[test]
fn the_frames_freed_first_go_back_first() {
    let (zone, held) = holding(186);
    give(&zone, &held);
    let (cold, warm) = held.split_at(31);
    assert!(cold.iter().all(|&at| usage(&zone, at) == Use::Free));
    assert!(warm.iter().all(|&at| usage(&zone, at) == Use::Cached));
}

/// Holds `each` frames of each kind, unmovable, movable and reclaimable, with the lists empty.
fn holding_three_kinds(zone: &Grouped, each: usize) -> [Vec<Frame>; 3] {
    let held = [UNMOVABLE, MOVABLE, RECLAIMABLE].map(|page| take(zone, each, page.mobility));
    zone.drain();
    // Each is in blocks of its own type, so it is freed to the list of its own type.
    assert!((0..3).all(|kind| held[kind].len() == each));
    held
}

#[test]
fn frames_go_back_from_all_lists_in_turn_and_from_their_tails() {
    let zone: Grouped = full(&small(1024), Cpus::new());
    let held = holding_three_kinds(&zone, 62);
    for frames in &held {
        give(&zone, frames);
    }
    assert_eq!(zone.cached_frames(), 155);
    let gone = held.each_ref().map(|frames| count_free(&zone, frames));
    assert_eq!(gone.iter().sum::<usize>(), 31);
    for (frames, gone) in held.iter().zip(gone) {
        assert!((10..=11).contains(&gone), "{gone} of 31");
        assert_eq!(count_free(&zone, &frames[..gone]), gone, "the oldest");
    }
    sound(&zone);
}

#[test]
fn a_list_after_an_empty_one_gives_twice_as_many() {
    // The lists in the order of the walk: unmovable, movable, reclaimable, and round again.
    for (empty, twice, once) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        let zone: Grouped = full(&small(1024), Cpus::new());
        let held = holding_three_kinds(&zone, 93);
        give(&zone, &held[twice]);
        give(&zone, &held[once]);
        let gone = held.each_ref().map(|frames| count_free(&zone, frames));
        assert_eq!(gone[empty], 0);
        assert_eq!(gone[twice] + gone[once], 31);
        assert!(
            (20..=22).contains(&gone[twice]),
            "list {empty} is empty: {gone:?}"
        );
    }
}

#[test]
fn high_counts_the_frames_of_all_three_lists() {
    let zone: Grouped = full(&small(1024), Cpus::new());
    let held = holding_three_kinds(&zone, 62);
    give(&zone, &held[0]);
    give(&zone, &held[1]);
    assert_eq!(holds(|| give(&zone, &held[2][..61])), 0);
    assert_eq!(zone.cached_frames(), 185);
}

// ---- interrupts and other CPUs ----

#[test]
fn interrupts_use_the_lists() {
    let cpus = Cpus::new();
    let zone: Plain = full(&small(1024), cpus);
    let page = take(&zone, 1, Mobility::Movable)[0];
    cpus.set_interrupt(true);
    let inside = MOVABLE.in_context(Context::Interrupt);
    assert_eq!(holds(|| assert!(zone.alloc(&inside).is_ok())), 0);
    assert_eq!(holds(|| free(&zone, page, 0)), 0);
    assert_eq!(zone.cached_frames(), 30);
    assert!(cpus.is_at_rest());
}

/// Makes a zone with frames in the lists of CPUs 1 and 3; CPU 0 runs and has some in its lists,
/// too.
fn held_by_three<F>(cpus: &'static Cpus) -> Parts<NoGrouping, F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone = four_cpus(1024, cpus);
    for cpu in [1, 3, 0] {
        cpus.switch_to(cpu);
        let held = take(&zone, 1, Mobility::Movable);
        give(&zone, &held);
    }
    assert_eq!(zone.cached_frames(), 3 * 31);
    zone
}

#[test]
fn a_drain_interrupts_only_cpus_with_frames() {
    let cpus = Cpus::new();
    let zone: Plain = held_by_three(cpus);
    assert_eq!(zone.drain(), 3 * 31);
    // CPUs 1 and 3; not CPU 2, whose lists are empty, nor the CPU that drains.
    assert_eq!(cpus.interruptions(), 2);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1024, 0));
    assert_eq!(zone.drain(), 0);
    assert_eq!(cpus.interruptions(), 2);
    sound(&zone);
}

#[test]
fn a_drain_of_shared_slots_interrupts_no_cpu() {
    let cpus = Cpus::new();
    let zone: SharedSlots = held_by_three(cpus);
    assert_eq!(zone.drain(), 3 * 31);
    assert_eq!(cpus.interruptions(), 0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1024, 0));
    sound(&zone);
}

#[test]
fn a_drain_leaves_frames_out_of_reach() {
    let cpus = Cpus::new();
    let zone: Plain = held_by_three(cpus);
    cpus.put_others_out_of_reach();
    assert_eq!(zone.drain(), 31);
    assert_eq!(zone.cached_frames(), 2 * 31);
    sound(&zone);
}

#[test]
fn a_cpu_without_a_slot_goes_to_the_store() {
    let cpus = Cpus::new();
    let zone: Plain = four_cpus(1024, cpus);
    cpus.switch_to(4);
    let (holds, page) = ZoneLock::holds_during(|| zone.alloc(&MOVABLE));
    assert_eq!((holds, zone.free_frames()), (1, 1023));
    let (holds, ()) = ZoneLock::holds_during(|| free(&zone, page.unwrap(), 0));
    assert_eq!((holds, zone.free_frames()), (1, 1024));
    let mut many = [Frame::new(0); 10];
    assert_eq!(zone.alloc_bulk(&MOVABLE, &mut many), Ok(10));
    assert_eq!(zone.free_bulk(&many), Ok(()));
    assert_eq!((zone.free_frames(), zone.cached_frames()), (1024, 0));
    assert!(cpus.is_at_rest());
    sound(&zone);
}

/// Makes a zone whose last free frame is in CPU 3's list; CPU 0 runs.
fn last_frame_elsewhere<F>(cpus: &'static Cpus) -> Parts<NoGrouping, F>
where
    F: Front<NoGrouping, ZoneLock, &'static Cpus> + Placed<'static>,
{
    let zone = four_cpus(100, cpus);
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 100);
    cpus.switch_to(3);
    free(&zone, held[50], 0);
    cpus.switch_to(0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 1));
    zone
}

#[test]
fn order_0_succeeds_though_the_last_frame_is_in_another_cpus_list() {
    let cpus = Cpus::new();
    let zone: Plain = last_frame_elsewhere(cpus);
    assert!(zone.alloc(&UNMOVABLE).is_ok());
    assert_eq!(cpus.interruptions(), 1);
    assert_eq!(zone.alloc(&UNMOVABLE), Err(exhausted(0, 0)));
    sound(&zone);
}

#[test]
fn order_0_succeeds_with_shared_slots_and_interrupts_no_cpu() {
    let cpus = Cpus::new();
    let zone: SharedSlots = last_frame_elsewhere(cpus);
    assert!(zone.alloc(&UNMOVABLE).is_ok());
    assert_eq!(cpus.interruptions(), 0);
    sound(&zone);
}

#[test]
fn order_0_fails_only_where_the_platform_cannot_reach_the_frame() {
    let cpus = Cpus::new();
    let zone: Plain = last_frame_elsewhere(cpus);
    cpus.put_others_out_of_reach();
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 1)));
    assert_eq!(zone.cached_frames(), 1);
    cpus.switch_to(3);
    assert!(zone.alloc(&MOVABLE).is_ok());
    sound(&zone);
}

#[test]
fn a_request_in_an_interrupt_waits_for_no_other_cpu() {
    // A request in an interrupt waits for no other CPU: running something on another CPU is a wait
    // for it.
    let cpus = Cpus::new();
    let zone: Plain = last_frame_elsewhere(cpus);
    cpus.set_interrupt(true);
    let inside = MOVABLE.in_context(Context::Interrupt);
    let answer = zone.alloc(&inside);
    assert_eq!(cpus.interruptions(), 0, "{answer:?}");
    sound(&zone);
}

#[test]
fn a_request_in_an_interrupt_enters_no_other_cpus_slot() {
    let cpus = Cpus::new();
    let zone: SharedSlots = last_frame_elsewhere(cpus);
    cpus.set_interrupt(true);
    let inside = MOVABLE.in_context(Context::Interrupt);
    assert_eq!(zone.alloc(&inside), Err(exhausted(0, 1)));
    assert_eq!(zone.cached_frames(), 1);
}

#[test]
fn a_request_in_an_interrupt_reaches_all_lists_of_its_own_cpu() {
    // The last frame is on the movable list of the CPU that requests an unmovable one.
    let cpus = Cpus::new();
    let zone: Grouped = full(&small(512), cpus);
    let held = take_all(&zone, Mobility::Movable);
    free(&zone, held[9], 0);
    assert_eq!((zone.free_frames(), zone.cached_frames()), (0, 1));
    cpus.set_interrupt(true);
    let inside = UNMOVABLE.in_context(Context::Interrupt);
    assert_eq!(zone.alloc(&inside), Ok(held[9]));
    sound(&zone);
}

#[test]
fn an_atomic_request_interrupts_no_cpu() {
    // It may hold a lock that the other CPU waits for with interrupts masked.
    let cpus = Cpus::new();
    let zone: Plain = last_frame_elsewhere(cpus);
    assert_eq!(zone.alloc(&MOVABLE.atomic()), Err(exhausted(0, 1)));
    assert_eq!(cpus.interruptions(), 0);
    // It may lock a shared slot.
    let zone: SharedSlots = last_frame_elsewhere(cpus);
    assert!(zone.alloc(&MOVABLE.atomic()).is_ok());
    assert_eq!(cpus.interruptions(), 0);
    sound(&zone);
}

#[test]
fn a_block_whose_frames_are_in_lists_is_found() {
    let cpus = Cpus::new();
    let zone: Plain = four_cpus(128, cpus);
    let held = take_all(&zone, Mobility::Movable);
    let block = FrameRange::new(64, 80);
    for (i, at) in block.frames().enumerate() {
        cpus.switch_to(i % 4);
        free(&zone, at, 0);
    }
    assert_eq!(held.len(), 128);
    assert_eq!(zone.cached_frames(), 16);
    let found = zone.alloc(&request(4, Mobility::Movable));
    assert_eq!(found, Ok(block.start));
    assert_eq!(state(&zone, block.start).order, Order::new(4));
    sound(&zone);
}
