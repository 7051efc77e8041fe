//! Memory that comes in huge pages: what comes with others is idle, what is counted is what the
//! bits say, and huge pages are divided only as far as limits demand.

use super::reuse::{check_groups, is_idle, take_all};
use super::*;
use crate::huge::Huge;
use crate::huge::tests::mapping_of;
use crate::span::huge::{Block, HugeCounts};
use crate::span::layout::GROUP;

const MIB: usize = 1 << 20;

/// Reserves a span, where all memory behind the first 2 MiB is counted as huge pages.
pub(super) fn huge_span(bytes: usize) -> Span {
    Span {
        huge: Some(Huge::Usual),
        ..Span::reserve(bytes).unwrap()
    }
}

/// Reserves 128 MiB and takes half of it, so that what comes next is huge pages of that kind.
fn half_taken(kind: Huge) -> Span {
    let span = Span {
        huge: Some(kind),
        ..Span::reserve(128 << 20).unwrap()
    };
    while span.usable_bytes() < 64 << 20 {
        let _ = span.take_run(GROUP).unwrap();
    }
    span
}

/// Returns the huge pages that were divided, by the number of their group. What is counted of all
/// is what the bits of pages say.
pub(super) fn check_huge(span: &Span) -> Vec<usize> {
    let counts: &HugeCounts = &span.counts.huge;
    let (mut bound, mut whole, mut divided) = (0, 0, Vec::new());
    for group in 0..span.usable_bytes() / (2 * MIB) {
        let pages = group * GROUP..(group + 1) * GROUP;
        let idle = pages.filter(|&page| is_idle(span, page)).count();
        match span.block_of(group * GROUP) {
            Block::Huge(said) => {
                assert_eq!(said, idle, "group {group}");
                let counted = if idle == GROUP {
                    &mut whole
                } else {
                    &mut bound
                };
                *counted += idle;
            }
            Block::Small if span.is_from_huge(group * GROUP) => divided.push(group),
            Block::Small => {}
        }
    }
    assert_eq!((counts.bound(), counts.whole()), (bound, whole));
    assert!(counts.told() <= divided.len());
    divided
}

#[test]
fn what_comes_with_a_page_is_idle_and_serves() {
    let span = huge_span(64 << 20);
    // These are small pages.
    let (few, contents) = span.take_run(GROUP).unwrap();
    assert_eq!((contents, span.idle_bytes()), (Contents::Zeros, 0));
    let (single, contents) = span.take_run(1).unwrap();
    assert_eq!(contents, Contents::Zeros);
    zeros(&span, single, 1);
    assert_eq!(span.page_of(single) % GROUP, 0);
    assert_eq!(span.idle_pages(), GROUP - 1);
    // The rest of it serves as pages that have been in use do.
    let (run, contents) = span.take_run(300).unwrap();
    assert_eq!(contents, Contents::Anything);
    assert_eq!(span.page_of(run), span.page_of(single) + 1);
    assert_eq!(span.idle_pages(), GROUP - 301);
    // A block in the middle of another.
    let (middle, _) = span.take_aligned_run(256).unwrap();
    assert_eq!(span.idle_pages(), GROUP - 301 + 256);
    check_huge(&span);
    // A whole one comes alone.
    let (all, _) = span.take_aligned_run(GROUP).unwrap();
    assert_eq!(span.idle_pages(), GROUP - 301 + 256);
    for run in [few, single, run, middle, all] {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
    }
    let _ = span.release_idle();
    assert_eq!((span.bytes_in_use(), span.idle_bytes()), (0, 0));
    assert_eq!(check_huge(&span), []);
    // It comes anew.
    let _few = span.take_run(GROUP).unwrap();
    let (_, contents) = span.take_run(1).unwrap();
    assert_eq!((contents, span.idle_pages()), (Contents::Zeros, GROUP - 1));
}

