//! Every page has one owner. Nothing fails while memory is given back. What was given back is gone.

use core::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::surplus;
use reuse::check_groups;

mod reuse;

/// Runs that threads hand to each other.
struct Places(Vec<NonNull<u8>>);

// SAFETY: addresses of pages, which belong to no thread.
unsafe impl Send for Places {}

fn ask(order: u8, mobility: Mobility) -> PageAsk {
    PageAsk {
        order: Order::new(order),
        mobility,
        node: None,
        context: Context::MaySleep,
    }
}

fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Calls `each` with the first and last word of every page of a run.
fn each_word(span: &Span, first: NonNull<u8>, pages: usize, mut each: impl FnMut(*mut usize)) {
    for page in 0..pages {
        for at in [0, span.page_bytes() - 8] {
            // SAFETY: the pages are the caller's.
            each(unsafe { first.as_ptr().add(page * span.page_bytes() + at) }.cast());
        }
    }
}

fn mark(span: &Span, first: NonNull<u8>, pages: usize, owner: usize) {
    // SAFETY: the caller's own pages.
    each_word(span, first, pages, |word| unsafe {
        *word = owner ^ word.addr()
    });
}

fn check(span: &Span, first: NonNull<u8>, pages: usize, owner: usize) {
    // SAFETY: the caller's own pages.
    each_word(span, first, pages, |word| unsafe {
        assert_eq!(*word, owner ^ word.addr());
    });
}

fn zeros(span: &Span, first: NonNull<u8>, pages: usize) {
    // SAFETY: the caller's own pages.
    each_word(span, first, pages, |word| unsafe { assert_eq!(*word, 0) });
}

/// Returns how many pages of a part have memory.
fn resident(span: &Span, first: NonNull<u8>, pages: usize) -> usize {
    let mut map = vec![0_u8; pages];
    // SAFETY: the pages are mapped, and there is a byte for each.
    let done = unsafe {
        libc::mincore(
            first.as_ptr().cast(),
            pages * span.page_bytes(),
            map.as_mut_ptr(),
        )
    };
    assert_eq!(done, 0);
    map.iter().filter(|&&byte| byte & 1 != 0).count()
}

#[test]
fn blocks_and_runs_are_aligned_disjoint_and_given_back() {
    let span = Span::reserve(64 << 20).unwrap();
    assert_eq!(span.bytes(), 64 << 20);
    assert!(span.start().addr().get().is_multiple_of(SPAN_ALIGN));
    let most = RUN_BYTES_MAX / span.page_bytes();
    let mut held = Vec::new();
    for pages in [1, 2, 3, 5, 33, 100, 257, most - 1, most] {
        let (run, contents) = span.take_aligned_run(pages).unwrap();
        assert_eq!(contents, Contents::Zeros);
        let align = pages.next_power_of_two() * span.page_bytes();
        assert!(run.addr().get().is_multiple_of(align));
        assert_eq!(span.run_at(run), Some(pages));
        mark(&span, run, pages, pages);
        held.push((run, pages));
    }
    let total: usize = held.iter().map(|&(_, pages)| pages).sum();
    assert_eq!(span.bytes_in_use(), total * span.page_bytes());
    for &(run, pages) in &held {
        check(&span, run, pages, pages);
    }
    for pages in [0, most + 1, usize::MAX] {
        assert!(span.take_run(pages).is_none() && span.take_aligned_run(pages).is_none());
    }
    let (run, pages) = held[4];
    // SAFETY: the tail is used no more.
    assert!(unsafe { span.cut_run(run, 7) } && !unsafe { span.cut_run(run, pages) });
    assert_eq!(span.run_at(run), Some(7));
    for (run, _) in held {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
        // SAFETY: it is no run any more.
        assert!(!unsafe { span.give_run(run) });
        assert_eq!(span.run_at(run), None);
    }
    assert_eq!(span.bytes_in_use(), 0);
}

#[test]
fn little_more_than_what_was_in_use_can_be_accessed() {
    let span = Span::reserve(64 << 20).unwrap();
    let mut usable = Vec::new();
    while let Some((run, _)) = span.take_run(1) {
        let used = run.addr().get() - span.start().addr().get() + span.page_bytes();
        assert!(used <= span.usable_bytes());
        if usable.last() != Some(&span.usable_bytes()) {
            usable.push(span.usable_bytes());
        }
    }
    let steps = [1 << 18, 1 << 19, 1 << 20, 2 << 20, 32 << 20, 64 << 20];
    assert_eq!(usable, steps);
}

