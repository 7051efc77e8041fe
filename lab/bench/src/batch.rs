//! The measured loop: a batch that is allocated and freed repeatedly, and the number of rounds that
//! gives a meaningful time.

use core::time::Duration;
use std::sync::Barrier;
use std::time::Instant;

use brickyard::Frame;

use super::schedule::{Api, Freed, Workload};
use super::subject::{Handle, Subject};
use brickyard_measure::clock::{Laps, ns_of_the_clock};
use brickyard_run::Random;
use brickyard_run::together;

/// The three numbers of a sample, in ns per page.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Sample {
    /// The allocation.
    pub alloc: f64,
    /// The free.
    pub free: f64,
    /// Both, in a loop without a clock inside.
    pub total: f64,
}

impl Sample {
    /// Returns the mean of some samples, or the first error.
    pub(crate) fn mean(of: Vec<Result<Self, Short>>) -> Result<Self, Short> {
        let n = of.len() as f64;
        let mut mean = Self::default();
        for one in of {
            let one = one?;
            mean.alloc += one.alloc / n;
            mean.free += one.free / n;
            mean.total += one.total / n;
        }
        Ok(mean)
    }
}

/// The error of fewer free blocks than a batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short;

/// The seed by which every batch is shuffled.
const SEED: u64 = 1;

/// Takes one sample of a workload: the mean over its threads, each of which allocates and frees
/// batches of its own.
pub(crate) fn sample_of_threads<S: Subject>(
    subject: &S,
    workload: &Workload,
    least: Duration,
) -> Result<Sample, Short> {
    let barrier = Barrier::new(workload.threads);
    let all = together(workload.threads, |_| {
        let mut batch = Batch::new(subject.handle(workload.order), workload);
        let one = batch.sample(least, &barrier);
        // No thread is measuring any more: a drain may access the caches of all.
        barrier.wait();
        batch.handle.settle();
        one
    });
    Sample::mean(all)
}

/// The two halves of a round, each with a part of its function's name.
pub(crate) const HALVES: [(&str, &str); 2] = [("alloc", "alloc_half"), ("free", "free_half")];

/// Runs so many rounds of a workload on this thread, for valgrind to count. The sample returned has
/// no times.
pub(crate) fn count<S: Subject>(
    subject: &S,
    workload: &Workload,
    rounds: usize,
) -> Result<Sample, Short> {
    let mut batch = Batch::new(subject.handle(workload.order), workload);
    for _ in 0..rounds {
        batch.alloc_half()?;
        batch.free_half();
    }
    Ok(Sample::default())
}

/// A batch that is allocated and freed again and again.
#[derive(Debug)]
pub(crate) struct Batch<H> {
    pub(crate) handle: H,
    pub(crate) frames: Vec<Frame>,
    api: Api,
    // The indices of the batch in the order in which they are freed; empty if that is the order of
    // the batch.
    places: Vec<u32>,
    // The batch in that order, where it is freed in one call.
    reordered: Vec<Frame>,
}

impl<H: Handle> Batch<H> {
    pub(crate) fn new(handle: H, workload: &Workload) -> Self {
        let mut places = Vec::new();
        if workload.freed == Freed::Random {
            places.extend(0..workload.batch as u32);
            Random::new(SEED).shuffle(&mut places);
        }
        Self {
            handle,
            frames: vec![Frame::new(0); workload.batch],
            api: workload.api,
            reordered: vec![Frame::new(0); places.len()],
            places,
        }
    }

    /// Allocates the batch. If memory runs out, frees what was allocated of it.
    #[inline(never)]
    pub(crate) fn alloc_half(&mut self) -> Result<(), Short> {
        match self.api {
            Api::Single => self.alloc_singly(),
            Api::Bulk => self.alloc_at_once(),
        }
    }

    /// Frees the batch.
    #[inline(never)]
    pub(crate) fn free_half(&mut self) {
        match self.api {
            Api::Single => self.free_singly(),
            Api::Bulk => self.free_at_once(),
        }
    }

