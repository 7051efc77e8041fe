//! Limits of addresses that a program sets for itself when the heap is built already (`RLIMIT_AS`,
//! and `RLIMIT_MEMLOCK` with `mlockall`): the span has reserved more than it will ever use, and all
//! of that counts.

use brickyard_arena::environment::number;
use brickyard_arena::page_bytes;
use brickyard_arena::rows::{keeping_errno, rows_given_up};
use rustix::fs::{Mode, OFlags};

use crate::instance::{built, enter};

/// Has the heap give up addresses that it has not used yet, so that it takes half of what a limit of
/// the process leaves beside all else, or as much as it has used: what it would have reserved under
/// that limit. It gets more as it needs them, where that is allowed and nobody else has mapped
/// anything there since. Opens `/proc/self/statm`, and does nothing where that cannot be read, nor
/// in a child of `vfork`, whose limits are not those of its parent.
pub fn fit_addresses(limit: usize) {
    let Some(heap) = built().filter(|_| rows_given_up() == 0) else {
        return;
    };
    // The lock of those that make the span grow is one that a child of `fork` needs.
    let Some(_inside) = enter(heap) else { return };
    keeping_errno(|| {
        let own = heap.span.address_bytes();
        if let Some(all) = addresses() {
            let left = limit.saturating_sub(all.saturating_sub(own));
            // SAFETY: the heap's span is there for ever.
            unsafe { heap.span.give_up_addresses(left / 2) }
        }
    });
}

/// Returns the bytes of addresses that the process has mapped.
fn addresses() -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(c"/proc/self/statm", flags, Mode::empty()).ok()?;
    let mut text = [0; 64];
    let read = rustix::io::read(&file, &mut text).ok()?;
    let first = text[..read].split(|&byte| byte == b' ').next()?;
    number(first)?.checked_mul(page_bytes())
}
