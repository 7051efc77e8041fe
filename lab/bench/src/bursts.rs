//! The load of `bench locks`: threads that allocate pages one by one until their per-CPU lists have
//! run empty many times, free them all so that the lists overflow as often, and compute in between.
//!
//! Each thread does the same number of bursts, and the time is from the first thread's start to the
//! last one's end. How evenly they progressed is measured when the first one ends. A burst also has
//! one block of a higher order, like the stack of a new process, so that not every hold of the lock
//! is for a bulk.

use core::hint::black_box;
use core::time::Duration;
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use brickyard::sync::{AtomicU64, Ordering};
use brickyard::{AllocError, Frame, Mobility, Order, Request};
use brickyard_classics::LabZone;

use brickyard_run::Random;
use brickyard_run::together;

/// What every thread does.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many run in parallel.
    pub threads: usize,
    /// Bursts of a thread.
    pub bursts: u64,
    /// Single pages of a burst.
    pub pages: usize,
    /// The order of the one block that a burst allocates besides.
    pub order: Order,
    /// Multiplications between two bursts, on average.
    pub compute: usize,
    /// The random seed; the time of computing is random.
    pub seed: u64,
}

/// The default load, of one thread.
pub const USUAL: Load = Load {
    threads: 1,
    bursts: 1000,
    pages: 128,
    order: Order::new(1),
    compute: 2000,
    seed: 1,
};

/// The result of a run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Got {
    /// From the first thread's start to the last one's end.
    pub wall: Duration,
    /// Jain's index of the bursts that the threads had done when the first one ended: 1 if all had
    /// done the same, 1/n if only one had done any.
    pub fairness: f64,
}

/// The bursts that a thread has done, alone in two neighbouring cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// What the threads share.
#[derive(Debug)]
struct Course<'a> {
    load: &'a Load,
    start: Barrier,
    done: Vec<Done>,
    when_first: OnceLock<Vec<u64>>,
    spans: Mutex<Vec<(Instant, Instant)>>,
}

/// Runs the threads of the load on `zone`; each warms up with an eighth of its bursts.
pub(crate) fn run<Z: LabZone>(zone: &Z, load: &Load) -> Result<Got, AllocError> {
    let course = Course {
        load,
        start: Barrier::new(load.threads),
        done: (0..load.threads).map(|_| Done::default()).collect(),
        when_first: OnceLock::new(),
        spans: Mutex::new(Vec::with_capacity(load.threads)),
    };
    // Wait for all, also if the first one has failed.
    let ends = together(load.threads, |number| course.run(zone, number));
    ends.into_iter().collect::<Result<(), _>>()?;
    let spans = course.spans.into_inner();
    let spans = spans.unwrap_or_else(PoisonError::into_inner);
    let begun = spans.iter().map(|(begun, _)| *begun).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    let wall = begun.zip(ended).map(|(begun, ended)| ended - begun);
    Ok(Got {
        wall: wall.unwrap_or_default(),
        fairness: fairness(&course.when_first.into_inner().unwrap_or_default()),
    })
}

impl Course<'_> {
    /// Runs one thread's part. It waits at the barrier also if it fails.
    fn run<Z: LabZone>(&self, zone: &Z, number: usize) -> Result<(), AllocError> {
        let load = self.load;
        let seed = load.seed.wrapping_mul(load.threads as u64) + number as u64;
        let mut thread = Burster {
            zone,
            load,
            random: Random::new(seed),
            frames: Vec::with_capacity(load.pages),
        };
        let warm = (0..=load.bursts / 8).try_for_each(|_| thread.burst());
        self.start.wait();
        warm?;
        let begun = Instant::now();
        let done = &self.done[number].0;
        for burst in 1..=load.bursts {
            thread.burst()?;
            // Relaxed: the count publishes no other data.
            done.store(burst, Ordering::Relaxed);
        }
        let ended = Instant::now();
        self.when_first.get_or_init(|| self.so_far());
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push((begun, ended));
        Ok(())
    }

    fn so_far(&self) -> Vec<u64> {
        // Relaxed: as above.
        let counts = self.done.iter().map(|done| done.0.load(Ordering::Relaxed));
        counts.collect()
    }
}

/// A thread with the pages it has allocated.
struct Burster<'a, Z: LabZone> {
    zone: &'a Z,
    load: &'a Load,
    random: Random,
    frames: Vec<Frame>,
}

impl<Z: LabZone> Burster<'_, Z> {
    /// Allocates and frees everything once, and then computes.
    fn burst(&mut self) -> Result<(), AllocError> {
        let large = Request::new(self.load.order, Mobility::Unmovable);
        let block = self.zone.alloc(&large)?;
        let taken = self.take();
        let freed = self.zone.free(block, large.order);
        debug_assert_eq!(freed, Ok(()), "it was just allocated");
        for frame in self.frames.drain(..) {
            let freed = self.zone.free(frame, Order::ZERO);
            debug_assert_eq!(freed, Ok(()), "it was just allocated");
        }
        let longest = 2 * self.load.compute + 1;
        compute(self.random.below(longest));
        taken
    }

    fn take(&mut self) -> Result<(), AllocError> {
        let page = Request::page(Mobility::Movable);
        for _ in 0..self.load.pages {
            self.frames.push(self.zone.alloc(&page)?);
        }
        Ok(())
    }
}

/// Does multiplications that depend on each other: about a nanosecond each.
fn compute(steps: usize) {
    let mut x = 1_u64;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Returns Jain's index: the square of the sum, divided by n times the sum of the squares.
fn fairness(counts: &[u64]) -> f64 {
    let sum: f64 = counts.iter().map(|&count| count as f64).sum();
    let squares: f64 = counts.iter().map(|&count| (count as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (counts.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_all_alike_and_less_for_one_alone() {
        assert_eq!(fairness(&[7]), 1.0);
        assert_eq!(fairness(&[5, 5, 5, 5]), 1.0);
        assert_eq!(fairness(&[8, 0, 0, 0]), 0.25);
        assert_eq!(fairness(&[0, 0]), 1.0);
        // (1 + 3)^2 / (2 * (1 + 9)).
        assert_eq!(fairness(&[1, 3]), 0.8);
    }
}
