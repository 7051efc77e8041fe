//! Free pages that have memory serve again, whichever of them and however they lie, and go back in
//! rounds: no more than is due, and nobody waits for who stands still.

use super::*;
use crate::span::layout::GROUP;

/// Returns whether a page is free and may have memory.
pub(super) fn is_idle(span: &Span, page: usize) -> bool {
    span.bits(page / 64).idle.load(Ordering::Relaxed) >> (page % 64) & 1 != 0
}

/// Returns whether runs are looked for in a page.
fn is_free(span: &Span, page: usize) -> bool {
    span.bits(page / 64).free.load(Ordering::Relaxed) >> (page % 64) & 1 != 0
}

/// No group says that its runs are shorter than they are (`no-longer-run`).
pub(super) fn check_groups(span: &Span) {
    let mut length = 0;
    for page in (0..span.pages()).rev() {
        length = if is_free(span, page) { length + 1 } else { 0 };
        let word = usize::from(span.longest(page / GROUP).load(Ordering::Relaxed));
        assert!(
            word >= length.min(GROUP),
            "page {page} begins {length}, {word} are said"
        );
    }
}

/// Takes so many free pages side by side.
fn take_free(span: &Span, pages: usize) -> Option<usize> {
    let place = span.best_place(pages)?;
    span.take_place(place, pages)
}

/// Returns the free pages of a span side by side that a request for so many gets, by looking at
/// each: of the first ones of each group, all of which are idle, or that are free, the first of
/// which at most an eighth is not idle, or else those with the most idle ones.
fn best(span: &Span, pages: usize) -> Option<usize> {
    let first_of = |group: usize, is: fn(&Span, usize) -> bool| {
        let mut starts = group * GROUP..((group + 1) * GROUP).min(span.pages() + 1 - pages);
        starts.find(|&start| (start..start + pages).all(|page| is(span, page)))
    };
    let groups = 0..span.pages() / GROUP;
    let mut firsts =
        groups.filter_map(|group| first_of(group, is_idle).or(first_of(group, is_free)));
    let idle = |start: usize| {
        (start..start + pages)
            .filter(|&page| is_idle(span, page))
            .count()
    };
    let nearly = firsts
        .clone()
        .find(|&start| idle(start) >= pages - pages / 8);
    nearly.or_else(|| {
        let first = firsts.next()?;
        Some(firsts.fold(first, |best, start| {
            if idle(start) > idle(best) {
                start
            } else {
                best
            }
        }))
    })
}

#[test]
fn the_free_pages_that_are_idle_most_are_found_as_by_looking_at_each() {
    let span = Span::reserve(32 << 20).unwrap();
    span.keep_idle(usize::MAX);
    let singles = core::iter::from_fn(|| span.take(ask(0, Mobility::Unmovable)));
    // Each begins one: its first page and its pages.
    let mut held: Vec<(usize, usize)> = singles.map(|single| (span.page_of(single), 1)).collect();
    assert_eq!(held.len(), span.pages());
    let (mut state, mut found, mut longest, mut others) = (1, 0, 0, 0);
    for round in 0..6000 {
        // Few at first, then most.
        for _ in 0..next(&mut state) % (2 + round / 200) {
            if held.len() > 1 {
                let (page, pages) = held.swap_remove(next(&mut state) % held.len());
                span.give_pages_of_run(page, pages);
            }
        }
        if round % 10 == 0 {
            // Some of it goes back to the system.
            let _held = span.counts.releasing.lock(|| Threads.relax());
            let _ = span.release_all_but(span.idle_bytes() / 8 * 7);
        }
        let pages = 1 << (next(&mut state) % 10);
        let pages = (pages + next(&mut state) % pages).min(GROUP);
        let expected = best(&span, pages);
        assert_eq!(
            take_free(&span, pages),
            expected,
            "{pages} pages, round {round}"
        );
        if let Some(page) = expected {
            let all_idle = (page..page + pages).all(|page| is_idle(&span, page));
            let _ = span.begin_run(page, pages, pages);
            held.push((page, pages));
            (found, longest) = (found + 1, longest.max(pages));
            others += usize::from(!all_idle);
        }
        if round % 10 == 9 {
            check_groups(&span);
        }
    }
    assert!(
        found > 1000 && longest > 300 && others > 100,
        "{found} {longest} {others}"
    );
}

