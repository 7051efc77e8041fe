//! After mstress, mimalloc's own: a server in phases. In each, threads allocate blocks of sizes
//! that are mostly small, and keep some; they swap blocks with a shared table, through which blocks
//! reach other threads. At the end of a phase all threads end, half of the table is freed, and new
//! threads begin. Not all threads do equally much.

use std::sync::Mutex;

use brickyard_run::Dice;

use super::locked;
use crate::loads::block::Block;
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

/// The places of the shared table.
const SHARED: usize = 1000;

const PHASES: u64 = 50;

/// Allocations of all threads.
const ALLOCATED: u64 = 9_000_000;

/// One place of the shared table.
type Place = Mutex<Option<Block>>;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let shared: Vec<Place> = (0..SHARED).map(|_| Place::default()).collect();
    let phases = work.part(PHASES);
    let of_a_phase = work.share(ALLOCATED) / phases + 1;
    let mut dice = Dice::new(43);
    let mut operations = 0;
    for phase in 0..phases {
        operations += crew(work.threads, |thread| {
            // From all to half of it.
            let allocations = of_a_phase - of_a_phase / 2 * thread as u64 / work.threads as u64;
            let seed = phase * work.threads as u64 + thread as u64;
            serve(&shared, allocations, &mut Dice::new(seed));
            allocations
        });
        for place in &shared {
            if dice.chance(2) {
                *locked(place) = None;
            }
        }
    }
    LoadResult::of(operations)
}

fn serve(shared: &[Place], allocations: u64, dice: &mut Dice) {
    let mut live: Vec<Block> = Vec::new();
    let mut kept: Vec<Block> = Vec::new();
    for count in 0..allocations {
        let block = allocate(dice);
        // Every fifth lives as long as the thread.
        if count % 5 == 0 {
            kept.push(block);
        } else {
            live.push(block);
        }
        if dice.chance(2) && !live.is_empty() {
            let which = dice.below(live.len() as u64) as usize;
            live.swap_remove(which);
        }
        if dice.chance(4) && !live.is_empty() {
            let which = dice.below(live.len() as u64) as usize;
            let place = &shared[dice.below(SHARED as u64) as usize];
            let mine = live.swap_remove(which);
            let theirs = locked(place).replace(mine);
            live.extend(theirs);
        }
        // As many as a server has requests.
        if live.len() > 4000 {
            live.clear();
        }
    }
}

/// Allocates some words: mostly one to eight, one in a hundred times ten times as many, one in a
/// thousand times a hundred times, one in ten thousand times a thousand times. Half of the blocks
/// are zeroed.
fn allocate(dice: &mut Dice) -> Block {
    let times = match dice.below(10_000) {
        0 => 1000,
        1..=10 => 100,
        11..=110 => 10,
        _ => 1,
    };
    let bytes = 8 * times * (1 << dice.below(4)) as usize;
    if dice.chance(2) {
        Block::zeroed(bytes, dice)
    } else {
        Block::new(bytes, dice)
    }
}
