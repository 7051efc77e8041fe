//! How much memory a heap returns to the system once everything is freed. Four threads allocate
//! 488 MiB in objects of 16 to 2048 bytes and free them in random order. Then all of them wait, and
//! nothing in this process runs any more, while the parent process watches the resident memory.

use std::panic::resume_unwind;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use super::mark::{mark, mark_at_rest};
use super::work::SlabWork;
use brickyard_measure::objects::heap::{Content, Heap};
use brickyard_measure::objects::object::{Hand, Shape, table};
use brickyard_measure::objects::taken::Taken;
use brickyard_run::Random;

const THREADS: usize = 4;

/// The smallest and the largest of the sizes.
const SIZES: (u32, u32) = (16, 2048);

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> anyhow::Result<Taken> {
    let mean = (SIZES.0 + SIZES.1) as usize / 2;
    let places = (work.live / THREADS / mean).max(1);
    let tables: Vec<_> = (0..THREADS).map(|_| Mutex::new(table(places))).collect();
    mark("before")?;
    let together = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(THREADS);
        for (number, table) in tables.iter().enumerate() {
            let together = &together;
            threads.push(scope.spawn(move || {
                let mut hand = Hand::new(heap.handle());
                let mut random = Random::new(number as u64);
                let mut live = table.lock().unwrap_or_else(PoisonError::into_inner);
                live.extend((0..places).map(|_| {
                    let shape = Shape::any(&mut random, SIZES.0, SIZES.1);
                    Some(hand.take(shape, Content::Any))
                }));
                random.shuffle(&mut live);
                together.wait();
                // The parent measures while all objects are live.
                together.wait();
                for object in live.drain(..).flatten() {
                    // SAFETY: it was taken from this hand, and its first word not written since.
                    unsafe { hand.give_as_it_says(object) };
                }
                together.wait();
                // No thread ends before the last measurement, since a thread that ends returns its
                // caches.
                together.wait();
            }));
        }
        together.wait();
        let live = mark("live");
        together.wait();
        together.wait();
        let freed = live.and_then(|()| mark_at_rest("freed"));
        together.wait();
        // The scope itself waits until they have done their work, not until they have ended: a heap
        // that cleans up at the end of the process would then run beside ending threads.
        for one in threads {
            one.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        freed
    })?;
    Ok(Taken::default())
}
