//! Adjacent frames of any number, taken by their count or by their place.

use super::*;

/// Frames that are taken by the count, as a length that is no power of two.
fn counted(zone: &Plain, order: u8, frames: usize) -> Result<FrameRange, AllocError> {
    zone.alloc_range(&request(order, Mobility::Unmovable), frames)
}

#[test]
fn any_count_is_aligned_and_the_rest_of_its_block_is_free_at_once() {
    let zone: Plain = full(&gigabytes(), Cpus::new());
    let before = sound(&zone);
    for frames in (1..=70).chain([511, 513, 1025, 5000, 70_000, (1 << 18) - 1, 1 << 18]) {
        let got = counted(&zone, 0, frames).unwrap();
        assert_eq!(got.len(), frames);
        assert!(got.start.is_aligned(Order::holding(frames).unwrap()));
        assert_eq!(zone.free_frames(), before.free - frames, "{frames}");
        for at in got.frames().step_by(97) {
            assert_eq!(state(&zone, at).usage, Use::Allocated, "{at} of {frames}");
        }
        if frames < 6000 {
            assert_eq!(sound(&zone).allocated, frames);
        }
        assert_eq!(zone.free_range(got), Ok(()));
        assert_eq!(zone.free_counts().by_order[18], 3, "{frames}");
    }
    assert_eq!(sound(&zone), before);
}

#[test]
fn ranges_of_all_counts_lie_side_by_side_and_come_back_in_parts() {
    let plan = linux(64 * BLOCK);
    let zone: Plain = full(&plan, Cpus::new());
    let mut owned = Owned::none_of(plan.span);
    let mut dice = Dice::new(11);
    let (mut held, mut refused) = (Vec::new(), 0);
    for step in 0..20_000 {
        let frames = {
            let most = dice.one_of(&[3, 9, 70, 600]);
            1 + dice.below(most)
        };
        match counted(&zone, 0, frames) {
            Ok(range) => {
                range.frames().for_each(|at| owned.take(at, 0));
                held.push(range);
            }
            Err(_) => refused += 1,
        }
        while held.len() > 200 || (refused > 0 && !held.is_empty() && step % 3 == 0) {
            let range = held.swap_remove(dice.below(held.len()));
            let cut = range.start.plus(dice.below(range.len() + 1));
            let parts = [
                FrameRange {
                    start: cut,
                    ..range
                },
                FrameRange { end: cut, ..range },
            ];
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                part.frames().for_each(|at| owned.give(at, 0));
                assert_eq!(zone.free_range(part), Ok(()));
                let again = zone.free_range(part);
                assert_eq!(again, Err(FreeError::DoubleFree));
            }
            refused = 0;
        }
        if step % 1000 == 0 {
            assert_eq!(sound(&zone).allocated, owned.count());
        }
    }
    for range in held {
        assert_eq!(zone.free_range(range), Ok(()));
    }
    assert_eq!(zone.free_counts().by_order[10], 32);
    sound(&zone);
}

#[test]
fn the_requests_order_is_the_alignment_at_least() {
    let zone = blocks(4);
    assert_eq!(zone.alloc_at(frame(0), &MOVABLE), Ok(()));
    for (order, frames, aligned) in [(4, 3, 16), (0, 3, 4), (10, 1, 1024), (3, 100, 128)] {
        let got = counted(&zone, order, frames).unwrap();
        assert_eq!((got.len(), got.start.number() % aligned), (frames, 0));
        assert_eq!(zone.free_range(got), Ok(()));
    }
    assert_eq!(sound(&zone).allocated, 1);
}

#[test]
fn no_frames_and_more_than_the_largest_block_are_refused_by_name() {
    let zone = blocks(8);
    let before = seen(&zone);
    let most = 1024;
    for frames in [0, 1025, usize::MAX] {
        let why = counted(&zone, 0, frames).unwrap_err();
        assert_eq!(why, AllocError::LengthUnsatisfiable { frames, most });
    }
    let text = counted(&zone, 0, 1025).unwrap_err().to_string();
    assert!(text.contains("1025") && text.contains("1024") && text.contains("`max_order`"));
    let text = counted(&zone, 0, 0).unwrap_err().to_string();
    assert_eq!(text, "a range of no frames: ask for 1 to 1024");
    let too_large = too_large(11, 10);
    assert_eq!(counted(&zone, 11, 1), Err(too_large));
    assert_eq!(seen(&zone), before);
}

#[test]
fn frames_side_by_side_that_are_no_block_are_found_by_contiguous_requests_only() {
    let zone = in_use(4, Mobility::Unmovable);
    // 5 frames around a multiple of 8: parts of two blocks.
    let place = range(BLOCK + 14, BLOCK + 19);
    assert_eq!(zone.free_range(place), Ok(()));
    assert_eq!(counted(&zone, 0, 5), Err(exhausted(5, 0)));
    let other = range(2 * BLOCK + 14, 2 * BLOCK + 19);
    assert_eq!(zone.free_range(other), Ok(()));
    let why = fragmented(3, 10);
    assert_eq!(counted(&zone, 0, 5), Err(why));
    let wanted = ContiguousRequest::new(5, zone.span());
    assert_eq!(alloc_contiguous(&zone, &wanted, &NoHooks), Ok(place));
    sound(&zone);
}

