//! Blocks are apart and as long as they say. What is kept of freed ones has bounds.

use std::thread;

use super::*;

mod huge;

fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

#[test]
fn blocks_are_aligned_zero_and_keep_their_contents_when_they_grow() {
    let large = LargeBlocks::new();
    for align in [1, 4096, 64 << 10, 4 << 20, 1 << 30] {
        let (block, contents) = large.alloc(3 << 20, align).unwrap();
        assert_eq!(contents, Contents::Zeros);
        assert!(block.addr().get().is_multiple_of(align));
        assert_eq!(large.bytes_at(block), Some(3 << 20));
        // SAFETY: the block is this test's.
        unsafe {
            assert_eq!(block.add((3 << 20) - 1).read(), 0);
            block.add((3 << 20) - 1).write(7);
            let grown = large.resize(block, 50 << 20).unwrap();
            assert_eq!(grown.add((3 << 20) - 1).read(), 7);
            assert_eq!((large.bytes(), large.blocks()), (50 << 20, 1));
            assert!(large.free(grown) && !large.free(grown));
        }
        assert_eq!(large.bytes_at(block), None);
        assert!(large.release_idle() > 0);
    }
    assert!(large.alloc(usize::MAX, 1).is_none() && large.alloc(1 << 62, 1).is_none());
    assert_eq!((large.bytes(), large.blocks()), (0, 0));
}

#[test]
fn a_resized_block_counts_once() {
    const MIB: usize = 1 << 20;
    let large = LargeBlocks::new();
    let (mut block, _) = large.alloc(100 * MIB, 1).unwrap();
    for mib in [110, 120, 5, 6] {
        // SAFETY: the block is this test's.
        block = unsafe { large.resize(block, mib * MIB) }.unwrap();
        assert_eq!((large.bytes(), large.blocks()), (mib * MIB, 1));
    }
    assert_eq!(large.most(), [120 * MIB, 1]);
    // What may stay idle goes by this.
    assert_eq!(large.lately.load(Ordering::Relaxed), 120 * MIB);
    // SAFETY: as above.
    assert!(unsafe { large.unmap(block) });
}

#[test]
fn a_panic_leaves_the_lock_free() {
    let large = LargeBlocks::new();
    let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        large.with_table(|_| panic!("in the table"));
    }));
    assert!(panicked.is_err() && !large.lock().is_locked());
    let block = large.map(4096, 1).unwrap();
    // SAFETY: the block is this test's.
    assert!(unsafe { large.free(block) });
}

fn is_mapped(start: NonNull<u8>) -> bool {
    let mut byte = 0;
    // SAFETY: the system looks, and writes a byte.
    unsafe { libc::mincore(start.as_ptr().cast(), 1, &raw mut byte) == 0 }
}

#[test]
fn a_freed_block_serves_the_next_one_longer_and_shorter() {
    let large = LargeBlocks::new();
    let (block, _) = large.alloc(6 << 20, 1).unwrap();
    // SAFETY: the block is this test's, here and below.
    unsafe {
        block.write_bytes(7, 6 << 20);
        assert!(large.free(block) && !large.free(block));
    }
    assert_eq!((large.bytes(), large.idle_bytes()), (0, 6 << 20));
    // A shorter one leaves the rest.
    let (shorter, contents) = large.alloc(4 << 20, 1).unwrap();
    assert_eq!((shorter, contents), (block, Contents::Anything));
    assert_eq!((large.bytes(), large.idle_bytes()), (4 << 20, 2 << 20));
    // A longer one takes it, and has zeros where it is new.
    let (longer, contents) = large.alloc(3 << 20, 1).unwrap();
    assert_eq!((contents, large.idle_bytes()), (Contents::Anything, 0));
    assert_eq!(large.bytes_at(longer), Some(3 << 20));
    // SAFETY: as above.
    unsafe {
        assert_eq!(longer.add((2 << 20) - 1).read(), 7);
        assert_eq!(longer.add(2 << 20).read(), 0);
        large.clear(longer, 3 << 20);
        assert_eq!(longer.read(), 0);
        assert_eq!(shorter.read(), 7);
        // What is aligned to more than a page is new.
        assert!(large.free(longer));
        let (aligned, contents) = large.alloc(3 << 20, 1 << 20).unwrap();
        assert_eq!(contents, Contents::Zeros);
        assert!(large.unmap(aligned) && large.free(shorter));
    }
    assert_eq!((large.bytes(), large.idle_bytes()), (0, 7 << 20));
    assert!(is_mapped(shorter));
    assert_eq!((large.release_idle(), large.idle_bytes()), (7 << 20, 0));
    assert!(!is_mapped(shorter));
}

