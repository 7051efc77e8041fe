//! `/proc/kpageflags` folded into runs: hand-written flags, compared with a naive fold, and on this
//! host compared with buddyinfo.

use core::sync::atomic::{AtomicU64, Ordering};
use std::fs;
use std::path::PathBuf;

use brickyard_host::fold::{Fold, state_of};
use brickyard_host::{Host, HostError};
use brickyard_trace::{PageState, PageUse, StateRun};
use proptest::prelude::*;

const LRU: u64 = 1 << 5;
const SLAB: u64 = 1 << 7;
const BUDDY: u64 = 1 << 10;
const ANON: u64 = 1 << 12;
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;

fn folded(flags: &[u64]) -> Vec<StateRun> {
    let mut fold = Fold::default();
    fold.push(0, 0, flags);
    fold.finish()
}

/// Frame, frames, order, use.
fn short(runs: &[StateRun]) -> Vec<(u64, u64, u8, PageUse)> {
    let short = |run: &StateRun| (run.frame, run.frames, run.order, run.state.usage);
    runs.iter().map(short).collect()
}

#[test]
fn each_use_by_its_flags() {
    let uses = [
        (0, PageUse::Untold),
        (1 << 20, PageUse::Hole),
        (1 << 19 | LRU | ANON, PageUse::Hole),
        (1 << 23, PageUse::Hole),
        (1 << 32, PageUse::Reserved),
        (BUDDY, PageUse::Free),
        (BUDDY | 1 << 3, PageUse::Free),
        (1 << 17 | HEAD, PageUse::Huge),
        (1 << 26, PageUse::PageTable),
        (SLAB, PageUse::Slab),
        // Seen on Linux 6.18: slab, anonymous and KSM at once.
        (SLAB | ANON | 1 << 21, PageUse::Slab),
        (LRU | ANON | 1 << 14, PageUse::Anonymous),
        (ANON, PageUse::Anonymous),
        (LRU, PageUse::File),
        (LRU | 1 << 14, PageUse::File),
        // On its way to an LRU list: shared memory.
        (1 << 14 | 1 << 3, PageUse::File),
        // The huge zero page.
        (1 << 24 | 1 << 22 | LRU, PageUse::Untold),
        (TAIL, PageUse::Untold),
    ];
    for (flags, usage) in uses {
        assert_eq!(state_of(flags).usage, usage, "{flags:#x}");
    }
}

#[test]
fn flags_of_process_memory() {
    let file = PageState::of(PageUse::File);
    let dirty = PageState {
        dirty: true,
        ..file
    };
    assert_eq!(
        state_of(LRU | 1 << 6),
        PageState {
            active: true,
            ..file
        }
    );
    assert_eq!(state_of(LRU | 1 << 4), dirty);
    assert_eq!(
        state_of(LRU | 1 << 8),
        PageState {
            writeback: true,
            ..file
        }
    );
    assert_eq!(state_of(LRU | 1 << 9), file, "the mark of read-ahead");
    let both = PageState {
        writeback: true,
        ..dirty
    };
    assert_eq!(state_of(LRU | 1 << 9 | 1 << 4), both);
    for locked in [1 << 18, 1 << 33] {
        assert_eq!(
            state_of(LRU | locked),
            PageState {
                unevictable: true,
                ..file
            }
        );
    }
    // On other frames they are stale, and ignored.
    assert_eq!(
        state_of(BUDDY | 1 << 6 | 1 << 4),
        PageState::of(PageUse::Free)
    );
}

#[test]
fn compound_pages_have_an_order() {
    let (slab_head, slab_tail) = (SLAB | HEAD, SLAB | TAIL);
    let mut flags = vec![BUDDY, BUDDY, 0, SLAB];
    // Two slabs of four, one of two.
    flags.extend([slab_head, slab_tail, slab_tail, slab_tail].repeat(2));
    flags.extend([slab_head, slab_tail, ANON]);
    let expected = [
        (0, 2, 0, PageUse::Free),
        (2, 1, 0, PageUse::Untold),
        (3, 1, 0, PageUse::Slab),
        (4, 8, 2, PageUse::Slab),
        (12, 2, 1, PageUse::Slab),
        (14, 1, 0, PageUse::Anonymous),
    ];
    assert_eq!(short(&folded(&flags)), expected);
}

