//! What is one CPU's own. The architecture finds it by a register; the first words are read by
//! single instructions, so that a task can be moved to another CPU between any two.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use brickyard_boot_test::Dice;

use crate::arch::{self, CPUS};
use crate::task::Task;

/// Work that another CPU is to do.
pub struct Errand {
    /// The work.
    pub work: *mut dyn FnMut(),
    /// Set when it is done.
    pub done: AtomicBool,
}

/// A CPU's words.
#[repr(C, align(128))]
pub struct Cpu {
    /// The task that runs, or that is interrupted.
    pub current: Cell<*const Task>,
    /// How many interrupts are at work, each inside the one before.
    pub depth: Cell<usize>,
    /// The number, from 0.
    pub id: Cell<usize>,
    /// Not 0 if another task was to run, but the current one was pinned.
    pub put_off: Cell<usize>,
    this: Cell<*const Self>,
    /// What the hardware calls it.
    pub hardware: Cell<usize>,
    /// Runs when nothing else does.
    pub idle: Task,
    /// Runs errands, on this CPU only.
    pub errands: Task,
    /// What another CPU wants done here.
    pub errand: AtomicPtr<Errand>,
    dice: Cell<u64>,
    /// Set when it takes interrupts.
    pub online: AtomicBool,
    /// What it has done.
    pub counts: Counts,
}

/// Where [`Cpu::current`] lies, which is read by a single instruction, as are the next four words.
const CURRENT: usize = offset_of!(Cpu, current);
/// Where [`Cpu::depth`] lies.
pub const DEPTH: usize = offset_of!(Cpu, depth);
/// Where [`Cpu::id`] lies.
pub const ID: usize = offset_of!(Cpu, id);
/// Where [`Cpu::put_off`] lies.
pub const PUT_OFF: usize = offset_of!(Cpu, put_off);
/// Where the address of the CPU's words lies.
#[allow(dead_code, reason = "one architecture's register can be read itself")]
pub const THIS: usize = offset_of!(Cpu, this);

/// What a CPU has done.
#[derive(Default)]
pub struct Counts {
    /// Timer interrupts.
    pub timers: AtomicU64,
    /// Interrupts from CPUs.
    pub pokes: AtomicU64,
    /// Interrupts that interrupted an interrupt.
    pub nested: AtomicU64,
    /// The most interrupts at work at a time.
    pub deepest: AtomicU64,
    /// Tasks stopped in the middle, for another one.
    pub preemptions: AtomicU64,
    /// Tasks that ran on another CPU before.
    pub moves: AtomicU64,
    /// Preemptions that waited for a pin to end.
    pub put_off: AtomicU64,
    /// Errands run.
    pub errands: AtomicU64,
}

impl Counts {
    const fn new() -> Self {
        Self {
            timers: AtomicU64::new(0),
            pokes: AtomicU64::new(0),
            nested: AtomicU64::new(0),
            deepest: AtomicU64::new(0),
            preemptions: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            put_off: AtomicU64::new(0),
            errands: AtomicU64::new(0),
        }
    }
}

/// Adds one. For counts, which nothing is ordered by.
pub fn count(what: &AtomicU64) {
    what.fetch_add(1, Ordering::Relaxed);
}

// Invariant `cpu-own-cells`: the cells are accessed by their CPU only, and by the boot CPU
// before that CPU starts. `id` and `hardware` never change after that. The rest is atomic.
// SAFETY: by `cpu-own-cells`.
unsafe impl Sync for Cpu {}

impl Cpu {
    const fn new() -> Self {
        Self {
            current: Cell::new(ptr::null()),
            depth: Cell::new(0),
            id: Cell::new(0),
            put_off: Cell::new(0),
            this: Cell::new(ptr::null()),
            hardware: Cell::new(0),
            idle: Task::new(),
            errands: Task::new(),
            errand: AtomicPtr::new(ptr::null_mut()),
            dice: Cell::new(0),
            online: AtomicBool::new(false),
            counts: Counts::new(),
        }
    }

    /// Called by the CPU itself, before it takes interrupts.
    pub fn init(&'static self, id: usize, hardware: usize) {
        self.id.set(id);
        self.hardware.set(hardware);
        self.this.set(self);
        self.current.set(&self.idle);
    }

    /// Starts the CPU's random numbers anew. For a CPU that does not draw any now.
    pub fn seed(&self, seed: u64) {
        self.dice.set(seed ^ (self.id.get() as u64) << 40);
    }

    /// Returns true if something is asked of this CPU.
    pub fn is_asked(&self) -> bool {
        // Relaxed: its task for errands looks again.
        !self.errand.load(Ordering::Relaxed).is_null()
    }

    /// Draws a number, on this CPU with interrupts masked.
    pub fn draw(&self) -> u64 {
        let next = self.dice.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.dice.set(next);
        Dice::new(next).draw()
    }
}

static ALL: [Cpu; CPUS] = [const { Cpu::new() }; CPUS];

/// Returns a CPU by its number.
pub fn cpu(id: usize) -> &'static Cpu {
    &ALL[id]
}

/// Returns the first `cpus` CPUs.
pub fn all(cpus: usize) -> impl Iterator<Item = &'static Cpu> {
    ALL.iter().take(cpus)
}

/// Returns the task that runs.
#[inline(always)]
pub fn current_task() -> &'static Task {
    // One instruction: whichever CPU the caller is on, this task is the current one there.
    // SAFETY: tasks are static, and `init` has set the word.
    unsafe { &*(arch::cpu_word::<CURRENT>() as *const Task) }
}