#[test]
fn no_more_is_kept_than_was_in_use_lately() {
    let large = LargeBlocks::new();
    let free = |block| {
        // SAFETY: the block is this test's.
        assert!(unsafe { large.free(block) });
    };
    let blocks = [0; 8].map(|_| large.alloc(20 << 20, 1).unwrap().0);
    for (freed, block) in blocks.into_iter().enumerate() {
        free(block);
        let allowed = surplus::allowed((7 - freed) * (20 << 20), 160 << 20);
        assert!(large.idle_bytes() <= allowed);
        assert!(large.idle_bytes() >= 20 << 20);
    }
    // It is there for two looks at most.
    assert_eq!(large.release_by_age(), 0);
    assert_eq!(large.release_by_age(), 48 << 20);
    // By now nothing was in use lately.
    let (block, _) = large.alloc(4 << 20, 1).unwrap();
    free(block);
    assert_eq!(large.idle_bytes(), 4 << 20);
    let (block, _) = large.alloc(90 << 20, 1).unwrap();
    free(block);
    // Of one that is longer than what may stay, a part does.
    assert_eq!(large.idle_bytes(), surplus::allowed(0, 90 << 20));
    assert_eq!(large.release_idle(), 48 << 20);
    assert_eq!((large.bytes(), large.blocks()), (0, 0));
}

#[test]
fn threads_do_not_meet() {
    const PIECE: usize = spare::LEAST / 2;

    let large = LargeBlocks::new();
    let work = |owner: usize| {
        let mut state = owner as u64;
        let mut held: Vec<NonNull<u8>> = Vec::new();
        for _ in 0..400 {
            if held.len() < 300 && !next(&mut state).is_multiple_of(3) {
                let bytes = PIECE * (1 + next(&mut state) % 8);
                let (block, _) = large.alloc(bytes, 1).unwrap();
                // SAFETY: this thread's own block.
                unsafe { block.cast().write(owner) };
                held.push(block);
            } else if let Some(block) = held.pop() {
                // SAFETY: this thread's own block.
                unsafe {
                    let block = large
                        .resize(block, PIECE * (1 + next(&mut state) % 8))
                        .unwrap();
                    assert_eq!(block.cast::<usize>().read(), owner);
                    assert!(large.free(block));
                }
            }
        }
        for block in held {
            // SAFETY: this thread's own block.
            unsafe {
                assert_eq!(block.cast::<usize>().read(), owner);
                assert!(large.free(block));
            }
        }
    };
    thread::scope(|scope| {
        let work = &work;
        for owner in 1..=4 {
            scope.spawn(move || work(owner));
        }
    });
    assert_eq!((large.bytes(), large.blocks()), (0, 0));
}

#[test]
fn a_block_beside_the_table_is_freed_without_room_in_the_table() {
    let large = LargeBlocks::new();
    let block = large.alloc_beside(3 << 20, 1).unwrap();
    // SAFETY: the child makes plain calls, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let least = libc::rlimit {
                rlim_cur: 1 << 20,
                rlim_max: 1 << 20,
            };
            let limited = libc::setrlimit(libc::RLIMIT_AS, &raw const least) == 0;
            libc::_exit(i32::from(
                !(limited && large.free(block) && !large.free(block)),
            ));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0);
        assert!(large.free(block));
    }
}

