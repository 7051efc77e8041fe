//! The machine's current CPU: a replay runs on one thread and sets the CPU of each request.

use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;

/// The current CPU.
#[derive(Debug, Default)]
pub struct Processor(AtomicUsize);

// One thread uses it, so every access can be relaxed.
const ONE_THREAD: Ordering = Ordering::Relaxed;

impl Processor {
    /// Starts with CPU 0.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Makes `cpu` the current CPU.
    #[inline]
    pub fn switch_to(&self, cpu: usize) {
        self.0.store(cpu, ONE_THREAD);
    }
}

impl Platform for Processor {
    #[inline]
    fn cpu(&self) -> usize {
        self.0.load(ONE_THREAD)
    }

    /// Runs `work` as `cpu`. No other CPU runs meanwhile.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let here = self.0.swap(cpu, ONE_THREAD);
        work();
        self.0.store(here, ONE_THREAD);
        true
    }
}
