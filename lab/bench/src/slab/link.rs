//! How far apart two running threads are: a word that they pass to and fro, with nothing else.
//! Virtual CPUs sit on two threads of one core at one time and far apart at another, and what
//! crosses between them costs several times as much then. So whatever hands objects over measures
//! the way before and after, and its rows say which it was.

use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;

use super::crowd::time;

/// Below this, in ns one way, two threads are near each other.
pub(crate) const NEAR_NS: f64 = 50.0;

/// How often the word goes to and fro.
const TURNS: u64 = 4000;

/// How often that is timed; the shortest counts, since other programs can only lengthen it.
const REPEATS: usize = 5;

/// A word with two lines to itself.
#[derive(Debug)]
#[repr(align(128))]
struct Word(AtomicUsize);

/// The time that the word takes one way, in ns.
pub(crate) fn ns_one_way() -> f64 {
    let once = || {
        let word = Word(AtomicUsize::new(0));
        let spent = time(2, TURNS, |thread, pace| {
            pace.run(|turns| {
                for _ in 0..turns {
                    // Acquire and release pair with each other: the word alone is passed, but as a
                    // ring would pass it.
                    while word.0.load(Ordering::Acquire) % 2 != thread {
                        Threads.relax();
                    }
                    word.0.fetch_add(1, Ordering::Release);
                }
            });
        });
        spent.wall.as_nanos() as f64 / (2 * TURNS) as f64
    };
    (0..REPEATS).map(|_| once()).fold(f64::INFINITY, f64::min)
}
