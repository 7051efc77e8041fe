//! The result of a run: its time, the waits for the lock, the bulk operations, the cache traffic.

use brickyard_designs::classics::bulk::{BulkReading, Moments};
use brickyard_machine::{CpuTimes, Profile, Traffic};

use super::run::RunOutput;
use crate::tasks::Counts;
use crate::timed::Found;

/// Waiting or holding times of the lock: one for each acquisition, exact, in cycles, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times(Vec<u64>);

impl Times {
    fn new(mut cycles: Vec<u64>) -> Self {
        cycles.sort_unstable();
        Self(cycles)
    }

    /// Returns how many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the least time that `percent` of all do not exceed; 0 if there are none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (self.0.len() as f64 * percent / 100.0).ceil() as usize;
        let place = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(place).copied().unwrap_or(0)
    }

    /// Returns the sum of all.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Bulk operations in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Bulks {
    /// Mean count of a bulk operation: pages out of the store, blocks into it (see
    /// [`BulkReading::count`]). A block that a request or a free moves past the lists is an
    /// operation of its own.
    pub count: f64,
    /// Standard deviation of the count.
    pub count_deviation: f64,
    /// Mean order of the blocks.
    pub order: f64,
    /// Standard deviation of the order.
    pub order_deviation: f64,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LocksRun {
    /// From the machine's beginning to the last task's end, in seconds of its own time.
    pub seconds: f64,
    /// The requests of all tasks.
    pub counts: Counts,
    /// Waiting times of the lock.
    pub waits: Times,
    /// Acquisitions that had to wait for another CPU.
    pub contended: usize,
    /// Holding times of the lock.
    pub holds: Times,
    /// How evenly the contended acquisitions waited: Jain's index of their waits, 1 if all waited
    /// equally long, 1/n if one of n had all the waiting. A queue makes it high, chance makes it
    /// low. 1 if none had to wait.
    pub fairness: f64,
    /// The part of all CPUs' busy time that was spent waiting for the lock.
    pub waiting_share: f64,
    /// The part of the run in which the lock was held.
    pub held_share: f64,
    /// The part of all CPUs' busy time that was spent waiting for the lock or holding it: what
    /// would be saved if everything under this lock took no time.
    pub locked_share: f64,
    /// Out of the store.
    pub taken: Bulks,
    /// Into the store.
    pub given: Bulks,
    /// The cache traffic of all CPUs.
    pub traffic: Traffic,
    /// Shared accesses simulated.
    pub accesses: u64,
}

impl LocksRun {
    pub(super) fn new(profile: &Profile, output: RunOutput) -> Self {
        let RunOutput {
            ended,
            counts,
            log,
            meters,
        } = output;
        let waited = |(cycles, found): &(u64, Found)| (*found == Found::Taken).then_some(*cycles);
        let contended: Vec<u64> = log.waits.iter().filter_map(waited).collect();
        let waits = Times::new(log.waits.iter().map(|&(cycles, _)| cycles).collect());
        let holds = Times::new(log.holds);
        let busy: u64 = ended.cpus.iter().map(busy).sum();
        Self {
            seconds: ended.cycles as f64 / (profile.megahertz as f64 * 1e6),
            counts,
            contended: contended.len(),
            fairness: jain(&contended),
            waiting_share: share(waits.sum(), busy),
            held_share: share(holds.sum(), ended.cycles),
            locked_share: share(waits.sum() + holds.sum(), busy),
            waits,
            holds,
            taken: bulks(meters.iter().map(|meter| &meter.taken)),
            given: bulks(meters.iter().map(|meter| &meter.given)),
            traffic: ended.all_traffic(),
            accesses: ended.accesses,
        }
    }
}

const fn busy(cpu: &CpuTimes) -> u64 {
    cpu.user + cpu.system + cpu.interrupts
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns Jain's index: the square of the sum over n times the sum of the squares.
fn jain(times: &[u64]) -> f64 {
    let sum: f64 = times.iter().map(|&time| time as f64).sum();
    let squares: f64 = times.iter().map(|&time| (time as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (times.len() as f64 * squares)
}

/// Combines the bulk operations of all zones.
fn bulks<'m>(readings: impl Iterator<Item = &'m BulkReading>) -> Bulks {
    let (mut count, mut order) = (Moments::default(), Moments::default());
    for reading in readings {
        add(&mut count, reading.count);
        add(&mut order, reading.order);
    }
    Bulks {
        count: count.mean(),
        count_deviation: count.deviation(),
        order: order.mean(),
        order_deviation: order.deviation(),
    }
}

fn add(to: &mut Moments, more: Moments) {
    to.n += more.n;
    to.sum += more.sum;
    to.squares += more.squares;
    to.max = to.max.max(more.max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact() {
        let times = Times::new((1..=1000).rev().collect());
        assert_eq!(times.percentile(50.0), 500);
        assert_eq!(times.percentile(99.0), 990);
        assert_eq!(times.percentile(99.9), 999);
        assert_eq!(times.percentile(100.0), 1000);
        assert_eq!(times.sum(), 500_500);
        assert_eq!(Times::new(vec![7]).percentile(50.0), 7);
        assert_eq!(Times::default().percentile(99.0), 0);
    }

    #[test]
    fn one_that_waits_for_all_is_not_fair() {
        assert_eq!(jain(&[]), 1.0);
        assert_eq!(jain(&[5, 5, 5]), 1.0);
        assert_eq!(jain(&[8, 0, 0, 0]), 0.25);
    }
}
