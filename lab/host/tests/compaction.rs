//! The kernel's compaction on hand-written memory, where each rule decides; and on random memory,
//! where nothing may get lost.

use brickyard_host::Unevictable;
use brickyard_host::compaction::{CpuList, End, Frames, Request};
use brickyard_host::movability::Judge;
use brickyard_host::zoneinfo::ZoneInfo;
use brickyard_trace::{PageState, PageUse, StateRun};
use proptest::prelude::*;

/// Frames of a block in these tests: small ones show the rules as well.
const ORDER: u8 = 3;
const SIZE: u64 = 1 << ORDER;

const NO_LIST: CpuList = CpuList { count: 0, high: 0 };

fn list(count: u64, high: u64) -> CpuList {
    CpuList { count, high }
}

fn run(frame: u64, frames: u64, order: u8, usage: PageUse, dirty: bool) -> StateRun {
    let state = PageState {
        dirty,
        ..PageState::of(usage)
    };
    StateRun {
        time: 0,
        frame,
        frames,
        order,
        state,
    }
}

/// Makes frames of letters: `.` free, `a` anonymous, `f` file, `d` modified file, `s` slab, `m` and
/// `w` file and modified file that a process has mapped, `t` shared memory, `l` locked, `?` without
/// a flag; `AA`, `FFFF` and `DD` are large pages, as long as the letters.
fn frames(text: &str) -> Frames {
    frames_of(text, "Normal")
}

/// As [`frames`], in a zone of this name.
fn frames_of(text: &str, name: &str) -> Frames {
    let letters: Vec<char> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let mut runs = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let same = letters[at..]
            .iter()
            .take_while(|&&next| next == letter)
            .count();
        let large = letter.is_uppercase();
        let frames = if large { same } else { 1 };
        let order = frames.trailing_zeros() as u8;
        let usage = match letter.to_ascii_lowercase() {
            '.' => PageUse::Free,
            'a' => PageUse::Anonymous,
            'f' | 'd' | 'm' | 'w' | 't' | 'l' => PageUse::File,
            's' => PageUse::Slab,
            _ => PageUse::Untold,
        };
        let small = letter.to_ascii_lowercase();
        // Shared memory and locked files look modified for good.
        let dirty = matches!(small, 'd' | 'w' | 't' | 'l');
        let mut run = run(at as u64, frames as u64, order, usage, dirty);
        run.state.mapped = matches!(small, 'm' | 'w');
        run.state.shared = small == 't';
        run.state.unevictable = small == 'l';
        runs.push(run);
        at += frames;
    }
    let zone = ZoneInfo {
        name: name.to_owned(),
        spanned: letters.len() as u64,
        present: letters.len() as u64,
        ..ZoneInfo::default()
    };
    let judge = Judge::new(&runs, ORDER, Unevictable::Moves);
    Frames::of_zone(&runs, &zone, ORDER, &judge)
}

/// Writes frames as letters again; tails have the letter of their page.
fn letters(frames: &Frames, all: usize) -> String {
    let mut last = '.';
    let letter = |frame| {
        match frames.letter(frame) {
            ' ' => {}
            letter => last = letter,
        }
        last
    };
    (0..all as u64).map(letter).collect()
}

#[test]
fn pages_move_from_the_bottom_into_free_ones_at_the_top() {
    let mut some = frames("a.a.a.a. a.a.a.a. .a.a.a.a");
    let pass = some.compact(NO_LIST);
    assert_eq!((pass.end, pass.moved), (End::Met, 4));
    assert_eq!(letters(&some, 24), "........a.a.a.a.aaaaaaaa");
    assert_eq!(some.free_blocks(ORDER), 1);
}

#[test]
fn a_block_with_a_page_that_cannot_move_stays_in_pieces() {
    let mut some = frames("a.s.a... ........ ..a.....");
    some.compact(NO_LIST);
    assert_eq!(letters(&some, 24), "..s.............aaa.....");
    assert_eq!(some.free_blocks(ORDER), 1);
}

#[test]
fn a_free_block_is_no_target_nor_is_one_that_is_mostly_the_kernels() {
    let mut some = frames("a....... ........ sss.a...");
    let pass = some.compact(NO_LIST);
    assert_eq!((pass.end, pass.moved), (End::Met, 0));
}