    #[inline(always)]
    fn alloc_singly(&mut self) -> Result<(), Short> {
        for place in 0..self.frames.len() {
            match self.handle.alloc() {
                Some(block) => self.frames[place] = block,
                None => return self.give_back(place),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn alloc_at_once(&mut self) -> Result<(), Short> {
        let had = self.handle.alloc_bulk(&mut self.frames);
        if had < self.frames.len() {
            return self.give_back(had);
        }
        Ok(())
    }

    #[cold]
    fn give_back(&mut self, had: usize) -> Result<(), Short> {
        for &frame in &self.frames[..had] {
            self.handle.free(frame);
        }
        Err(Short)
    }

    #[inline(always)]
    fn free_singly(&mut self) {
        if self.places.is_empty() {
            for &frame in &self.frames {
                self.handle.free(frame);
            }
        } else {
            for &place in &self.places {
                self.handle.free(self.frames[place as usize]);
            }
        }
    }

    #[inline(always)]
    fn free_at_once(&mut self) {
        if self.places.is_empty() {
            self.handle.free_bulk(&self.frames);
        } else {
            for (to, &place) in self.reordered.iter_mut().zip(&self.places) {
                *to = self.frames[place as usize];
            }
            self.handle.free_bulk(&self.reordered);
        }
    }

    /// Takes one thread's sample. Every thread waits at every barrier, also one that has failed.
    fn sample(&mut self, least: Duration, barrier: &Barrier) -> Result<Sample, Short> {
        let rounds = self.rounds_in(least);
        barrier.wait();
        let total = rounds.and_then(|rounds| Ok((rounds, self.time_whole(rounds)?)));
        barrier.wait();
        let (rounds, total) = total?;
        let (alloc, free) = self.time_halves(rounds, least * 2)?;
        let pages = rounds as f64 * self.frames.len() as f64;
        let total = total.as_nanos() as f64 / pages;
        let share = if alloc + free > 0.0 {
            alloc / (alloc + free)
        } else {
            0.5
        };
        Ok(Sample {
            alloc: total * share,
            free: total * (1.0 - share),
            total,
        })
    }

    /// Returns how many rounds take the time `least`. Measuring this also warms up.
    fn rounds_in(&mut self, least: Duration) -> Result<u64, Short> {
        self.time_whole(1)?;
        // Twice as many each time, until the overhead of a timing is negligible.
        let (mut rounds, mut spent) = (1, self.time_whole(1)?);
        while spent < least / 4 {
            rounds *= 2;
            spent = self.time_whole(rounds)?;
        }
        let per_round = spent.as_nanos() as f64 / rounds as f64;
        Ok(((least.as_nanos() as f64 / per_round) as u64).max(1))
    }

    /// Returns the time of so many rounds, with no clock inside.
    #[inline(never)]
    fn time_whole(&mut self, rounds: u64) -> Result<Duration, Short> {
        let begun = Instant::now();
        match self.api {
            Api::Single => {
                for _ in 0..rounds {
                    self.alloc_singly()?;
                    self.free_singly();
                }
            }
            Api::Bulk => {
                for _ in 0..rounds {
                    self.alloc_at_once()?;
                    self.free_at_once();
                }
            }
        }
        Ok(begun.elapsed())
    }

    /// Returns the times of the allocations and of the frees of a round, in ns, minus the cost of
    /// the clock. Runs so many rounds, or as many as `most` allows.
    fn time_halves(&mut self, rounds: u64, most: Duration) -> Result<(f64, f64), Short> {
        let mut halves = Halves::default();
        let clock = ns_of_the_clock();
        let first = Instant::now();
        for _ in 0..rounds {
            let begun = Instant::now();
            self.alloc_half()?;
            let between = Instant::now();
            self.free_half();
            let done = Instant::now();
            halves.add(between - begun, done - between, clock);
            if done - first > most {
                break;
            }
        }
        Ok(halves.typical(clock))
    }
}

/// The times of allocations and of frees, in turn.
///
/// They are summed in groups, so that the clock's steps average out, and the median of the groups
/// is used: if the host did other work for a millisecond, that would be longer than all the small
/// batches of a sample, and on one side only.
#[derive(Debug, Default)]
struct Halves {
    group: (Laps, Laps),
    allocs: Vec<f64>,
    frees: Vec<f64>,
}

impl Halves {
    /// Rounds of a group.
    const GROUP: u64 = 64;

    /// Longer halves are far above the clock's steps, and form a group each.
    const LONG: Duration = Duration::from_micros(10);

    #[inline(always)]
    fn add(&mut self, alloc: Duration, free: Duration, clock: f64) {
        self.group.0.add(alloc);
        self.group.1.add(free);
        if self.group.0.count() == Self::GROUP || alloc + free > Self::LONG {
            self.close(clock);
        }
    }

    #[inline(never)]
    fn close(&mut self, clock: f64) {
        let (alloc, free) = core::mem::take(&mut self.group);
        self.allocs.push(alloc.mean(clock));
        self.frees.push(free.mean(clock));
    }

    /// Returns the times of an allocation and a free of a batch, in ns.
    fn typical(mut self, clock: f64) -> (f64, f64) {
        if self.group.0.count() > 0 {
            self.close(clock);
        }
        (median(&mut self.allocs), median(&mut self.frees))
    }
}

/// Returns the median, or 0 if it is negative.
fn median(all: &mut [f64]) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).map_or(0.0, |median| median.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves of 3 and 5 ns by a clock that counts in steps of 10 and costs 25 itself, on a host
    /// that sometimes does other work.
    #[test]
    fn coarse_steps_and_interrupts_do_not_decide_the_share() {
        let mut halves = Halves::default();
        let reading = |at: u64| at / 10 * 10;
        let mut now = 0;
        for round in 0..10_000_u64 {
            let mut lap = |ns: u64| {
                let begun = reading(now);
                now += ns + 25;
                Duration::from_nanos(reading(now) - begun)
            };
            let interrupt = if round % 2000 == 7 { 1_000_000 } else { 0 };
            let (alloc, free) = (lap(3), lap(5 + interrupt));
            halves.add(alloc, free, 25.0);
        }
        let (alloc, free) = halves.typical(25.0);
        assert!((alloc - 3.0).abs() < 0.5, "{alloc}");
        assert!((free - 5.0).abs() < 0.5, "{free}");
    }

    #[test]
    fn a_single_long_round_is_a_group() {
        let mut halves = Halves::default();
        for us in [300, 200, 900] {
            halves.add(
                Duration::from_micros(us),
                Duration::from_micros(us / 2),
                0.0,
            );
        }
        assert_eq!(halves.typical(0.0), (300_000.0, 150_000.0));
        assert_eq!(Halves::default().typical(20.0), (0.0, 0.0));
    }
}
