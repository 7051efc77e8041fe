//! How many steps a request may take, whatever others do meanwhile.

use brickyard::patience::LOOKS_MOST;
use brickyard::sync::PATIENCE;
use brickyard::{FrameRange, Order};
use brickyard_classics::Configuration;

use super::case::Case;

/// How often memory is reclaimed for a request at most, each time because the time before has
/// brought some.
const RECLAIMS: u64 = 16;

/// Sets that a request may be served from, and words that are read to find a block in one.
const SETS: u64 = 64;
const WORDS_OF_A_SET: u64 = 8;

/// Passes of a search as a rule. It may be [64](brickyard::bitmap) while others are faster each
/// time; but no single request meets that at each of its looks.
const PASSES: u64 = 8;

/// What is read and written of a page block to take frames from it, besides its words.
const STEPS_OF_A_BLOCK: u64 = 32;

/// What is read of a CPU's stash to see that nothing lies in it, and what it takes to go into it
/// and out.
const STEPS_OF_A_STASH: u64 = 96;

/// Steps for each frame that a drain gives back.
const STEPS_OF_A_FRAME: u64 = 8;

/// Shared accesses and waits that a request to the lock-free design takes at most: a number that
/// depends on the machine's size alone, whatever others do and wherever they stand still. What it
/// waits for on other CPUs, asleep, is none of them.
///
/// It asks the store, then looks everywhere [`LOOKS_MOST`] times, then does both again after each
/// reclaim. A look drains what all CPUs keep, searches the store, and waits [`PATIENCE`] times at
/// most for each slot that somebody is in and for what is on its way. Only one CPU in four is taken
/// to stand still inside a slot at each look: a stop is rarer than that. No frame is drained twice
/// in a look, so a look gives back no more than there are.
///
/// Designs with a lock wait for whoever has it, however long; for them there is no bound.
pub(crate) fn steps_most(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    match case.configuration {
        Configuration::Brickyard => (1 + RECLAIMS) * steps_to_look(case, span, page_block),
        _ => u64::MAX,
    }
}

/// Steps to look everywhere as often as may be, once.
fn steps_to_look(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    let (cpus, frames) = (case.cpus as u64, span.len() as u64);
    let blocks = (frames >> page_block.get()) + 2;
    let words = (page_block.frames() as u64).div_ceil(64);
    let search = PASSES * (SETS * WORDS_OF_A_SET + blocks * (STEPS_OF_A_BLOCK + 4 * words));
    let drain = cpus * STEPS_OF_A_STASH + frames * STEPS_OF_A_FRAME;
    let waits = u64::from(PATIENCE) * (1 + cpus.div_ceil(4));
    u64::from(LOOKS_MOST) * (search + drain + waits)
}

/// Steps that a request takes at most while others go on for ever and nothing can be reclaimed: it
/// looks everywhere before and after it has tried that once.
///
/// To a design with locks it waits for each lock that it takes, behind all other CPUs at most where
/// the lock is a fair one; what one of them does under it takes as many steps as a drain at most. A
/// test-and-set lock is not fair: there the number is one that is hardly ever reached.
pub(crate) fn steps_most_among(case: &Case, span: FrameRange, page_block: Order) -> u64 {
    let alone = 2 * steps_to_look(case, span, page_block);
    match case.configuration {
        Configuration::Brickyard => alone,
        _ => alone * case.cpus as u64,
    }
}