#[test]
fn a_large_page_moves_into_a_chunk_of_its_size() {
    let mut some = frames("AAAA.... ........ a.......");
    let pass = some.compact(NO_LIST);
    assert_eq!((pass.end, pass.moved), (End::Met, 4));
    assert_eq!(letters(&some, 24), "................a...AAAA");
}

#[test]
fn a_large_page_is_split_where_there_are_only_small_chunks() {
    let mut some = frames("FF...... ........ f.f.f.f.");
    let pass = some.compact(NO_LIST);
    assert_eq!((pass.end, pass.moved), (End::Met, 2));
    assert_eq!(letters(&some, 24), "................fffff.f.");
}

#[test]
fn a_page_as_large_as_a_block_stays_also_of_a_modified_file() {
    let mut some = frames("AAAAAAAA DDDDDDDD a....... ........ a.......");
    assert_eq!(some.modified_large(), 0);
    let pass = some.compact(NO_LIST);
    assert_eq!((pass.end, pass.moved), (End::Met, 1));
    assert!(letters(&some, 40).starts_with("AAAAAAAADDDDDDDD........"));
    // For a request, also one as large as what is asked for.
    let mut some = frames("DDDD.... a....... a....... a....... a.......");
    let wanted = Request {
        order: 2,
        blocks: 1,
        reserve: 0,
        attempts: 1,
    };
    assert!(!matches!(some.compact_for(&wanted).end, End::GaveUp { .. }));
}

#[test]
fn a_large_page_of_a_modified_file_ends_the_pass() {
    let text = "aa...... DD...... aa...... ........ f.f.f.f.";
    let mut some = frames(text);
    let pass = some.compact(NO_LIST);
    assert_eq!(pass.end, End::GaveUp { frame: 8 });
    assert_eq!(pass.moved, 2);
    // What lies behind it is as it was.
    assert_eq!(
        letters(&some, 40),
        "........DD......aa..............fafaf.f."
    );
    // Written to the disk it can be split.
    let mut written = frames(text);
    written.sync();
    assert_eq!(written.compact(NO_LIST).end, End::Met);
    assert!(written.free_blocks(ORDER) > some.free_blocks(ORDER));
    assert_eq!(frames(text).modified_large(), 1);
}

#[test]
fn pages_that_were_moved_stay_in_the_lists_of_a_cpu() {
    let text = "a....... a....... a....... ........ a.......";
    let mut none = frames(text);
    none.compact(NO_LIST);
    assert_eq!(none.free_blocks(ORDER), 4);
    let mut listed = frames(text);
    listed.compact(list(0, 2));
    // Of the three frames that were left, the last two are in the lists.
    assert_eq!(listed.idle(), 2);
    assert_eq!(listed.free_blocks(ORDER), 2);
    // A list that was full gives back as many as it gets.
    let text = "a....... a....... ?....... ?....... a.......";
    let mut full = frames(text);
    full.compact(list(2, 2));
    assert_eq!((full.idle(), full.free_blocks(ORDER)), (2, 2));
    let mut roomy = frames(text);
    roomy.compact(list(2, 4));
    assert_eq!((roomy.idle(), roomy.free_blocks(ORDER)), (4, 0));
}

#[test]
fn idle_pages_are_drained_and_no_more_than_there_are() {
    let mut some = frames("?....... ?....... ?.......");
    assert_eq!(some.idle(), 3);
    some.drain(0);
    assert_eq!(some.idle(), 3);
    some.drain(3);
    assert_eq!((some.idle(), some.free_blocks(ORDER)), (0, 3));
}

#[test]
fn clean_files_are_dropped_but_for_those_in_use() {
    let mut some = frames("FFFFffff dd...... mmtttllw");
    some.drop_clean();
    assert_eq!(letters(&some, 24), "........dd......aaaaaaad");
    // Writing makes none of those in use one that goes.
    let mut some = frames("FFFFffff dd...... mmtttllw");
    some.sync();
    some.drop_clean();
    assert_eq!(letters(&some, 24), "................aaaaaaaa");
}