#[test]
fn what_cannot_be_a_compound_page_is_single_pages() {
    // Three frames; two that begin at an odd frame; tails without a head.
    let three = [LRU | HEAD, LRU | TAIL, LRU | TAIL, BUDDY];
    let expected = [(0, 3, 0, PageUse::File), (3, 1, 0, PageUse::Free)];
    assert_eq!(short(&folded(&three)), expected);
    let odd = [BUDDY, LRU | HEAD, LRU | TAIL];
    assert_eq!(short(&folded(&odd))[1], (1, 2, 0, PageUse::File));
    let headless = [SLAB | TAIL, SLAB | TAIL, BUDDY];
    assert_eq!(short(&folded(&headless))[0], (0, 2, 0, PageUse::Slab));
    let reserved = [1 << 32 | HEAD, 1 << 32 | TAIL];
    assert_eq!(short(&folded(&reserved)), [(0, 2, 0, PageUse::Reserved)]);
}

#[test]
fn a_compound_page_may_lie_over_several_reads() {
    let mut flags = vec![1 << 17 | HEAD];
    flags.resize(1024, 1 << 17 | TAIL);
    let mut fold = Fold::default();
    for (read, part) in flags.chunks(100).enumerate() {
        fold.push(read as u64, read as u64 * 100, part);
    }
    let runs = fold.finish();
    assert_eq!(short(&runs), [(0, 1024, 10, PageUse::Huge)]);
    assert_eq!(runs[0].time, 0, "when its head was seen");
}

#[test]
fn frames_read_at_different_times_are_different_runs() {
    let mut fold = Fold::default();
    fold.push(5, 0, &[BUDDY; 4]);
    fold.push(9, 4, &[BUDDY; 4]);
    let runs = fold.finish();
    let times: Vec<_> = runs
        .iter()
        .map(|run| (run.time, run.frame, run.frames))
        .collect();
    assert_eq!(times, [(5, 0, 4), (9, 4, 4)]);
}

#[test]
fn without_a_flag_and_outside_of_memory_there_is_a_hole() {
    let mut fold = Fold::new(vec![2..4, 6..7]);
    fold.push(0, 0, &[1 << 32, 0, 0, BUDDY, 0]);
    fold.push(0, 5, &[0, 0, 0, LRU]);
    let expected = [
        (0, 1, 0, PageUse::Reserved),
        (1, 1, 0, PageUse::Hole),
        (2, 1, 0, PageUse::Untold),
        (3, 1, 0, PageUse::Free),
        (4, 2, 0, PageUse::Hole),
        (6, 1, 0, PageUse::Untold),
        (7, 1, 0, PageUse::Hole),
        // Memory that was added after the list of memory was read.
        (8, 1, 0, PageUse::File),
    ];
    assert_eq!(short(&fold.finish()), expected);
}

/// The same, directly by the definition: each frame's block, then adjacent blocks joined.
fn naive(flags: &[u64]) -> Vec<(u64, u64, u8, PageState)> {
    let mut frames: Vec<(u8, PageState)> = flags.iter().map(|&word| (0, state_of(word))).collect();
    for head in (0..flags.len()).filter(|&at| flags[at] & HEAD != 0) {
        let tails = flags[head + 1..]
            .iter()
            .take_while(|&&word| word & (HEAD | TAIL) == TAIL);
        let length = tails.count() + 1;
        let state = state_of(flags[head]);
        let ordered = !matches!(
            state.usage,
            PageUse::Hole | PageUse::Reserved | PageUse::Free
        );
        let whole = length.is_power_of_two() && head % length == 0 && ordered;
        let order = if whole {
            length.trailing_zeros() as u8
        } else {
            0
        };
        frames[head..head + length].fill((order, state));
    }
    let mut runs: Vec<(u64, u64, u8, PageState)> = Vec::new();
    for (frame, (order, state)) in frames.into_iter().enumerate() {
        match runs.last_mut() {
            Some(last) if (last.2, last.3) == (order, state) => last.1 += 1,
            _ => runs.push((frame as u64, 1, order, state)),
        }
    }
    runs
}

