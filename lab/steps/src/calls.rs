//! The public calls, each as one row of a table: how many frames it may have in hand, whether an
//! interrupt may make it, and what it does.

use brickyard::block::Use;
use brickyard::pressure::{ContiguousRequest, alloc_contiguous, offline};
use brickyard::sync::SlotAccess;
use brickyard::watermark::Mark;
use brickyard::{AnyZone, Context, Frame, FrameRange, Mobility, Order, RangeError, Request};

use crate::machine::{at_once, in_interrupt};
use crate::model::{ABSENT, FREE, RESERVED};
use crate::world::{
    ADDED, ISOLATES, OFFLINE, REMOVED, RESERVES, RESERVES_WIDE, SPAN, TheZone, WAS_ISOLATED,
    WAS_RESERVED, Way, World,
};

/// One public call, as a party makes it.
pub(crate) struct Call<A: SlotAccess> {
    pub(crate) name: &'static str,
    /// The most frames that are neither free nor anybody's while it runs.
    pub(crate) in_hand: usize,
    /// How many requests it is made of at most; each waits by itself.
    pub(crate) requests: usize,
    /// Whether interrupts make it.
    pub(crate) anywhere: bool,
    pub(crate) slabs: bool,
    pub(crate) make: fn(&World<'_, A>),
}

const fn call<A: SlotAccess>(
    name: &'static str,
    in_hand: usize,
    anywhere: bool,
    make: fn(&World<'_, A>),
) -> Call<A> {
    Call {
        name,
        in_hand,
        requests: 1,
        anywhere,
        slabs: false,
        make,
    }
}

const fn bulk_call<A: SlotAccess>(
    name: &'static str,
    count: usize,
    make: fn(&World<'_, A>),
) -> Call<A> {
    Call {
        requests: count,
        ..call(name, count, true, make)
    }
}

const MOVABLE: Request = Request::page(Mobility::Movable);

const fn block(order: u8) -> Request {
    Request::new(Order::new(order), Mobility::Movable)
}

fn by_zone<A: SlotAccess>(world: &World<'_, A>, request: Request) {
    world.take(
        request,
        |world, request| world.zone().alloc(request),
        Way::Zone,
    );
}

fn by_nodes<A: SlotAccess>(world: &World<'_, A>, request: Request) {
    world.take(
        request,
        |world, request| world.nodes.alloc(0, request),
        Way::Nodes,
    );
}

fn bulk<A: SlotAccess, E>(
    world: &World<'_, A>,
    count: usize,
    by: impl Fn(&Request, &mut [Frame]) -> Result<usize, E>,
) {
    let mut request = MOVABLE;
    if in_interrupt() {
        request.context = Context::Interrupt;
    }
    world.model.past_marks.set(true);
    let mut frames = vec![Frame::new(0); count];
    let taken = by(&request, &mut frames).unwrap_or(0);
    for &frame in &frames[..taken] {
        world.model.got(FrameRange::at(frame, 1));
    }
}

/// Frees a range of `len` frames that the party holds, in one of the ways.
fn give<A: SlotAccess, E: core::fmt::Debug>(
    world: &World<'_, A>,
    len: usize,
    by: impl Fn(Frame, Order) -> Result<(), E>,
) {
    if let Some(range) = world.model.free(len) {
        let order = Order::holding(len).expect("a block");
        by(range.start, order).unwrap_or_else(|why| panic!("free of {range:?}: {why:?}"));
    }
}

fn give_bulk<A: SlotAccess, E: core::fmt::Debug>(
    world: &World<'_, A>,
    by: impl Fn(&[Frame]) -> Result<(), E>,
) {
    let ranges = (0..40).map_while(|_| world.model.free(1));
    let frames: Vec<Frame> = ranges.map(|range| range.start).collect();
    by(&frames).unwrap_or_else(|why| panic!("free of {frames:?}: {why:?}"));
}

fn take_at<A: SlotAccess>(world: &World<'_, A>, frame: Frame, order: u8) {
    if world.zone().alloc_at(frame, &block(order)).is_ok() {
        world
            .model
            .got(FrameRange::of_block(frame, Order::new(order)));
    }
}

fn contiguous<A: SlotAccess>(world: &World<'_, A>, frames: usize) {
    let request = ContiguousRequest::new(frames, SPAN);
    if let Ok(range) = alloc_contiguous(world.zone(), &request, &world.model) {
        world.model.got(range);
    }
}

/// Frames of a range, all in one page block, become memory, unless another caller is taking them
/// out of it.
fn appears<A: SlotAccess>(
    world: &World<'_, A>,
    range: FrameRange,
    from: u8,
    make: impl FnOnce(&TheZone<'_, A>) -> Result<usize, RangeError>,
) {
    world.model.appears(range, from);
    match make(world.zone()) {
        // It may have left meanwhile, and come back by this call.
        Ok(_) if is_memory(world, range) => world.model.appears(range, from),
        Ok(_) => {}
        Err(RangeError::Busy { .. }) => world.model.disappears(range, from),
        Err(why) => panic!("{range:?}: {why}"),
    }
}

/// Returns true if the first frame of a range is memory.
fn is_memory<A: SlotAccess>(world: &World<'_, A>, range: FrameRange) -> bool {
    let first = at_once(|| world.zone().block_of(range.start));
    first.is_some_and(|(_, state)| state.usage != Use::Reserved)
}

/// A range left the zone that other calls bring back, or did not.
fn left_for_now<A: SlotAccess>(
    world: &World<'_, A>,
    range: FrameRange,
    result: Result<usize, RangeError>,
    to: u8,
) {
    if result.is_err() || !is_memory(world, range) {
        left(world, range, result, to);
    }
}

/// A range left the zone, or did not.
fn left<A: SlotAccess>(
    world: &World<'_, A>,
    range: FrameRange,
    result: Result<usize, RangeError>,
    to: u8,
) {
    match result {
        Ok(_) => {
            world.model.turn(
                range,
                &[FREE, if to == ABSENT { RESERVED } else { FREE }],
                to,
            );
        }
        Err(RangeError::Busy { .. } | RangeError::Isolated) => {}
        Err(why) => panic!("{range:?}: {why}"),
    }
}

pub(crate) fn all<A: SlotAccess>() -> Vec<Call<A>> {
    vec![
        call("alloc 0", 1, true, |w| by_zone(w, MOVABLE)),
        call("alloc 0 unmovable", 1, true, |w| {
            by_zone(w, Request::page(Mobility::Unmovable))
        }),
        call("alloc 0 below", 1, true, |w| {
            by_zone(w, MOVABLE.below(ADDED.start.plus(300)))
        }),
        call("alloc 3", 8, true, |w| by_zone(w, block(3))),
        call("alloc 3 atomic", 8, true, |w| by_zone(w, block(3).atomic())),
        call("alloc 7", 128, true, |w| by_zone(w, block(7))),
        call("alloc 9", 512, true, |w| by_zone(w, block(9))),
        call("alloc 10", 1024, true, |w| by_zone(w, block(10))),
        call("alloc_uncached 0", 1, true, |w| {
            if let Some(frame) = w.zone().alloc_uncached(&MOVABLE) {
                w.model.got(FrameRange::at(frame, 1));
            }
        }),
        bulk_call("alloc_bulk 40", 40, |w| {
            bulk(w, 40, |r, out| w.zone().alloc_bulk(r, out))
        }),
        bulk_call("alloc_bulk 300", 300, |w| {
            bulk(w, 300, |r, out| w.zone().alloc_bulk(r, out))
        }),
        call("alloc_at 0", 1, false, |w| {
            take_at(w, REMOVED.start.plus(5), 0)
        }),
        call("alloc_at 4", 16, false, |w| {
            take_at(w, REMOVED.start.plus(64), 4)
        }),
        call("alloc_at 9", 512, false, |w| take_at(w, REMOVED.start, 9)),
        call("alloc_range 5", 8, true, |w| {
            if let Ok(range) = w.zone().alloc_range(&MOVABLE, 5) {
                w.model.got(range);
            }
        }),
        call("alloc_range_at", 300, false, |w| {
            let range = FrameRange::at(REMOVED.start.plus(3), 300);
            if w.zone().alloc_range_at(range, &MOVABLE).is_ok() {
                w.model.got(range);
            }
        }),
        call("contiguous 8", 16, false, |w| contiguous(w, 8)),
        call("contiguous 600", 1200, false, |w| contiguous(w, 600)),
        call("free 0", 1, true, |w| {
            give(w, 1, |frame, order| w.zone().free(frame, order))
        }),
        call("free 3", 8, true, |w| {
            give(w, 8, |frame, order| w.zone().free(frame, order))
        }),
        call("free 7", 128, true, |w| {
            give(w, 128, |frame, order| w.zone().free(frame, order))
        }),
        call("free 9", 512, true, |w| {
            give(w, 512, |frame, order| w.zone().free(frame, order))
        }),
        call("free_uncached 0", 1, true, |w| {
            give(w, 1, |frame, order| w.zone().free_uncached(frame, order))
        }),
        call("free_uncached 4", 16, true, |w| {
            give(w, 16, |frame, order| w.zone().free_uncached(frame, order))
        }),
        call("free_uncached 9", 512, true, |w| {
            give(w, 512, |frame, order| w.zone().free_uncached(frame, order))
        }),
        call("free_bulk", 40, true, |w| {
            give_bulk(w, |frames| w.zone().free_bulk(frames))
        }),
        call("free_range", 5, true, |w| {
            if let Some(range) = w.model.free(5) {
                assert_eq!(w.zone().free_range(range), Ok(()), "{range:?}");
            }
        }),
        call("drain", 0, false, |w| {
            w.zone().drain();
        }),
        call("add", 512, false, |w| {
            appears(w, ADDED, ABSENT, |zone| zone.add(ADDED))
        }),
        call("remove", 512, false, |w| {
            left(w, REMOVED, w.zone().remove(REMOVED), ABSENT)
        }),
        call("remove what is added", 512, false, |w| {
            left_for_now(w, ADDED, w.zone().remove(ADDED), ABSENT);
        }),
        call("reserve what was reserved", 256, false, |w| {
            let range = WAS_RESERVED;
            left_for_now(w, range, w.zone().reserve(range), RESERVED);
        }),
        call("reserve", 384, false, |w| {
            left(w, RESERVES, w.zone().reserve(RESERVES), RESERVED)
        }),
        call("reserve wide", 768, false, |w| {
            left(w, RESERVES_WIDE, w.zone().reserve(RESERVES_WIDE), RESERVED);
        }),
        call("unreserve", 128, false, |w| {
            appears(w, WAS_RESERVED, RESERVED, |zone| {
                zone.unreserve(WAS_RESERVED)
            });
        }),
        call("isolate", 896, false, |w| {
            match w.zone().isolate(ISOLATES) {
                Ok(()) => w.model.isolate(ISOLATES),
                Err(why) => assert_eq!(why, RangeError::Isolated),
            }
        }),
        call("unisolate", 256, false, |w| {
            w.model.unisolate(WAS_ISOLATED);
            w.zone().unisolate(WAS_ISOLATED);
        }),
        call("offline", 1024, false, |w| {
            left(w, OFFLINE, offline(w.zone(), OFFLINE, &w.model), ABSENT);
        }),
        call("dedicate", 0, false, |w| {
            w.zone().dedicate(REMOVED.start, Mobility::Unmovable)
        }),
        call("compact", 1024, false, |w| {
            if let Some(frame) = w.zone().compact(&block(9), &w.model).caught {
                w.model.got(FrameRange::of_block(frame, Order::HUGE));
            }
        }),
        call("free_table", 0, true, |w| {
            w.zone().free_table();
        }),
        call("nodes: alloc 0", 1, true, |w| by_nodes(w, MOVABLE)),
        call("nodes: alloc 3 atomic", 8, true, |w| {
            by_nodes(w, block(3).atomic())
        }),
        call("nodes: alloc 9", 512, true, |w| by_nodes(w, block(9))),
        bulk_call("nodes: alloc_bulk 40", 40, |w| {
            bulk(w, 40, |request, out| w.nodes.alloc_bulk(0, request, out));
        }),
        bulk_call("nodes: alloc_batch 40", 40, |w| {
            bulk(w, 40, |request, out| {
                Ok::<_, ()>(w.zone().alloc_batch(request, out))
            });
        }),
        call("nodes: alloc_range 5", 8, true, |w| {
            if let Ok(range) = w.nodes.alloc_range(0, &MOVABLE, 5) {
                w.model.got(range);
            }
        }),
        call("nodes: contiguous 8", 16, false, |w| {
            let request = ContiguousRequest::new(
                8,
                FrameRange {
                    start: Frame::new(0),
                    ..SPAN
                },
            );
            if let Ok(range) = w.nodes.alloc_contiguous(0, &request) {
                w.model.got(range);
            }
        }),
        call("nodes: free 0", 1, true, |w| {
            give(w, 1, |frame, order| w.nodes.free(frame, order))
        }),
        call("nodes: free_bulk", 40, true, |w| {
            give_bulk(w, |frames| w.nodes.free_bulk(frames))
        }),
        call("nodes: drain", 0, false, |w| {
            w.nodes.drain();
        }),
        call("aside", 8, true, |w| {
            let request = block(3).atomic();
            if let Some(frame) = w.zone().alloc_above(&request, Mark::Min) {
                w.model.got(FrameRange::of_block(frame, request.order));
            }
        }),
    ]
}
