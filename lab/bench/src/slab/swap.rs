//! Objects that threads swap: each step allocates one, exchanges it for what lies in a shared place
//! chosen at random, and frees that, whoever put it there. `swap` is what such a step costs a CPU.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::crowd::{Need, ns_a_step};
use super::heap::{Content, Heap};
use super::link;
use super::objects::{Hand, Object};
use super::turn::HeapTaken;
use super::work::Work;
use crate::random::Random;

/// The places that objects are swapped through.
const PLACES: usize = 4096;

pub(crate) fn run<H: Heap>(heap: &H, work: &Work) -> HeapTaken {
    let shape = work.shape();
    let places: Vec<AtomicPtr<u8>> = (0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect();
    let swap = |new: *mut u8, place: usize| {
        // Acquire and release pair with each other: an object comes as the thread that left it had
        // it.
        let old = places[place].swap(new, Ordering::AcqRel);
        // SAFETY: what lies in a place is null or was put there as an object, and is there no
        // longer.
        unsafe { Object::from_raw(old) }
    };
    let mut taken = HeapTaken::default();
    taken.push("link-before", link::ns_one_way());
    let ns = ns_a_step(work.threads, Need::Nobody, work.sample(), |thread, pace| {
        let mut hand = Hand::new(heap.handle());
        let mut random = Random::new(thread as u64);
        pace.run(|steps| {
            for _ in 0..steps {
                let new = hand.take(shape, Content::Any);
                if let Some(old) = swap(new.into_raw(), random.below(PLACES)) {
                    // SAFETY: every object in the places was taken from a hand of this heap with
                    // this shape.
                    unsafe { hand.give(old, shape) };
                }
            }
        });
    });
    taken.push("link-after", link::ns_one_way());
    taken.push("swap", ns);
    let mut hand = Hand::new(heap.handle());
    for place in 0..PLACES {
        if let Some(old) = swap(null_mut(), place) {
            // SAFETY: as above.
            unsafe { hand.give(old, shape) };
        }
    }
    taken
}
