//! Allocates a part of the memory at random before a measurement, so that the free memory is
//! scattered.

use brickyard::Frame;

use super::subject::Handle;
use brickyard_run::Random;

/// The seed by which the memory is filled in every run and configuration.
const SEED: u64 = 3;

/// Allocates all blocks that `handle` can give.
pub(crate) fn take_all(handle: &mut impl Handle) -> Vec<Frame> {
    let mut taken = Vec::new();
    while let Some(block) = handle.alloc() {
        taken.push(block);
    }
    taken
}

/// Allocates all single frames, and frees all but `percent` of them again, chosen at random. Leaves
/// nothing in the caller's cache.
pub(crate) fn fill(handle: &mut impl Handle, percent: u8) {
    if percent == 0 {
        return;
    }
    let mut taken = take_all(handle);
    Random::new(SEED).shuffle(&mut taken);
    let kept = taken.len() * usize::from(percent) / 100;
    for &frame in &taken[kept..] {
        handle.free(frame);
    }
    handle.settle();
}
