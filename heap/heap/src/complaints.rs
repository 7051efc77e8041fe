//! What the heap says of mistakes, without allocating.

use core::ptr::NonNull;

use brickyard_arena::messages::say;
use brickyard_slab::Finding;
use brickyard_slab::debug::Moment;

/// Prints what checks have found.
pub(crate) fn report(finding: &Finding) {
    say(format_args!("{finding}"));
}

/// Ends the process if a bad free was found when its caller had long gone on: of an object that was
/// free already, or of an address inside one, which lay in a queue until now. (One that is found at
/// the free ends the process too, with a line of its own; see [`complain`].)
pub(crate) fn end_if_late(finding: &Finding) {
    if finding.moment == Moment::Flush {
        say(format_args!("found late: {finding}"));
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }
}

/// Prints what is wrong with `memory` and aborts the process, as every C library does for a bad
/// free.
pub(crate) fn complain(what: &str, memory: NonNull<u8>) -> ! {
    say(format_args!("{what}: {memory:p}"));
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