/// What was not marked as it came, and is marked in part since, is not counted twice.
#[test]
fn what_is_marked_already_is_not_marked_again() {
    let span = huge_span(64 << 20);
    let _few = span.take_run(GROUP).unwrap();
    let first = span.page_of(span.take_run(GROUP).unwrap().0);
    span.give_pages_of_run(first, GROUP);
    let _ = span.release_idle();
    let take = |page: usize, order: u8| {
        let request = Span::request(Order::new(order), Mobility::Movable, Context::MaySleep);
        let taken = span.zone_of(page).alloc_at(Frame::new(page), &request);
        assert!(taken.is_ok());
        assert_eq!(span.now_in_use(page, 1 << order), Contents::Zeros);
    };
    let held = span.counts.releasing.lock(|| Threads.relax());
    take(first + GROUP - 1, 0);
    take(first + 64, 6);
    span.give_pages_of_run(first + 64, 64);
    drop(held);
    assert_eq!((span.idle_pages(), check_huge(&span)), (64, vec![]));
    // It finds the pages before it free, marked or not, and half of those behind it.
    take(first + 256, 0);
    assert_eq!(span.idle_pages(), 256 + 127);
    assert_eq!(check_huge(&span), []);
}

/// A divided block whose idle pages go back a few at a time is a huge page in the end.
#[test]
fn what_goes_back_in_passing_is_united() {
    let span = huge_span(256 << 20);
    take_all(&span);
    let groups = span.pages() / GROUP;
    // So much is bound that some are divided.
    free_some(&span, 1..groups, 2);
    give_back(&span);
    let divided = check_huge(&span);
    assert!(divided.len() > 10, "{divided:?}");
    for group in 1..groups {
        for page in (1..GROUP).step_by(2) {
            span.give_pages_of_run(group * GROUP + page, 1);
        }
    }
    give_back(&span);
    assert_eq!(check_huge(&span), []);
    assert!(span.idle_bytes() <= 24 * MIB);
}

/// A run may begin in small pages and end in huge ones.
#[test]
fn a_run_over_the_first_huge_page_is_counted_where_it_lies() {
    let span = huge_span(64 << 20);
    take_all(&span);
    span.give_pages_of_run(GROUP - 9, 18);
    check_huge(&span);
    let (run, contents) = span.take_run(18).unwrap();
    assert_eq!(
        (span.page_of(run), contents),
        (GROUP - 9, Contents::Anything)
    );
    check_huge(&span);
    // The rest of the huge page too.
    span.give_pages_of_run(GROUP - 9, GROUP + 9);
    check_huge(&span);
    let _ = span.release_idle();
    assert_eq!(check_huge(&span), []);
    assert_eq!(span.block_of(GROUP), Block::Huge(0));
}

/// What another thread gives back it holds for a moment. Then what comes with a page is left alone.
#[test]
fn who_gives_memory_back_is_not_waited_for() {
    let span = huge_span(64 << 20);
    let _few = span.take_run(GROUP).unwrap();
    let held = span.counts.releasing.lock(|| Threads.relax());
    let (single, _) = span.take_run(1).unwrap();
    assert_eq!(span.idle_pages(), 0);
    drop(held);
    let (other, contents) = span.take_run(1).unwrap();
    assert_eq!((contents, span.idle_pages()), (Contents::Zeros, GROUP - 2));
    assert_eq!(span.page_of(single) / GROUP, span.page_of(other) / GROUP);
    check_huge(&span);
}

#[test]
fn what_is_counted_is_what_the_bits_say() {
    let span = huge_span(48 << 20);
    let (mut state, mut divided) = (7, 0);
    let mut held: Vec<(NonNull<u8>, usize)> = Vec::new();
    for round in 0..20_000_usize {
        match next(&mut state) % 64 {
            0 => {
                let _ = span.release_idle();
            }
            1 => span.begin_round(usize::MAX),
            2..4 => span.go_on_with_round(MIB),
            // A part of a block goes back, as at rest.
            4 => {
                let pages = 1 + next(&mut state) % 600;
                let _held = span.counts.releasing.lock(|| Threads.relax());
                let left = span.idle_bytes().saturating_sub(pages << 12);
                let _ = span.release_all_but(left);
            }
            5..34 => {
                let wide = next(&mut state).is_multiple_of(8);
                let pages = next(&mut state) % if wide { GROUP } else { 9 } + 1;
                if let Some((run, contents)) = span.take_run(pages) {
                    if contents == Contents::Zeros {
                        zeros(&span, run, pages);
                    }
                    mark(&span, run, pages, round);
                    held.push((run, pages));
                }
            }
            _ if !held.is_empty() => {
                let (run, _) = held.swap_remove(next(&mut state) % held.len());
                // SAFETY: used no more.
                assert!(unsafe { span.give_run(run) });
            }
            _ => {}
        }
        if round % 50 == 0 {
            divided = divided.max(check_huge(&span).len());
        }
    }
    assert!(divided > 3, "{divided} were divided at most");
    for (run, _) in held {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
    }
    let _ = span.release_idle();
    assert_eq!(span.idle_bytes(), 0);
    assert_eq!(check_huge(&span), []);
    check_groups(&span);
}

