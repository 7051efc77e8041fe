//! How far apart two running threads are: the time of a word that they pass to and fro. Virtual
//! CPUs may be on two threads of one core at one time and far apart at another, and passing data
//! then takes several times as long. So workloads that pass objects between threads measure this
//! before and after, and the names of their rows say which it was.

use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;

use brickyard_measure::objects::crowd::time;

/// Below this time one way, in ns, two threads are near each other.
pub(crate) const NEAR_NS: f64 = 50.0;

/// How often the word is passed to and fro.
const TURNS: u64 = 4000;

/// How often that is timed; the shortest time is used, since other programs can only lengthen it.
const REPEATS: usize = 5;

/// A word alone in two cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Word(AtomicUsize);

/// Returns the time of the word one way, in ns.
pub(crate) fn ns_one_way() -> f64 {
    let once = || {
        let word = Word(AtomicUsize::new(0));
        let spent = time(2, TURNS, |thread, pace| {
            pace.run(|turns| {
                for _ in 0..turns {
                    // Acquire and release pair with each other: only the word is passed, but with
                    // the orderings of a ring.
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
