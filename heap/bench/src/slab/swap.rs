//! Objects that threads swap: each step allocates one, exchanges it for the object at a random
//! index of a shared table, and frees that, whichever thread put it there. `swap` is the cost of
//! such a step to a CPU.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::cpu_distance;
use super::work::SlabWork;
use brickyard_measure::objects::crowd::{Need, ns_a_step};
use brickyard_measure::objects::heap::{Content, Heap};
use brickyard_measure::objects::object::{Hand, Object};
use brickyard_measure::objects::taken::Taken;
use brickyard_run::Random;

/// The entries of the shared table.
const PLACES: usize = 4096;

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> Taken {
    let shape = work.shape();
    let places: Vec<AtomicPtr<u8>> = (0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect();
    let swap = |new: *mut u8, place: usize| {
        // Acquire and release pair with each other: the thread that stored an object has published
        // its contents.
        let old = places[place].swap(new, Ordering::AcqRel);
        // SAFETY: an entry is null or was stored as an object, and the swap has removed it.
        unsafe { Object::from_raw(old) }
    };
    let mut taken = Taken::default();
    taken.push("link-before", cpu_distance::ns_one_way());
    let ns = ns_a_step(work.threads, Need::Nobody, work.sample(), |thread, pace| {
        let mut hand = Hand::new(heap.handle());
        let mut random = Random::new(thread as u64);
        pace.run(|steps| {
            for _ in 0..steps {
                let new = hand.take(shape, Content::Any);
                if let Some(old) = swap(new.into_raw(), random.below(PLACES)) {
                    // SAFETY: every object in the table was taken from a hand of this heap with
                    // this shape.
                    unsafe { hand.give(old, shape) };
                }
            }
        });
    });
    taken.push("link-after", cpu_distance::ns_one_way());
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