#[test]
fn the_whole_span_can_be_had_and_no_more() {
    let span = Span::reserve(1).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = core::iter::from_fn(|| span.take_run(most))
        .map(|(run, _)| run)
        .collect();
    assert_eq!(runs.len() * RUN_BYTES_MAX, span.bytes());
    assert!(span.take(ask(0, Mobility::Unmovable)).is_none());
    for run in runs {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
    }
    assert!(span.take(ask(0, Mobility::Unmovable)).is_some());
}

#[test]
fn what_is_idle_goes_back_and_what_is_in_use_stays() {
    let span = Span::reserve(256 << 20).unwrap();
    // Below what is given back at once.
    let pages: Vec<_> = (0..1500)
        .map(|_| span.take(ask(0, Mobility::Unmovable)).unwrap())
        .collect();
    for &page in &pages {
        mark(&span, page, 1, 9);
    }
    for page in pages.iter().skip(1).step_by(2) {
        // SAFETY: used no more.
        unsafe { span.give(*page, Order::ZERO) };
    }
    let bytes = 750 * span.page_bytes();
    assert_eq!(span.idle_bytes(), bytes);
    let before: usize = pages.iter().map(|&page| resident(&span, page, 1)).sum();
    assert_eq!(before, 1500);
    assert_eq!(span.release_idle(), bytes);
    assert_eq!((span.idle_bytes(), span.release_idle()), (0, 0));
    for (index, &page) in pages.iter().enumerate() {
        if index % 2 == 0 {
            check(&span, page, 1, 9);
        } else {
            assert_eq!(resident(&span, page, 1), 0);
        }
    }
    // What was never in use again is not idle again.
    let again = span.take(ask(0, Mobility::Unmovable)).unwrap();
    // SAFETY: taken a moment ago.
    unsafe { span.give(again, Order::ZERO) };
    assert_eq!(span.idle_bytes(), span.page_bytes());
}

#[test]
fn what_was_freed_a_moment_ago_serves_as_it_is() {
    let span = Span::reserve(64 << 20).unwrap();
    let give = |run| {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) && !span.give_run(run) });
    };
    let (run, _) = span.take_run(9).unwrap();
    mark(&span, run, 9, 1);
    give(run);
    let bytes = 9 * span.page_bytes();
    assert_eq!((span.bytes_in_use(), span.idle_bytes()), (0, bytes));
    // For as many pages, or one less in eight.
    for pages in [9, 8] {
        assert_eq!(span.take_run(pages), Some((run, Contents::Anything)));
        assert_eq!(span.run_at(run), Some(9));
        assert_eq!(span.bytes_in_use(), bytes);
        give(run);
    }
    // For few pages it gives a part.
    assert_eq!(span.take_run(4), Some((run, Contents::Anything)));
    assert_eq!(span.run_at(run), Some(4));
    assert_eq!(span.bytes_in_use(), 4 * span.page_bytes());
    assert_eq!(span.idle_bytes(), 5 * span.page_bytes());
    give(run);
    // More have to be had elsewhere: the rest, and what was never used behind it.
    let (other, contents) = span.take_run(10).unwrap();
    let rest = span.address_of(span.page_of(run) + 4);
    assert_eq!((other, contents), (rest, Contents::Anything));
    give(other);
    // Slabs have blocks of their own.
    let block = span.take(ask(3, Mobility::Unmovable)).unwrap();
    let give = |block| {
        // SAFETY: used no more.
        unsafe { span.give(block, Order::new(3)) };
    };
    give(block);
    let (other, _) = span.take_run(8).unwrap();
    assert_ne!(other, block);
    assert_eq!(span.take(ask(3, Mobility::Unmovable)), Some(block));
    give(block);
    // All of it goes back to the system: the first part, what is left of the rest, the block.
    assert_eq!(span.release_idle(), (4 + 2 + 8) * span.page_bytes());
    assert_eq!(span.idle_bytes(), 0);
    let (again, contents) = span.take_run(10).unwrap();
    assert_eq!(contents, Contents::Zeros);
    zeros(&span, again, 10);
}

