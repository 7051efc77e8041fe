//! The simulated machine as the allocator's platform.

use brickyard::{InterruptState, Platform};
use brickyard_machine::here;

/// The machine that runs on this thread of the host; one CPU where none runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl Platform for Simulated {
    #[inline]
    fn cpu(&self) -> usize {
        here::cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        here::pin()
    }

    #[inline]
    fn unpin(&self) {
        here::unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        here::in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(usize::from(here::mask()))
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        here::restore(found.0 != 0);
    }

    #[inline]
    fn relax(&self) {
        brickyard::sync::spin_hint();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        here::run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        here::now()
    }

    #[inline]
    fn task(&self) -> u64 {
        here::task() as u64
    }
}
