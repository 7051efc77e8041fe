//! The sequences under storms of preemption, migration and signals: every token is in one place at
//! any time.

use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering,
};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use brickyard::Platform;
use brickyard_slab::Pushed;

use super::{ROW_SHIFT, Rseq, ThreadRows, pop, push, replace};
use crate::thread_local::own_offset;
use crate::threads::tests::alone;

const WORDS: usize = 128;
const SENTINEL: usize = 60;
const ROW_WORDS: usize = (1 << ROW_SHIFT) / size_of::<usize>();

#[repr(align(1024))]
struct Sheaf([AtomicUsize; WORDS]);

/// A sheaf with nothing in it and no room: its only entry is its sentinel.
static CLOSED: Sheaf = Sheaf([const { AtomicUsize::new(0) }; WORDS]);

fn closed() -> usize {
    (&raw const CLOSED.0[WORDS - 1]).addr()
}

const COLUMN: usize = 5;

/// What may be interrupted is tried so often.
const MORE: usize = 1000;

struct Bench {
    rows: Vec<AtomicUsize>,
    sheaves: Vec<Sheaf>,
}

impl Bench {
    /// Makes rows with an empty sheaf each, except those that are to be without.
    fn new(rows: usize, without: usize) -> Self {
        let bench = Self {
            rows: (0..rows * ROW_WORDS).map(|_| AtomicUsize::new(0)).collect(),
            sheaves: (0..rows)
                .map(|_| Sheaf([const { AtomicUsize::new(0) }; WORDS]))
                .collect(),
        };
        for row in 0..rows {
            let top = (&raw const bench.sheaves[row].0[SENTINEL]).expose_provenance();
            let top = if row < without { closed() } else { top };
            bench.word(row).store(top, Ordering::Relaxed);
        }
        bench
    }

    fn word(&self, row: usize) -> &AtomicUsize {
        &self.rows[row * ROW_WORDS + COLUMN]
    }

    fn pop(&self, area: isize) -> usize {
        // SAFETY: tops of sheaves, or of CLOSED, in every row that there is.
        unsafe { pop(area, (self.rows.as_ptr(), ()), COLUMN) }.addr()
    }

    fn push(&self, area: isize, token: usize) -> bool {
        let token = core::ptr::without_provenance_mut(token);
        // SAFETY: as in `pop`.
        unsafe { push(area, (self.rows.as_ptr(), ()), COLUMN, token) == Pushed::Done }
    }

    /// Returns what lies in the sheaves. Nobody else may be at work.
    fn contents(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for row in 0..self.sheaves.len() {
            let top = self.word(row).load(Ordering::Relaxed);
            for entry in &self.sheaves[row].0[SENTINEL + 1..] {
                if (&raw const *entry).addr() <= top && top != closed() {
                    found.push(entry.load(Ordering::Relaxed));
                }
            }
        }
        found
    }
}

/// Whether each token is held: 1 if somebody holds it, 0 if it lies in a sheaf.
struct Tokens(Vec<AtomicU8>);

impl Tokens {
    fn new(count: usize) -> Self {
        Self((0..=count).map(|_| AtomicU8::new(1)).collect())
    }

    fn taken(&self, token: usize) {
        assert_eq!(
            self.0[token].swap(1, Ordering::Relaxed),
            0,
            "{token} came twice"
        );
    }

    fn given(&self, token: usize) {
        assert_eq!(
            self.0[token].swap(0, Ordering::Relaxed),
            1,
            "{token} given twice"
        );
    }
}

fn next(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Pushes and pops at random for a while; returns what it still holds.
fn churn(
    bench: &Bench,
    tokens: &Tokens,
    area: isize,
    mut held: Vec<usize>,
    seed: u64,
    stop: &AtomicBool,
    step: &(dyn Fn(usize) + Sync),
) -> Vec<usize> {
    let mut state = seed;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..64 {
            if next(&mut state).is_multiple_of(2)
                && let Some(token) = held.pop()
            {
                tokens.given(token);
                if !bench.push(area, token) {
                    tokens.taken(token);
                    held.push(token);
                }
            } else {
                let token = bench.pop(area);
                if token != 0 {
                    tokens.taken(token);
                    held.push(token);
                }
            }
        }
        step(next(&mut state));
    }
    held
}

