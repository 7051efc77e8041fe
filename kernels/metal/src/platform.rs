//! What Brickyard asks of this kernel.

use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

use brickyard::{Frame, InterruptState, Platform};

use crate::cpu::{DEPTH, ID, PUT_OFF};
use crate::memory_map::PAGE;
use crate::{arch, errand, scheduler, task};

/// This kernel.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Platform for Machine {
    #[inline(always)]
    fn cpu(&self) -> usize {
        arch::cpu_word::<ID>()
    }

    /// Preemption is off while the current task's count is not 0. An interrupt counts on the task
    /// that it has interrupted.
    #[inline(always)]
    fn pin(&self) -> usize {
        let task = task::current();
        task.pins.set(task.pins.get() + 1);
        // Interrupts of this CPU see the count before anything that it protects.
        compiler_fence(Ordering::SeqCst);
        self.cpu()
    }

    #[inline(always)]
    fn unpin(&self) {
        compiler_fence(Ordering::SeqCst);
        let task = task::current();
        let pins = task.pins.get() - 1;
        task.pins.set(pins);
        if pins == 0 && arch::cpu_word::<PUT_OFF>() != 0 {
            scheduler::catch_up();
        }
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
        task::current().id.get() as u64
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        NonNull::new(arch::direct_map(frame.number() * PAGE))
    }
}
