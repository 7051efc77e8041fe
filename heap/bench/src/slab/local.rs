//! A batch of objects that one thread allocates and then frees in the same order, repeatedly.
//! `pair` is the time of one allocation and one free.

use super::work::SlabWork;
use brickyard_measure::objects::crowd::{Need, ns_a_step};
use brickyard_measure::objects::heap::{Content, Heap};
use brickyard_measure::objects::object::{Hand, Object};
use brickyard_measure::objects::taken::Taken;

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> Taken {
    let shape = work.shape();
    let ns = ns_a_step(1, Need::Nobody, work.sample(), |_, pace| {
        let mut hand = Hand::new(heap.handle());
        let mut batch: Vec<Option<Object>> = (0..work.batch).map(|_| None).collect();
        pace.run(|steps| {
            for _ in 0..steps {
                for place in &mut batch {
                    *place = Some(hand.take(shape, Content::Any));
                }
                for object in batch.iter_mut().filter_map(Option::take) {
                    // SAFETY: it was taken from this hand with this shape.
                    unsafe { hand.give(object, shape) };
                }
            }
        });
    });
    let mut taken = Taken::default();
    taken.push("pair", ns / work.batch as f64);
    taken
}
