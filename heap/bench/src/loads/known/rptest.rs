//! After rpmalloc-benchmark, by Jansson: each thread has a table of blocks, of which it frees and
//! allocates a hundred in a row at a time; sizes are 16 to 16000 bytes, larger ones less often.
//! Every other time the hundred go to another thread, which frees them. The second load has sizes
//! up to 128 KiB.

use brickyard_run::Dice;

use super::{Inbox, locked};
use crate::loads::block::Block;
use crate::loads::sizes::falling;
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

/// The blocks of a thread, in rows of a hundred.
const ROWS: usize = 10;
const ROW: usize = 100;

/// How many rows may wait for a thread. Where more would, each frees its own.
const WAITING: usize = 16;

/// Rows of all threads.
const EXCHANGED: u64 = 48_000;

pub(crate) fn usual(work: &LoadTask) -> LoadResult {
    run(work, 16_000, EXCHANGED)
}

pub(crate) fn large(work: &LoadTask) -> LoadResult {
    run(work, 128 << 10, EXCHANGED / 12)
}

fn run(work: &LoadTask, most: usize, rows: u64) -> LoadResult {
    let inboxes: Vec<Inbox> = (0..work.threads).map(|_| Inbox::default()).collect();
    let each = work.share(rows);
    LoadResult::of(crew(work.threads, |thread| {
        let mut dice = Dice::new(thread as u64);
        let mut table: Vec<Vec<Block>> = (0..ROWS).map(|_| Vec::with_capacity(ROW)).collect();
        for turn in 0..each {
            let row = &mut table[dice.below(ROWS as u64) as usize];
            if turn % 2 == 1 {
                let mut inbox = locked(&inboxes[(thread + 1) % work.threads]);
                if inbox.len() < WAITING * ROW {
                    inbox.append(row);
                }
            }
            row.clear();
            row.extend((0..ROW).map(|_| Block::new(falling(&mut dice, 16, most), &mut dice)));
            let arrived = core::mem::take(&mut *locked(&inboxes[thread]));
            drop(arrived);
        }
        each * ROW as u64
    }))
}
