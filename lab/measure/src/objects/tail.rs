//! How long the slowest allocations take: a table has live objects, and each step allocates one and
//! frees another, chosen at random, whose entry it takes. Only the allocation is timed, by the time
//! stamp counter, minus the cost of reading that (the median). The object is not written while it
//! is timed.
//!
//! A percentile is the median of those of five parts of the run: timer interrupts are about as
//! frequent as the allocations beyond the last percentile, and other programs run more often.

use crate::ticks::Ticks;

use super::heap::{Content, Heap, HeapHandle};
use super::object::{Hand, Object, Shape};
use super::taken::Taken;
use brickyard_run::Random;

/// The number of live objects.
const PLACES: usize = 1024;

/// Allocations per millisecond of a sample's time: about as many as can be timed in it.
const STEPS_A_MS: u64 = 25_000;

/// The parts that the steps are divided into. One more runs first, to warm up.
const STRETCHES: u64 = 5;

/// The metrics, and which share of the allocations, in parts per million, took no longer.
const PERCENTILES: [(&str, usize); 4] = [
    ("p50", 500_000),
    ("p99", 990_000),
    ("p99.9", 999_000),
    ("p99.99", 999_900),
];

/// Runs the loop with objects of this shape, for about so many microseconds.
pub fn run<H: Heap>(heap: &H, shape: Shape, sample_us: u64) -> Taken {
    let mut taken = Taken::default();
    let Some(clock) = Ticks::new() else {
        return taken;
    };
    let mut hand = Hand::new(heap.handle());
    let mut live: Vec<Object> = (0..PLACES)
        .map(|_| hand.take(shape, Content::Any))
        .collect();
    let mut random = Random::new(1);
    let steps = (sample_us * STEPS_A_MS / 1000 / STRETCHES).max(1000) as usize;
    let mut stretch = || {
        let mut spent: Vec<u32> = (0..steps)
            .map(|_| replace(&mut hand, &mut live, shape, &clock, &mut random))
            .collect();
        spent.sort_unstable();
        PERCENTILES.map(|(_, share)| spent[steps * share / 1_000_000].saturating_sub(clock.cost()))
    };
    let _ = stretch();
    let stretches: Vec<_> = (0..STRETCHES).map(|_| stretch()).collect();
    for object in live {
        // SAFETY: it was taken from this hand with this shape.
        unsafe { hand.give(object, shape) };
    }
    for (which, (name, _)) in PERCENTILES.into_iter().enumerate() {
        let mut ticks: Vec<u32> = stretches.iter().map(|stretch| stretch[which]).collect();
        ticks.sort_unstable();
        taken.push(name, f64::from(ticks[ticks.len() / 2]));
    }
    taken
}

/// Replaces a random live object with a new one, and frees it. Returns the ticks of the allocation,
/// the clock's own cost included.
#[inline(always)]
fn replace<H: HeapHandle>(
    hand: &mut Hand<H>,
    live: &mut [Object],
    shape: Shape,
    clock: &Ticks,
    random: &mut Random,
) -> u32 {
    let place = &mut live[random.below(PLACES)];
    let before = clock.now();
    let new = hand.take_untouched(shape, Content::Any);
    let ticks = clock.now().wrapping_sub(before);
    let old = core::mem::replace(place, new);
    // SAFETY: all objects in the table were taken from this hand with this shape.
    unsafe { hand.give(old, shape) };
    u32::try_from(ticks).unwrap_or(u32::MAX)
}
