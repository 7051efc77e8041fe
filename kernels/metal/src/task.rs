//! Tasks, their stacks, and the queue of those that wait for a CPU.

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::{self, CPUS};

/// The most tasks, those of CPUs aside.
pub const TASKS: usize = 80;
/// The bytes of a stack.
pub const STACK: usize = 64 << 10;

/// A task. Its registers lie on its own stack while it does not run.
pub struct Task {
    /// How often it is pinned: above 0 it is neither preempted nor moved.
    pub pins: Cell<usize>,
    /// Where its registers lie.
    pub frame: Cell<usize>,
    /// Its number, for reports.
    pub id: Cell<usize>,
    /// The CPU that it ran on last.
    pub last_cpu: Cell<usize>,
    done: AtomicBool,
    gone: AtomicBool,
}

/// No CPU.
const NOWHERE: usize = usize::MAX;

// Invariant `task-in-one-place`: a task runs on one CPU, or lies in the queue, or is being
// passed from one to the other. Whoever has it accesses its cells; the queue's lock passes them on.
// SAFETY: by `task-in-one-place`.
unsafe impl Sync for Task {}

impl Task {
    /// Returns a task that has not begun.
    pub const fn new() -> Self {
        Self {
            pins: Cell::new(0),
            frame: Cell::new(0),
            id: Cell::new(0),
            last_cpu: Cell::new(NOWHERE),
            done: AtomicBool::new(false),
            gone: AtomicBool::new(true),
        }
    }

    /// Returns true if it has come to its end, and is to be left for good.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `finish`, on this CPU or the one that it moved from.
        self.done.load(Ordering::Acquire)
    }

    /// Ends the task, which is the caller's.
    pub fn finish(&self) -> ! {
        // Release: pairs with `is_done`.
        self.done.store(true, Ordering::Release);
        loop {
            arch::wait();
        }
    }

    /// Returns true if it ran on another CPU before, and notes that it runs on `cpu` now.
    pub fn moves_to(&self, cpu: usize) -> bool {
        let before = self.last_cpu.replace(cpu);
        before != cpu && before != NOWHERE
    }

    fn begin(&self, id: usize, stack: usize, entry: extern "C" fn(usize) -> !, argument: usize) {
        self.pins.set(0);
        self.id.set(id);
        self.last_cpu.set(NOWHERE);
        self.frame
            .set(arch::new_frame(stack_top(stack), entry, argument));
        self.done.store(false, Ordering::Relaxed);
        self.gone.store(false, Ordering::Relaxed);
    }

    /// Makes this the task of a CPU's errands: it is never queued.
    pub fn begin_errands(&self, cpu: usize, entry: extern "C" fn(usize) -> !) {
        self.begin(TASKS + 1 + cpu, TASKS + cpu, entry, cpu);
    }
}

static TASK: [Task; TASKS] = [const { Task::new() }; TASKS];

#[repr(align(4096))]
struct Stacks(UnsafeCell<[[u8; STACK]; TASKS + CPUS]>);
// SAFETY: each stack is its task's.
unsafe impl Sync for Stacks {}
static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; TASKS + CPUS]));

fn stack_top(stack: usize) -> usize {
    STACKS.0.get().addr() + (stack + 1) * STACK
}

/// Tasks in the order in which they came, behind a lock that is held with interrupts masked.
struct Queue {
    busy: AtomicBool,
    ring: UnsafeCell<[*const Task; TASKS]>,
    head: Cell<usize>,
    len: Cell<usize>,
}

// Invariant `queue-locked`: `with` is the only way in, and its lock lets one CPU in at a
// time.
// SAFETY: by `queue-locked`.
unsafe impl Sync for Queue {}

static QUEUE: Queue = Queue {
    busy: AtomicBool::new(false),
    ring: UnsafeCell::new([ptr::null(); TASKS]),
    head: Cell::new(0),
    len: Cell::new(0),
};

impl Queue {
    fn with<R>(&self, work: impl FnOnce(&mut [*const Task; TASKS], usize, usize) -> R) -> R {
        // Acquire, and release below: what a CPU did to a task comes before what the next one does.
        while self.busy.swap(true, Ordering::Acquire) {
            arch::relax();
        }
        // SAFETY: `queue-locked`; `work` gets the ring for the time of the call.
        let ring = unsafe { &mut *self.ring.get() };
        let result = work(ring, self.head.get(), self.len.get());
        self.busy.store(false, Ordering::Release);
        result
    }

    fn push(&self, task: *const Task) {
        self.with(|ring, head, len| {
            assert!(len < TASKS, "each task is queued at most once");
            ring[(head + len) % TASKS] = task;
            self.len.set(len + 1);
        });
    }

    fn pop(&self) -> Option<*const Task> {
        self.with(|ring, head, len| {
            self.len.set(len.checked_sub(1)?);
            self.head.set((head + 1) % TASKS);
            Some(ring[head])
        })
    }
}

/// Makes task `id` anew, to be run by any CPU. It must be gone.
pub fn spawn(id: usize, entry: extern "C" fn(usize) -> !) {
    let task = &TASK[id];
    assert!(is_gone(id), "task {id} is still there");
    task.begin(id + 1, id, entry, id);
    let found = arch::irq_save();
    QUEUE.push(task);
    arch::irq_restore(found);
}

/// Returns true if a task has come to its end and no CPU uses its stack any more.
pub fn is_gone(id: usize) -> bool {
    // Acquire: pairs with `leave`: whoever uses the task next comes after its last CPU.
    TASK[id].gone.load(Ordering::Acquire)
}

/// Returns the task that waits longest. With interrupts masked.
pub fn next() -> Option<&'static Task> {
    // SAFETY: tasks are static.
    QUEUE.pop().map(|task| unsafe { &*task })
}

/// Queues a task that a CPU has left, or notes that it is gone. Called when its stack is not used
/// any more, with interrupts masked.
pub extern "C" fn leave(left: *const Task) {
    // SAFETY: tasks are static.
    let task = unsafe { &*left };
    if task.is_done() {
        // Release: pairs with `is_gone`.
        task.gone.store(true, Ordering::Release);
    } else {
        QUEUE.push(left);
    }
}