/// Runs threads that churn; afterwards every token must be there once.
fn storm(
    bench: &Bench,
    area: isize,
    threads: usize,
    time: Duration,
    step: &(dyn Fn(usize) + Sync),
    tokens: &Tokens,
) {
    let count = tokens.0.len() - 1;
    let stop = AtomicBool::new(false);
    let held: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let own = (1..=count)
                    .filter(|token| token % threads == thread)
                    .collect();
                let stop = &stop;
                scope.spawn(move || churn(bench, tokens, area, own, thread as u64, stop, step))
            })
            .collect();
        let start = Instant::now();
        while start.elapsed() < time {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let mut all = held;
    all.extend(bench.contents());
    all.sort_unstable();
    assert_eq!(all, (1..=count).collect::<Vec<_>>());
}

fn registered() -> Option<Rseq> {
    let rseq = Rseq::registered();
    if rseq.is_none() {
        println!("skipped: no restartable sequences are registered here");
    }
    rseq
}

#[test]
fn preemption_and_migration_lose_nothing() {
    let Some(rseq) = registered() else { return };
    // Signals are the process's, too.
    let _alone = alone();
    let bench = Bench::new(rseq.cpus(), 0);
    let step = |random: usize| match random % 64 {
        0 => {
            rseq.run_on(random / 64 % rseq.cpus(), &mut || {
                // Detached, and put back: nobody else has it meanwhile.
                let cpu = rseq.cpu();
                let word = bench.word(cpu);
                let top = word.load(Ordering::Relaxed);
                // SAFETY: a word of this CPU's row.
                let detached = unsafe { replace(rseq.area(), cpu as u32, word, top, closed()) };
                // (A second thread here at this moment finds the row closed already.)
                if detached && top != closed() {
                    thread::yield_now();
                    // Nothing goes in or out of a closed row, but the change may be interrupted.
                    // SAFETY: as above.
                    let back = || unsafe { replace(rseq.area(), cpu as u32, word, closed(), top) };
                    assert!((0..MORE).any(|_| back()));
                }
            });
        }
        1..8 => thread::yield_now(),
        _ => {}
    };
    let tokens = Tokens::new(rseq.cpus() * 80 + 64);
    let time = Duration::from_millis(1500);
    storm(&bench, rseq.area(), 8, time, &step, &tokens);
}

#[test]
fn replace_wants_the_cpu_and_the_word() {
    let Some(rseq) = registered() else { return };
    let word = AtomicUsize::new(7);
    let mut done = 0;
    for cpu in 0..rseq.cpus() {
        rseq.run_on(cpu, &mut || {
            // SAFETY: a word of nobody else's.
            let store = |cpu: usize, expected, new| unsafe {
                replace(rseq.area(), cpu as u32, &raw const word, expected, new)
            };
            assert!(!store(cpu + 1, 7, 8));
            assert!(!store(cpu, 8, 9));
            assert!((0..MORE).any(|_| store(cpu, 7, 8)));
            assert_eq!(word.load(Ordering::Relaxed), 8);
            assert!((0..MORE).any(|_| store(cpu, 8, 7)));
            done += 1;
        });
    }
    assert!(done > 0);
}

/// The state of the signal handler.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// The number of threads in the handler. Any thread of the process may be there, even one that
/// knows nothing of this test and does not run when the test ends.
static HANDLING: AtomicUsize = AtomicUsize::new(0);
static STRAYS: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static BENCH: AtomicPtr<Bench> = AtomicPtr::new(null_mut());
static TOKENS: AtomicPtr<Tokens> = AtomicPtr::new(null_mut());
static AREA: AtomicIsize = AtomicIsize::new(0);