#[test]
fn idle_pages_side_by_side_serve_wherever_they_begin() {
    let span = Span::reserve(64 << 20).unwrap();
    let singles: Vec<_> = (0..512)
        .map(|_| span.take(ask(0, Mobility::Unmovable)).unwrap())
        .collect();
    let mut places: Vec<_> = singles.iter().map(|&single| span.page_of(single)).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a + 1 == *b));
    let first = places[0];
    let give = |pages: Range<usize>| {
        for page in pages {
            // SAFETY: used no more.
            unsafe { span.give(span.address_of(first + page), Order::ZERO) };
        }
        span.cool_all();
    };
    // Pieces of 5, 70 and 30 pages, across words of bits, none aligned.
    give(3..8);
    give(51..121);
    give(131..161);
    let at = |page| Some((span.address_of(first + page), Contents::Anything));
    assert_eq!(span.take_run(25), at(51));
    assert_eq!(span.take_run(45), at(76));
    assert_eq!(span.take_run(30), at(131));
    assert_eq!(span.take_run(5), at(3));
    assert_eq!(span.idle_bytes(), 0);
    // An aligned one has to be so.
    give(201..290);
    let (run, _) = span.take_aligned_run(33).unwrap();
    assert!(span.page_of(run).is_multiple_of(64));
    // SAFETY: used no more.
    assert!(unsafe { span.give_run(run) && !span.give_run(run) });
}

/// Whatever is done, so much is idle at most.
fn most_idle(span: &Span, most: usize) -> usize {
    let allowed = surplus::allowed(span.bytes_in_use(), most);
    allowed + allowed / 8 + RUN_BYTES_MAX
}

#[test]
fn a_request_or_a_free_gives_little_back() {
    let span = Span::reserve(256 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let mut runs: Vec<_> = (0..40).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs {
        mark(&span, run, most, 1);
    }
    while let Some(run) = runs.pop().filter(|_| runs.len() > 15) {
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
    }
    // After a round much less may be idle.
    span.begin_round(0);
    let (mut idle, mut steps) = (span.idle_bytes(), 0);
    assert!(idle > 32 << 20);
    let at_last = surplus::allowed(0, 20 * span.page_bytes());
    while span.idle_bytes() > at_last {
        let (run, _) = span.take_run(20).unwrap();
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
        let now = span.idle_bytes();
        // Each of both: what is least, and not much more. So the surplus goes away.
        assert!(
            now < idle && idle - now <= 160 * span.page_bytes(),
            "{idle} {now}"
        );
        (idle, steps) = (now, steps + 1);
    }
    assert!(steps > 10);
}

#[test]
fn who_frees_much_gives_the_surplus_back() {
    let span = Span::reserve(256 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..40).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs {
        mark(&span, run, most, 1);
    }
    for &run in &runs {
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
        assert!(span.idle_bytes() <= most_idle(&span, 80 << 20));
    }
    let left = || -> usize { runs.iter().map(|&run| resident(&span, run, most)).sum() };
    assert!(left() * span.page_bytes() <= 54 << 20);
    // After a round so much was not in use lately.
    span.begin_round(0);
    for _ in 0..200 {
        let again = span.take_run(1).unwrap().0;
        // SAFETY: used no more.
        unsafe { span.give_run(again) };
    }
    assert!(left() <= (16 << 20) / span.page_bytes() + 1);
}

#[test]
fn who_takes_what_was_not_in_use_gives_the_surplus_back() {
    let span = Span::reserve(256 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let pages = (64 << 20) / span.page_bytes();
    let singles: Vec<_> = (0..pages)
        .map(|_| span.take(ask(0, Mobility::Unmovable)).unwrap())
        .collect();
    let is_kept = |single| span.page_of(single) & 16 != 0;
    for &single in singles.iter().filter(|single| !is_kept(**single)) {
        // SAFETY: used no more.
        unsafe { span.give(single, Order::ZERO) };
    }
    // Half of what was in use is idle, and serves no run.
    let before = span.idle_bytes();
    assert!(before >= 24 << 20);
    for _ in 0..80 {
        let _ = span.take_run(most).unwrap();
    }
    assert!(span.idle_bytes() <= surplus::allowed(span.bytes_in_use(), 192 << 20));
}

#[test]
fn who_cuts_much_gives_the_surplus_back() {
    let span = Span::reserve(256 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..40).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs {
        mark(&span, run, most, 1);
    }
    for &run in &runs {
        // SAFETY: the tail is used no more.
        assert!(unsafe { span.cut_run(run, 10) });
        assert!(span.idle_bytes() <= most_idle(&span, 80 << 20));
    }
    for &run in &runs {
        check(&span, run, 10, 1);
    }
    let left: usize = runs.iter().map(|&run| resident(&span, run, most)).sum();
    assert!(left * span.page_bytes() <= (54 << 20) + span.bytes_in_use());
}

#[test]
fn only_what_zones_have_got_can_be_used() {
    let span = Span::reserve(128 << 20).unwrap();
    let (run, _) = span.take_run(3).unwrap();
    mark(&span, run, 3, 1);
    let last = span.address_of(span.pages() - 1);
    let mut ends = [0; 2];
    // SAFETY: the system copies a byte from each address, if it can be read.
    let written = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let written = [run, last].map(|byte| libc::write(ends[1], byte.as_ptr().cast(), 1));
        let _ = ends.map(|end| libc::close(end));
        written
    };
    assert_eq!(written, [1, -1]);
}

#[test]
fn rounds_halve_what_is_idle_and_then_take_all() {
    let span = Span::reserve(64 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..4).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs[1..] {
        mark(&span, run, most, 1);
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
    }
    assert_eq!(span.idle_bytes(), 3 * RUN_BYTES_MAX);
    span.begin_round(usize::MAX);
    assert!(span.end_round(|| Some(())));
    assert_eq!(span.idle_bytes(), RUN_BYTES_MAX);
    // Something has changed: half again. (A block is given back whole.)
    span.begin_round(usize::MAX);
    assert!(span.end_round(|| Some(())));
    assert_eq!(span.idle_bytes(), 0);
    span.begin_round(usize::MAX);
    assert!(!span.end_round(|| Some(())));
    let (again, contents) = span.take_run(most).unwrap();
    assert_eq!(contents, Contents::Zeros);
    zeros(&span, again, most);
}

/// Addresses that were given up are others', come back where nobody has them, and hold zeros then.
#[test]
fn what_was_given_up_is_others_and_comes_back_as_it_is_needed() {
    // In a process of its own: other tests' threads would map memory there.
    // SAFETY: the child ends when this is done.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let done = std::panic::catch_unwind(gives_up_and_regains).is_ok();
            libc::_exit(i32::from(!done));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0);
    }
}

