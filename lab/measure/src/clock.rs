//! The cost of reading the clock, and the clock of a thread's CPU time.

use core::time::Duration;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Many short laps of time, each between two readings of the clock.
///
/// The cost of the readings is subtracted from the sum, not from each lap. The clock counts in
/// steps, so a lap shorter than a step reads as too short or too long. If each lap were cut off at
/// 0, the short ones would no longer compensate for the long ones, and anything would seem to take
/// about a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Laps {
    spent: Duration,
    count: u64,
}

impl Laps {
    /// Adds a lap, as measured by the clock.
    #[inline(always)]
    pub fn add(&mut self, spent: Duration) {
        self.spent += spent;
        self.count += 1;
    }

    /// Returns the number of laps.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of a lap in ns, where an empty lap reads as `clock` ns. Negative where laps
    /// are so short that the clock's steps dominate.
    pub fn mean(&self, clock: f64) -> f64 {
        self.spent.as_nanos() as f64 / self.count.max(1) as f64 - clock
    }

    /// Returns the sum of the laps in ns, where an empty lap reads as `clock` ns.
    pub fn ns(&self, clock: f64) -> f64 {
        (self.spent.as_nanos() as f64 - clock * self.count as f64).max(0.0)
    }
}

/// The time that one thread spent on some work.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    begun: Instant,
    done: Instant,
    /// The CPU time.
    pub cpu: Duration,
}

impl Span {
    /// Runs `work` on this thread, and returns its time.
    pub fn of(work: impl FnOnce()) -> Self {
        let (begun, cpu) = (Instant::now(), cpu_of_this_thread());
        work();
        Self {
            begun,
            done: Instant::now(),
            cpu: cpu_of_this_thread().saturating_sub(cpu),
        }
    }

    /// Returns the time from the first start to the last end.
    pub fn wall(spans: impl Iterator<Item = Self> + Clone) -> Duration {
        let begun = spans.clone().map(|span| span.begun).min();
        let done = spans.map(|span| span.done).max();
        begun
            .zip(done)
            .map_or(Duration::ZERO, |(begun, done)| done - begun)
    }
}

/// Returns the difference of two consecutive readings of the clock, in ns: the median of many, each
/// the mean of some, since the clock counts in steps.
pub fn ns_of_the_clock() -> f64 {
    const READINGS: u32 = 32;
    let mut costs: Vec<Duration> = (0..101)
        .map(|_| {
            let begun = Instant::now();
            let mut last = begun;
            for _ in 0..READINGS {
                last = Instant::now();
            }
            last - begun
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2].as_nanos() as f64 / f64::from(READINGS)
}

/// Returns the difference of two consecutive readings of the clock: the median of many.
pub fn cost_of_the_clock() -> Duration {
    let mut costs: Vec<Duration> = (0..101)
        .map(|_| {
            let begun = Instant::now();
            begun.elapsed()
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

/// Returns the CPU time of the calling thread since its start.
pub fn cpu_of_this_thread() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves of 3 and 5 ns by a clock that counts in steps of 10 and costs 25 itself.
    #[test]
    fn a_clock_with_coarse_steps_distinguishes_short_laps_by_their_sums() {
        let reading = |at: u64| at / 10 * 10;
        let (mut short, mut long) = (Laps::default(), Laps::default());
        let mut now = 0;
        for _ in 0..10_000 {
            for (laps, ns) in [(&mut short, 3), (&mut long, 5)] {
                let begun = reading(now);
                now += ns + 25;
                laps.add(Duration::from_nanos(reading(now) - begun));
            }
        }
        let (short, long) = (short.ns(25.0), long.ns(25.0));
        let share = short / (short + long);
        assert!((share - 3.0 / 8.0).abs() < 0.01, "{share}");
        assert!(((short + long) / 80_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn no_sum_is_negative() {
        let mut laps = Laps::default();
        assert_eq!(laps.ns(20.0), 0.0);
        laps.add(Duration::from_nanos(15));
        assert_eq!(laps.ns(20.0), 0.0);
        assert_eq!(laps.ns(10.0), 5.0);
    }

    #[test]
    fn the_clock_costs_something() {
        let ns = ns_of_the_clock();
        assert!(ns.is_finite() && ns > 0.0, "{ns}");
    }
}
