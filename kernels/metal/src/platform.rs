//! What Brickyard asks of this kernel.

use core::ptr::NonNull;

use brickyard::{Frame, InterruptState, Platform};

use crate::cpu::{DEPTH, ID, current_task};
use crate::memory_map::PAGE;
use crate::{arch, errand, scheduler};

/// This kernel.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Platform for Machine {
    #[inline(always)]
    fn cpu(&self) -> usize {
        arch::cpu_word::<ID>()
    }

    #[inline(always)]
    fn pin(&self) -> usize {
        scheduler::pin();
        self.cpu()
    }

    #[inline(always)]
    fn unpin(&self) {
        scheduler::unpin();
    }

    #[inline(always)]
    fn in_interrupt(&self) -> bool {
        !cfg!(feature = "lie-interrupt") && (arch::cpu_word::<DEPTH>() != 0 || !arch::irqs_on())
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(usize::from(arch::irq_save()))
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        arch::irq_restore(found.0 != 0);
    }

    fn relax(&self) {
        arch::relax();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        errand::run_on(cpu, work)
    }

    fn ticks(&self) -> u64 {
        arch::ticks()
    }

    fn task(&self) -> u64 {
        current_task().id.get() as u64
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        NonNull::new(arch::direct_map(frame.number() * PAGE))
    }
}
