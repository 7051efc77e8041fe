//! Interrupts, and what follows from them. Every interrupt does work of its own in the allocator,
//! at whatever point it came in. At its end the timer's moves on to the next task, unless the
//! interrupted one is pinned; whichever CPU comes first goes on with it.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use crate::arch;
use crate::cpu::{self, Cpu, DEPTH, ID, PUT_OFF, count, current_task};
use crate::task::{self, Task};

/// The kinds of interrupts.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum InterruptKind {
    /// The CPU's own timer.
    Timer = 0,
    /// Another CPU, or this one itself.
    Poke = 1,
}

/// So deep interrupts nest: the last one keeps interrupts masked.
const DEEPEST: usize = 4;

/// What every interrupt does: the CPU, and the kind of interrupt.
pub type InterruptWork = fn(&'static Cpu, InterruptKind);

// The work, as an address; 0 is none.
static WORK: AtomicUsize = AtomicUsize::new(0);
// Interrupts that may be at that work now.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Has interrupts do this from now on.
pub fn set_work(work: InterruptWork) {
    // Release: pairs with the acquire in `do_work`; what the work needs is there.
    WORK.store(work as usize, Ordering::Release);
}

/// Has interrupts do nothing any more, and waits for those at work.
pub fn end_work() {
    // Both sequentially consistent, as in `do_work`: an interrupt counts itself before it looks for
    // work, so it finds none, or is waited for.
    WORK.store(0, Ordering::SeqCst);
    while AT_WORK.load(Ordering::SeqCst) != 0 {
        arch::relax();
    }
}

fn do_work(cpu: &'static Cpu, kind: InterruptKind) {
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    let work = WORK.load(Ordering::SeqCst);
    if work != 0 {
        // SAFETY: `set_work` has stored a function of this type.
        let work = unsafe { core::mem::transmute::<usize, InterruptWork>(work) };
        work(cpu, kind);
    }
    // Release: pairs with `end_work`.
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
}

/// What an interrupt leads to.
#[repr(C)]
pub struct Switch {
    /// The registers to go on with.
    pub frame: usize,
    /// The task that was left, for [`task::leave`]; null if none is.
    pub left: *const Task,
}

/// An interrupt, on the stack of the task that it interrupted, with interrupts masked. `frame` is
/// where that task's registers lie.
pub fn interrupt(frame: usize, kind: InterruptKind) -> Switch {
    let stay = Switch {
        frame,
        left: ptr::null(),
    };
    let cpu = arch::this_cpu();
    let depth = cpu.depth.get() + 1;
    cpu.depth.set(depth);
    if depth > 1 {
        count(&cpu.counts.nested);
    }
    cpu.counts
        .deepest
        .fetch_max(depth as u64, Ordering::Relaxed);
    match kind {
        InterruptKind::Timer => {
            count(&cpu.counts.timers);
            arch::arm_timer(until_nested(cpu));
        }
        InterruptKind::Poke => count(&cpu.counts.pokes),
    }
    if depth < DEEPEST {
        arch::irq_enable();
        do_work(cpu, kind);
        arch::irq_disable();
    } else {
        do_work(cpu, kind);
    }
    if kind == InterruptKind::Timer {
        arch::arm_timer(until_next(cpu));
    }
    cpu.depth.set(depth - 1);
    if depth > 1 {
        return stay;
    }
    // SAFETY: tasks are static.
    let task = unsafe { &*cpu.current.get() };
    match next_after(cpu, task, kind) {
        Some(next) => switch(cpu, task, next, frame),
        None => stay,
    }
}

/// Returns the microseconds until the timer interrupts this interrupt: now and then soon.
fn until_nested(cpu: &Cpu) -> u64 {
    match cpu.draw().is_multiple_of(4) {
        true => 5,
        false => 10_000,
    }
}

/// Returns the microseconds from the end of a timer's interrupt to the next one. However long its
/// work takes, as when memory is full, the interrupted task goes on meanwhile.
fn until_next(cpu: &Cpu) -> u64 {
    // Relaxed: a hint.
    match WORK.load(Ordering::Relaxed) {
        0 => 2000,
        _ => 50 + cpu.draw() % 500,
    }
}

/// Returns the task that the CPU goes on with, if that is another one.
fn next_after(
    cpu: &'static Cpu,
    task: &'static Task,
    kind: InterruptKind,
) -> Option<&'static Task> {
    let (is_errands, is_idle) = (ptr::eq(task, &cpu.errands), ptr::eq(task, &cpu.idle));
    let is_asked = cpu.is_asked();
    // Every other interrupt from a CPU asks for another task, too.
    let is_over =
        kind == InterruptKind::Timer || cpu.put_off.get() != 0 || cpu.draw().is_multiple_of(2);
    // A lie about pins is told to tasks only, so that errands come to an end.
    let holds = is_errands || !cfg!(feature = "lie-pin");
    if holds && task.pins.get() > 0 {
        if is_asked || is_over {
            cpu.put_off.set(1);
            count(&cpu.counts.put_off);
        }
        return None;
    }
    cpu.put_off.set(0);
    if is_asked {
        return (!is_errands).then_some(&cpu.errands);
    }
    if is_over || is_errands || is_idle {
        let leaves = is_errands || task.is_done();
        return task::next().or(leaves.then_some(&cpu.idle));
    }
    None
}

/// Keeps the current task on its CPU until [`unpin`]: preemption is off while its count is not 0.
/// An interrupt counts on the task that it has interrupted.
#[inline(always)]
pub fn pin() {
    let task = current_task();
    task.pins.set(task.pins.get() + 1);
    // Interrupts of this CPU see the count before anything that it protects.
    compiler_fence(Ordering::SeqCst);
}

/// Ends what the last [`pin`] began.
#[inline(always)]
pub fn unpin() {
    compiler_fence(Ordering::SeqCst);
    let task = current_task();
    let pins = task.pins.get() - 1;
    task.pins.set(pins);
    if pins == 0 && arch::cpu_word::<PUT_OFF>() != 0 {
        catch_up();
    }
}

/// The last pin of a task has ended, and another task was to run meanwhile: now it does. In an
/// interrupt, or with interrupts masked, it is for the next interrupt to do.
#[cold]
fn catch_up() {
    if arch::cpu_word::<DEPTH>() == 0 && arch::irqs_on() {
        // The caller may be moved at any moment. Then another CPU gets an interrupt for nothing.
        arch::poke(cpu::cpu(arch::cpu_word::<ID>()));
    }
}

fn switch(cpu: &Cpu, task: &'static Task, next: &'static Task, frame: usize) -> Switch {
    let of_all = !ptr::eq(task, &cpu.errands) && !ptr::eq(task, &cpu.idle);
    if of_all && !task.is_done() {
        count(&cpu.counts.preemptions);
    }
    if next.moves_to(cpu.id.get()) {
        count(&cpu.counts.moves);
    }
    task.frame.set(frame);
    cpu.current.set(next);
    Switch {
        frame: next.frame.get(),
        // The tasks of a CPU itself are in no queue.
        left: if of_all { task } else { ptr::null() },
    }
}

/// Interrupts a CPU out of the first `cpus`, by a random number.
pub fn poke_some(cpus: usize, number: u64) {
    arch::poke(cpu::cpu(number as usize % cpus));
}
