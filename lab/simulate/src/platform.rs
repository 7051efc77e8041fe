//! The simulated machine as the allocator's platform.

use brickyard::{InterruptState, Platform};
use brickyard_machine::current;

/// The machine that runs on this thread of the host; one CPU where none runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl Platform for Simulated {
    #[inline]
    fn cpu(&self) -> usize {
        current::cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        current::pin()
    }

    #[inline]
    fn unpin(&self) {
        current::unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        current::in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(usize::from(current::mask()))
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        current::restore(found.0 != 0);
    }

    #[inline]
    fn relax(&self) {
        brickyard::sync::spin_hint();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        current::run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        current::now()
    }

    #[inline]
    fn task(&self) -> u64 {
        current::task() as u64
    }
}
