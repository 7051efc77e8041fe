//! After malloc-large, of mimalloc-bench: blocks of 5 to 25 MiB, a few live, of which a random one
//! is replaced. A byte of each page is written.

use brickyard_run::Dice;

use super::empty_table;
use crate::loads::block::Block;
use crate::loads::sizes::uniform;
use crate::loads::work::{LoadResult, LoadTask};

const SIZES: (usize, usize) = (5 << 20, 25 << 20);

/// The live blocks.
const PLACES: usize = 12;

const REPLACED: u64 = 200;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let mut dice = Dice::new(1);
    let mut places = empty_table(PLACES);
    let replaced = work.part(REPLACED);
    for _ in 0..replaced {
        let place = &mut places[dice.below(PLACES as u64) as usize];
        *place = None;
        *place = Some(Block::new(uniform(&mut dice, SIZES.0, SIZES.1), &mut dice));
    }
    LoadResult::of(replaced)
}
