//! What the allocator itself costs in a replay: every 64th call is timed, and what the clock costs
//! is taken off.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::time::Instant;

/// One call in so many is timed.
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
    /// Does `call`, and times it if it is its turn.
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
        let answer = call();
        let took = begun.elapsed().saturating_sub(self.clock);
        let nanoseconds = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        self.timed.borrow_mut().push(nanoseconds);
        answer
    }

    /// Nanoseconds of a call, what its hooks did included: median, and what 99 in 100 stay below.
    /// Zeros of no calls.
    #[must_use]
    pub fn quantiles(&self) -> (f64, f64) {
        let mut timed = self.timed.borrow().clone();
        timed.sort_unstable();
        let at = |part: usize| {
            let place = timed.len() * part / 100;
            timed
                .get(place)
                .map_or(0.0, |&nanoseconds| f64::from(nanoseconds))
        };
        (at(50), at(99))
    }
}

/// Allocations and frees.
#[derive(Debug)]
pub struct Stopwatch {
    /// Allocations, reclaim and compaction on their way included.
    pub allocs: Calls,
    /// Frees.
    pub frees: Calls,
}

impl Stopwatch {
    /// Looks at the clock first, to know what that costs.
    #[must_use]
    pub fn new() -> Self {
        let mut looks: Vec<Duration> = (0..64).map(|_| Instant::now().elapsed()).collect();
        looks.sort_unstable();
        let calls = || Calls {
            clock: looks[looks.len() / 2],
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
