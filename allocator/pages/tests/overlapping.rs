//! Ranges that overlap, changed by two CPUs at the same time: whichever comes first, no frame is
//! memory for one of them and gone for the other.

use brickyard::block::Use;
use brickyard::sync::Exclusive;
use brickyard::{AnyZone, FrameRange, RangeError, Zone};

use crate::meanwhile::{CPU, Here, OTHER, PAGE};
use crate::support::{frame, full, kept, small};

type Bricks = Zone<'static, Here, Exclusive>;

const ALL: FrameRange = FrameRange::new(0, 256);
/// What is no memory at first.
const HOLE: FrameRange = FrameRange::new(70, 80);
/// What is removed or reserved.
const AROUND: FrameRange = FrameRange::new(3, 190);

/// Four page blocks of 64 frames.
fn zone() -> &'static Bricks {
    kept(full(&small(ALL.len()), Here))
}

/// Calls `work` with every moment at which another CPU may do something in it, and checks the zone
/// that `work` returns.
fn at_each_moment(work: impl Fn(usize) -> &'static Bricks) {
    CPU.set(0);
    for moment in 0.. {
        let zone = work(moment);
        assert_eq!(zone.check().map(|_| ()), Ok(()), "moment {moment}");
        if OTHER.take().is_some() {
            assert!(moment > 3, "another CPU may come between the steps");
            return;
        }
    }
}

/// From now on, another CPU does this at a moment.
fn other(moment: usize, work: impl FnOnce() + 'static) {
    let work = move || {
        CPU.set(1);
        work();
    };
    OTHER.set(Some((moment, Box::new(work))));
}

#[test]
fn a_range_that_another_caller_releases_while_it_is_isolated_is_free() {
    at_each_moment(|moment| {
        let zone = zone();
        other(moment, || zone.unisolate(AROUND));
        assert_eq!(zone.isolate(AROUND), Ok(()));
        zone.unisolate(AROUND);
        assert_eq!(zone.free_frames(), ALL.len(), "moment {moment}");
        zone
    });
}

/// One CPU takes `AROUND` out of the memory while another brings a part of it back, and uses that.
fn brought_back(
    goes: fn(&Bricks, FrameRange) -> Result<usize, RangeError>,
    comes: fn(&Bricks, FrameRange) -> Result<usize, RangeError>,
) {
    // Whether something is in the way of the first CPU by then.
    for in_the_way in [false, true] {
        at_each_moment(|moment| {
            let zone = zone();
            assert_eq!(goes(zone, HOLE), Ok(HOLE.len()));
            other(moment, move || {
                match comes(zone, HOLE) {
                    Ok(frames) => assert_eq!(frames, HOLE.len()),
                    Err(why) => assert_eq!(why, RangeError::Busy { frame: HOLE.start }),
                }
                let _ = zone.alloc_range_at(HOLE, &PAGE);
                if in_the_way {
                    let _ = zone.alloc_at(frame(150), &PAGE);
                }
            });
            let gone = goes(zone, AROUND);
            let is = |frame, usage| {
                let found = zone.block_of(frame);
                found.is_some_and(|(_, state)| state.usage == usage)
            };
            let in_use = |frame| is(frame, Use::Allocated);
            let used = HOLE.frames().filter(|&frame| in_use(frame)).count();
            assert!(used == 0 || used == HOLE.len(), "moment {moment}: {used}");
            if gone.is_ok() {
                let there = AROUND.frames().filter(|&frame| zone.has(frame));
                let memory = there.filter(|&frame| in_use(frame) || is(frame, Use::Free));
                assert_eq!(memory.count(), used, "moment {moment}: {gone:?}");
            }
            zone
        });
    }
}

#[test]
fn what_is_added_while_a_range_around_it_is_removed_stays_or_is_refused() {
    brought_back(Zone::remove, Zone::add);
}

#[test]
fn what_is_unreserved_while_a_range_around_it_is_reserved_stays_or_is_refused() {
    brought_back(Zone::reserve, Zone::unreserve);
}

/// Another CPU takes the same frames out of the memory: one of the two is refused, and can do it
/// later.
#[test]
fn a_range_is_removed_once() {
    at_each_moment(|moment| {
        let zone = zone();
        other(moment, || {
            let gone = zone.remove(HOLE);
            let refused = Err(RangeError::Busy { frame: HOLE.start });
            assert!([Ok(HOLE.len()), Ok(0), refused].contains(&gone), "{gone:?}");
        });
        let gone = zone.remove(AROUND).unwrap();
        assert!(gone == AROUND.len() || gone == AROUND.len() - HOLE.len());
        assert_eq!(zone.remove(HOLE), Ok(0));
        assert_eq!(zone.free_frames(), ALL.len() - AROUND.len());
        zone
    });
}
