//! The time of the allocator's own calls in a replay: every 64th call is timed, and the clock's own
//! cost is subtracted.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::time::Instant;

/// One of this many calls is timed.
const ONE_IN: u32 = 64;

/// Times of one kind of call.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Cell<u32>,
    // Nanoseconds of each timed call.
    timed: RefCell<Vec<u32>>,
    clock: Duration,
}

impl Calls {
    /// Runs `call`, and times every 64th.
    #[inline]
    pub fn time<T>(&self, call: impl FnOnce() -> T) -> T {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        if calls.is_multiple_of(ONE_IN) {
            return self.timed(call);
        }
        call()
    }

    #[cold]
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = call();
        let took = begun.elapsed().saturating_sub(self.clock);
        let nanoseconds = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        self.timed.borrow_mut().push(nanoseconds);
        result
    }

    /// Returns median and 99th percentile of a call, its hooks included, in nanoseconds; 0 is less
    /// than the clock resolves. `None` if no call was timed.
    #[must_use]
    pub fn quantiles(&self) -> Option<(f64, f64)> {
        let mut timed = self.timed.borrow().clone();
        timed.sort_unstable();
        let at = |percent: usize| timed.get(timed.len() * percent / 100).copied();
        Some((f64::from(at(50)?), f64::from(at(99)?)))
    }
}

/// Allocations and frees.
#[derive(Debug)]
pub struct Stopwatch {
    /// Allocations, with the reclaim and compaction that they do.
    pub allocs: Calls,
    /// Frees.
    pub frees: Calls,
}

impl Stopwatch {
    /// Measures the cost of reading the clock first.
    #[must_use]
    pub fn new() -> Self {
        let mut costs: Vec<Duration> = (0..64).map(|_| Instant::now().elapsed()).collect();
        costs.sort_unstable();
        let calls = || Calls {
            clock: costs[costs.len() / 2],
            ..Calls::default()
        };
        Self {
            allocs: calls(),
            frees: calls(),
        }
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_quantiles_of_no_calls() {
        let calls = Calls::default();
        assert_eq!(calls.quantiles(), None);
        for _ in 1..ONE_IN {
            calls.time(|| ());
        }
        assert_eq!(calls.quantiles(), None);
        calls.time(|| ());
        assert!(calls.quantiles().is_some());
    }
}
