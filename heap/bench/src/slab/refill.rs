//! What happens to memory whose small objects are freed at random: 488 MiB of them are allocated,
//! nine of ten freed, chosen at random, and larger objects allocated up to 488 MiB again. The
//! parent process reads the resident memory. A heap that never uses a page for another size has
//! twice the live memory.
//!
//! Small objects are 256 to 512 bytes, large ones 1024 to 2048, in steps of 16, all equally
//! probable.

use super::mark::mark;
use super::work::SlabWork;
use brickyard_measure::objects::heap::{Content, Heap};
use brickyard_measure::objects::object::{Hand, Object, Shape, table};
use brickyard_measure::objects::taken::Taken;
use brickyard_run::Random;

/// The smallest and the largest of the sizes.
const SMALL: (u32, u32) = (256, 512);
const LARGE: (u32, u32) = (1024, 2048);

/// One of so many objects stays allocated.
const STAYS: usize = 10;

pub(crate) fn run<H: Heap>(heap: &H, work: &SlabWork) -> anyhow::Result<Taken> {
    let mut hand = Hand::new(heap.handle());
    let mut random = Random::new(1);
    let mut objects = table(work.live / SMALL.0 as usize + 1);
    mark("before")?;
    let mut fill =
        |objects: &mut Vec<Option<Object>>, hand: &mut Hand<_>, mut bytes, sizes: (u32, u32)| {
            while bytes < work.live {
                let shape = Shape::any(&mut random, sizes.0, sizes.1);
                objects.push(Some(hand.take(shape, Content::Any)));
                bytes += shape.bytes();
            }
        };
    fill(&mut objects, &mut hand, 0, SMALL);
    Random::new(2).shuffle(&mut objects);
    let stay = objects.len() / STAYS;
    for object in objects.drain(stay..).flatten() {
        // SAFETY: it was taken from this hand, and its first word not written since.
        unsafe { hand.give_as_it_says(object) };
    }
    let shapes = objects.iter().flatten().map(|object| {
        // SAFETY: as above.
        unsafe { object.shape() }
    });
    let stays = shapes.map(Shape::bytes).sum();
    mark("killed")?;
    fill(&mut objects, &mut hand, stays, LARGE);
    mark("refilled")?;
    for object in objects.into_iter().flatten() {
        // SAFETY: as above.
        unsafe { hand.give_as_it_says(object) };
    }
    Ok(Taken::default())
}
