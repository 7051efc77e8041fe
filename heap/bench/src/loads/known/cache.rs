//! cache-scratch and cache-thrash, after Berger and others (Hoard): do blocks of several threads
//! share a cache line? Each thread allocates a small block, writes all its bytes many times, and
//! frees it. Where two threads' blocks are in one line, the writes take many times longer.
//!
//! In cache-thrash the threads only allocate at the same time: an allocator that then serves them
//! from one line shares it actively. In cache-scratch one thread has allocated a block for each, in
//! one line; each frees its own before it begins. An allocator that gives a thread the block again
//! that it has freed shares the line passively.

use std::sync::Mutex;

use brickyard_run::Dice;

use super::{empty_table, locked};
use crate::loads::block::{Block, wrong};
use crate::loads::threads::crew;
use crate::loads::work::{LoadResult, LoadTask};

const BYTES: usize = 8;

/// How many blocks all threads allocate.
const BLOCKS: u64 = 10_000;

/// How often each byte of a block is written.
const WRITES: usize = 25_000;

pub(crate) fn scratch(work: &LoadTask) -> LoadResult {
    let mut dice = Dice::new(1);
    let mut given = empty_table(work.threads);
    given.fill_with(|| Some(Block::new(BYTES, &mut dice)));
    let done = write(work, &Mutex::new(given));
    LoadResult::of(done.operations + work.threads as u64)
}

pub(crate) fn thrash(work: &LoadTask) -> LoadResult {
    write(work, &Mutex::new(empty_table(work.threads)))
}

fn write(work: &LoadTask, given: &Mutex<Vec<Option<Block>>>) -> LoadResult {
    let blocks = work.share(BLOCKS);
    LoadResult::of(crew(work.threads, |thread| {
        let own = locked(given)[thread].take();
        drop(own);
        for _ in 0..blocks {
            write_one();
        }
        blocks
    }))
}

fn write_one() {
    // SAFETY: any size may be asked for.
    let start: *mut u8 = unsafe { libc::malloc(BYTES) }.cast();
    if start.is_null() {
        wrong(format_args!("an allocation of {BYTES} bytes failed"));
    }
    for at in 0..BYTES {
        // SAFETY: `malloc` has returned so many bytes, of which no other thread knows.
        unsafe { start.add(at).write_volatile(0) };
    }
    for _ in 0..WRITES {
        for at in 0..BYTES {
            // SAFETY: as above. Volatile, so that each write is one.
            unsafe {
                let byte = start.add(at);
                byte.write_volatile(byte.read_volatile().wrapping_add(1));
            }
        }
    }
    for at in 0..BYTES {
        // SAFETY: as above.
        if unsafe { start.add(at).read_volatile() } != WRITES as u8 {
            wrong(format_args!(
                "another thread wrote to a block of {BYTES} bytes"
            ));
        }
    }
    // SAFETY: it was allocated above.
    unsafe { libc::free(start.cast()) };
}
