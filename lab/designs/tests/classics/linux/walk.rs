//! The first walk over the zones: who keeps page blocks apart, and what it does then.

use super::*;

/// Makes a zone of this kind with so many page blocks from this one on, all in use.
fn full_at(kind: ZoneKind, first: usize, blocks: usize) -> Zone {
    full_by(&plan_at(kind, first, blocks))
}

fn plan_at(kind: ZoneKind, first: usize, blocks: usize) -> LabPlan {
    let mut plan = plan(0);
    plan.zone.kind = kind;
    plan.zone.span = FrameRange::new(first * BLOCK, (first + blocks) * BLOCK);
    plan
}

fn full_by(plan: &LabPlan) -> Zone {
    let zone: Zone = free_zone_of(plan, Cpus::new());
    fill(&zone, Mobility::Movable);
    zone
}

/// Two zones of 16 page blocks, DMA32 and normal.
fn two_zones() -> [Zone; 2] {
    [
        full_at(ZoneKind::Dma32, 0, 16),
        full_at(ZoneKind::Normal, 16, 16),
    ]
}

const NORMAL: usize = 16 * BLOCK;

/// Test 24.
#[test]
fn a_lower_zone_comes_before_a_broken_page_block() {
    let zones = two_zones();
    zones[0].watermarks().set(
        Marks {
            min: 10,
            low: 100,
            high: 150,
        },
        [0, 0, 400, 400, 400],
    );
    // 1024 - 511 are more than 100 + 400.
    release(&zones[0], 2 * BLOCK, 10);
    release(&zones[1], NORMAL, 8);
    let taken = alloc(&zones, &UNMOVABLE);
    assert_eq!(taken, Some(2 * BLOCK));
    assert_eq!(zones[0].block_type(frame(2 * BLOCK)), Some(Unmov));
    assert_eq!(free_by_order(&zones[1], Mov)[8], 1);
    assert_eq!((blocks_of(&zones[1], Unmov), zones[1].boost()), (0, 0));
}

#[test]
fn if_no_zone_has_a_page_block_one_is_broken() {
    let zones = two_zones();
    release(&zones[0], 2 * BLOCK, 8);
    release(&zones[1], NORMAL, 6);
    // The best zone again, and now with all that it may do.
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(NORMAL));
    assert_eq!(zones[1].block_type(frame(NORMAL)), Some(Mov));
    assert!(zones[1].boost() > 0);
    assert_eq!(zones[0].boost(), 0);
}

#[test]
fn what_lies_in_the_page_set_is_taken_all_the_same() {
    let zones = two_zones();
    release(&zones[0], 2 * BLOCK, 9);
    // One frame of the better zone lies in the page set. Some are free, so that the mark test
    // passes, but of another type.
    zones[1].dedicate(frame(NORMAL), Mobility::Unmovable);
    hand_over(&zones[1], NORMAL + 4..NORMAL + 5, Mobility::Unmovable);
    assert!(zones[1].stock(frame(NORMAL + 4), Order::ZERO));
    release(&zones[1], NORMAL + 8 * BLOCK, 6);
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(NORMAL + 4));
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(2 * BLOCK));
}

#[test]
fn other_zones_than_the_normal_one_do_not_keep_apart() {
    // A movable request that may use a zone for movable pages.
    let zones = [
        full_at(ZoneKind::Normal, 0, 16),
        full_at(ZoneKind::Movable, 16, 16),
    ];
    zones[1].dedicate(frame(NORMAL), Mobility::Unmovable);
    release(&zones[1], NORMAL + 64, 2);
    release(&zones[0], 0, 9);
    assert_eq!(alloc(&zones, &MOVABLE), Some(NORMAL + 64));
    // And one that may use DMA32 only.
    let zones = two_zones();
    release(&zones[0], 64, 2);
    let low = UNMOVABLE.from_zones_up_to(ZoneKind::Dma32);
    assert_eq!(alloc(&zones, &low), Some(64));
}

#[test]
fn a_single_node_keeps_apart_without_a_lower_zone_too() {
    let zones = [
        full_at(ZoneKind::Dma, 0, 16),
        full_at(ZoneKind::Normal, 16, 16),
    ];
    release(&zones[0], 0, 9);
    release(&zones[1], NORMAL, 8);
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(0));
}

/// Takes a frame from the second of two nodes.
fn alloc_from_second(first: &[Zone], second: &[Zone], request: &Request) -> Option<usize> {
    let nodes = [Node::new(0, first), Node::new(1, second)];
    let nodes = Nodes::new(&nodes);
    let taken = Zone::alloc_from(&nodes, 1, request, GfpFlags::of(request));
    taken.ok().map(Frame::number)
}