#[test]
fn a_round_in_passing_takes_small_steps_and_no_more_than_is_due() {
    let span = Span::reserve(256 << 20).unwrap();
    span.keep_idle(usize::MAX);
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..40).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs {
        mark(&span, run, most, 1);
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
    }
    span.keep_idle(0);
    let mut idle = span.idle_bytes();
    assert_eq!(idle, 80 << 20);
    span.begin_round(16 << 20);
    for _ in 0..40 {
        span.go_on_with_round(1 << 20);
        let now = span.idle_bytes();
        assert!(now <= idle && idle - now <= 3 << 20, "{idle} {now}");
        idle = now;
    }
    assert!((62 << 20..=64 << 20).contains(&idle), "{idle}");
    let _ = span.release_idle();
}

#[test]
fn what_is_due_in_a_round_counts_as_given_back() {
    let span = Span::reserve(64 << 20).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..12).map(|_| span.take_run(most).unwrap().0).collect();
    for &run in &runs {
        mark(&span, run, most, 1);
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
    }
    assert_eq!(span.idle_bytes(), 24 << 20);
    span.begin_round(usize::MAX);
    // 16 MiB may be idle, and half of it stays.
    let as_much_may_come = || {
        assert!(span.may_be_idle(4 << 20));
        assert!(!span.may_be_idle(5 << 20));
    };
    as_much_may_come();
    span.go_on_with_round(4 << 20);
    as_much_may_come();
    // What is taken meanwhile is not given back in its place.
    let taken: Vec<_> = (0..4).map(|_| span.take_run(most).unwrap().0).collect();
    assert_eq!(span.idle_bytes(), 12 << 20);
    span.go_on_with_round(4 << 20);
    assert_eq!(span.idle_bytes(), 12 << 20);
    for run in taken {
        // SAFETY: used no more.
        unsafe { span.give_run(run) };
    }
    // The round was over.
    span.go_on_with_round(4 << 20);
    assert_eq!(span.idle_bytes(), 20 << 20);
}

#[test]
fn what_a_thread_frees_serves_it_first_and_then_others() {
    let span = Span::reserve(64 << 20).unwrap().with_cpus(Cpus::threads());
    let span = &span;
    let take = |pages| Places(vec![span.take_run(pages).unwrap().0]);
    let give = |run: &Places| {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run.0[0]) });
    };
    let (here, there) = (take(20), take(20));
    let pages = |count: usize| count * span.page_bytes();
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            give(&there);
            assert_eq!(
                (span.bytes_in_use(), span.idle_bytes()),
                (pages(20), pages(20))
            );
            there
        });
        let there = other.join().unwrap();
        give(&here);
        assert_eq!((span.bytes_in_use(), span.idle_bytes()), (0, pages(40)));
        // Its own, then the other's, and then a part of neither.
        assert_eq!(take(18).0, here.0);
        assert_eq!(take(20).0, there.0);
        assert_eq!((span.bytes_in_use(), span.idle_bytes()), (pages(40), 0));
        assert_eq!(span.take_run(20).unwrap().1, Contents::Zeros);
    });
}

