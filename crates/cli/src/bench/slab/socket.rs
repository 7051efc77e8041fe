//! `socketallocbench`, after Dumazet's of 2008: each step allocates the objects of a socket and frees them.
//!
//! They have 1216 (the socket itself), 640 (its inode), 256 (its file) and 192 bytes (its directory entry). The first is zeroed, as the kernel does it; where time goes in
//! his profile, most of it goes there. Each object's first word is written. They are freed in the opposite order. Threads share nothing.
//!
//! `pair` is one allocation and one free: a quarter of a step. Its profile is found by leaving things out, or putting them in:
//!
//! | | |
//! |---|---|
//! | `zeroing` | what less a pair takes where nothing is zeroed |
//! | `rest` | the pair without it |
//! | `masking` | what more a pair takes where every call saves and restores the processor's flags; on top of `pair`, since no process masks interrupts |

use core::time::Duration;

use super::crowd::{Need, Step, step};
use super::heap::{Content, Heap, HeapHandle};
use super::masked::Masked;
use super::objects::{Hand, Shape};
use super::turn::HeapTaken;
use super::work::Work;

const SOCKET: Shape = Shape::of(1216);
const INODE: Shape = Shape::of(640);
const FILE: Shape = Shape::of(256);
const ENTRY: Shape = Shape::of(192);

/// Pairs of a step.
const PAIRS: f64 = 4.0;

/// A pair by either clock, whichever is asked for: as a thread sees it, and on a CPU. These have no row in the table.
pub(crate) const SEEN: &str = "seen";
pub(crate) const CPU: &str = "cpu";

/// Is the socket zeroed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zeroing {
    Done,
    LeftOut,
}

pub(crate) fn run<H: Heap>(heap: &H, work: &Work) -> HeapTaken {
    let (least, clock) = work.sample();
    let cost = |pair: Step| pair.cost(clock, work.threads);
    let whole = pair_of(heap, work.threads, least, Zeroing::Done);
    let pair = cost(whole);
    let rest = cost(pair_of(heap, work.threads, least, Zeroing::LeftOut));
    let mut taken = HeapTaken::default();
    taken.push("pair", pair);
    taken.push("zeroing", pair - rest);
    taken.push("rest", rest);
    if let Some(masked) = Masked::new(heap) {
        let masked = cost(pair_of(&masked, work.threads, least, Zeroing::Done));
        taken.push("masking", masked - pair);
    }
    taken.push(SEEN, whole.seen);
    taken.push(CPU, whole.cpu);
    taken
}

fn pair_of<H: Heap>(heap: &H, threads: usize, least: Duration, zeroing: Zeroing) -> Step {
    let socket = step(threads, Need::Nobody, least, |_, pace| {
        let mut hand = Hand::new(heap.handle());
        // The content is a constant in either loop.
        pace.run(|steps| match zeroing {
            Zeroing::Done => repeat(&mut hand, steps, Content::Zeroed),
            Zeroing::LeftOut => repeat(&mut hand, steps, Content::Any),
        });
    });
    Step {
        seen: socket.seen / PAIRS,
        cpu: socket.cpu / PAIRS,
    }
}

#[inline(always)]
fn repeat<H: HeapHandle>(hand: &mut Hand<H>, steps: u64, content: Content) {
    for _ in 0..steps {
        let socket = hand.take(SOCKET, content);
        let inode = hand.take(INODE, Content::Any);
        let file = hand.take(FILE, Content::Any);
        let entry = hand.take(ENTRY, Content::Any);
        // SAFETY: each was taken just now, from this hand, with this shape.
        unsafe {
            hand.give(entry, ENTRY);
            hand.give(file, FILE);
            hand.give(inode, INODE);
            hand.give(socket, SOCKET);
        }
    }
}