#[test]
fn a_page_block_is_broken_before_another_node_is_asked() {
    let first = [full_at(ZoneKind::Normal, 0, 16)];
    let mut calm = plan_at(ZoneKind::Normal, 32, 16);
    calm.linux.boost_factor = 0;
    let second = [full_at(ZoneKind::Dma32, 16, 16), full_by(&calm)];
    release(&first[0], 0, 10);
    release(&second[1], 32 * BLOCK, 6);
    assert_eq!(
        alloc_from_second(&first, &second, &UNMOVABLE),
        Some(32 * BLOCK)
    );
    // But if the node has nothing left, the other one helps.
    let mut taken = core::iter::repeat_with(|| alloc_from_second(&first, &second, &UNMOVABLE));
    let elsewhere = taken.position(|at| at == Some(0));
    assert!(elsewhere.is_some_and(|before| before > 30));
    assert_eq!(second[1].free_frames(), 0);
}

#[test]
fn a_node_without_a_lower_zone_does_not_keep_apart_if_there_are_others() {
    let first = [full_at(ZoneKind::Normal, 0, 16)];
    let second = [
        full_at(ZoneKind::Dma, 16, 16),
        full_at(ZoneKind::Normal, 32, 16),
    ];
    release(&second[0], 16 * BLOCK, 10);
    release(&second[1], 32 * BLOCK, 6);
    assert_eq!(
        alloc_from_second(&first, &second, &UNMOVABLE),
        Some(32 * BLOCK)
    );
}

#[test]
fn in_defrag_mode_page_blocks_are_not_broken_before_nothing_else_helps() {
    let strict = |first| {
        let mut plan = plan_at(ZoneKind::Normal, first, 16);
        plan.linux.defrag_mode = true;
        full_by(&plan)
    };
    // Another node is asked first.
    let (first, second) = ([strict(0)], [strict(16)]);
    release(&first[0], 0, 10);
    release(&second[0], 16 * BLOCK, 6);
    assert_eq!(alloc_from_second(&first, &second, &UNMOVABLE), Some(0));
    // A request that cannot reclaim fails, one that can breaks a page block at last.
    let zones = [strict(0)];
    release(&zones[0], 0, 6);
    assert_eq!(alloc(&zones, &UNMOVABLE.atomic()), None);
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(0));
}

#[test]
fn the_first_walk_stops_at_the_low_mark() {
    let zones = two_zones();
    let low = Marks {
        min: 0,
        low: 512,
        high: 512,
    };
    zones[1].watermarks().set(low, [0; ZoneKind::COUNT]);
    release(&zones[1], NORMAL, 9);
    release(&zones[0], 0, 9);
    // 512 are not more than 512.
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(0));
    release(&zones[1], NORMAL + BLOCK, 0);
    zones[0].drain();
    assert_eq!(alloc(&zones, &UNMOVABLE), Some(NORMAL));
}

// ---- the wake-up of a boost ----

/// Counts wake-ups, by order.
#[derive(Default)]
struct Wakes(core::cell::RefCell<Vec<u8>>);

impl Reclaim for Wakes {
    fn reclaim(&self, _: &Need) -> usize {
        0
    }

    fn wake(&self, need: &Need) {
        self.0.borrow_mut().push(need.order.get());
    }
}

impl Migrate for Wakes {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        Migration::Unknown
    }
}

#[test]
fn background_reclaim_is_woken_once_after_a_boost() {
    let woken = |wakes: bool| {
        let zones = [full_at(ZoneKind::Normal, 0, 16)];
        for block in 0..16 {
            release(&zones[0], block * BLOCK, 6);
        }
        let node = [Node::new(0, &zones)];
        let hooks = Wakes::default();
        let nodes = Nodes::with_hooks(&node, &hooks, brickyard::node::SlowPath::MODERN);
        let boosts = request(2, Mobility::Unmovable);
        let flags = GfpFlags {
            wakes,
            ..GfpFlags::of(&boosts)
        };
        for wanted in [boosts, MOVABLE, MOVABLE] {
            assert!(Zone::alloc_from(&nodes, 0, &wanted, flags).is_ok());
        }
        assert_eq!(zones[0].boost(), BLOCK);
        // Who does not wake does not leave it to the next.
        assert!(Zone::alloc_from(&nodes, 0, &MOVABLE, GfpFlags::of(&MOVABLE)).is_ok());
        hooks.0.take()
    };
    assert_eq!(woken(true), [0]);
    assert_eq!(woken(false), []);
}
