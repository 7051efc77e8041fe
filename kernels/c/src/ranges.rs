//! Memory that comes and goes. A range belongs to one zone, by its number in the plan.

use core::ptr;

use brickyard::pressure;
use brickyard::{AnyZone, Frame, FrameRange, RangeError};

use crate::error::{BY_INVALID, count, of_range};
use crate::machine::{AZone, by_machine};

/// Does something to a range of a zone, and returns how many frames it was done to. A range without
/// frames is refused.
fn with(
    machine: &by_machine,
    zone: usize,
    (start, end): (usize, usize),
    work: impl FnOnce(&AZone, FrameRange) -> Result<usize, RangeError>,
) -> isize {
    let range = FrameRange::new(start, end);
    match machine.zone(zone) {
        Ok(_) if range.is_empty() => BY_INVALID,
        Ok(zone) => work(zone, range).map_or_else(of_range, count),
        Err(code) => code,
    }
}

/// Returns the first frame of the range that another zone has. O(zones), and O(frames) where spans
/// overlap.
fn elsewhere(machine: &by_machine, own: &AZone, range: FrameRange) -> Option<Frame> {
    let others = machine.zones.iter().filter(|zone| !ptr::eq(*zone, own));
    let has = |zone: &AZone| {
        let mut shared = zone.span().intersection(range).frames();
        shared.find(|&frame| zone.has(frame))
    };
    others.filter_map(has).min()
}

/// Adds the frames from `start` up to, but not including, `end` to a zone. What it has already
/// stays as it is. Returns the number of new frames; or BY_OUTSIDE, BY_INVALID, or BY_BUSY if
/// another zone has one of the frames, and then nothing has changed; or BY_BUSY if another CPU is
/// removing or reserving one at this moment, and then those before may have been added. Where the
/// spans of zones overlap, only one CPU may be adding at a time.
#[unsafe(no_mangle)]
pub extern "C" fn by_add(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        match elsewhere(machine, zone, range) {
            Some(frame) if zone.span().covers(range) => Err(RangeError::Busy { frame }),
            _ => zone.add(range),
        }
    })
}

/// Keeps the free frames of a range from being handed out. Returns how many; or BY_BUSY (also if
/// another CPU is removing or reserving some at this moment), BY_ISOLATED (four CPUs are at that),
/// BY_OUTSIDE, BY_INVALID, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_reserve(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        zone.reserve(range)
    })
}

/// Frees the reserved frames of a range. Returns how many; or BY_OUTSIDE, BY_INVALID, or BY_BUSY if
/// another CPU is removing or reserving one at this moment.
#[unsafe(no_mangle)]
pub extern "C" fn by_unreserve(
    machine: &by_machine,
    zone: usize,
    start: usize,
    end: usize,
) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        zone.unreserve(range)
    })
}

/// Removes a range that nobody uses from a zone. Returns how many frames it had; or BY_BUSY,
/// BY_ISOLATED, BY_OUTSIDE, BY_INVALID, as by_reserve, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_remove(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        zone.remove(range)
    })
}

/// Removes a range after the hook `migrate` has moved what is movable there elsewhere in the zone.
/// Returns what by_remove does, or BY_ISOLATED. What was moved stays moved. For callers that may
/// sleep.
#[unsafe(no_mangle)]
pub extern "C" fn by_offline(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        pressure::offline(zone, range, machine.nodes.hooks())
    })
}