#[test]
fn any_lengths_that_are_warm_serve_as_they_are_or_in_parts() {
    let span = Span::reserve(256 << 20).unwrap();
    span.keep_idle(usize::MAX);
    let most = RUN_BYTES_MAX / span.page_bytes();
    let mut held: Vec<(NonNull<u8>, usize)> = Vec::new();
    let (mut state, mut used) = (3, 0);
    for owner in 1..20_000 {
        let pages = (1 << (next(&mut state) % 10)).min(most);
        let pages = (pages + next(&mut state) % pages).min(most);
        if used + pages < (100 << 20) / span.page_bytes() {
            let (run, _) = span.take_run(pages).unwrap();
            let has = span.run_at(run).unwrap();
            assert!((pages..=pages + pages / 8).contains(&has), "{pages} {has}");
            mark(&span, run, has, owner);
            held.push((run, owner));
            used += has;
        } else {
            let (run, owner) = held.swap_remove(next(&mut state) % held.len());
            let has = span.run_at(run).unwrap();
            check(&span, run, has, owner);
            // SAFETY: used no more.
            assert!(unsafe { span.give_run(run) });
            used -= has;
        }
        assert_eq!(span.bytes_in_use(), used * span.page_bytes());
    }
    for (run, owner) in held {
        let has = span.run_at(run).unwrap();
        check(&span, run, has, owner);
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
    }
    assert_eq!(span.bytes_in_use(), 0);
    span.cool_all();
    assert_eq!(span.bytes_in_use(), 0);
    let _ = span.release_idle();
    assert_eq!(span.idle_bytes(), 0);
    for index in 0..span.zones() {
        span.zone(index).check().unwrap();
    }
}

/// Takes all pages of a span.
pub(super) fn take_all(span: &Span) {
    let singles = core::iter::from_fn(|| span.take(ask(0, Mobility::Unmovable)));
    assert_eq!(singles.count(), span.pages());
}

/// A request looks at few groups. In front of the run more than that have pages that have just
/// become idle, each time.
#[test]
fn a_run_behind_many_groups_is_found_at_last() {
    let span = Span::reserve(2 << 30).unwrap();
    span.keep_idle(usize::MAX);
    take_all(&span);
    let mut page = 0;
    let mut is_found = |span: &Span| {
        (0..20).any(|_| {
            for group in 0..40 {
                span.give_pages_of_run(group * GROUP + page, 1);
            }
            page += 2;
            take_free(span, 16).is_some()
        })
    };
    span.give_pages_of_run(100 * GROUP, 16);
    assert!(is_found(&span));
    // In the next zone.
    span.give_pages_of_run(span.layout.zone_pages + 7 * GROUP, 16);
    assert!(is_found(&span));
}

/// A thread that gives memory back holds the first runs.
#[test]
fn a_run_behind_some_that_are_held_is_found_at_last() {
    let span = Span::reserve(1 << 30).unwrap();
    span.keep_idle(usize::MAX);
    take_all(&span);
    let request = Span::request(Order::ZERO, Mobility::Movable, Context::MaySleep);
    for group in 0..8 {
        span.give_pages_of_run(group * GROUP, 16);
    }
    for group in 0..7 {
        let range = brickyard::FrameRange::at(Frame::new(group * GROUP), 16);
        span.zone(0).alloc_range_at(range, &request).unwrap();
    }
    let found = (0..4).find_map(|_| take_free(&span, 16));
    assert_eq!(found, Some(7 * GROUP));
}

/// A second's work of the only thread, as `life.rs` has it done.
fn second_in_passing(span: &Span) {
    span.begin_round(16 << 20);
    for _ in 0..16 {
        span.go_on_with_round(1 << 20);
    }
}

#[test]
fn what_was_warm_serves_others_after_some_seconds() {
    let anew = |span: &Span| {
        let runs = (0..1024).map(|_| span.take_run(16).unwrap());
        runs.filter(|&(_, contents)| contents == Contents::Zeros)
            .count()
    };
    // Where all of it may stay.
    let span = Span::reserve(256 << 20).unwrap();
    span.keep_idle(64 << 20);
    let singles = |span: &Span, pages: usize| -> Vec<_> {
        let singles = (0..pages).map(|_| span.take(ask(0, Mobility::Unmovable)).unwrap());
        singles.collect()
    };
    let give = |span: &Span, singles: Vec<NonNull<u8>>| {
        for single in singles {
            // SAFETY: used no more.
            unsafe { span.give(single, Order::ZERO) };
        }
    };
    give(&span, singles(&span, 16_384));
    for _ in 0..5 {
        second_in_passing(&span);
    }
    assert_eq!(anew(&span), 0);
    // And where half of it goes back.
    let span = Span::reserve(1 << 30).unwrap();
    let _kept = singles(&span, 65_536);
    give(&span, singles(&span, 32_768));
    assert_eq!(span.idle_bytes(), 128 << 20);
    for _ in 0..2 {
        second_in_passing(&span);
    }
    let anew = anew(&span);
    assert!(anew < 300, "{anew}");
}