#[test]
fn a_large_page_of_shared_memory_is_split() {
    let mut some = frames("TT...... ........ f.f.f.f.");
    assert_eq!(some.modified_large(), 0);
    assert_eq!(
        (some.compact(NO_LIST).end, some.modified_large()),
        (End::Met, 0)
    );
    // One of a file that is mapped and modified is not, until it is written.
    let mut mapped = frames("WW...... ........ f.f.f.f.");
    assert_eq!(mapped.modified_large(), 1);
    assert_eq!(mapped.compact(NO_LIST).end, End::GaveUp { frame: 0 });
    let mut mapped = frames("WW...... ........ f.f.f.f.");
    mapped.sync();
    assert_eq!(mapped.compact(NO_LIST).end, End::Met);
}

#[test]
fn blocks_of_pinned_pages_are_targets_and_so_are_all_of_the_movable_zone() {
    let mut pinned = frames("a....... ........ a.......");
    pinned.pin([16]);
    assert_eq!(pinned.compact(NO_LIST).moved, 1);
    assert_eq!(letters(&pinned, 24), "................sa......");
    assert_eq!(
        frames_of("a....... ........ s.......", "Normal")
            .compact(NO_LIST)
            .moved,
        0
    );
    assert_eq!(
        frames_of("a....... ........ s.......", "Movable")
            .compact(NO_LIST)
            .moved,
        1
    );
}

#[test]
fn only_small_pages_that_were_moved_stay_in_lists() {
    let mut small = frames("AA...... ........ a.......");
    small.compact(list(0, 64));
    assert_eq!(small.idle(), 2);
}

/// A request for blocks of the order of a page block.
fn request(blocks: u64, reserve: u64) -> Request {
    Request {
        order: ORDER,
        blocks,
        reserve,
        attempts: 3,
    }
}

#[test]
fn a_request_without_room_to_begin_reclaims_files() {
    // Sixteen frames are needed, and only three are free.
    let text = format!("{}.a{}", "f".repeat(62), "f".repeat(29)) + "..a";
    let mut some = frames(&text);
    let pass = some.compact_for(&request(2, 0));
    assert_eq!((pass.end, pass.taken), (End::Enough, 2), "{pass:?}");
    assert!((16..=64).contains(&pass.reclaimed), "{pass:?}");
    // Where there are none, it ends, and so it does where all have been.
    let mut none = frames("tttttttt aaaaaaaa ...a....");
    let pass = none.compact_for(&request(9, 0));
    assert_eq!((pass.end, pass.reclaimed), (End::Short, 0));
    let mut all = frames(&text);
    let pass = all.compact_for(&request(99, 0));
    assert!(
        matches!(pass.end, End::Met | End::Short) && pass.taken > 2,
        "{pass:?}"
    );
}

#[test]
fn a_request_first_leaves_mixed_blocks_alone() {
    // One block can come free; the other would use the only places up.
    let mut some = frames("aaasa... a....... ........ aaaaaa..");
    let pass = some.compact_for(&Request {
        blocks: 1,
        ..request(1, 0)
    });
    assert_eq!((pass.taken, pass.moved), (1, 1), "{}", letters(&some, 32));
}

#[test]
fn pinned_pages_stay() {
    let mut some = frames("a....... ........ a.......");
    some.pin([0, 7, 1 << 40]);
    assert_eq!(some.compact(NO_LIST).moved, 0);
    assert_eq!(some.free_blocks(ORDER), 1);
    // A part of a large page pins all of it.
    let mut large = frames("AAAA.... ........ ........ a.......");
    large.pin([3]);
    assert_eq!(letters(&large, 8), "ssss....");
}

#[test]
fn a_request_takes_what_comes_free_until_it_has_enough() {
    let text = "a....... a....... a....... a....... a.......";
    let request = Request {
        order: ORDER,
        blocks: 2,
        reserve: 0,
        attempts: 1,
    };
    let mut some = frames(text);
    let pass = some.compact_for(&request);
    assert_eq!((pass.taken, pass.end), (2, End::Enough));
    // The reserve is left: 35 free frames, of which 16 are what compaction begins with.
    let mut some = frames(text);
    let pass = some.compact_for(&Request {
        blocks: 9,
        reserve: 16,
        ..request
    });
    assert_eq!((pass.taken, pass.end), (1, End::Short));
    // Half a block each.
    let mut some = frames(text);
    let pass = some.compact_for(&Request {
        order: ORDER - 1,
        blocks: 3,
        ..request
    });
    assert!(pass.taken >= 3, "{pass:?}");
}