/// Memory that nobody asked for has a limit, whatever the lengths of runs.
#[test]
fn a_burst_of_runs_brings_little_more_than_its_pages() {
    for pages in [1, 65, 129, 147, 171, 200, 257, 269, 300, 341, 500] {
        let span = huge_span(1 << 30);
        let mut taken = 0;
        while taken < 300 << 20 {
            let (run, contents) = span.take_run(pages).unwrap();
            if contents == Contents::Zeros {
                assert_eq!(resident(&span, run, pages), 0);
            }
            mark(&span, run, pages, 1);
            taken += pages << 12;
            let allowed = surplus::least(span.bytes_in_use());
            assert!(
                span.idle_bytes() <= allowed,
                "{pages}: {}",
                span.idle_bytes()
            );
        }
        // And is in memory: two MiB of each block that is partly small, and what is marked.
        let most = span.bytes_in_use() + span.idle_bytes() + 64 * MIB;
        assert!(resident(&span, span.start(), span.pages()) << 12 <= most);
        let _ = check_huge(&span);
    }
}

/// Pages that are warm bind others: they go back too.
#[test]
fn who_frees_all_keeps_no_more_than_is_allowed() {
    for pages in [1, 25, 200, 512] {
        let span = huge_span(1 << 30);
        let runs = (300 << 20) / (pages << 12);
        let held: Vec<_> = (0..runs).map(|_| span.take_run(pages).unwrap().0).collect();
        for run in held {
            // SAFETY: used no more.
            assert!(unsafe { span.give_run(run) });
        }
        let allowed = surplus::allowed(0, usize::MAX) + 8 * MIB;
        assert!(
            span.idle_bytes() <= allowed,
            "{pages}: {}",
            span.idle_bytes()
        );
        let _ = check_huge(&span);
    }
}

/// A request that may wait for nobody takes nothing beside, for a moment either: a fork may be in
/// that moment.
#[test]
fn without_locks_nothing_else_is_taken() {
    let span = huge_span(64 << 20);
    let _few = span.take_run(GROUP).unwrap();
    let _second = span.take_run(GROUP).unwrap();
    let (run, contents) = span.take_run(1).unwrap();
    assert_eq!((contents, span.idle_pages()), (Contents::Zeros, GROUP - 1));
    // SAFETY: used no more.
    assert!(unsafe { span.give_run(run) });
    let _ = span.release_idle();
    let (_run, contents) = span.take_run_without_locks(1).unwrap();
    assert_eq!((contents, span.idle_pages()), (Contents::Zeros, 0));
}

/// What came while another thread gave memory back has no mark, and goes back all the same.
#[test]
fn what_came_unmarked_goes_back_with_its_block() {
    let span = half_taken(Huge::Asked);
    let lock = span.counts.releasing.lock(|| Threads.relax());
    let (single, contents) = span.take_run(1).unwrap();
    assert_eq!(contents, Contents::Zeros);
    mark(&span, single, 1, 1);
    drop(lock);
    // SAFETY: used no more.
    assert!(unsafe { span.give_run(single) });
    let _ = span.release_idle();
    let first = span.address_of(span.page_of(single) / GROUP * GROUP);
    assert_eq!((span.idle_bytes(), resident(&span, first, GROUP)), (0, 0));
}

/// Returns how many mappings a span is made of.
fn mappings(span: &Span) -> usize {
    let start = span.start().addr().get();
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ranges = maps.lines().map(|line| {
        let (first, rest) = line.split_once('-').unwrap();
        hex(first)..hex(rest.split_once(' ').unwrap().0)
    });
    let of_span = |range: &Range<usize>| range.start < start + span.bytes() && start < range.end;
    ranges.filter(of_span).count()
}