/// Returns how many pages from there on have memory.
fn resident(start: NonNull<u8>, bytes: usize) -> usize {
    let mut pages = vec![0_u8; bytes / page_bytes()];
    // SAFETY: the system looks, and writes a byte for each page.
    let done = unsafe { libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr()) };
    assert_eq!(done, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

const MIB: usize = 1 << 20;

/// Frees blocks of so many MiB each, filled with that number, so that all are kept.
fn keeps<const N: usize>(large: &LargeBlocks, lengths: [usize; N]) {
    let blocks = lengths.map(|mib| (mib, large.alloc(mib * MIB, 1).unwrap().0));
    for (mib, block) in blocks {
        // SAFETY: the block is this test's.
        unsafe {
            block.write_bytes(mib as u8, mib * MIB);
            assert!(large.free(block));
        }
    }
    assert_eq!(large.idle_bytes(), lengths.iter().sum::<usize>() * MIB);
}

#[test]
fn the_longest_of_pieces_that_are_too_short_is_made_longer() {
    let large = LargeBlocks::new();
    keeps(&large, [3, 5, 4]);
    let (block, contents) = large.alloc(10 * MIB, 1).unwrap();
    assert_eq!(contents, Contents::Anything);
    assert_eq!((large.bytes(), large.idle_bytes()), (10 * MIB, 7 * MIB));
    assert_eq!(resident(block, 10 * MIB), 5 * MIB / page_bytes());
    // SAFETY: the block is this test's, here and below.
    unsafe {
        assert_eq!((block.read(), block.add(5 * MIB).read()), (5, 0));
        // A part that is locked is a mapping of its own, and the system does not move several.
        if libc::mlock(block.as_ptr().cast(), 4096) == 0 {
            assert_eq!(large.resize(block, 90 * MIB), None);
            assert_eq!((block.read(), large.bytes()), (5, 10 * MIB));
        }
        assert!(large.unmap(block));
    }
    assert_eq!(large.release_idle(), 7 * MIB);
}

/// Random blocks that are freed and allocated again: each keeps what was written.
#[test]
fn blocks_of_kept_pieces_are_apart() {
    are_apart(&LargeBlocks::new());
    are_apart(&huge::huge_blocks());
}

fn are_apart(large: &LargeBlocks) {
    let mut state = 3;
    let mut live: Vec<(NonNull<u8>, usize, usize)> = Vec::new();
    for round in 0..600_usize {
        if live.len() >= 8 {
            let (block, bytes, mark) = live.swap_remove(next(&mut state) % live.len());
            for at in (0..bytes).step_by(64 << 10) {
                // SAFETY: the block is this test's, here and below.
                assert_eq!(unsafe { block.add(at).cast::<usize>().read() }, mark);
            }
            // SAFETY: as above.
            assert!(unsafe { large.free(block) });
        }
        let bytes = (2 << 20) + next(&mut state) % (8 << 20);
        let (block, _) = large.alloc(bytes, 1).unwrap();
        for at in (0..bytes).step_by(64 << 10) {
            // SAFETY: as above.
            unsafe { block.add(at).cast::<usize>().write(round) };
        }
        live.push((block, bytes, round));
        assert!(large.idle_bytes() <= surplus::allowed(large.bytes(), 100 << 20));
    }
    for (block, ..) in live {
        // SAFETY: as above.
        assert!(unsafe { large.free(block) });
    }
    assert_eq!((large.bytes(), large.blocks()), (0, 0));
    let _ = large.release_idle();
}

#[test]
fn no_free_unmaps_much_more_than_it_brings() {
    let large = LargeBlocks::new();
    let taken = |count: usize, bytes: usize| -> Vec<_> {
        (0..count)
            .map(|_| large.alloc(bytes, 1).unwrap().0)
            .collect()
    };
    let held = taken(64, 16 * MIB);
    for block in taken(30, 20 * MIB) {
        // SAFETY: used no more.
        unsafe { assert!(large.free(block)) };
    }
    assert_eq!(large.idle_bytes(), 600 * MIB);
    // From now on less may be kept.
    large.begin_look();
    assert_eq!(large.go_on_with_look(1, 16), 0);
    let mut before = large.idle_bytes();
    for _ in 0..60 {
        let one = large.alloc(3 * MIB, 1).unwrap().0;
        // SAFETY: used no more.
        unsafe { assert!(large.free(one)) };
        let gone = before - large.idle_bytes();
        assert!(gone <= 45 * MIB, "{gone}");
        before = large.idle_bytes();
    }
    let bytes = large.bytes();
    assert!(
        before <= surplus::allowed(bytes, bytes + 3 * MIB),
        "{before}"
    );
    let _ = large.release_idle();
    for block in held {
        // SAFETY: used no more.
        unsafe { assert!(large.unmap(block)) };
    }
}

#[test]
fn a_look_in_parts_takes_as_much_as_a_look() {
    let large = LargeBlocks::new();
    let block = large.alloc(200 * MIB, 1).unwrap().0;
    let others: Vec<_> = (0..20)
        .map(|_| large.alloc(10 * MIB, 1).unwrap().0)
        .collect();
    // SAFETY: used no more.
    unsafe { assert!(large.free(block)) };
    large.begin_look();
    assert_eq!(large.go_on_with_look(16, 16), 0);
    let kept = large.idle_bytes();
    large.begin_look();
    let mut gone = 0;
    for _ in 0..16 {
        let part = large.go_on_with_look(1, 16);
        assert!(part <= (kept / 16).max(8 * MIB) + MIB, "{part}");
        gone += part;
    }
    assert_eq!((gone, large.idle_bytes()), (kept, 0));
    for block in others {
        // SAFETY: used no more.
        unsafe { assert!(large.unmap(block)) };
    }
}

#[test]
fn a_free_unmaps_no_long_piece_where_there_are_as_many_as_may_be() {
    let large = LargeBlocks::new();
    let taken = |count: usize, bytes: usize| -> Vec<_> {
        (0..count)
            .map(|_| large.alloc(bytes, 1).unwrap().0)
            .collect()
    };
    let held = taken(64, 64 * MIB);
    let long = taken(1, 200 * MIB);
    let short = taken(70, 3 * MIB);
    for block in long.into_iter().chain(short) {
        let before = large.idle_bytes();
        // SAFETY: used no more.
        unsafe { assert!(large.free(block)) };
        assert!(large.idle_bytes() >= before);
    }
    assert_eq!(large.idle_bytes(), (200 + 63 * 3) * MIB);
    let _ = large.release_idle();
    for block in held {
        // SAFETY: used no more.
        unsafe { assert!(large.unmap(block)) };
    }
}