extern "C" fn on_alarm(_: c_int) {
    // Pairs with the test's store and load of the same two words: the test sees a handler that has
    // come in, or the handler sees that the test is over.
    HANDLING.fetch_add(1, Ordering::SeqCst);
    let bench = BENCH.load(Ordering::SeqCst);
    if !bench.is_null() {
        // SAFETY: both live until `BENCH` is null and nobody is in the handler; `TOKENS` is set
        // first.
        unsafe { take_or_move(&*bench, &*TOKENS.load(Ordering::Relaxed)) };
    }
    // Pairs with the load of the test, which waits for all handlers: it sees what this one kept.
    HANDLING.fetch_sub(1, Ordering::Release);
}

fn take_or_move(bench: &Bench, tokens: &Tokens) {
    let area = AREA.load(Ordering::Relaxed);
    let count = HANDLED.fetch_add(1, Ordering::Relaxed);
    let token = bench.pop(area);
    if token == 0 {
        return;
    }
    tokens.taken(token);
    tokens.given(token);
    // Every other time it only takes, where there is still a place to keep it.
    if !count.is_multiple_of(2) && bench.push(area, token) {
        return;
    }
    tokens.taken(token);
    let kept = STRAYS.iter().any(|place| {
        place
            .compare_exchange(0, token, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    });
    assert!(kept, "as many places as tokens");
}

#[test]
fn signals_midway_lose_nothing() {
    let Some(rseq) = registered() else { return };
    let _alone = alone();
    let mut bench = Bench::new(rseq.cpus(), 0);
    let mut tokens = Tokens::new(rseq.cpus() * 40 + 1000);
    AREA.store(rseq.area(), Ordering::Relaxed);
    TOKENS.store(&raw mut tokens, Ordering::Relaxed);
    BENCH.store(&raw mut bench, Ordering::SeqCst);
    let every = |microseconds| {
        let interval = libc::timeval {
            tv_sec: 0,
            tv_usec: microseconds,
        };
        let timer = libc::itimerval {
            it_interval: interval,
            it_value: interval,
        };
        // SAFETY: a plain call with a value that lives through it.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
    };
    // SAFETY: `on_alarm` calls nothing that a handler may not call.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_alarm as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, null_mut());
    }
    every(50);
    let (bench, tokens) = (&bench, &tokens);
    // What the handler kept comes back by the workers, so that it does not run dry.
    let step = |random: usize| {
        let place = &STRAYS[random % 64];
        let token = place.swap(0, Ordering::Relaxed);
        if token != 0 {
            tokens.given(token);
            if !bench.push(rseq.area(), token) {
                tokens.taken(token);
                let put = STRAYS.iter().any(|place| {
                    place
                        .compare_exchange(0, token, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok()
                });
                assert!(put);
            }
        }
    };
    let stop = AtomicBool::new(false);
    let held: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|thread| {
                let own = (1..tokens.0.len()).filter(|t| t % 6 == thread).collect();
                let (stop, step) = (&stop, &step);
                scope.spawn(move || {
                    churn(bench, tokens, rseq.area(), own, thread as u64, stop, step)
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(1500));
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let mut all = held;
    // No handler that comes from here on finds anything to do; those under way are waited for.
    every(0);
    BENCH.store(null_mut(), Ordering::SeqCst);
    while HANDLING.load(Ordering::SeqCst) != 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let places = STRAYS.iter().map(|place| place.swap(0, Ordering::Relaxed));
    all.extend(places.filter(|&token| token != 0));
    all.extend(bench.contents());
    all.sort_unstable();
    assert_eq!(all, (1..tokens.0.len()).collect::<Vec<_>>());
    assert!(HANDLED.load(Ordering::Relaxed) > 100, "signals came");
}

#[test]
fn rows_of_threads_lose_nothing() {
    let _alone = alone();
    let rows = ThreadRows::new();
    assert_eq!(rows.area(), own_offset());
    // The row of number 0 is always closed.
    let bench = Bench::new(ThreadRows::ROWS, 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(bench.pop(rows.area()), 0, "no number yet");
            assert!(!bench.push(rows.area(), 1));
        });
    });
    let tokens = Tokens::new(512);
    let step = |random: usize| {
        // A thread's first miss gives it its number.
        let _ = rows.row();
        if random.is_multiple_of(16) {
            thread::yield_now();
        }
    };
    let time = Duration::from_millis(300);
    storm(&bench, rows.area(), 8, time, &step, &tokens);
}