#[test]
fn united_blocks_are_one_mapping_again() {
    for kind in [Huge::Usual, Huge::Asked] {
        let span = Span {
            huge: Some(kind),
            ..Span::reserve(256 << 20).unwrap()
        };
        take_all(&span);
        if !span.counts.huge.are_any() {
            println!("skipped: this kernel has no huge pages (CONFIG_TRANSPARENT_HUGEPAGE)");
            return;
        }
        let before = mappings(&span);
        let groups = || (32..span.pages() / GROUP).step_by(2);
        for group in groups() {
            span.give_pages_of_run(group * GROUP + 1, GROUP - 1);
        }
        let _ = span.release_idle();
        assert!(mappings(&span) > before + groups().count());
        for group in groups() {
            span.give_pages_of_run(group * GROUP, 1);
        }
        let _ = span.release_idle();
        assert_eq!((mappings(&span), check_huge(&span)), (before, vec![]));
    }
}

/// Once the process has disabled them, memory comes as small pages, and counts as such.
#[test]
fn where_there_are_none_any_more_what_comes_is_small() {
    let mut span = half_taken(Huge::Usual);
    let (before, before_mappings) = (span.idle_pages(), mappings(&span));
    span.huge = Some(Huge::Never);
    let (run, contents) = span.take_run(1).unwrap();
    assert_eq!((contents, span.idle_pages()), (Contents::Zeros, before));
    assert_eq!(span.block_of(span.page_of(run)), Block::Small);
    // The system has nothing to be told.
    assert_eq!(
        (span.counts.huge.told(), mappings(&span)),
        (0, before_mappings)
    );
    // What the span gets from then on is so too.
    take_all_that_is_left(&span);
    assert_eq!(span.block_of(span.pages() - 1), Block::Small);
    assert_eq!(span.idle_pages(), 0);
    let _ = check_huge(&span);
}

fn take_all_that_is_left(span: &Span) {
    while span.take(ask(0, Mobility::Unmovable)).is_some() {}
}

/// Frees one page in so many of some groups.
fn free_some(span: &Span, groups: impl Iterator<Item = usize>, one_in: usize) {
    for group in groups {
        for page in (0..GROUP).step_by(one_in) {
            span.give_pages_of_run(group * GROUP + page, 1);
        }
    }
}

/// Does what frees do, often, as if no more had been in use lately.
fn give_back(span: &Span) {
    span.begin_round(0);
    for _ in 0..4096 {
        span.release_surplus(1);
    }
}

#[test]
fn huge_pages_are_divided_where_much_is_bound_and_they_are_sparse() {
    let span = huge_span(256 << 20);
    take_all(&span);
    let groups = span.pages() / GROUP;
    let bound = || span.counts.huge.bound() << 12;
    // One page in 16 everywhere: less than an eighth of what is in use, nothing goes back.
    free_some(&span, 1..groups, 16);
    give_back(&span);
    assert_eq!(check_huge(&span), []);
    assert_eq!(bound(), ((groups - 1) * GROUP / 16) << 12);
    // Three more in 16: then much is bound, but in no huge page a quarter is idle but in those
    // behind the hundredth.
    for group in 1..groups {
        let more = if group < 100 { 1 } else { 3 };
        for page in (0..GROUP).step_by(16) {
            for more in 1..=more {
                span.give_pages_of_run(group * GROUP + page + more, 1);
            }
        }
    }
    let least = surplus::least(span.bytes_in_use());
    assert!(bound() > least);
    give_back(&span);
    let divided = check_huge(&span);
    assert!(!divided.is_empty() && divided.iter().all(|&group| group >= 100));
    // No more than necessary.
    let all = groups - 100;
    assert!(
        divided.len() < all && bound() <= surplus::least(span.bytes_in_use()),
        "{divided:?}"
    );
    // What is divided goes back by pages, in time.
    assert!(span.idle_bytes() - bound() < 20 * MIB);
}

/// Nor are they in a round, while anything changes.
#[test]
fn where_little_is_bound_none_is_divided() {
    let span = huge_span(256 << 20);
    take_all(&span);
    free_some(&span, 1..9, 2);
    for group in 20..60 {
        span.give_pages_of_run(group * GROUP, GROUP);
    }
    give_back(&span);
    let whole = || span.counts.huge.whole();
    assert!(whole() > 0 && whole() <= 12 * GROUP, "{}", whole());
    for page in 0..9 {
        span.give_pages_of_run(70 * GROUP + page, 1);
        span.begin_round(usize::MAX);
        let _ = span.end_round(|| Some(()));
    }
    assert_eq!((check_huge(&span), whole()), (vec![], 0));
    assert_eq!(span.counts.huge.bound(), 8 * GROUP / 2 + 9);
}

