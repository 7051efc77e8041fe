//! Many CPUs on one thread: the driver sets the running CPU, and whether it is in an interrupt.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brickyard::{InterruptState, Platform};

/// A machine of several CPUs, of which one runs at a time.
///
/// It counts masks and pins, so that one that is not undone is detected.
#[derive(Debug, Default)]
pub struct ManyCpus {
    cpu: AtomicUsize,
    interrupt: AtomicBool,
    masked: AtomicUsize,
    pinned: AtomicUsize,
    interruptions: AtomicUsize,
    waits: AtomicUsize,
}

// One thread uses all of it, so every access can be relaxed.
const ONE_THREAD: Ordering = Ordering::Relaxed;

/// How often one operation may call `relax`.
const PATIENCE: usize = 10_000;

impl ManyCpus {
    /// Makes a machine that runs CPU 0, outside any interrupt.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `cpu` the running CPU.
    pub fn switch_to(&self, cpu: usize) {
        self.cpu.store(cpu, ONE_THREAD);
    }

    /// Begins or ends an interrupt on the running CPU.
    pub fn set_interrupt(&self, interrupt: bool) {
        self.interrupt.store(interrupt, ONE_THREAD);
    }

    /// Returns true if the running CPU is in an interrupt.
    #[must_use]
    pub fn is_in_interrupt(&self) -> bool {
        self.interrupt.load(ONE_THREAD)
    }

    /// Returns how often a CPU was interrupted to run something for another.
    #[must_use]
    pub fn interruptions(&self) -> usize {
        self.interruptions.load(ONE_THREAD)
    }

    /// Begins a new operation: resets the count of waits.
    pub fn begin_operation(&self) {
        self.waits.store(0, ONE_THREAD);
    }

    /// Returns true if nothing is masked and no caller pinned.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.masked.load(ONE_THREAD) == 0 && self.pinned.load(ONE_THREAD) == 0
    }
}

impl Platform for ManyCpus {
    fn cpu(&self) -> usize {
        self.cpu.load(ONE_THREAD)
    }

    fn pin(&self) -> usize {
        self.pinned.fetch_add(1, ONE_THREAD);
        self.cpu()
    }

    fn unpin(&self) {
        self.pinned.fetch_sub(1, ONE_THREAD);
    }

    fn in_interrupt(&self) -> bool {
        self.is_in_interrupt()
    }

    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(self.masked.fetch_add(1, ONE_THREAD))
    }

    fn restore_interrupts(&self, found: InterruptState) {
        let masked = self.masked.fetch_sub(1, ONE_THREAD);
        assert_eq!(masked, found.0 + 1, "interrupts restored out of order");
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        self.interruptions.fetch_add(1, ONE_THREAD);
        let here = self.cpu.swap(cpu, ONE_THREAD);
        work();
        self.cpu.store(here, ONE_THREAD);
        true
    }

    fn relax(&self) {
        let waits = self.waits.fetch_add(1, ONE_THREAD);
        assert!(
            waits < PATIENCE,
            "a wait without end on one thread: a lock was not released"
        );
    }
}
