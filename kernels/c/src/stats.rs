//! Counts, the texts of Linux's files, and the check of all invariants.

use core::ffi::c_char;
use core::fmt::Display;
use core::mem::MaybeUninit;
use core::slice;

use brickyard::AnyZone;
use brickyard::stats::{BuddyInfo, ExtfragIndex, PageTypeInfo, UnusableIndex, ZoneSnapshot};
use brickyard::sync::Ordering;

use crate::error::{BY_BROKEN, BY_BUSY, BY_INVALID};
use crate::machine::by_machine;
use crate::text;

/// Counts of a zone, in frames. They are hints while others use the zone.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_counts {
    /// Added, less those reserved.
    pub managed: usize,
    /// Free in the zone.
    pub free: usize,
    /// Free in CPUs' stashes.
    pub cached: usize,
    /// Double frees that were noticed late, when a stash was flushed.
    pub refused_late: usize,
    /// The min watermark.
    pub min: usize,
    /// The low watermark.
    pub low: usize,
    /// The high watermark.
    pub high: usize,
    /// Requests that fell back on a page block of another mobility, without claiming it.
    pub fallbacks: u64,
    /// Requests that claimed a page block of another mobility.
    pub claims: u64,
}

/// Writes the counts of a zone. Returns 0 or BY_INVALID.
///
/// # Safety
/// `counts` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_zone_counts(
    machine: &by_machine,
    zone: usize,
    counts: *mut by_counts,
) -> isize {
    let (Ok(zone), false) = (machine.zone(zone), counts.is_null()) else {
        return BY_INVALID;
    };
    let (fallbacks, claims) = zone.fallbacks();
    let marks = zone.watermarks().marks();
    let found = by_counts {
        managed: zone.managed_frames(),
        free: zone.free_frames(),
        cached: zone.cached_frames(),
        refused_late: zone.refused_late(),
        min: marks.min,
        low: marks.low,
        high: marks.high,
        fallbacks,
        claims,
    };
    // SAFETY: the caller's promise.
    unsafe { counts.write(found) };
    0
}

/// `/proc/buddyinfo`.
pub const BY_BUDDYINFO: u32 = 0;
/// `/proc/pagetypeinfo`.
pub const BY_PAGETYPEINFO: u32 = 1;
/// `/sys/kernel/debug/extfrag/unusable_index`.
pub const BY_UNUSABLE_INDEX: u32 = 2;
/// `/sys/kernel/debug/extfrag/extfrag_index`.
pub const BY_EXTFRAG_INDEX: u32 = 3;

/// Writes one of Linux's texts about the machine to `buffer`, as much as fits, and a zero behind
/// it. Returns the length of all of it without the zero, as snprintf does; BY_BUSY if another CPU
/// writes one at this moment, or BY_INVALID. O(memory).
///
/// # Safety
/// `buffer` has `bytes` bytes that can be written; it may be null if `bytes` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_write_text(
    machine: &by_machine,
    which: u32,
    buffer: *mut c_char,
    bytes: usize,
) -> isize {
    if which > BY_EXTFRAG_INDEX {
        return BY_INVALID;
    }
    let taken = &machine.snapshots.taken;
    // Acquire: pairs with the release below, of who wrote the last text.
    if taken
        .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return BY_BUSY;
    }
    // SAFETY: `one-writer`: `taken` was changed from 0 by this call.
    let zones = look(machine, unsafe { &mut *machine.snapshots.room.get() });
    // SAFETY: the caller's promise.
    let write = |text: &dyn Display| unsafe { text::write(&text, buffer, bytes) };
    let length = match which {
        BY_BUDDYINFO => write(&BuddyInfo(zones)),
        BY_PAGETYPEINFO => write(&PageTypeInfo(zones)),
        BY_UNUSABLE_INDEX => write(&UnusableIndex(zones)),
        _ => write(&ExtfragIndex(zones)),
    };
    // Release: pairs with the acquire above.
    taken.store(0, Ordering::Release);
    length
}

/// Writes a snapshot of each zone. A function of its own: snapshots lie on the stack first, and not
/// while a text is written.
#[inline(never)]
fn look<'r>(machine: &by_machine, room: &'r mut [MaybeUninit<ZoneSnapshot>]) -> &'r [ZoneSnapshot] {
    for (place, snapshot) in room.iter_mut().zip(machine.nodes.snapshots()) {
        place.write(snapshot);
    }
    // SAFETY: there are as many snapshots as zones, and as many places.
    unsafe { slice::from_raw_parts(room.as_ptr().cast(), room.len()) }
}

/// What the check found.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_census {
    /// Frames that are free.
    pub free: usize,
    /// Frames that are free in an isolated range.
    pub isolated: usize,
    /// Frames in use.
    pub allocated: usize,
    /// Frames that are free in CPUs' stashes.
    pub cached: usize,
    /// Frames reserved.
    pub reserved: usize,
    /// If an invariant does not hold: a frame that shows it, or SIZE_MAX.
    pub frame: usize,
    /// If an invariant does not hold: its name and what was found, with a zero behind.
    pub broken: [c_char; 160],
}

/// Tests every invariant, while no other CPU uses the machine. O(memory). Returns 0, or BY_BROKEN.
/// Writes what was counted or found to `*census`, unless that is null.
///
/// # Safety
/// `census` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_check(machine: &by_machine, census: *mut by_census) -> isize {
    let found = machine.nodes.check();
    if let Some(census) = core::ptr::NonNull::new(census) {
        // SAFETY: the caller's promise; all members may be 0.
        let census = unsafe {
            census.write_bytes(0, 1);
            &mut *census.as_ptr()
        };
        census.frame = usize::MAX;
        match found {
            Ok(counts) => {
                census.free = counts.free;
                census.isolated = counts.isolated;
                census.allocated = counts.allocated;
                census.cached = counts.cached;
                census.reserved = counts.reserved;
            }
            Err(violation) => {
                census.frame = violation.frame.map_or(usize::MAX, brickyard::Frame::number);
                // SAFETY: the array has that many bytes.
                unsafe {
                    text::write(&violation, census.broken.as_mut_ptr(), census.broken.len());
                }
            }
        }
    }
    match found {
        Ok(_) => 0,
        Err(_) => BY_BROKEN,
    }
}
