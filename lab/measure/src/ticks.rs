//! The time stamp counter, for times of some nanoseconds.

/// The time stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    cost: u32,
}

impl Ticks {
    /// Measures the cost of reading the counter; `None` on processors other than x86-64.
    #[must_use]
    pub fn new() -> Option<Self> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let mut ticks = Self { cost: 0 };
        let mut costs: Vec<u64> = (0..10_001)
            .map(|_| {
                let before = ticks.now();
                ticks.now().wrapping_sub(before)
            })
            .collect();
        costs.sort_unstable();
        ticks.cost = costs[costs.len() / 2] as u32;
        Some(ticks)
    }

    /// Returns the difference of two consecutive readings, in ticks: the median of many.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Reads the counter, after all earlier instructions have completed.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        use core::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: every x86-64 processor has both instructions.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    /// There is none.
    #[cfg(not(target_arch = "x86_64"))]
    #[must_use]
    pub const fn now(&self) -> u64 {
        0
    }
}