/// A guard that gets nothing back, since others have mapped something there.
struct Refuses;

static GIVEN_UP: AtomicUsize = AtomicUsize::new(0);

impl Guard for Refuses {
    fn commit(&self, _: Range<usize>) -> bool {
        true
    }

    fn give_up(&self, _: Range<usize>) {
        GIVEN_UP.fetch_add(1, Ordering::Relaxed);
    }

    fn regain(&self, _: Range<usize>) -> bool {
        false
    }

    unsafe fn prepare(&self, _: NonNull<u8>, _: usize, _: Contents) {}
}

/// What the guard did not get back is others', and is not given up once more.
fn is_refused_and_leaves_it_alone() {
    let place = Box::leak(Box::new(MaybeUninit::uninit()));
    let reserved = Reserved::new(256 << 20).unwrap();
    let span: &'static Span = Span::build_in(place, reserved, None, None, Some(&Refuses), None);
    let most = RUN_BYTES_MAX / span.page_bytes();
    assert!(span.take_run(most).is_some());
    let kept = span.usable_bytes();
    // SAFETY: never dropped.
    unsafe { span.give_up_addresses(0) };
    while span.take_run(most).is_some() {}
    assert_eq!(GIVEN_UP.load(Ordering::Relaxed), 1);
    assert_eq!(span.usable_bytes(), kept.next_multiple_of(RUN_BYTES_MAX));
}

