//! A measurement on the host compared with the model: two threads that add to one cache line, and
//! two threads on a line each.
//!
//! The ratio of both times is printed for the host and for each profile, and the time of an
//! addition where the threads take turns; only what is certain is asserted. A busy host may run one
//! thread after the other: only rounds in which both ran count, and there may be too few.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard_machine::{AccessKind, CacheSystem, Profile};

/// Additions per thread and round: fewer than fit in a time slice, so that most rounds run
/// undisturbed.
const ADDS: u64 = 20_000;
const ROUNDS: u64 = 1_000;

/// Some processors fetch two neighbouring lines together, so words on separate lines are two lines
/// apart.
#[repr(align(128))]
struct Apart<T>(T);

/// Returns when both threads have arrived and run. Spins, because a woken thread would start too
/// late. `round` counts from 0.
fn meet(arrived: &AtomicU64, round: u64) {
    arrived.fetch_add(1, Ordering::AcqRel);
    wait_for(arrived, 2 * (round + 1));
}

/// Spins until the word has reached `count`; without the processor's pause instruction, which takes
/// longer than what is measured.
fn wait_for(word: &AtomicU64, count: u64) {
    let mut looks = 0_u64;
    while word.load(Ordering::Acquire) < count {
        looks += 1;
        if looks.is_multiple_of(10_000) {
            thread::yield_now();
        }
    }
}

/// Runs the rounds of one thread; returns when each began and ended.
fn rounds(arrived: &AtomicU64, word: &AtomicU64) -> Vec<(Instant, Instant)> {
    let round = |round| {
        meet(arrived, round);
        let began = Instant::now();
        for _ in 0..ADDS {
            word.fetch_add(1, Ordering::Relaxed);
        }
        (began, Instant::now())
    };
    (0..ROUNDS).map(round).collect()
}

/// Measures an addition in nanoseconds, one thread adding to `left` and one to `right`. Returns the
/// median of the rounds in which both ran at the same time for at least nine tenths of the round,
/// and how many those were.
fn add_on(left: &AtomicU64, right: &AtomicU64) -> (f64, usize) {
    let arrived = Apart(AtomicU64::new(0));
    let (mine, others) = thread::scope(|scope| {
        let other = scope.spawn(|| rounds(&arrived.0, right));
        (rounds(&arrived.0, left), other.join().unwrap())
    });
    let together = |(mine, other): (&(Instant, Instant), &(Instant, Instant))| {
        let all = mine.1.max(other.1) - mine.0.min(other.0);
        let both = mine
            .1
            .min(other.1)
            .checked_duration_since(mine.0.max(other.0))?;
        (both * 10 >= all * 9).then_some(all)
    };
    let mut times: Vec<Duration> = mine.iter().zip(&others).filter_map(together).collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    (middle.as_nanos() as f64 / ADDS as f64, times.len())
}

/// Runs the same on the model: two CPUs, each adding as soon as its last addition is done, with a
/// few cycles of loop in between. Returns the cycles of the whole run.
fn simulated(profile: &Profile, lines: [u32; 2]) -> u64 {
    const LOOP_CYCLES: u64 = 3;
    let mut memory = CacheSystem::new(profile, 2, 1);
    memory.grow(2);
    let mut clocks = [0_u64; 2];
    for _ in 0..20_000 {
        let cpu = usize::from(clocks[1] < clocks[0]);
        clocks[cpu] +=
            memory.access(cpu, lines[cpu], AccessKind::Exchange, clocks[cpu]) + LOOP_CYCLES;
    }
    memory.check().unwrap();
    clocks[0].max(clocks[1])
}

/// Measures a turn in nanoseconds where two threads add in turns: the line moves each time, first
/// for a read, then for a write. Returns the median over the rounds.
fn turns() -> f64 {
    const TURNS: u64 = 200;
    let arrived = Apart(AtomicU64::new(0));
    let word = Apart(AtomicU64::new(0));
    let take_turns = |mine: u64| -> Vec<Duration> {
        let round = |round| {
            meet(&arrived.0, round);
            let began = Instant::now();
            for turn in (mine..TURNS).step_by(2) {
                wait_for(&word.0, round * TURNS + turn);
                word.0.fetch_add(1, Ordering::AcqRel);
            }
            began.elapsed()
        };
        (0..ROUNDS).map(round).collect()
    };
    let mut times = thread::scope(|scope| {
        let other = scope.spawn(|| take_turns(1));
        let times = take_turns(0);
        other.join().unwrap();
        times
    });
    assert_eq!(word.0.load(Ordering::Relaxed), ROUNDS * TURNS);
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64 / TURNS as f64
}

/// Runs the same on the model: the waiting CPU reads again when the other's addition is done.
/// Returns the cycles of a turn.
fn simulated_turn(profile: &Profile) -> u64 {
    const TURNS: u64 = 1_000;
    let mut memory = CacheSystem::new(profile, 2, 1);
    memory.grow(1);
    let mut now = 0;
    for turn in 0..TURNS {
        let cpu = (turn % 2) as usize;
        now += memory.access(cpu, 0, AccessKind::Load, now);
        now += memory.access(cpu, 0, AccessKind::Exchange, now);
    }
    now / TURNS
}

#[test]
fn one_line_costs_more_than_two_in_the_model() {
    for profile in Profile::ALL {
        let one = simulated(profile, [0, 0]);
        let two = simulated(profile, [0, 1]);
        let ns = |cycles: u64| cycles as f64 * 1_000.0 / profile.megahertz as f64;
        println!(
            "{}: one line takes {:.1} times as long as two, {:.1} and {:.1} ns per addition; in turns {:.1} ns",
            profile.name,
            one as f64 / two as f64,
            ns(one) / 10_000.0,
            ns(two) / 10_000.0,
            ns(simulated_turn(profile)),
        );
        assert!(one > two, "{}: {one} and {two}", profile.name);
    }
}

#[test]
fn two_real_threads_on_one_line_and_on_two() {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        println!("skipped: one CPU cannot contend for a line");
        return;
    }
    let near = Apart([const { AtomicU64::new(0) }; 2]);
    let far = [const { Apart(AtomicU64::new(0)) }; 2];
    let (two, undisturbed) = add_on(&far[0].0, &far[1].0);
    let (one, contended) = add_on(&near.0[0], &near.0[1]);
    if undisturbed.min(contended) < 20 {
        println!("skipped: the host was too busy for the two threads to run at the same time");
    } else {
        let ratio = one / two;
        println!("this host: one line takes {ratio:.1} times as long as two");
        println!(
            "{one:.1} and {two:.1} ns per addition; in turns {:.1} ns",
            turns()
        );
        println!("(not pinned; {contended} and {undisturbed} of {ROUNDS} rounds undisturbed)");
    }
    for word in [&near.0[0], &near.0[1], &far[0].0, &far[1].0] {
        assert_eq!(word.load(Ordering::Relaxed), ROUNDS * ADDS);
    }
}
