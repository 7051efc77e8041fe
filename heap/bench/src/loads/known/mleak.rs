//! After mimalloc's test for leaks of threads: threads begin, allocate blocks of 16 bytes to 4 KiB,
//! free one half and end; the main thread frees the other half. An allocator that does not take
//! over what an ended thread has cached grows with each.

use std::thread;

use brickyard_run::Dice;

use crate::loads::block::Block;
use crate::loads::sizes::logarithmic;
use crate::loads::work::{LoadResult, LoadTask};

/// How many threads begin and end.
const THREADS: u64 = 4000;

/// The blocks of each.
const BLOCKS: u64 = 500;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let rounds = work.share(THREADS);
    for round in 0..rounds {
        thread::scope(|scope| {
            let crew: Vec<_> = (0..work.threads)
                .map(|thread| {
                    let seed = round * work.threads as u64 + thread as u64;
                    scope.spawn(move || half(&mut Dice::new(seed)))
                })
                .collect();
            for thread in crew {
                match thread.join() {
                    Ok(blocks) => drop(blocks),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
    LoadResult::of(rounds * work.threads as u64 * BLOCKS)
}

/// Allocates blocks, frees every other, and returns the rest.
fn half(dice: &mut Dice) -> Vec<Block> {
    let mut blocks: Vec<Block> = (0..BLOCKS)
        .map(|_| Block::new(logarithmic(dice, 16, 4096), dice))
        .collect();
    let mut count = 0;
    blocks.retain(|_| {
        count += 1;
        count % 2 == 0
    });
    blocks
}
