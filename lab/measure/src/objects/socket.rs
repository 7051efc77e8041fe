//! `socketallocbench`, after Dumazet's of 2008: each step allocates the objects of a socket and
//! frees them.
//!
//! They have 1216 (the socket itself), 640 (its inode), 256 (its file) and 192 bytes (its directory
//! entry). The first is zeroed, as in the kernel; this took most of the time in his profile. Each
//! object's first word is written. They are freed in the opposite order. Threads share nothing.
//!
//! `pair` is one allocation and one free: a quarter of a step. Its profile is measured by omitting
//! or adding parts. That changes a pair by a nanosecond or two, so loops with and without the part
//! take turns in short blocks (`alternating.rs`):
//!
//! | | |
//! |---|---|
//! | `zeroing` | how much shorter a pair is if nothing is zeroed |
//! | `rest` | the pair without that |
//! | `masking` | how much longer a pair is if every call saves and restores the processor's flags; not included in `pair`, since a process does not mask interrupts |

use core::time::Duration;

use super::alternating::{BLOCK, differences, now};
use super::crowd::{Clock, Need, WorkStep, step};
use super::heap::{Content, Heap, HeapHandle};
use super::masked::Masked;
use super::object::{Hand, Shape};
use super::taken::Taken;

const SOCKET: Shape = Shape::of(1216);
const INODE: Shape = Shape::of(640);
const FILE: Shape = Shape::of(256);
const ENTRY: Shape = Shape::of(192);

/// Pairs of a step.
const PAIRS: f64 = 4.0;

/// The name of the wall time of a pair in a turn's output. Neither this nor [`CPU`] has a row in
/// the table.
pub const SEEN: &str = "seen";

/// The name of the CPU time of a pair.
pub const CPU: &str = "cpu";

/// The loops of the profile, in this order: the whole step, nothing zeroed, every call masked.
const LOOPS: usize = 3;

/// How much longer the profile is measured than `pair`: it has more loops, and uses only their
/// differences.
const TIMES_LONGER: u32 = 2;

/// Runs the loop on so many threads. `sample` is the time of a sample on one CPU, and the clock that
/// measures it.
pub fn run<H: Heap>(heap: &H, threads: usize, sample: (Duration, Clock)) -> Taken {
    let (least, clock) = sample;
    let whole = pair_of(heap, threads, least);
    let pair = whole.cost(clock, threads);
    let [_, unzeroed, masked] = differences_of(heap, threads, sample, &whole);
    let mut taken = Taken::default();
    taken.push("pair", pair);
    taken.push("zeroing", -unzeroed);
    taken.push("rest", pair + unzeroed);
    if cfg!(target_arch = "x86_64") {
        taken.push("masking", masked);
    }
    taken.push(SEEN, whole.seen);
    taken.push(CPU, whole.cpu);
    taken
}

fn pair_of<H: Heap>(heap: &H, threads: usize, least: Duration) -> WorkStep {
    let socket = step(threads, Need::Nobody, least, |_, pace| {
        let mut hand = Hand::new(heap.handle());
        pace.run(|steps| repeat(&mut hand, steps, Content::Zeroed));
    });
    WorkStep {
        seen: socket.seen / PAIRS,
        cpu: socket.cpu / PAIRS,
    }
}

/// Returns how much longer a pair takes in each loop of the profile than in the first, in ns. The
/// value for masking is meaningless where there is none.
fn differences_of<H: Heap>(
    heap: &H,
    threads: usize,
    (least, clock): (Duration, Clock),
    pair: &WorkStep,
) -> [f64; LOOPS] {
    let steps = (BLOCK.as_nanos() as f64 / (pair.cpu * PAIRS)).max(1.0) as u64;
    let rounds = (least * TIMES_LONGER).as_micros() / (BLOCK * 2 * LOOPS as u32).as_micros();
    let differences: [f64; LOOPS] = differences(threads, rounds.max(5) as u64, || {
        let mut handle = heap.handle();
        let now = now(clock);
        move |which| {
            let begun = now();
            // The content is a constant in each loop.
            match which {
                0 => repeat(&mut Hand::new(&mut handle), steps, Content::Zeroed),
                1 => repeat(&mut Hand::new(&mut handle), steps, Content::Any),
                _ => {
                    if let Some(masked) = Masked::new(&mut handle) {
                        repeat(&mut Hand::new(masked), steps, Content::Zeroed);
                    }
                }
            }
            now().saturating_sub(begun)
        }
    });
    differences.map(|block| block / (steps as f64 * PAIRS))
}

#[inline(always)]
fn repeat<H: HeapHandle>(hand: &mut Hand<H>, steps: u64, content: Content) {
    for _ in 0..steps {
        let socket = hand.take(SOCKET, content);
        let inode = hand.take(INODE, Content::Any);
        let file = hand.take(FILE, Content::Any);
        let entry = hand.take(ENTRY, Content::Any);
        // SAFETY: each was just taken from this hand, with this shape.
        unsafe {
            hand.give(entry, ENTRY);
            hand.give(file, FILE);
            hand.give(inode, INODE);
            hand.give(socket, SOCKET);
        }
    }
}
