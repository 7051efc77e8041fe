//! What a zone of any design does when a contiguous range is wanted, or memory goes offline: one
//! suite for the default and for all others.

use brickyard::pressure::{ContiguousRequest, NoHooks, alloc_contiguous, offline};
use brickyard::{FreeError, RangeError};

use super::contract::{Make, range, taken_at};
use super::owner::Owner;
use super::*;

/// All tests for one design, of which this expression makes zones.
macro_rules! clears_ranges {
    ($make:expr) => {
        contract::each_test! {
            $make; contiguous;
            a_contiguous_range_keeps_its_alignment_and_its_boundary
            an_impossible_contiguous_request_is_malformed
            a_place_that_is_free_is_taken_before_one_that_must_be_cleared
            a_block_across_the_edge_of_the_range_is_moved_as_a_whole
            a_failed_contiguous_request_is_undone
            a_page_that_cannot_be_moved_now_is_asked_for_five_times
            a_contiguous_range_lies_in_no_hole_and_takes_nothing_reserved
            offline_moves_the_pages_out_and_takes_the_memory
            offline_takes_ranges_with_holes_and_reserved_frames
            a_failed_offline_is_undone
            a_failed_offline_names_the_first_frame_that_could_not_be_freed
        }
    };
}

pub(crate) use clears_ranges;

/// A zone of any design on the tests' machine.
pub(crate) trait OnCpus: AnyZone<Platform = &'static Cpus> {}

impl<Z: AnyZone<Platform = &'static Cpus>> OnCpus for Z {}

/// Makes a zone of `frames` frames with orders up to 7, all free.
fn plain<Z: OnCpus>(make: Make<Z>, frames: usize) -> Z {
    let zone = make(&small(frames));
    assert_eq!(zone.add(zone.span()), Ok(frames));
    zone
}

/// Makes such a zone in use as single movable pages, with every second page freed.
fn scattered<Z: OnCpus>(make: Make<Z>, frames: usize) -> Z {
    let zone = plain(make, frames);
    assert_eq!(take_all(&zone, Mobility::Movable).len(), frames);
    for at in (1..frames).step_by(2) {
        free(&zone, frame(at), 0);
    }
    zone
}

pub(crate) fn a_contiguous_range_keeps_its_alignment_and_its_boundary<Z: OnCpus>(make: Make<Z>) {
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
        let zone = plain(make, 512);
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

pub(crate) fn an_impossible_contiguous_request_is_malformed<Z: OnCpus>(make: Make<Z>) {
    let zone = plain(make, 512);
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

pub(crate) fn a_place_that_is_free_is_taken_before_one_that_must_be_cleared<Z: OnCpus>(
    make: Make<Z>,
) {
    let zone = plain(make, 512);
    for at in 0..200 {
        assert_eq!(taken_at(&zone, frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::of(&zone);
    let request = ContiguousRequest::new(100, zone.span());
    assert_eq!(
        alloc_contiguous(&zone, &request, &owner),
        Ok(range(200, 300))
    );
    assert_eq!(owner.asked(), 0);
}

pub(crate) fn a_block_across_the_edge_of_the_range_is_moved_as_a_whole<Z: OnCpus>(make: Make<Z>) {
    let zone = plain(make, 512);
    let block = request(4, Mobility::Movable);
    for at in [48, 96] {
        assert_eq!(taken_at(&zone, frame(at), &block), Ok(()));
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

pub(crate) fn a_failed_contiguous_request_is_undone<Z: OnCpus>(make: Make<Z>) {
    for answer in [Migration::Later, Migration::Never, Migration::Unknown] {
        let zone = scattered(make, 256);
        let before = seen(&zone);
        let owner = Owner::returning(&zone, answer);
        let request = ContiguousRequest::new(40, range(50, 90));
        let refused = alloc_contiguous(&zone, &request, &owner);
        assert_eq!(refused, Err(RangeError::Busy { frame: frame(50) }));
        assert_eq!(seen(&zone), before, "{answer:?}");
        owner.owns_what_is_in_use();
    }
}

pub(crate) fn a_page_that_cannot_be_moved_now_is_asked_for_five_times<Z: OnCpus>(make: Make<Z>) {
    let zone = plain(make, 256);
    for at in [60, 70] {
        assert_eq!(taken_at(&zone, frame(at), &MOVABLE), Ok(()));
    }
    let owner = Owner::returning(&zone, Migration::Later);
    let request = ContiguousRequest::new(40, range(50, 90));
    assert!(alloc_contiguous(&zone, &request, &owner).is_err());
    assert_eq!(owner.asked(), 2 * 5);
}

pub(crate) fn a_contiguous_range_lies_in_no_hole_and_takes_nothing_reserved<Z: OnCpus>(
    make: Make<Z>,
) {
    let zone = make(&small(512));
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

pub(crate) fn offline_moves_the_pages_out_and_takes_the_memory<Z: OnCpus>(make: Make<Z>) {
    let zone = scattered(make, 512);
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

pub(crate) fn offline_takes_ranges_with_holes_and_reserved_frames<Z: OnCpus>(make: Make<Z>) {
    let zone = plain(make, 512);
    assert_eq!(zone.remove(range(100, 120)), Ok(20));
    assert_eq!(zone.reserve(range(130, 140)), Ok(10));
    assert_eq!(offline(&zone, range(90, 150), &NoHooks), Ok(40));
    assert_eq!(zone.managed_frames(), 512 - 60);
    sound(&zone);
}

pub(crate) fn a_failed_offline_is_undone<Z: OnCpus>(make: Make<Z>) {
    let zone = scattered(make, 512);
    assert_eq!(taken_at(&zone, frame(155), &UNMOVABLE), Ok(()));
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
    assert_eq!(taken_at(&zone, frame(151), &MOVABLE), Ok(()));
}

pub(crate) fn a_failed_offline_names_the_first_frame_that_could_not_be_freed<Z: OnCpus>(
    make: Make<Z>,
) {
    // 102 and others cannot be moved now; 155, after them, never.
    let zone = scattered(make, 512);
    assert_eq!(taken_at(&zone, frame(155), &UNMOVABLE), Ok(()));
    let owner = Owner::returning(&zone, Migration::Later);
    let busy = Err(RangeError::Busy { frame: frame(102) });
    assert_eq!(offline(&zone, range(101, 170), &owner), busy);
}