#[test]
fn where_nothing_can_be_divided_it_is_not_tried_again_and_again() {
    let span = huge_span(256 << 20);
    take_all(&span);
    let groups = span.pages() / GROUP;
    free_some(&span, 1..groups, 5);
    span.begin_round(0);
    assert!(span.is_much_bound());
    span.release_surplus(1);
    assert!(!span.is_much_bound() && check_huge(&span).is_empty());
    // It is in the next round.
    span.begin_round(usize::MAX);
    assert!(span.is_much_bound());
}

/// Who gives back looks at a part of the span, and the next one goes on behind it.
#[test]
fn what_can_be_divided_is_found_behind_much_that_cannot() {
    let span = huge_span(3 << 30);
    take_all(&span);
    let groups = span.pages() / GROUP;
    free_some(&span, 1..groups - 30, 5);
    free_some(&span, groups - 30..groups, 3);
    for _ in 0..4 {
        span.begin_round(0);
        span.release_surplus(1);
    }
    assert_eq!(check_huge(&span), [groups - 30]);
}

#[test]
fn at_rest_all_goes_back_and_comes_as_huge_pages_again() {
    let span = huge_span(128 << 20);
    take_all(&span);
    let groups = span.pages() / GROUP;
    free_some(&span, 1..groups, 8);
    let idle = span.idle_bytes();
    // In use, or not at rest: nothing of them goes back.
    span.begin_round(usize::MAX);
    assert!(!span.end_round(|| Some(())));
    assert_eq!((span.idle_bytes(), check_huge(&span).len()), (idle, 0));
    // Nothing has changed.
    span.begin_round(usize::MAX);
    assert!(span.end_round(|| Some(())));
    assert_eq!(span.idle_bytes(), 0);
    assert_eq!(check_huge(&span).len(), groups - 1);
    assert_eq!(
        resident(&span, span.start(), span.pages()),
        0,
        "never touched"
    );
    // They are small pages until all of them has been given back.
    span.give_pages_of_run(GROUP + 1, 7);
    let (small, _) = span.take_run(3).unwrap();
    assert_eq!(span.block_of(span.page_of(small)), Block::Small);
    for page in GROUP..2 * GROUP {
        if page % 8 != 0 && !(GROUP + 1..GROUP + 8).contains(&page) {
            span.give_pages_of_run(page, 1);
        }
    }
    // SAFETY: used no more.
    assert!(unsafe { span.give_run(small) });
    let _ = span.release_idle();
    assert_eq!(span.block_of(GROUP), Block::Huge(0));
    assert_eq!(check_huge(&span).len(), groups - 2);
}

#[test]
fn the_system_gives_huge_pages_and_is_told_of_divided_ones() {
    let span = half_taken(Huge::Asked);
    if !span.counts.huge.are_any() {
        println!("skipped: this kernel has no huge pages (CONFIG_TRANSPARENT_HUGEPAGE)");
        return;
    }
    let (run, _) = span.take_aligned_run(GROUP).unwrap();
    let page = span.page_of(run);
    let mapping = || mapping_of(run.addr().get());
    mark(&span, run, GROUP, 1);
    let Some((kib, told)) = mapping() else {
        println!("skipped: smaps cannot be read");
        return;
    };
    assert!(told.contains(" hg"), "{told}");
    if kib < 2048 {
        println!("no huge page came: none is free, or they are disabled");
    }
    // A part of it goes back, at rest.
    // SAFETY: what is behind the first page is used no more.
    assert!(unsafe { span.cut_run(run, 1) });
    for _ in 0..2 {
        span.begin_round(usize::MAX);
        let _ = span.end_round(|| Some(()));
    }
    assert_eq!(span.block_of(page), Block::Small);
    assert_eq!(resident(&span, run, GROUP), 1);
    check(&span, run, 1, 1);
    let (_, told) = mapping().unwrap();
    assert!(told.contains(" nh") && !told.contains(" hg"), "{told}");
    // And the rest.
    // SAFETY: used no more.
    assert!(unsafe { span.give_run(run) });
    let _ = span.release_idle();
    assert_eq!(span.block_of(page), Block::Huge(0));
    let (_, told) = mapping().unwrap();
    assert!(told.contains(" hg") && !told.contains(" nh"), "{told}");
}
