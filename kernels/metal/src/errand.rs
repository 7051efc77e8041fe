//! Work on another CPU, as a task there: each CPU has a task that never leaves it, and runs before
//! all others when something is asked of that CPU. So such work may enter what pinned tasks of that
//! CPU use, which an interrupt could not.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::cpu::{Errand, count, cpu};
use crate::{arch, scheduler};

/// Has the task of CPU `id` run `work`, and waits for its end. The caller may be moved meanwhile.
pub fn run_on(id: usize, work: &mut dyn FnMut()) -> bool {
    let target = cpu(id);
    // Acquire: pairs with `go_online`.
    if !target.online.load(Ordering::Acquire) {
        // It has never come up, so nothing of it can be in the allocator.
        work();
        return true;
    }
    let work: *mut (dyn FnMut() + '_) = work;
    // SAFETY: only the lifetime changes. Invariant `errand-waits`: this call returns only when
    // `done` is set, and the errand is not looked at after that.
    let work: *mut (dyn FnMut() + 'static) = unsafe { core::mem::transmute(work) };
    let errand = Errand {
        work,
        done: AtomicBool::new(false),
    };
    let pointer = (&raw const errand).cast_mut();
    // Release: pairs with the acquire in `run`, which sees the errand.
    while target
        .errand
        .compare_exchange(
            ptr::null_mut(),
            pointer,
            Ordering::Release,
            Ordering::Relaxed,
        )
        .is_err()
    {
        arch::relax();
    }
    arch::poke(target);
    // Acquire: pairs with the release in `run`; the work comes before what follows.
    while !errand.done.load(Ordering::Acquire) {
        arch::relax();
    }
    true
}

/// Makes the task of the calling CPU's errands, and allows interrupts. The CPU is set up.
pub fn go_online() {
    let cpu = arch::this_cpu();
    cpu.errands.begin_errands(cpu.id.get(), run);
    // Release: pairs with the acquire in `run_on`.
    cpu.online.store(true, Ordering::Release);
    arch::arm_timer(50);
    arch::irq_enable();
}

/// The task of a CPU's errands.
extern "C" fn run(id: usize) -> ! {
    let cpu = cpu(id);
    loop {
        // Pinned, the scheduler does not leave this task.
        scheduler::pin();
        // Acquire: pairs with the release in `run_on`.
        let errand = cpu.errand.swap(ptr::null_mut(), Ordering::Acquire);
        if !errand.is_null() {
            count(&cpu.counts.errands);
            // SAFETY: `errand-waits`.
            unsafe { (*(*errand).work)() };
            // SAFETY: as above. Release: pairs with the acquire in `run_on`.
            unsafe { (*errand).done.store(true, Ordering::Release) };
        }
        scheduler::unpin();
        if !cpu.is_asked() {
            // The interrupt leaves this task for another one.
            arch::poke(cpu);
            arch::wait();
        }
    }
}
