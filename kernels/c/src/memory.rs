//! Requests and frees.
//!
//! In all functions, `machine` is what by_machine_init returned. They may be called on any CPU, by
//! tasks and interrupts.

use core::slice;

use brickyard::pressure::{ContiguousRequest, compact_all};
use brickyard::{AnyZone, Context, Frame, FrameRange};

use crate::error::{
    self, BY_INVALID, BY_NOT_OWNED, BY_WRONG_ORDER, count, of_alloc, of_free, of_range,
};
use crate::flags::request_of;
use crate::machine::by_machine;
use crate::plan::order_of;

/// Takes a block of 2^order frames, from node 0 if possible. Returns its first frame; or
/// BY_EXHAUSTED, BY_FRAGMENTED, BY_ORDER_TOO_LARGE, or BY_INVALID for unknown flags. A request that
/// is neither BY_ATOMIC nor BY_INTERRUPT may call all hooks.
#[unsafe(no_mangle)]
pub extern "C" fn by_alloc(machine: &by_machine, order: u32, flags: u32) -> isize {
    take(machine, 0, (order, flags), 0)
}

/// Takes 2^order frames from this node if possible, every frame below `limit` unless that is 0.
/// Returns what by_alloc does, or BY_ABOVE_LIMIT. A node that the machine does not have is node 0,
/// here and below.
#[unsafe(no_mangle)]
pub extern "C" fn by_alloc_from(
    machine: &by_machine,
    node: u32,
    order: u32,
    flags: u32,
    limit: usize,
) -> isize {
    take(machine, node, (order, flags), limit)
}

#[inline(always)]
fn take(machine: &by_machine, node: u32, (order, flags): (u32, u32), limit: usize) -> isize {
    match request_of(order, flags, limit) {
        Ok(request) => match machine.nodes.alloc(node as usize, &request) {
            Ok(frame) => frame.number().cast_signed(),
            Err(error) => of_alloc(error),
        },
        Err(code) => code,
    }
}

/// Takes exactly the block of 2^order frames at `frame`, of whatever zone. Returns 0; or BY_BUSY,
/// BY_ABSENT, BY_OUTSIDE, BY_ISOLATED, BY_ORDER_TOO_LARGE, or BY_INVALID, also if no such block
/// begins there.
#[unsafe(no_mangle)]
pub extern "C" fn by_alloc_at(machine: &by_machine, frame: usize, order: u32, flags: u32) -> isize {
    let frame = Frame::new(frame);
    let request = match request_of(order, flags, 0) {
        Ok(request) => request,
        Err(code) => return code,
    };
    match machine.nodes.zone_of(frame) {
        Some(zone) => zone.alloc_at(frame, &request).map_or_else(of_range, |()| 0),
        None => error::BY_OUTSIDE,
    }
}

/// Takes up to `count` single frames, from this node if possible, and writes their numbers. Returns
/// how many; or the reason why there was none, as by_alloc.
///
/// # Safety
/// `frames` has room for `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_alloc_bulk(
    machine: &by_machine,
    node: u32,
    flags: u32,
    frames: *mut usize,
    count: usize,
) -> isize {
    if frames.is_null() && count > 0 {
        return BY_INVALID;
    }
    if count == 0 {
        return 0;
    }
    let request = match request_of(0, flags, 0) {
        Ok(request) => request,
        Err(code) => return code,
    };
    // SAFETY: the caller's promise; `frame-is-a-word`.
    let out = unsafe { slice::from_raw_parts_mut(frames.cast::<Frame>(), count) };
    match machine.nodes.alloc_bulk(node as usize, &request, out) {
        Ok(taken) => error::count(taken),
        Err(error) => of_alloc(error),
    }
}

/// Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one. Returns 0;
/// or BY_NOT_OWNED, BY_DOUBLE_FREE, BY_WRONG_ORDER, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_free(machine: &by_machine, frame: usize, order: u32) -> isize {
    match order_of(order) {
        Some(order) => match machine.nodes.free(Frame::new(frame), order) {
            Ok(()) => 0,
            Err(error) => of_free(error),
        },
        None => BY_WRONG_ORDER,
    }
}

/// Takes back `count` single frames. Returns 0; or the reason why one was refused, as by_free.
/// Those before it are freed then; it and those after it are not. Writes how many were freed to
/// `*freed`, unless that is null.
///
/// # Safety
/// `frames` points to `count` of them; `freed` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_free_bulk(
    machine: &by_machine,
    frames: *const usize,
    count: usize,
    freed: *mut usize,
) -> isize {
    if frames.is_null() && count > 0 {
        return BY_INVALID;
    }
    let frames = match count {
        0 => &[],
        // SAFETY: the caller's promise; `frame-is-a-word`.
        _ => unsafe { slice::from_raw_parts(frames.cast::<Frame>(), count) },
    };
    let (done, code) = match machine.nodes.free_bulk(frames) {
        Ok(()) => (count, 0),
        Err(error) => (error.freed, of_free(error.error)),
    };
    if !freed.is_null() {
        // SAFETY: the caller's promise.
        unsafe { freed.write(done) };
    }
    code
}

