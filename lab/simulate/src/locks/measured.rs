//! What came of a run: its time, the waits for the lock, the bulks, the cache lines.

use brickyard::sync::Found;
use brickyard_classics::bulk::{BulkReading, Moments};
use brickyard_machine::{CpuTimes, Profile, Traffic};

use super::crew::Done;
use crate::tasks::Counts;

/// Times at the lock: exact, one for each acquisition, ascending. In cycles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times(Vec<u64>);

impl Times {
    fn new(mut cycles: Vec<u64>) -> Self {
        cycles.sort_unstable();
        Self(cycles)
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The least time that `percent` of all do not exceed; 0 of none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (self.0.len() as f64 * percent / 100.0).ceil() as usize;
        let place = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(place).copied().unwrap_or(0)
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Bulks in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bulks {
    /// Pages a bulk; also one for each single block that a request or a free moves past the lists.
    pub count: f64,
    /// Its deviation.
    pub count_deviation: f64,
    /// Their order.
    pub order: f64,
    /// Its deviation.
    pub order_deviation: f64,
}

/// What came of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// From the machine's begin to the last task's end, in seconds of its own time.
    pub seconds: f64,
    /// The requests of all tasks.
    pub counts: Counts,
    /// Waiting for the lock.
    pub waits: Times,
    /// Acquisitions that had to wait for somebody else.
    pub contended: usize,
    /// Holding it.
    pub holds: Times,
    /// How alike those waited that had to: Jain's index of their waits, 1 if all waited as long,
    /// 1/n if one of n had all the waiting. A queue makes it high, luck makes it low. 1 if nobody
    /// had to wait.
    pub fairness: f64,
    /// The part of all CPUs' busy time that was spent waiting for the lock.
    pub waiting_share: f64,
    /// The part of the run in which somebody had the lock.
    pub held_share: f64,
    /// Out of the store.
    pub taken: Bulks,
    /// Into the store.
    pub given: Bulks,
    /// What all CPUs' accesses met.
    pub traffic: Traffic,
    /// Shared accesses simulated.
    pub accesses: u64,
}

impl Measured {
    pub(super) fn new(profile: &Profile, done: Done) -> Self {
        let Done {
            ended,
            counts,
            log,
            meters,
        } = done;
        let had_to = |(cycles, found): &(u64, Found)| (*found == Found::Taken).then_some(*cycles);
        let contended: Vec<u64> = log.waits.iter().filter_map(had_to).collect();
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

/// Jain's index: the square of the sum over n times the sum of the squares.
fn jain(times: &[u64]) -> f64 {
    let sum: f64 = times.iter().map(|&time| time as f64).sum();
    let squares: f64 = times.iter().map(|&time| (time as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (times.len() as f64 * squares)
}

/// The bulks of all zones together.
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
