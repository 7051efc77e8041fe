//! What a free is told by the class of a page block, and when that ends.

use super::*;

/// One page block of which only one frame is free: it was opened for movable frames.
fn all_but_one(cpus: &'static Cpus) -> (Lent, Vec<Frame>) {
    let zone: Lent = full(&linux(512), cpus);
    let mut held = take_past(&zone, cpus, 512);
    let one = held.pop().unwrap();
    in_interrupt(cpus, || free(&zone, one, 0));
    (zone, held)
}

/// Whatever is freed goes to the array of its own mobility, though its page block was opened for
/// another: taken by a request of one frame, in a batch, and by a refill.
#[test]
fn a_frame_of_another_mobility_is_kept_with_its_own_kind() {
    for way in 0..3 {
        let cpus = Cpus::new();
        let (zone, _held) = all_but_one(cpus);
        let mut out = [frame(0); 1];
        let at = match way {
            0 => in_interrupt(cpus, || zone.alloc(&UNMOVABLE).unwrap()),
            1 => in_interrupt(cpus, || {
                assert_eq!(zone.alloc_bulk(&UNMOVABLE, &mut out), Ok(1));
                out[0]
            }),
            _ => zone.alloc(&UNMOVABLE).unwrap(),
        };
        assert_eq!(zone.cached_frames(), 0);
        free(&zone, at, 0);
        assert_eq!(zone.cached_frames(), 1);
        assert_eq!(zone.alloc_at_hand(&MOVABLE), None, "way {way}");
        assert_eq!(zone.alloc_at_hand(&UNMOVABLE), Some(at), "way {way}");
    }
}

/// A block of which nothing is in use any more is opened anew for another mobility, so that frees
/// take the short way again.
#[test]
fn a_block_that_is_free_again_gets_the_class_of_its_next_user() {
    let cpus = Cpus::new();
    let zone: Lent = full(&linux(1024), cpus);
    for kind in [MOVABLE, UNMOVABLE, RECLAIMABLE, UNMOVABLE, MOVABLE] {
        // Both page blocks, past the stash.
        let held: Vec<Frame> = in_interrupt(cpus, || take(&zone, 1024, kind.mobility));
        // Its array has room from now on.
        free(&zone, held[0], 0);
        assert!(zone.free_at_hand(held[1]), "{kind:?}");
        assert_eq!(zone.alloc_at_hand(&kind), Some(held[1]));
        assert_eq!(zone.alloc_at_hand(&kind), Some(held[0]));
        in_interrupt(cpus, || give(&zone, &held));
        assert_eq!(zone.cached_frames(), 0);
    }
}

/// An isolated block that is open and free is not opened anew by whoever looks for frames in vain.
#[test]
fn requests_in_vain_leave_what_is_isolated_alone() {
    let cpus = Cpus::new();
    let zone: Lent = full(&linux(1024), cpus);
    AnyZone::isolate(&zone, range(0, 512)).unwrap();
    let held = take_all(&zone, Mobility::Movable);
    assert_eq!(held.len(), 512);
    for _ in 0..3 {
        assert!(zone.alloc(&MOVABLE).is_err());
    }
    AnyZone::take_isolated(&zone, range(0, 512), Mobility::Movable).unwrap();
    AnyZone::unisolate(&zone, range(0, 512));
    zone.free_range(range(0, 512)).unwrap();
    give(&zone, &held);
    sound(&zone);
}

/// A refill takes no more from page blocks of other mobilities than a request that would get
/// nothing else.
#[test]
fn a_refill_does_not_mix_blocks_for_more_than_one_request() {
    let cpus = Cpus::new();
    let zone: Lent = full(&linux(3 * 512), cpus);
    // Three page blocks in use: one unmovable with ten frames free, two movable with five each.
    let unmovable = in_interrupt(cpus, || take(&zone, 512, Mobility::Unmovable));
    let movable = in_interrupt(cpus, || take(&zone, 1024, Mobility::Movable));
    let block_of = |at: &Frame| at.number() / 512;
    in_interrupt(cpus, || {
        give(&zone, &unmovable[..10]);
        for part in movable.chunk_by(|one, other| block_of(one) == block_of(other)) {
            give(&zone, &part[..5]);
        }
    });
    assert_eq!((zone.free_frames(), zone.fallbacks()), (20, (0, 0)));
    // All that its own block has, and no more.
    let first = zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!((zone.cached_frames(), zone.free_frames()), (9, 10));
    assert_eq!(zone.fallbacks(), (0, 0));
    let rest = take(&zone, 9, Mobility::Unmovable);
    // One other block, which is claimed, and not the second.
    let more = zone.alloc(&UNMOVABLE).unwrap();
    assert_eq!((zone.cached_frames(), zone.free_frames()), (4, 5));
    assert_eq!(zone.fallbacks(), (0, 1));
    for at in rest.into_iter().chain([first, more]) {
        free(&zone, at, 0);
    }
    sound(&zone);
}