#[test]
fn a_request_that_is_given_up_once_goes_on_behind() {
    let text = "DD...... a....... a....... ........ f.f.f.f.";
    let request = Request {
        order: ORDER,
        blocks: u64::MAX,
        reserve: 0,
        attempts: 1,
    };
    assert_eq!(
        frames(text).compact_for(&request).end,
        End::GaveUp { frame: 0 }
    );
    let twice = Request {
        attempts: 2,
        ..request
    };
    let pass = frames(text).compact_for(&twice);
    assert!(!matches!(pass.end, End::GaveUp { .. }), "{pass:?}");
    assert!(pass.taken >= 2, "{pass:?}");
}

#[test]
fn zones_without_runs_and_of_any_size_are_empty() {
    let zone = ZoneInfo {
        start_pfn: u64::MAX - 5,
        spanned: u64::MAX,
        ..ZoneInfo::default()
    };
    let judge = Judge::new(&[], 9, Unevictable::Moves);
    let mut none = Frames::of_zone(&[], &zone, 9, &judge);
    assert_eq!(none.free(), 0);
    assert_eq!(none.compact(list(0, 5)).end, End::Met);
    assert_eq!(none.take_free(3, 9), 0);
    let runs = [run(0, 5, 0, PageUse::Free, false)];
    let whole = ZoneInfo {
        spanned: u64::MAX,
        ..ZoneInfo::default()
    };
    let some = Frames::of_zone(&runs, &whole, 9, &Judge::new(&runs, 9, Unevictable::Moves));
    assert_eq!((some.free(), some.free_blocks(0)), (5, 5));
    assert_eq!(some.letter(5), '_');
    assert_eq!(some.letter(1 << 50), '_');
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever memory there is: a pass ends, keeps every page, and moves none that cannot be
    /// moved.
    #[test]
    fn nothing_is_lost(
        kinds in prop::collection::vec(0_usize..11, 1..40),
        listed in 0_u64..20,
        request in any::<bool>(),
    ) {
        let parts = ["........", "a.a.a.a.", "aaaaaaaa", "FF..FFFF", "DDDD....", "s..a...?", "d.d.f.f.", "....AAAA", "??..??..", "ssssss..", "AAAAAAAA"];
        let text: String = kinds.iter().map(|&kind| parts[kind]).collect();
        let before = frames(&text);
        let mut after = before.clone();
        let (mut taken, mut reclaimed) = (0, 0);
        if request {
            let wanted = Request { order: ORDER, blocks: 3, reserve: 8, attempts: 2 };
            let pass = after.compact_for(&wanted);
            (taken, reclaimed) = (pass.taken, pass.reclaimed as usize);
        } else {
            after.compact(list(0, listed));
        }
        let count = |frames: &Frames, letter: &[char]| {
            letters(frames, text.len()).chars().filter(|one| letter.contains(one)).count()
        };
        // Split pages keep their number of frames and what they are.
        for letter in [['a', 'A'], ['d', 'D']] {
            prop_assert_eq!(count(&after, &letter), count(&before, &letter));
        }
        prop_assert_eq!(count(&after, &['f', 'F']) + reclaimed, count(&before, &['f', 'F']));
        let taken = taken as usize * SIZE as usize;
        prop_assert_eq!(count(&after, &['s']), count(&before, &['s']) + taken);
        let free = count(&before, &['.', '?']) + reclaimed;
        prop_assert_eq!(count(&after, &['.', '?']) + taken, free);
        // Those that stay are where they were.
        let (now, then) = (letters(&after, text.len()), letters(&before, text.len()));
        prop_assert!(then.chars().zip(now.chars()).all(|(then, now)| then != 's' || now == 's'));
    }
}

#[test]
fn the_last_page_of_a_batch_moves_first() {
    let mut some = frames("af...... ........ ........ .a.a....");
    assert_eq!(some.compact(NO_LIST).moved, 2);
    assert_eq!(letters(&some, 32), "........................faaa....");
}

#[test]
fn no_page_moves_into_the_next_block() {
    let mut some = frames("a....... a.......");
    assert_eq!(some.compact(NO_LIST).moved, 0);
}
