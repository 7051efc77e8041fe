//! Many CPUs on one thread: the driver says which CPU asks next, and whether it is in an interrupt.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brickyard::{InterruptState, Platform};

/// A machine of several CPUs of which one runs at a time.
///
/// It counts what is masked and pinned, so that a mask or pin that is not undone is seen.
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

/// How often one operation may wait between two tries of its own.
const PATIENCE: usize = 10_000;

impl ManyCpus {
    /// CPU 0 runs, outside any interrupt.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `cpu` runs.
    pub fn switch_to(&self, cpu: usize) {
        self.cpu.store(cpu, ONE_THREAD);
    }

    /// From now on the running CPU is in an interrupt, or no longer.
    pub fn set_interrupt(&self, interrupt: bool) {
        self.interrupt.store(interrupt, ONE_THREAD);
    }

    /// Is the running CPU in an interrupt?
    #[must_use]
    pub fn is_in_interrupt(&self) -> bool {
        self.interrupt.load(ONE_THREAD)
    }

    /// How often a CPU was interrupted to run something for another.
    #[must_use]
    pub fn interruptions(&self) -> usize {
        self.interruptions.load(ONE_THREAD)
    }

    /// A new operation begins, with new patience.
    pub fn begin_operation(&self) {
        self.waits.store(0, ONE_THREAD);
    }

    /// Nothing is masked and nobody pinned?
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
            "one thread waits for nobody: a lock was not given up"
        );
    }
}
