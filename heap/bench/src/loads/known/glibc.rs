//! The two micro-benchmarks that glibc has of its own malloc.
//!
//! malloc-simple: so many blocks of one size are allocated, and then freed in the same order; sizes
//! and numbers vary. malloc-thread: each thread has 1024 blocks of 4 bytes to 32 KiB, small ones
//! much more often, and replaces random ones.

use brickyard_run::Dice;

use super::empty_table;
use crate::loads::block::Block;
use crate::loads::sizes::inverse_square;
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

/// The sizes and numbers of blocks of malloc-simple.
const SIZES: [usize; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const COUNTS: [usize; 4] = [25, 100, 400, 1600];

/// How many blocks of each size and number are allocated.
const BLOCKS: u64 = 150_000;

pub(crate) fn simple(work: &LoadTask) -> LoadResult {
    let mut dice = Dice::new(1);
    let mut live = Vec::with_capacity(COUNTS[COUNTS.len() - 1]);
    let mut operations = 0;
    for bytes in SIZES {
        for count in COUNTS {
            for _ in 0..(work.part(BLOCKS) / count as u64).max(1) {
                live.extend((0..count).map(|_| Block::new(bytes, &mut dice)));
                live.clear();
                operations += count as u64;
            }
        }
    }
    LoadResult::of(operations)
}

/// The live blocks of a thread of malloc-thread.
const PLACES: usize = 1024;

/// The sizes are drawn once, since drawing takes as long as an allocation.
const DRAWN: usize = 8192;

/// Replacements of all threads.
const REPLACED: u64 = 25_000_000;

pub(crate) fn thread(work: &LoadTask) -> LoadResult {
    let each = work.share(REPLACED);
    LoadResult::of(crew(work.threads, |thread| {
        let mut dice = Dice::new(thread as u64);
        let sizes: Vec<usize> = (0..DRAWN)
            .map(|_| inverse_square(&mut dice, 4, 32 << 10))
            .collect();
        let mut places = empty_table(PLACES);
        for step in 0..each {
            let place = &mut places[dice.below(PLACES as u64) as usize];
            *place = None;
            *place = Some(Block::new(sizes[step as usize % DRAWN], &mut dice));
        }
        each
    }))
}
