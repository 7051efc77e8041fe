//! One thread allocates, another frees, through a ring. `object` is the time from one object
//! received to the next, with both threads running. The yardsticks' figures in this row are the
//! cost of the ring itself.

use std::sync::{Mutex, PoisonError};

use super::cpu_distance;
use super::ring::Ring;
use super::work::SlabWork;
use brickyard_measure::objects::crowd::{Clock, Need, ns_a_step};
use brickyard_measure::objects::heap::{Content, Heap};
use brickyard_measure::objects::object::Hand;
use brickyard_measure::objects::taken::Taken;

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> Taken {
    let shape = work.shape();
    let mut taken = Taken::default();
    taken.push("link-before", cpu_distance::ns_one_way());
    let ns = {
        // Each repeat empties the ring that it fills.
        let mut ring = Ring::new();
        let (sender, receiver) = ring.ends();
        let ends = (Mutex::new(sender), Mutex::new(receiver));
        ns_a_step(
            2,
            Need::Others,
            (work.sample().0, Clock::Wall),
            |thread, pace| {
                let mut hand = Hand::new(heap.handle());
                if thread == 0 {
                    let mut sender = ends.0.lock().unwrap_or_else(PoisonError::into_inner);
                    pace.run(|steps| {
                        for _ in 0..steps {
                            sender.send(hand.take(shape, Content::Any));
                        }
                    });
                } else {
                    let mut receiver = ends.1.lock().unwrap_or_else(PoisonError::into_inner);
                    pace.run(|steps| {
                        for _ in 0..steps {
                            // SAFETY: the other thread took it from a hand of this heap with this
                            // shape.
                            unsafe { hand.give(receiver.receive(), shape) };
                        }
                    });
                }
            },
        )
    };
    taken.push("link-after", cpu_distance::ns_one_way());
    taken.push("object", ns);
    taken
}
