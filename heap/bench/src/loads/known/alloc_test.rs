//! After alloc-test: each thread has a table, whose places are chosen by a Pareto distribution. An
//! empty place gets a block, whose size has such a distribution too (up to 1 KiB and a bit); the
//! block of a full one is freed. So a few places change all the time, and many blocks live long.

use brickyard_run::Dice;

use super::empty_table;
use crate::loads::block::Block;
use crate::loads::sizes::halving;
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

/// The places of a thread, of which the first sixty-fourth has half of the visits.
const PLACES: usize = 1 << 14;
const BUSY: usize = PLACES / 64;

/// Visits to places of all threads.
const VISITS: u64 = 24_000_000;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let visits = work.share(VISITS);
    LoadResult::of(crew(work.threads, |thread| {
        let mut dice = Dice::new(thread as u64);
        let mut places = empty_table(PLACES);
        let mut operations = 0;
        for _ in 0..visits {
            let place = &mut places[halving(&mut dice, BUSY, PLACES / 2) - BUSY];
            if place.take().is_none() {
                let bytes = halving(&mut dice, 8, 512);
                *place = Some(Block::new(bytes, &mut dice));
                operations += 1;
            }
        }
        operations
    }))
}