/// Makes the system refuse to take memory of this thread back, as it did with locked memory.
fn refuse_release() {
    let step = |code: u32, jump: [u8; 2], value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump[0],
        jf: jump[1],
        k: value,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32;
    let mut steps = [
        step(load, [0, 0], 0),
        step(equal, [0, 1], libc::SYS_madvise as u32),
        step(answer, [0, 0], refused),
        step(answer, [0, 0], libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program is read, and concerns this thread only.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let done = libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program);
        assert_eq!(done, 0, "a filter is set");
    }
}

#[test]
fn a_round_ends_where_nothing_goes_back() {
    let span = Span::reserve(64 << 20).unwrap();
    span.keep_idle(usize::MAX);
    take_all(&span);
    for page in (0..span.pages()).step_by(4) {
        span.give_pages_of_run(page, 1);
    }
    span.keep_idle(0);
    let due = || span.counts.due.load(Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| {
            refuse_release();
            span.begin_round(usize::MAX);
            assert_eq!(due(), 8 << 20);
            span.go_on_with_round(1 << 20);
            assert_eq!(due(), 0);
            span.begin_round(usize::MAX);
            assert!(!span.end_round(|| Some(())));
            assert_eq!(due(), 0);
        });
    });
    // Others do not have to wait for one that stands still while it gives memory back.
    let held = span.counts.releasing.lock(|| Threads.relax());
    span.begin_round(usize::MAX);
    let before = (span.idle_bytes(), due());
    assert!(before.1 > 0);
    span.go_on_with_round(1 << 20);
    assert_eq!((span.idle_bytes(), due()), before);
    drop(held);
    span.go_on_with_round(1 << 20);
    assert!(span.idle_bytes() < before.0);
}

#[test]
fn nothing_is_due_when_a_round_is_over() {
    let span = Span::reserve(1 << 30).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let runs: Vec<_> = (0..400).map(|_| span.take_run(most).unwrap().0).collect();
    let give = |runs: &[NonNull<u8>]| {
        for &run in runs {
            // SAFETY: used no more.
            unsafe { span.give_run(run) };
        }
    };
    give(&runs[..120]);
    span.begin_round(usize::MAX);
    let entered = core::cell::Cell::new(0);
    let released = span.end_round(|| {
        entered.set(entered.get() + 1);
        // Others take what is idle, and free it again, while the round is under way.
        if entered.get() == 3 {
            let again: Vec<_> = (0..112).map(|_| span.take_run(most).unwrap().0).collect();
            give(&again);
        }
        Some(())
    });
    assert!(released);
    assert_eq!(span.counts.due.load(Ordering::Relaxed), 0);
}

#[test]
fn no_word_of_a_group_is_lost_where_threads_look_and_free() {
    for seed in 0..10 {
        let span = Span::reserve(8 << 20).unwrap();
        span.keep_idle(usize::MAX);
        take_all(&span);
        for page in (0..span.pages()).step_by(16) {
            span.give_pages_of_run(page, 16);
        }
        thread::scope(|scope| {
            for owner in 0..4_u64 {
                let span = &span;
                scope.spawn(move || {
                    let mut state = seed * 100 + owner;
                    let mut held: Vec<(usize, usize)> = Vec::new();
                    for _ in 0..3000 {
                        let pages = 1 + next(&mut state) % 40;
                        if next(&mut state).is_multiple_of(2) {
                            if let Some(page) = take_free(span, pages) {
                                let _ = span.begin_run(page, pages, pages);
                                held.push((page, pages));
                            }
                        } else if !held.is_empty() {
                            let (page, pages) = held.swap_remove(next(&mut state) % held.len());
                            span.give_pages_of_run(page, pages);
                        }
                    }
                });
            }
        });
        check_groups(&span);
    }
}

