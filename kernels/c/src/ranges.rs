//! Memory that comes and goes. A range belongs to one zone, by its number in the plan.

use brickyard::FrameRange;
use brickyard::pressure;

use crate::error::{count, of_range};
use crate::machine::{AZone, by_machine};

/// Does something to a range of a zone, and returns how many frames it was done to.
fn with(
    machine: &by_machine,
    zone: usize,
    (start, end): (usize, usize),
    work: impl FnOnce(&AZone, FrameRange) -> Result<usize, brickyard::RangeError>,
) -> isize {
    match machine.zone(zone) {
        Ok(zone) => work(zone, FrameRange::new(start, end)).map_or_else(of_range, count),
        Err(code) => code,
    }
}

/// Adds the frames from `start` up to, but not including, `end` to a zone. What it has already stays as
/// it is. Returns the number of new frames; or BY_OUTSIDE, BY_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn by_add(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| zone.add(range))
}

/// Keeps the free frames of a range from being handed out. Returns how many; or BY_BUSY, BY_OUTSIDE,
/// BY_INVALID, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_reserve(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        zone.reserve(range)
    })
}

/// Frees the reserved frames of a range. Returns how many; or BY_OUTSIDE, BY_INVALID.
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
/// BY_OUTSIDE, BY_INVALID, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_remove(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        zone.remove(range)
    })
}

/// As by_remove, after what is movable there was moved elsewhere by the hook `migrate`. For callers
/// that may sleep.
#[unsafe(no_mangle)]
pub extern "C" fn by_offline(machine: &by_machine, zone: usize, start: usize, end: usize) -> isize {
    with(machine, zone, (start, end), |zone, range| {
        pressure::offline(zone, range, machine.nodes.hooks())
    })
}