/// Stretches of equal words, including compound pages.
fn some_flags() -> impl Strategy<Value = Vec<u64>> {
    let single = (
        prop::sample::select(vec![0, BUDDY, LRU, ANON | LRU, SLAB, 1 << 32, 1 << 20]),
        1..20_usize,
    )
        .prop_map(|(word, length)| vec![word; length]);
    let compound = (
        prop::sample::select(vec![0, LRU, ANON | LRU, SLAB]),
        0..20_usize,
    )
        .prop_map(|(word, tails)| {
            let mut words = vec![word | TAIL; tails + 1];
            words[0] = word | HEAD;
            words
        });
    let anything = any::<u64>().prop_map(|word| vec![word]);
    let piece = prop_oneof![4 => single, 4 => compound, 1 => anything];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn folding_is_what_the_definition_says(flags in some_flags(), read in 1..50_usize) {
        let mut fold = Fold::default();
        for (at, part) in flags.chunks(read).enumerate() {
            fold.push(0, (at * read) as u64, part);
        }
        let runs = fold.finish();
        let found: Vec<_> = runs.iter().map(|run| (run.frame, run.frames, run.order, run.state)).collect();
        prop_assert_eq!(found, naive(&flags));
    }

    #[test]
    fn runs_cover_every_frame_once(
        flags in prop::collection::vec(any::<u64>(), 0..300),
        ends in prop::collection::btree_set(0..300_u64, 0..8),
    ) {
        let ends: Vec<_> = ends.into_iter().collect();
        let memory = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        let mut fold = Fold::new(memory);
        fold.push(0, 0, &flags);
        let mut next = 0;
        for run in fold.finish() {
            prop_assert_eq!(run.frame, next);
            prop_assert!(run.frames > 0 && run.frames % (1 << run.order) == 0);
            next += run.frames;
        }
        prop_assert_eq!(next, flags.len() as u64);
    }
}

/// A directory with these flags as its kpageflags.
fn host_with(name: &str, bytes: &[u8]) -> Host {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(root.join("proc")).unwrap();
    fs::write(root.join("proc/kpageflags"), bytes).unwrap();
    Host::at(&root)
}

#[test]
fn a_file_is_read_in_chunks_each_with_its_time() {
    let frames = (1 << 13) * 130 + 3;
    let mut bytes: Vec<u8> = (0..frames).flat_map(|_| BUDDY.to_ne_bytes()).collect();
    // Less than a word is not a frame.
    bytes.extend([1, 2, 3]);
    let host = host_with("chunks", &bytes);
    let clock = AtomicU64::new(1);
    let now = || clock.fetch_add(1, Ordering::Relaxed);
    let mut calls = Vec::new();
    let states = host
        .page_states(now, |done, all| calls.push((done, all)))
        .unwrap();
    assert_eq!(states.runs.len(), 131, "no two reads have one time");
    assert_eq!(states.reads.len(), 131);
    for (place, (run, read)) in (0..).zip(states.runs.iter().zip(&states.reads)) {
        let length = if place == 130 { 3 } else { 1 << 13 };
        assert_eq!((run.frame, run.frames), (place << 13, length));
        assert_eq!((read.frame, read.began), (run.frame, run.time));
        assert!(read.began < read.ended);
    }
    assert_eq!(calls.first(), Some(&(1 << 19, 1 << 19)));
    assert_eq!(calls.last(), Some(&(frames, frames)));
    assert_eq!(calls.len(), 3);
}

#[test]
fn an_empty_file_is_an_error() {
    let host = host_with("empty", &[]);
    let error = host.page_states(|| 0, |_, _| {}).unwrap_err();
    assert!(matches!(error, HostError::Empty { .. }));
    assert!(error.to_string().contains("container"), "{error}");
}

/// Free frames by kpageflags and by buddyinfo differ only by what changed between the two reads.
#[test]
fn free_frames_of_this_host_are_those_of_buddyinfo() {
    let host = Host::here();
    let runs = match host.page_states(|| 0, |_, _| {}) {
        Ok(states) => states.runs,
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let free = runs.iter().filter(|run| run.state.usage == PageUse::Free);
    let by_flags: u64 = free.map(|run| run.frames).sum();
    let zones = host.buddyinfo().unwrap();
    let by_lists: u64 = zones
        .iter()
        .map(|zone| zone.counts().free_frames() as u64)
        .sum();
    let all: u64 = host.zones().unwrap().iter().map(|zone| zone.present).sum();
    // Other processes run at the same time: up to a tenth of the memory may have changed.
    let difference = by_flags.abs_diff(by_lists);
    assert!(
        difference <= all / 10,
        "{by_flags} by flags, {by_lists} by lists, {all} in all"
    );
    println!(
        "{by_flags} free by flags, {by_lists} by lists, {} runs",
        runs.len()
    );
}