/// While a round gives what is warm to the zones, little of it is nowhere to be found.
#[test]
fn nothing_is_refused_while_a_round_cools() {
    let span = Span::reserve(512 << 20).unwrap();
    span.keep_idle(usize::MAX);
    let span = &span;
    for _ in 0..5 {
        let singles = core::iter::from_fn(|| span.take(ask(0, Mobility::Unmovable)));
        let all: Vec<_> = singles.collect();
        assert_eq!(all.len(), span.pages());
        for &page in &all {
            // SAFETY: used no more.
            unsafe { span.give(page, Order::ZERO) };
        }
        span.begin_round(0);
        thread::scope(|scope| {
            scope.spawn(|| span.end_round(|| Some(())));
            while span.warm.pages() == all.len() {
                thread::yield_now();
            }
            let half = 0..all.len() / 2;
            let taken = half.map(|_| span.take(ask(0, Mobility::Unmovable)));
            for page in taken.collect::<Vec<_>>() {
                // SAFETY: used no more.
                unsafe { span.give(page.expect("half of it is free"), Order::ZERO) };
            }
        });
    }
}

#[test]
fn what_is_warm_on_many_shelves_keeps_to_the_limit() {
    let span = Span::reserve(8 << 30).unwrap().with_cpus(Cpus::threads());
    let span = &span;
    let pages = (1 << 20) / span.page_bytes();
    let runs: Vec<_> = (0..2048).map(|_| span.take_run(pages).unwrap().0).collect();
    span.begin_round(0);
    let runs = std::sync::Mutex::new(Places(runs));
    let (barrier, turn) = (std::sync::Barrier::new(8), AtomicUsize::new(0));
    let worst = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (runs, barrier, turn, worst) = (&runs, &barrier, &turn, &worst);
            scope.spawn(move || {
                let _ = span.cpu();
                barrier.wait();
                while turn.load(Ordering::Acquire) != number {
                    thread::yield_now();
                }
                let mut runs = runs.lock().unwrap();
                let mut before = usize::MAX;
                // Until its shelf takes no more.
                while before != span.warm.pages()
                    && let Some(run) = runs.0.pop()
                {
                    before = span.warm.pages();
                    // SAFETY: used no more.
                    assert!(unsafe { span.give_run(run) });
                    let most = span.most_pages() * span.page_bytes();
                    let allowed = surplus::allowed(span.bytes_in_use(), most);
                    let _ = worst.fetch_max(span.idle_bytes() * 100 / allowed, Ordering::Relaxed);
                }
                drop(runs);
                turn.store(number + 1, Ordering::Release);
                barrier.wait();
            });
        }
    });
    assert!(span.warm.pages() > 0);
    let _ = span.release_idle();
    assert_eq!(span.idle_bytes(), 0);
}

/// All that is freed meanwhile lies far above it.
#[test]
fn what_is_idle_far_below_what_is_freed_goes_back() {
    let span = Span::reserve(8 << 30).unwrap();
    let most = RUN_BYTES_MAX / span.page_bytes();
    let mut runs: Vec<_> = (0..2048).map(|_| span.take_run(most).unwrap().0).collect();
    runs.sort();
    for &run in &runs[..700] {
        // SAFETY: used no more.
        assert!(unsafe { span.give_run(run) });
    }
    span.begin_round(0);
    for &run in &runs[1990..] {
        for left in (1..most).rev() {
            // SAFETY: the tail is used no more.
            assert!(unsafe { span.cut_run(run, left) });
        }
    }
    let (idle, in_use) = (span.idle_bytes(), span.bytes_in_use());
    assert!(idle <= in_use / 8 * 5, "{idle} idle, {in_use} in use");
}

/// In front of it lies more that is free, and has no memory, than a request looks at.
#[test]
fn what_is_idle_behind_much_that_is_not_is_found() {
    let span = Span::reserve(1 << 30).unwrap();
    span.keep_idle(usize::MAX);
    take_all(&span);
    for group in 0..300 {
        span.give_pages_of_run(group * GROUP, GROUP);
    }
    let _ = span.release_idle();
    for group in 310..400 {
        span.give_pages_of_run(group * GROUP, GROUP);
    }
    let contents = (0..2048).map(|_| span.take_run(16).unwrap().1);
    let old = contents.filter(|&contents| contents == Contents::Anything);
    // One request in eleven gets there.
    assert!(old.count() > 100);
}
