//! Hits of the fast paths: what they must leave to the slower ones.

use super::*;

/// A page block is freed at its first frame, not at another.
#[test]
fn a_page_block_is_not_taken_back_from_its_middle() {
    for block_order in [6, 9, 11] {
        let plan = ZonePlan {
            page_block_order: Order::new(block_order),
            max_order: Order::new(block_order + 2),
            ..linux(16 << block_order)
        };
        let zone: Own = full(&plan, Cpus::new());
        let at = take_of(&zone, 1, block_order, Mobility::Movable)[0];
        let cached = zone.cached_frames();
        for inside in [1, 8, (1 << block_order) - 1] {
            let wrong = FreeError::WrongOrder {
                allocated: Order::new(block_order),
            };
            let refused = zone.free(at.plus(inside), Order::new(block_order));
            assert_eq!(refused, Err(wrong), "{inside} of order {block_order}");
            assert_eq!(zone.cached_frames(), cached);
        }
        free(&zone, at, block_order);
        sound(&zone);
    }
}

/// The first page block of a larger group goes to the store, wherever the span begins.
#[test]
fn the_first_of_a_group_goes_to_the_store_wherever_the_span_begins() {
    for block_order in [6, 9] {
        for (phase, inside) in [(0, 0), (1, 0), (3, 5), (7, 1), (6, 33)] {
            for group in 1..=3 {
                let start = (phase << block_order) + inside;
                let plan = ZonePlan {
                    page_block_order: Order::new(block_order),
                    max_order: Order::new(18),
                    ..linux_at(start, start + (32 << block_order))
                };
                let zone: Own = full(&plan, Cpus::new());
                // The array of page blocks has room from now on.
                use_one(&zone, &request(block_order, Mobility::Movable));
                let cached = zone.cached_frames();
                let wide = request(block_order + group, Mobility::Movable);
                let at = zone.alloc(&wide).unwrap();
                free(&zone, at, block_order);
                assert_eq!(zone.cached_frames(), cached, "phase {phase}, group {group}");
                sound(&zone);
                let size = 1 << block_order;
                let rest = range(at.number() + size, at.number() + (size << group));
                assert_eq!(zone.free_range(rest), Ok(()));
                sound(&zone);
            }
        }
    }
}

/// What an interrupt or a request with a limit gets as a page block comes from the store.
#[test]
fn a_page_block_with_a_limit_or_in_an_interrupt_comes_from_the_store() {
    let zone: Own = zone(64 * 512);
    let huge = request(9, Mobility::Movable);
    // A movable request takes from the high end, so what is cached lies above the limit.
    use_one(&zone, &huge);
    let cached = zone.cached_frames();
    assert!(cached > 0);
    let low = zone.alloc(&huge.below(frame(1024))).unwrap();
    assert!(low.number() + 512 <= 1024, "{low}");
    assert_eq!(zone.cached_frames(), cached);
    let urgent = zone.alloc(&huge.in_context(Context::Interrupt)).unwrap();
    assert_eq!(zone.cached_frames(), cached, "a stash is left alone");
    for at in [low, urgent] {
        free(&zone, at, 9);
    }
    sound(&zone);
}

/// Only the first zone of a request hands out what is cached whatever its mark.
#[test]
fn what_is_cached_below_a_mark_is_for_the_first_zone_only() {
    let zone: Own = zone(16 * 512);
    for order in [0, 9] {
        use_one(&zone, &request(order, Mobility::Movable));
    }
    let all = zone.span().len();
    set_marks(&zone, all_at(all));
    for order in [0, 9] {
        let wanted = request(order, Mobility::Movable);
        for mark in [Mark::Low, Mark::Min] {
            let above = zone.alloc_above(&wanted, mark);
            assert_eq!(above, None, "order {order}, {mark:?}");
        }
        let first = zone.alloc_above(&wanted, Mark::First);
        assert!(first.is_some(), "order {order}");
    }
}

/// What a CPU has at hand of a zone is for requests that may use a zone of that kind.
#[test]
fn what_is_at_hand_of_a_kind_that_a_request_may_not_use_is_left_alone() {
    let cpus = Cpus::new();
    let parts = [(ZoneKind::Normal, 0, 4096), (ZoneKind::Movable, 4096, 8192)];
    let zones: [Own; 2] = parts.map(|(kind, start, end)| {
        let plan = linux_at(start, end);
        full(&ZonePlan { kind, ..plan }, cpus)
    });
    let nodes = one_node(&zones);
    let movable = nodes.alloc(0, &MOVABLE).unwrap();
    assert!(zones[1].span().contains(movable));
    for mobility in Mobility::ALL {
        // The zone itself serves anybody, so each of its arrays holds something.
        use_one(&zones[1], &Request::page(mobility));
    }
    for request in [
        MOVABLE.from_zones_up_to(ZoneKind::Normal),
        UNMOVABLE,
        RECLAIMABLE,
        RECLAIMABLE.from_zones_up_to(ZoneKind::HighMem),
    ] {
        let at = nodes.alloc(0, &request).unwrap();
        assert!(zones[0].span().contains(at), "{request:?} got {at}");
    }
}

/// How often a slot is entered meanwhile. Whoever goes in or out is pinned.
fn visits<R>(cpus: &'static Cpus, work: impl FnOnce() -> R) -> (usize, R) {
    let passed = std::rc::Rc::new(core::cell::Cell::new(0));
    let hook: interrupts::Hook = {
        let passed = passed.clone();
        Box::new(move || {
            assert!(!cpus.is_at_rest(), "in a slot, and not pinned");
            passed.set(passed.get() + 1);
        })
    };
    interrupts::INTERRUPT.with(|place| place.replace(Some(hook)));
    let result = work();
    interrupts::INTERRUPT.with(|place| place.replace(None));
    // In and out.
    (passed.get() / 2, result)
}

/// What is not at hand is fetched in the next visit of the slot, in a zone alone and among nodes. A
/// zone also makes room in the next visit for what it cannot keep at once.
#[test]
fn a_hit_visits_the_slot_once_and_a_miss_twice() {
    type Counted = Bricks<interrupts::Interrupted>;
    let cpus = Cpus::new();
    let zones = [zone_on::<interrupts::Interrupted>(64 * 512, cpus)];
    let nodes: Nodes<'_, Counted> = one_node(&zones);
    let zone = &zones[0];
    for order in [0, 1, 5, 9] {
        let wanted = request(order, Mobility::Movable);
        let mut held = Vec::new();
        for round in 0..2000 {
            let before = zone.free_frames();
            let (entered, at) = visits(cpus, || match round % 3 {
                0 => zone.alloc(&wanted).ok(),
                _ => nodes.alloc(0, &wanted).ok(),
            });
            let Some(at) = at else { break };
            held.push(at);
            let hit = zone.free_frames() == before;
            assert_eq!(entered, if hit { 1 } else { 2 }, "order {order}");
            if zone.free_frames() < 16 * 512 {
                break;
            }
        }
        for at in held {
            let before = zone.free_frames();
            let (entered, freed) = visits(cpus, || zone.free(at, Order::new(order)));
            assert_eq!(freed, Ok(()));
            if zone.free_frames() != before {
                assert_eq!(entered, 2, "order {order}");
            }
            assert!(entered <= 2, "order {order}");
        }
    }
    // What no stash keeps visits none.
    let large = request(7, Mobility::Movable);
    let (entered, freed) = visits(cpus, || {
        let at = zone.alloc(&large).unwrap();
        zone.free(at, Order::new(7))
    });
    assert_eq!((entered, freed), (0, Ok(())));
    sound(zone);
}
