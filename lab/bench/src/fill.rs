//! Memory that is partly taken, at random, before anything is measured: so what is free lies
//! scattered.

use brickyard::Frame;

use super::random::Random;
use super::subject::Handle;

/// Every run and every configuration is filled in the same way.
const SEED: u64 = 3;

/// All that `handle` can give.
pub(crate) fn take_all(handle: &mut impl Handle) -> Vec<Frame> {
    let mut taken = Vec::new();
    while let Some(block) = handle.alloc() {
        taken.push(block);
    }
    taken
}

/// Takes all single frames and frees all but `percent` of them again, chosen at random. Nothing
/// stays in the caller's cache.
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
