//! The limits of a zone, in every design, including the default.
//!
//! Nothing here builds a zone of terabytes: a plan is checked before any of its memory is accessed.
//! On machines of 32 bits the compiler does that, since the address space runs out before frames
//! do.

#![cfg(not(loom))]
#![cfg_attr(
    target_pointer_width = "32",
    allow(
        unused_imports,
        dead_code,
        reason = "some tests need numbers of 64 bits"
    )
)]

use crate::classics::support;

use core::mem::MaybeUninit;

use brickyard::node::Node;
use brickyard::sync::{Exclusive, Shared, TicketLock};
use brickyard::{AnyZone, FRAMES_MOST, FrameRange, OneCpu, Order, PlanError, ZoneKind, ZonePlan};
use brickyard_designs::classics::front::Direct;
use brickyard_designs::classics::store::frames::FrameTable;
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{
    Configuration, Experiment, LabPlan, LabZone, List2007, MachinePlan, Magazine2013, Planned,
    TwoKinds2005, Vanilla,
};

use support::{Cpus, MOVABLE, Parts, any_zone, full, small, take_all};

fn plan(frames: usize) -> LabPlan {
    LabPlan::new(ZoneKind::Normal, FrameRange::new(0, frames), 1)
}

/// 2^30 frames have 12 GiB of records: an overflow that must be found.
#[cfg(target_pointer_width = "32")]
#[test]
fn records_beyond_the_address_space_are_refused() {
    let records = Vanilla::<OneCpu>::checked_bytes_for(&plan(1 << 30));
    assert_eq!(records, Err(PlanError::TooManyBytes));
}

/// Returns for each design the bytes of a plan, and the error of building it without memory.
fn judged(plan: &LabPlan) -> [(Result<usize, PlanError>, PlanError); 5] {
    macro_rules! judge {
        ($design:ty) => {
            (
                <$design>::checked_bytes_for(plan),
                <$design>::by(plan, OneCpu, &mut []).expect_err("there is no memory"),
            )
        };
    }
    [
        judge!(brickyard::Zone<OneCpu>),
        judge!(Vanilla<OneCpu>),
        judge!(TwoKinds2005<OneCpu>),
        judge!(List2007<OneCpu>),
        judge!(Magazine2013<OneCpu>),
    ]
}

