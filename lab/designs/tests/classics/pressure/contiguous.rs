//! Contiguous ranges, and memory taken offline.

use super::*;

// ---- contiguous ranges ----

#[test]
fn a_contiguous_range_keeps_its_alignment_and_its_boundary() {
    for (frames, align, boundary, within, expected) in [
        (100, 1, 0, range(0, 512), range(0, 100)),
        (100, 1, 0, range(7, 512), range(7, 107)),
        (100, 64, 0, range(7, 512), range(64, 164)),
        // 64..164 crosses 128.
        (100, 64, 128, range(7, 512), range(128, 228)),
        (100, 1, 128, range(7, 512), range(7, 107)),
        (100, 1, 128, range(29, 512), range(128, 228)),
        (100, 4, 128, range(25, 512), range(28, 128)),
        (128, 1, 128, range(1, 512), range(128, 256)),
        // An alignment above the boundary.
        (10, 256, 16, range(1, 512), range(256, 266)),
        (1, 1, 1, range(300, 512), range(300, 301)),
    ] {
        let zone = plain(512);
        let request = ContiguousRequest::new(frames, within)
            .aligned(align)
            .not_across(boundary);
        let got = alloc_contiguous(&zone, &request, &NoHooks);
        assert_eq!(got, Ok(expected), "{request:?}");
        assert_eq!(zone.free_frames(), 512 - frames);
        sound(&zone);
        assert_eq!(zone.free_range(expected), Ok(()));
        assert_eq!(zone.free_counts().by_order[7], 4);
    }
}

#[test]
fn an_impossible_contiguous_request_is_malformed() {
    let zone = plain(512);
    let of = |frames| ContiguousRequest::new(frames, zone.span());
    for bad in [
        of(0),
        of(10).aligned(0),
        of(10).aligned(3),
        of(10).not_across(24),
        of(10).not_across(8),
    ] {
        let refused = alloc_contiguous(&zone, &bad, &NoHooks);
        assert_eq!(refused, Err(RangeError::Malformed), "{bad:?}");
    }
    let span = zone.span();
    for outside in [ContiguousRequest::new(10, range(512, 600)), of(513)] {
        let refused = alloc_contiguous(&zone, &outside, &NoHooks);
        assert_eq!(refused, Err(RangeError::OutsideSpan { span }));
    }
    sound(&zone);
}

