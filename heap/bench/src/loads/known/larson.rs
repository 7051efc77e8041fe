//! After larson, a server by Larson and Krishnan: each thread has a table of blocks of 8 to 1000
//! bytes and replaces random ones. When it has served for a while it ends, and a new thread gets
//! its table. So a block is often freed by another thread than the one that allocated it, which no
//! longer exists.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Scope};

use brickyard_run::Dice;

use crate::loads::block::Block;
use crate::loads::sizes::uniform;
use crate::loads::work::{LoadResult, LoadTask};

/// The blocks of a table.
const PLACES: usize = 5000;
const SIZES: (usize, usize) = (8, 1000);

/// Replacements of all threads.
const REPLACED: u64 = 12_000_000;

/// How many threads serve a table, one after the other.
const GENERATIONS: u64 = 40;

/// A table, and what its next thread needs.
#[derive(Debug)]
struct Table {
    places: Vec<Option<Block>>,
    dice: Dice,
    generations_left: u64,
}

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let operations = AtomicU64::new(0);
    let each = (work.share(REPLACED) / GENERATIONS).max(1);
    let mut dice = Dice::new(4141);
    let tables: Vec<Table> = (0..work.threads)
        .map(|_| {
            let mut dice = dice.split();
            let mut places = Vec::with_capacity(PLACES);
            places.extend((0..PLACES).map(|_| Some(block(&mut dice))));
            Table {
                places,
                dice,
                generations_left: GENERATIONS,
            }
        })
        .collect();
    operations.fetch_add((work.threads * PLACES) as u64, Ordering::Relaxed);
    thread::scope(|scope| {
        for table in tables {
            let operations = &operations;
            scope.spawn(move || serve(scope, table, each, operations));
        }
    });
    LoadResult::of(operations.into_inner())
}

fn block(dice: &mut Dice) -> Block {
    Block::new(uniform(dice, SIZES.0, SIZES.1), dice)
}

fn serve<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut table: Table,
    each: u64,
    operations: &'scope AtomicU64,
) {
    for _ in 0..each {
        let place = &mut table.places[table.dice.below(PLACES as u64) as usize];
        *place = None;
        *place = Some(block(&mut table.dice));
    }
    // Relaxed: only a sum, read after all threads have ended.
    operations.fetch_add(each, Ordering::Relaxed);
    table.generations_left -= 1;
    if table.generations_left > 0 {
        scope.spawn(move || serve(scope, table, each, operations));
    }
}