#[test]
fn only_what_was_taken_can_be_freed_and_once() {
    let zone = blocks(4);
    let got = counted(&zone, 0, 5).unwrap();
    let more = FrameRange::at(got.start, 6);
    assert_eq!(zone.free_range(more), Err(FreeError::DoubleFree));
    assert_eq!(zone.free(got.start, Order::new(3)).unwrap_err(), {
        let allocated = state(&zone, got.start).order;
        FreeError::WrongOrder { allocated }
    });
    assert_eq!(sound(&zone).allocated, 5);
    // Any aligned part is a block of its own.
    free(&zone, got.start, 2);
    free(&zone, got.start.plus(4), 0);
    assert_eq!(zone.free_range(got), Err(FreeError::DoubleFree));
    assert_eq!(sound(&zone).allocated, 0);
}

#[test]
fn an_interrupt_takes_ranges_and_masks_nothing() {
    let cpus = Cpus::new();
    let zone: Plain = full(&linux(8 * BLOCK), cpus);
    let masks = cpus.masks();
    cpus.set_interrupt(true);
    let request = MOVABLE.in_context(Context::Interrupt);
    let got = zone.alloc_range(&request, 77).unwrap();
    assert_eq!(zone.free_frames(), 8 * BLOCK - 77);
    assert_eq!(zone.free_range(got), Ok(()));
    assert_eq!(zone.alloc_range_at(range(3, 800), &request), Ok(()));
    assert_eq!(zone.free_range(range(3, 800)), Ok(()));
    cpus.set_interrupt(false);
    assert_eq!((cpus.masks() - masks, cpus.waits()), (0, 0));
    assert_eq!(sound(&zone).free, 8 * BLOCK);
}

// ---- at a given place ----

#[test]
fn a_given_range_is_taken_exactly_whatever_its_alignment() {
    let zone = blocks(8);
    let before = sound(&zone);
    let mut dice = Dice::new(5);
    for _ in 0..300 {
        let start = dice.below(8 * BLOCK);
        let end = start + 1 + dice.below(8 * BLOCK - start);
        let place = range(start, end);
        assert_eq!(zone.alloc_range_at(place, &MOVABLE), Ok(()));
        assert_eq!(sound(&zone).allocated, place.len());
        let inside = frame(start + dice.below(place.len()));
        assert_eq!(state(&zone, inside).usage, Use::Allocated);
        assert_eq!(zone.free_range(place), Ok(()));
    }
    assert_eq!(sound(&zone), before);
}

#[test]
fn a_given_range_with_a_frame_in_use_is_refused_and_all_of_it_stays_free() {
    let zone = blocks(8);
    assert_eq!(zone.alloc_at(frame(3001), &MOVABLE), Ok(()));
    let before = sound(&zone);
    let busy = Err(RangeError::Busy { frame: frame(3001) });
    for place in [range(3001, 3002), range(2, 3002), range(5, 4096)] {
        assert_eq!(zone.alloc_range_at(place, &UNMOVABLE), busy);
        assert_eq!(sound(&zone), before);
    }
    let span = zone.span();
    let outside = Err(RangeError::OutsideSpan { span });
    assert_eq!(zone.alloc_range_at(range(4000, 4097), &MOVABLE), outside);
    let none = zone.alloc_range_at(range(7, 7), &MOVABLE);
    assert_eq!(none, Err(RangeError::Malformed));
    assert_eq!(sound(&zone), before);
    assert_eq!(zone.alloc_range_at(range(5, 3001), &UNMOVABLE), Ok(()));
    assert_eq!(sound(&zone).allocated, 2997);
}

#[test]
fn frames_of_a_given_range_that_lie_in_stashes_are_fetched_back() {
    let cpus = Cpus::new();
    let zone: Bricks<Exclusive> = support::full(&linux(8 * BLOCK), cpus);
    let page = zone.alloc(&MOVABLE).unwrap();
    let cached = zone.cached_frames();
    assert!(cached > 0, "a refill brings more than one frame");
    let all = range(0, 8 * BLOCK);
    assert_eq!(
        zone.alloc_range_at(all, &MOVABLE),
        Err(RangeError::Busy { frame: page })
    );
    free(&zone, page, 0);
    assert!(zone.cached_frames() > 0);
    assert_eq!(zone.alloc_range_at(all, &MOVABLE), Ok(()));
    assert_eq!(
        (sound(&zone).allocated, zone.cached_frames()),
        (8 * BLOCK, 0)
    );
}

// ---- nodes ----

#[test]
fn nodes_take_counts_from_any_zone_and_say_the_longest() {
    let cpus = Cpus::new();
    let dma = ZonePlan {
        kind: ZoneKind::Dma,
        cpus: 0,
        ..small(128)
    };
    let normal = ZonePlan {
        span: range(128 * 8, 128 * 9),
        cpus: 0,
        ..small(0)
    };
    let zones: [Plain; 2] = [support::full(&dma, cpus), support::full(&normal, cpus)];
    let nodes = one_node(&zones);
    let first = nodes.alloc_range(0, &UNMOVABLE, 100).unwrap();
    assert!(normal.span.covers(first) && first.len() == 100);
    let second = nodes.alloc_range(0, &UNMOVABLE, 100).unwrap();
    assert!(dma.span.covers(second) && second.len() == 100);
    assert!(nodes.alloc_range(0, &UNMOVABLE, 100).is_err());
    let long = AllocError::LengthUnsatisfiable {
        frames: 129,
        most: 128,
    };
    assert_eq!(nodes.alloc_range(0, &UNMOVABLE, 129), Err(long));
    // The last frame of a zone, with no rest behind it.
    let last = nodes.alloc_range(0, &UNMOVABLE, 16).unwrap();
    for range in [first, second, last] {
        assert_eq!(nodes.free_range(range), Ok(()));
    }
    assert_eq!(nodes.check().unwrap().free, 256);
}