#[test]
fn a_place_that_is_free_is_taken_before_one_that_must_be_cleared() {
    let zone = plain(512);
    for at in 0..200 {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::of(&zone);
    let request = ContiguousRequest::new(100, zone.span());
    assert_eq!(
        alloc_contiguous(&zone, &request, &owner),
        Ok(range(200, 300))
    );
    assert_eq!(owner.asked(), 0);
}

#[test]
fn movable_pages_are_moved_out_of_a_contiguous_range() {
    let zone = scattered(512);
    // An unmovable page in the lowest place.
    free(&zone, frame(50), 0);
    assert_eq!(zone.alloc_at(frame(50), &UNMOVABLE), Ok(()));
    let owner = Owner::of(&zone);
    let mut request = ContiguousRequest::new(70, range(0, 256));
    request.mobility = Mobility::Unmovable;
    let got = alloc_contiguous(&zone, &request, &owner).unwrap();
    assert_eq!(got, range(51, 121), "after the page that stays");
    assert_eq!(owner.asked(), 35);
    // No page was moved into it.
    assert!(
        owner
            .moves
            .borrow()
            .iter()
            .all(|(_, to)| !got.contains(*to))
    );
    owner.owns_what_is_in_use();
    assert!(got.frames().all(|at| usage(&zone, at) == Use::Allocated));
    // It is given back in parts of any size.
    assert_eq!(zone.free_range(range(51, 80)), Ok(()));
    assert_eq!(zone.free_range(range(80, 121)), Ok(()));
    sound(&zone);
}

#[test]
fn a_block_across_the_edge_of_the_range_is_moved_as_a_whole() {
    let zone = plain(512);
    let block = request(4, Mobility::Movable);
    for at in [48, 96] {
        assert_eq!(zone.alloc_at(frame(at), &block), Ok(()));
    }
    let owner = Owner::of(&zone);
    let wanted = range(60, 100);
    let request = ContiguousRequest::new(40, wanted);
    assert_eq!(alloc_contiguous(&zone, &request, &owner), Ok(wanted));
    assert_eq!(owner.asked(), 2);
    owner.owns_what_is_in_use();
    // The parts outside the range are free.
    assert_eq!(usage(&zone, frame(50)), Use::Free);
    assert_eq!(usage(&zone, frame(105)), Use::Free);
}

#[test]
fn a_failed_contiguous_request_is_undone() {
    for answer in [Migration::Later, Migration::Never, Migration::Unknown] {
        let zone = scattered(256);
        let before = seen(&zone);
        let owner = Owner::returning(&zone, answer);
        let request = ContiguousRequest::new(40, range(50, 90));
        let refused = alloc_contiguous(&zone, &request, &owner);
        assert_eq!(refused, Err(RangeError::Busy { frame: frame(50) }));
        assert_eq!(seen(&zone), before, "{answer:?}");
        owner.owns_what_is_in_use();
    }
}

#[test]
fn a_page_that_cannot_be_moved_now_is_asked_for_five_times() {
    let zone = plain(256);
    for at in [60, 70] {
        assert_eq!(zone.alloc_at(frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::returning(&zone, Migration::Later);
    let request = ContiguousRequest::new(40, range(50, 90));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(owner.asked(), 2 * 5);
}

#[test]
fn a_failed_contiguous_request_leaves_grouped_memory_as_it_was() {
    let zone: Parts<Blocks, Direct> = full(&small(512), Cpus::new());
    let unmovable = zone.alloc(&UNMOVABLE).unwrap();
    let stuck = unmovable.buddy(Order::new(5));
    assert_eq!(zone.alloc_at(stuck, &MOVABLE), Ok(()));
    let before = seen(&zone);
    // Across both page blocks of the unmovable page, and movable ones next to them.
    let owner = Owner::returning(&zone, Migration::Later);
    let start = unmovable.align_down(Order::new(7)).number() + 1;
    let request = ContiguousRequest::new(126, range(start, start + 126));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_failed_contiguous_request_leaves_both_kinds_of_2005_as_they_were() {
    let zone: Parts<TwoKinds, Direct> = full(&small(512), Cpus::new());
    assert_eq!(zone.alloc_at(frame(60), &MOVABLE), Ok(()));
    let before = seen(&zone);
    let owner = Owner::returning(&zone, Migration::Later);
    let request = ContiguousRequest::new(40, range(50, 90));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(seen(&zone), before);
}

#[test]
fn a_contiguous_range_lies_in_no_hole_and_takes_nothing_reserved() {
    let zone: Plain = support::empty(&small(512), Cpus::new());
    for part in [range(0, 60), range(61, 200), range(210, 512)] {
        assert_eq!(zone.add(part), Ok(part.len()));
    }
    assert_eq!(zone.reserve(range(250, 251)), Ok(1));
    let request = ContiguousRequest::new(100, zone.span());
    assert_eq!(
        alloc_contiguous(&zone, &request, &NoHooks),
        Ok(range(61, 161))
    );
    assert_eq!(
        alloc_contiguous(&zone, &request, &NoHooks),
        Ok(range(251, 351))
    );
    sound(&zone);
}

// ---- memory taken offline ----

#[test]
fn offline_moves_the_pages_out_and_takes_the_memory() {
    let zone = scattered(512);
    let owner = Owner::of(&zone);
    let gone = range(101, 170);
    assert_eq!(offline(&zone, gone, &owner), Ok(69));
    assert_eq!(zone.managed_frames(), 512 - 69);
    owner.owns_what_is_in_use();
    assert_eq!(owner.pages.borrow().len(), 256);
    assert!(gone.frames().all(|at| zone.block_of(at).is_none()));
    assert_eq!(zone.free(frame(120), Order::ZERO), Err(FreeError::NotOwned));
    // And brought online again.
    assert_eq!(zone.add(gone), Ok(69));
    assert_eq!(zone.managed_frames(), 512);
    sound(&zone);
}

#[test]
fn offline_takes_ranges_with_holes_and_reserved_frames() {
    let zone = plain(512);
    assert_eq!(zone.remove(range(100, 120)), Ok(20));
    assert_eq!(zone.reserve(range(130, 140)), Ok(10));
    assert_eq!(offline(&zone, range(90, 150), &NoHooks), Ok(40));
    assert_eq!(zone.managed_frames(), 512 - 60);
    sound(&zone);
}

#[test]
fn a_failed_offline_is_undone() {
    let zone = scattered(512);
    assert_eq!(zone.alloc_at(frame(155), &UNMOVABLE), Ok(()));
    let before = seen(&zone);
    let owner = Owner::returning(&zone, Migration::Later);
    let busy = |at| Err(RangeError::Busy { frame: frame(at) });
    assert_eq!(offline(&zone, range(155, 156), &owner), busy(155));
    assert_eq!(offline(&zone, range(101, 150), &owner), busy(102));
    assert!(offline(&zone, range(101, 170), &owner).is_err());
    let span = zone.span();
    let outside = offline(&zone, range(500, 513), &owner);
    assert_eq!(outside, Err(RangeError::OutsideSpan { span }));
    assert_eq!(seen(&zone), before);
    // Nothing is isolated: the same range can be tried again, and its free frames can be allocated.
    assert_eq!(offline(&zone, range(101, 150), &owner), busy(102));
    assert_eq!(zone.alloc_at(frame(151), &MOVABLE), Ok(()));
}

#[test]
fn a_failed_offline_names_the_first_frame_that_could_not_be_freed() {
    // 102 and others cannot be moved now; 155, after them, never.
    let zone = scattered(512);
    assert_eq!(zone.alloc_at(frame(155), &UNMOVABLE), Ok(()));
    let owner = Owner::returning(&zone, Migration::Later);
    let busy = Err(RangeError::Busy { frame: frame(102) });
    assert_eq!(offline(&zone, range(101, 170), &owner), busy);
}

#[test]
fn offline_reaches_frames_in_caches() {
    let zone: Parts<Blocks, Mags> = full(&small(512), Cpus::new());
    for mobility in Mobility::ALL {
        let page = zone.alloc(&Request::page(mobility)).unwrap();
        free(&zone, page, 0);
    }
    assert!(zone.cached_frames() > 0);
    assert_eq!(offline(&zone, range(0, 512), &NoHooks), Ok(512));
    assert_eq!((zone.managed_frames(), zone.free_frames()), (0, 0));
    assert_eq!(zone.alloc(&MOVABLE), Err(exhausted(0, 0)));
    sound(&zone);
}
