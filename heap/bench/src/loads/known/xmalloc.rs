//! After xmalloc-test, by Lever and Boreham: one half of the threads only allocates, the other half
//! only frees. Blocks of 64 bytes change hands in batches.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use brickyard_run::Dice;

use super::locked;
use crate::loads::block::Block;
use crate::loads::work::{LoadResult, LoadTask};

const BYTES: usize = 64;

/// The blocks of a batch.
const BATCH: usize = 1024;

/// The batches that wait at most.
const WAITING: usize = 16;

/// Batches of all threads.
const BATCHES: u64 = 12_000;

pub(crate) fn run(work: &LoadTask) -> LoadResult {
    let pairs = (work.threads / 2).max(1);
    let batches = (work.part(BATCHES) / pairs as u64).max(1);
    let (sender, receiver) = sync_channel(WAITING);
    let receiver = Mutex::new(receiver);
    let receiver = &receiver;
    thread::scope(|scope| {
        for number in 0..pairs {
            let sender = sender.clone();
            scope.spawn(move || produce(number as u64, batches, &sender));
            scope.spawn(|| consume(receiver));
        }
        drop(sender);
    });
    LoadResult::of(pairs as u64 * batches * BATCH as u64)
}

fn produce(number: u64, batches: u64, to: &SyncSender<Vec<Block>>) {
    let mut dice = Dice::new(number);
    for _ in 0..batches {
        let mut batch = Vec::with_capacity(BATCH);
        batch.extend((0..BATCH).map(|_| Block::new(BYTES, &mut dice)));
        if to.send(batch).is_err() {
            // The consumers have found wrong memory.
            return;
        }
    }
}

fn consume(from: &Mutex<Receiver<Vec<Block>>>) {
    loop {
        // In a statement of its own, so that the batch is freed without the lock.
        let batch = locked(from).recv();
        if batch.is_err() {
            return;
        }
    }
}