#[cfg(target_pointer_width = "64")]
#[test]
fn the_most_frames_have_a_zone_in_every_design() {
    for (bytes, zone) in judged(&plan(FRAMES_MOST)) {
        let needed = bytes.expect("within the limits");
        let supplied = 0;
        assert_eq!(zone, PlanError::TooLittleMemory { supplied, needed });
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn one_frame_more_is_refused_by_every_design() {
    for frames in [FRAMES_MOST + 1, FRAMES_MOST + 2, usize::MAX] {
        let most = FRAMES_MOST;
        let refused = PlanError::TooManyFrames { frames, most };
        for (bytes, zone) in judged(&plan(frames)) {
            assert_eq!((bytes, zone), (Err(refused), refused));
        }
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn frames_before_the_span_count_in_its_first_page_block() {
    let from = |start: usize| {
        let span = FrameRange::new(start, start + FRAMES_MOST);
        LabPlan::of(ZonePlan {
            span,
            ..plan(0).zone
        })
    };
    let [bitmap, buddy, ..] = judged(&from(512 * 7 + 5)).map(|(bytes, _)| bytes);
    let frames = FRAMES_MOST + 5;
    let most = FRAMES_MOST;
    assert_eq!(bitmap, Err(PlanError::TooManyFrames { frames, most }));
    assert!(buddy.is_ok());
    assert!(judged(&from(512 * 8))[0].0.is_ok());
}

#[cfg(target_pointer_width = "64")]
#[test]
fn where_a_span_lies_is_no_limit() {
    // The last frame of a machine with 52 bits of address, and far beyond.
    for end in [1 << 40, 1 << 52, usize::MAX / 1024 * 1024] {
        let span = FrameRange::new(end - 4096, end);
        let plan = LabPlan::of(ZonePlan {
            span,
            ..small(0).zone
        });
        let zone = any_zone::full::<_, Exclusive>(&plan, Cpus::new());
        assert_eq!(take_all(&zone, MOVABLE.mobility).len(), 4096);
        assert_eq!(AnyZone::free_range(&zone, span), Ok(()));
        assert_eq!(zone.check().map(|census| census.free), Ok(4096));
        let zone: Parts<NoGrouping, Direct> = full(&plan, Cpus::new());
        assert_eq!(take_all(&zone, MOVABLE.mobility).len(), 4096);
        assert_eq!(AnyZone::free_range(&zone, span), Ok(()));
        assert_eq!(zone.check().map(|census| census.free), Ok(4096));
    }
}

#[test]
fn bytes_that_overflow_are_refused() {
    for cpus in [usize::MAX, usize::MAX / 128, usize::MAX / 128 + 1] {
        let plan = LabPlan {
            magazines: cpus,
            ..LabPlan::of(ZonePlan {
                cpus,
                ..plan(4096).zone
            })
        };
        let refused = PlanError::TooManyBytes;
        for (bytes, zone) in judged(&plan) {
            assert_eq!((bytes, zone), (Err(refused), refused), "{cpus} CPUs");
        }
    }
}

#[test]
fn page_blocks_above_the_highest_order_are_refused_where_they_group() {
    let plan = LabPlan::of(ZonePlan {
        max_order: Order::new(3),
        ..plan(4096).zone
    });
    let bytes = List2007::<OneCpu>::checked_bytes_for(&plan).unwrap();
    let mut memory = vec![MaybeUninit::uninit(); bytes];
    let refused = List2007::<OneCpu>::by(&plan, OneCpu, &mut memory).err();
    let page_block_order = Order::HUGE;
    let max_order = Order::new(3);
    let expected = PlanError::PageBlockTooLarge {
        page_block_order,
        max_order,
    };
    assert_eq!(refused, Some(expected));
    assert!(Vanilla::<OneCpu>::by(&plan, OneCpu, &mut memory).is_ok());
}

#[test]
fn a_table_has_as_many_records_as_there_are_links() {
    let frames = FRAMES_MOST + 1;
    let most = FRAMES_MOST;
    let refused = Err(PlanError::TooManyFrames { frames, most });
    assert_eq!(FrameTable::checked(FrameRange::new(0, frames)), refused);
    assert_eq!(FrameTable::checked(FrameRange::new(1, frames)), Ok(()));
}

struct Nothing;

impl Experiment<OneCpu> for Nothing {
    type Output = usize;

    fn run<Z: LabZone<Platform = OneCpu>>(self, node: &Node<'_, Z>) -> usize {
        node.zones().len()
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn configurations_refuse_a_machine_that_is_too_large() {
    for configuration in Configuration::ALL {
        // A zone for movable pages takes half of it, so more than twice the limit is too much for
        // all.
        let machine = MachinePlan::new(FrameRange::new(0, 3 * FRAMES_MOST), 1);
        let bytes = configuration.checked_bytes::<Shared, TicketLock, OneCpu>(&machine);
        let most = FRAMES_MOST;
        let too_many = |why| matches!(why, PlanError::TooManyFrames { most: m, .. } if m == most);
        assert!(bytes.is_err_and(too_many), "{configuration}");
        let run =
            configuration.run::<Exclusive, TicketLock, _, _>(&machine, OneCpu, &mut [], Nothing);
        assert!(run.is_err_and(too_many), "{configuration}");
        // A smaller one is built in the computed bytes.
        let machine = MachinePlan::new(FrameRange::new(0, 8192), 1);
        let bytes = configuration.checked_bytes::<Exclusive, TicketLock, OneCpu>(&machine);
        let mut memory = vec![MaybeUninit::uninit(); bytes.expect("a small machine")];
        let run = configuration.run::<Exclusive, TicketLock, _, _>(
            &machine,
            OneCpu,
            &mut memory,
            Nothing,
        );
        let zones = 1 + usize::from(configuration.has_movable_zone());
        assert_eq!(run, Ok(zones), "{configuration}");
    }
}

/// Only the bitmap store has a limit of page blocks.
#[test]
fn the_number_of_page_blocks_is_no_limit_of_stores_with_records() {
    let least = Order::new(6);
    let blocks = brickyard::bitmap::Bitmap::BLOCKS_MOST + 1;
    let plan = LabPlan::of(ZonePlan {
        span: FrameRange::new(0, ((blocks - 1) << 6) + 1),
        max_order: least,
        page_block_order: least,
        ..plan(0).zone
    });
    let [bitmap, buddy, ..] = judged(&plan);
    let most = blocks - 1;
    let refused = PlanError::TooManyBlocks { blocks, most };
    assert_eq!(bitmap, (Err(refused), refused));
    assert!(buddy.0.is_ok());
}