fn gives_up_and_regains() {
    is_refused_and_leaves_it_alone();
    const GIB: usize = 1 << 30;
    // It is not dropped: what was given up may be others' by then.
    let span = core::mem::ManuallyDrop::new(Span::reserve(3 * GIB).unwrap());
    let most = RUN_BYTES_MAX / span.page_bytes();
    let is_mapped = |offset: usize| {
        let address = span.region.at(offset).as_ptr().cast();
        let mut byte = 0;
        // SAFETY: the system looks, and writes a byte.
        unsafe { libc::mincore(address, 1, &raw mut byte) == 0 }
    };
    let mut runs: Vec<_> = (0..20).map(|_| span.take_run(most).unwrap().0).collect();
    for (owner, &run) in runs.iter().enumerate() {
        mark(&span, run, most, owner + 1);
    }
    let kept = span.usable_bytes();
    // SAFETY: never dropped.
    unsafe { span.give_up_addresses(0) };
    assert!(is_mapped(kept - 4096) && !is_mapped(kept + (4 << 20)) && !is_mapped(2 * GIB));
    let far = span.region.at(2 * GIB);
    assert!(!span.contains(far.as_ptr()) && span.run_at(far).is_none());
    // Somebody else maps memory in the second gibibyte.
    let wanted = span.region.at(GIB + (64 << 20)).as_ptr().cast();
    // SAFETY: nothing is mapped there, and the mapping is this test's.
    let others = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        libc::mmap(wanted, 4096, access, flags, -1, 0)
    };
    assert_eq!(others, wanted);
    while let Some((run, contents)) = span.take_run(most) {
        assert_eq!(contents, Contents::Zeros);
        zeros(&span, run, most);
        mark(&span, run, most, runs.len() + 1);
        runs.push(run);
    }
    assert!(!span.contains(others.cast()));
    let had = runs.len() * RUN_BYTES_MAX;
    assert!((GIB..=GIB + (64 << 20)).contains(&had), "{had}");
    for (owner, &run) in runs.iter().enumerate() {
        check(&span, run, most, owner + 1);
    }
    // Once it is free, they all come back.
    // SAFETY: this test's own.
    assert_eq!(unsafe { libc::munmap(others, 4096) }, 0);
    for run in runs {
        // SAFETY: taken above, and used no more.
        assert!(unsafe { span.give_run(run) });
    }
    let all: Vec<_> = core::iter::from_fn(|| span.take_run(most)).collect();
    assert_eq!(all.len() * RUN_BYTES_MAX, 3 * GIB);
}

#[test]
fn threads_take_and_give_while_memory_goes_back() {
    let span = &Span::reserve(64 << 20).unwrap();
    let stop = AtomicBool::new(false);
    let most = RUN_BYTES_MAX / span.page_bytes();
    thread::scope(|scope| {
        let stop = &stop;
        let workers: Vec<_> = (1..=4)
            .map(|owner| {
                scope.spawn(move || {
                    let mut state = owner as u64;
                    let mut held: Vec<(NonNull<u8>, usize)> = Vec::new();
                    // Four times 12 MiB at most: there is always enough, in pieces of a page.
                    for _ in 0..20_000 {
                        let used: usize = held.iter().map(|&(_, pages)| pages).sum();
                        if next(&mut state).is_multiple_of(2) && used < 6 * most {
                            let wide = next(&mut state).is_multiple_of(8);
                            let pages = if wide { next(&mut state) % most + 1 } else { 1 };
                            match span.take_run(pages) {
                                Some((run, contents)) => {
                                    if contents == Contents::Zeros {
                                        zeros(span, run, pages);
                                    }
                                    mark(span, run, pages, owner);
                                    held.push((run, pages));
                                }
                                None => assert!(pages > 1, "a page is always there"),
                            }
                        } else if !held.is_empty() {
                            let (run, pages) = held.swap_remove(next(&mut state) % held.len());
                            check(span, run, pages, owner);
                            // SAFETY: used no more.
                            assert!(unsafe { span.give_run(run) });
                        }
                    }
                    for (run, pages) in held {
                        check(span, run, pages, owner);
                        // SAFETY: used no more.
                        assert!(unsafe { span.give_run(run) });
                    }
                })
            })
            .collect();
        let releaser = scope.spawn(move || {
            let mut released = 0;
            while !stop.load(Ordering::Relaxed) {
                released += span.release_idle();
                thread::yield_now();
            }
            released
        });
        for worker in workers {
            worker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(releaser.join().unwrap() > 0);
    });
    assert_eq!(span.bytes_in_use(), 0);
    let _ = span.release_idle();
    assert_eq!(span.idle_bytes(), 0);
    for index in 0..span.zones() {
        span.zone(index).check().unwrap();
    }
    check_groups(span);
}

#[test]
fn half_of_a_span_is_whole_zones() {
    for gib in 2..200 {
        let mut bytes = gib << 30;
        while bytes > SPAN_BYTES.0 {
            let half = half_of(bytes);
            assert!(half < bytes && half >= bytes / 3, "{bytes}");
            assert!(
                half < ZONE_BYTES || half.is_multiple_of(ZONE_BYTES),
                "{half}"
            );
            assert!(half.is_multiple_of(SPAN_BYTES.0), "{half}");
            bytes = half;
        }
    }
}

#[test]
fn as_much_may_be_kept_as_there_are_numbers_for() {
    let span = Span::reserve(64 << 20).unwrap();
    span.keep_idle(usize::MAX);
    let (run, _) = span.take_run(100).unwrap();
    // SAFETY: the run is this test's, and not used.
    unsafe { assert!(span.cut_run(run, 25) && span.give_run(run)) };
    span.keep_idle(0);
}