/// Takes back the frames from `start` up to, but not including, `end`, of one zone: any number, all
/// in use. Returns 0; or as by_free, or BY_INVALID for no frames, and then nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn by_free_range(machine: &by_machine, start: usize, end: usize) -> isize {
    if start >= end {
        return BY_INVALID;
    }
    match machine.nodes.free_range(FrameRange::new(start, end)) {
        Ok(()) => 0,
        Err(error) => of_free(error),
    }
}

/// Adjacent frames, any number.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_contiguous {
    /// The number of frames; need not be a power of two.
    pub frames: usize,
    /// The first frame's number is a multiple of this power of two. 0: 1.
    pub align: usize,
    /// No multiple of this power of two lies inside. 0: no boundary.
    pub boundary: usize,
    /// All frames are at or above this one.
    pub start: usize,
    /// All frames are below this one. 0: no limit.
    pub end: usize,
}

/// Takes adjacent frames, from this node if possible. What is movable is moved out of the way, by
/// the hook `migrate`. Free them by by_free_range, whole or in parts. Returns the first frame; or,
/// of the first zone that has such a place, BY_BUSY, BY_ISOLATED (also if too much is being moved
/// at this moment: try again) or BY_EXHAUSTED (it would fall below its watermark); BY_OUTSIDE if
/// none has; or BY_INVALID, also for BY_ATOMIC and BY_INTERRUPT, since it is for callers that may
/// sleep. O(zones).
///
/// # Safety
/// `wanted` points to such a request, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_alloc_contiguous(
    machine: &by_machine,
    node: u32,
    wanted: *const by_contiguous,
    flags: u32,
) -> isize {
    // SAFETY: the caller's promise.
    let (Some(wanted), Ok(page)) = (unsafe { wanted.as_ref() }, request_of(0, flags, 0)) else {
        return BY_INVALID;
    };
    if page.context != Context::MaySleep {
        return BY_INVALID;
    }
    let end = match wanted.end {
        0 => usize::MAX,
        end => end,
    };
    let request = ContiguousRequest {
        align: wanted.align.max(1),
        boundary: wanted.boundary,
        mobility: page.mobility,
        highest: Some(page.highest),
        ..ContiguousRequest::new(wanted.frames, FrameRange::new(wanted.start, end))
    };
    match machine.nodes.alloc_contiguous(node as usize, &request) {
        Ok(range) => range.start.number().cast_signed(),
        Err(error) => of_range(error),
    }
}

/// Returns the number of the zone that has the frame, in the order of the plan; if none has it, the
/// first whose span contains it; or BY_NOT_OWNED.
#[unsafe(no_mangle)]
pub extern "C" fn by_zone_of(machine: &by_machine, frame: usize) -> isize {
    let found = machine.nodes.zone_of(Frame::new(frame));
    let number = found.and_then(|zone| {
        machine
            .zones
            .iter()
            .position(|one| core::ptr::eq(one, zone))
    });
    number.map_or(BY_NOT_OWNED, count)
}

/// Returns the frames of every reachable CPU's stash to the zones. Returns how many.
#[unsafe(no_mangle)]
pub extern "C" fn by_drain(machine: &by_machine) -> isize {
    count(machine.nodes.drain())
}

/// Compacts a zone, by the hook `migrate`. Returns the number of frames that were moved, or
/// BY_INVALID. For callers that may sleep.
#[unsafe(no_mangle)]
pub extern "C" fn by_compact(machine: &by_machine, zone: usize) -> isize {
    match machine.zone(zone) {
        Ok(zone) => count(compact_all(zone, machine.nodes.hooks()).moved),
        Err(code) => code,
    }
}

// Invariant `frame-is-a-word`: a frame is a number, in memory too, so that C's arrays of numbers
// are arrays of frames.
const _: () =
    assert!(size_of::<Frame>() == size_of::<usize>() && align_of::<Frame>() == align_of::<usize>());

/// Sets all watermarks and reserves by Linux's rules, from `min_free_kbytes` and the memory that
/// the zones have now. Call it again when memory comes or goes. Until it is called, nothing is held
/// back. Pages of 0 bytes change nothing.
#[unsafe(no_mangle)]
pub extern "C" fn by_set_min_free_kbytes(machine: &by_machine, kbytes: usize, page_bytes: usize) {
    machine.nodes.set_min_free_kbytes(kbytes, page_bytes);
}

/// Returns Linux's choice of `min_free_kbytes` for the memory that the machine has now.
#[unsafe(no_mangle)]
pub extern "C" fn by_min_free_kbytes(machine: &by_machine, page_bytes: usize) -> usize {
    let low = machine
        .zones
        .iter()
        .filter(|zone| zone.kind() <= brickyard::ZoneKind::Normal);
    let frames = low.map(AnyZone::managed_frames).sum();
    brickyard::watermark::min_free_kbytes(brickyard::watermark::kbytes_of_frames(
        frames, page_bytes,
    ))
}
