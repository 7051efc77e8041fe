//! sh6bench and sh8bench, after the stress tests of MicroQuill's SmartHeap: runs of blocks of one
//! size, of which most are freed at once, the last first, and the rest only later, the first first.
//! So free lists are left in two opposite orders. Sizes are 8 to 1000 bytes; the smaller, the
//! longer the run. In sh8bench the rest of each thread is freed by the next thread.

use brickyard_run::Dice;

use super::{Inbox, locked};
use crate::loads::block::Block;
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

const SIZES: (usize, usize) = (8, 1000);

/// A run has this many bytes.
const RUN_BYTES: usize = 32 << 10;

/// A round has a run of each size in these steps.
const STEP: usize = 16;

/// Rounds of all threads.
const ROUNDS: u64 = 900;

/// One block in so many of a run is freed only at the end of the next round.
const LATER: usize = 3;

pub(crate) fn six(work: &LoadTask) -> LoadResult {
    let mut dice = Dice::new(6);
    let mut later = Vec::new();
    let mut operations = 0;
    for _ in 0..work.part(ROUNDS) {
        let rest = round(&mut dice, &mut operations);
        free_in_order(core::mem::replace(&mut later, rest));
    }
    free_in_order(later);
    LoadResult::of(operations)
}

pub(crate) fn eight(work: &LoadTask) -> LoadResult {
    let inboxes: Vec<Inbox> = (0..work.threads).map(|_| Inbox::default()).collect();
    let rounds = work.share(ROUNDS);
    LoadResult::of(crew(work.threads, |thread| {
        let mut dice = Dice::new(thread as u64);
        let mut operations = 0;
        for _ in 0..rounds {
            let rest = round(&mut dice, &mut operations);
            let next = &inboxes[(thread + 1) % work.threads];
            // Where the next thread has not fetched the last rest yet, that is freed here.
            free_in_order(core::mem::replace(&mut *locked(next), rest));
            free_in_order(core::mem::take(&mut *locked(&inboxes[thread])));
        }
        operations
    }))
}

/// Allocates the runs of a round, and frees most of each; returns the rest.
fn round(dice: &mut Dice, operations: &mut u64) -> Vec<Block> {
    let mut rest = Vec::new();
    for bytes in (SIZES.0..=SIZES.1).step_by(STEP) {
        let count = RUN_BYTES / bytes;
        let mut run: Vec<Block> = (0..count).map(|_| Block::new(bytes, dice)).collect();
        *operations += count as u64;
        let first_later = count - count / LATER;
        rest.extend(run.drain(first_later..));
        while run.pop().is_some() {}
    }
    rest
}

/// Frees blocks, the first first.
fn free_in_order(blocks: Vec<Block>) {
    blocks.into_iter().for_each(drop);
}
