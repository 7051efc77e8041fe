//! Contiguous ranges, and memory taken offline.

use super::*;
use support::{contiguous, contract};

contiguous::clears_ranges!(|plan| -> Plain { support::empty(&LabPlan::of(*plan), Cpus::new()) });

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
