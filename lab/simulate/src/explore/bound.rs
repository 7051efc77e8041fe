//! The most steps that a request may take, whatever other CPUs do meanwhile.

use brickyard::patience::LOOKS_MOST;
use brickyard::sync::PATIENCE;
use brickyard::{FrameRange, Order};
use brickyard_designs::classics::Configuration;

use super::case::Case;

/// The most times that memory is reclaimed for a request. It is repeated only if the last time
/// freed some.
const RECLAIMS: u64 = 16;

/// Sets that a request may be served from, and words that are read to find a block in one.
const SETS: u64 = 64;
const WORDS_OF_A_SET: u64 = 8;

/// Usual limit on the passes of a search. There may be [64](brickyard::bitmap) if other CPUs are
/// faster each time, but no request meets that in each of its looks.
const PASSES: u64 = 8;

/// Accesses to take frames from a page block, besides its words.
const STEPS_OF_A_BLOCK: u64 = 32;

/// Accesses to enter a CPU's stash, find it empty, and leave it.
const STEPS_OF_A_STASH: u64 = 96;

/// Steps for each frame that a drain frees.
const STEPS_OF_A_FRAME: u64 = 8;

/// Returns the most shared accesses and waits that a request to the lock-free design takes: a
/// number that depends on the machine's size only, whatever other CPUs do and wherever they stop.
/// The time that it sleeps until a remote call is done is not counted.
///
/// A request tries the store, then looks everywhere [`LOOKS_MOST`] times, then does both again
/// after each reclaim. A look drains what all CPUs cache, searches the store, and waits at most
/// [`PATIENCE`] times for each occupied slot and for frames in transit. One CPU in four is assumed
/// to be stopped inside a slot at each look; stops are rarer than that. No frame is drained twice
/// in a look, so a look frees at most all frames.
///
/// Designs with a lock wait for its holder, however long; for them there is no bound.
pub(crate) fn steps_most(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    match case.configuration {
        Configuration::Brickyard => (1 + RECLAIMS) * steps_of_a_search(case, span, page_block),
        _ => u64::MAX,
    }
}

/// Returns the steps of all [`LOOKS_MOST`] looks of a request between two reclaims.
fn steps_of_a_search(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    let (cpus, frames) = (case.cpus as u64, span.len() as u64);
    let blocks = (frames >> page_block.get()) + 2;
    let words = (page_block.frames() as u64).div_ceil(64);
    let search = PASSES * (SETS * WORDS_OF_A_SET + blocks * (STEPS_OF_A_BLOCK + 4 * words));
    let drain = cpus * STEPS_OF_A_STASH + frames * STEPS_OF_A_FRAME;
    let waits = u64::from(PATIENCE) * (1 + cpus.div_ceil(4));
    u64::from(LOOKS_MOST) * (search + drain + waits)
}

/// Returns the most steps that a request takes while others allocate and free without end and
/// nothing can be reclaimed: it looks everywhere before and after its one attempt to reclaim.
///
/// In a design with locks the request waits for each lock that it takes, with a fair lock behind at
/// most all other CPUs; what each of them does under the lock takes at most as many steps as a
/// drain. A test-and-set lock is not fair: there the number is no bound, but hardly ever reached.
pub(crate) fn steps_most_among(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    let alone = 2 * steps_of_a_search(case, span, page_block);
    match case.configuration {
        Configuration::Brickyard => alone,
        _ => alone * case.cpus as u64,
    }
}
