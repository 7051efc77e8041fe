//! The measured loop: a batch that is allocated and freed again and again, and how often that must be for its time to mean something.

use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use brickyard::Frame;

use super::clock::cost_of_the_clock;
use super::random::Random;
use super::schedule::{Api, Freed, Workload};
use super::subject::{Handle, Subject};

/// The three numbers of a sample, in ns per page.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) alloc: f64,
    pub(crate) free: f64,
    pub(crate) total: f64,
}

impl Sample {
    /// The mean of some, or the first reason why there is none.
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

/// There were not as many free blocks as a batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short;

/// Every batch is shuffled in the same way.
const SEED: u64 = 1;

/// One sample of a workload: the mean over its threads, each of which allocates and frees batches of its own.
pub(crate) fn sample_of_threads<S: Subject>(
    subject: &S,
    workload: &Workload,
    least: Duration,
) -> Result<Sample, Short> {
    let barrier = Barrier::new(workload.threads);
    let all = Mutex::new(Vec::new());
    let one_thread = || {
        let mut batch = Batch::new(subject.handle(workload.order), workload);
        let one = batch.sample(least, &barrier);
        // Nobody measures any more: a drain may reach into the caches of all.
        barrier.wait();
        batch.handle.settle();
        all.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workload.threads)
            .map(|_| scope.spawn(one_thread))
            .collect();
        // The end of the scope may come a little before their numbers, and with them their caches, are free for the next sample's.
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    Sample::mean(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// A batch that is allocated and freed again and again.
#[derive(Debug)]
pub(crate) struct Batch<H> {
    pub(crate) handle: H,
    pub(crate) frames: Vec<Frame>,
    api: Api,
    // The places of the batch in the order in which they are freed; none if that is the order of the batch.
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

    /// Allocates the batch. What was had of one that is too large is given back.
    #[inline(never)]
    pub(crate) fn alloc(&mut self) -> Result<(), Short> {
        match self.api {
            Api::Single => self.alloc_singly(),
            Api::Bulk => self.alloc_at_once(),
        }
    }

    /// Frees the batch.
    #[inline(never)]
    pub(crate) fn free(&mut self) {
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

    /// One thread's sample. Every thread comes to every barrier, also one that has failed.
    fn sample(&mut self, least: Duration, barrier: &Barrier) -> Result<Sample, Short> {
        let rounds = self.rounds_in(least);
        barrier.wait();
        let total = rounds.and_then(|rounds| Ok((rounds, self.time_whole(rounds)?)));
        barrier.wait();
        let (rounds, total) = total?;
        let (alloc, free) = self.time_halves(rounds, least * 2)?;
        let pages = rounds as f64 * self.frames.len() as f64;
        let total = total.as_nanos() as f64 / pages;
        let (alloc, free) = (alloc.as_nanos() as f64, free.as_nanos() as f64);
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

    /// How many rounds fill the time; finding out also warms up.
    fn rounds_in(&mut self, least: Duration) -> Result<u64, Short> {
        self.time_whole(1)?;
        // Twice as many each time, so that what else a timing costs does not count.
        let (mut rounds, mut spent) = (1, self.time_whole(1)?);
        while spent < least / 4 {
            rounds *= 2;
            spent = self.time_whole(rounds)?;
        }
        let per_round = spent.as_nanos() as f64 / rounds as f64;
        Ok(((least.as_nanos() as f64 / per_round) as u64).max(1))
    }

    /// The time of so many rounds, with no clock inside.
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

    /// The times of the allocations and of the frees of so many rounds, or of as many as the time allows, less what the clock costs.
    fn time_halves(&mut self, rounds: u64, most: Duration) -> Result<(Duration, Duration), Short> {
        let (mut alloc, mut free) = (Duration::ZERO, Duration::ZERO);
        let clock = cost_of_the_clock();
        let first = Instant::now();
        for _ in 0..rounds {
            let begun = Instant::now();
            self.alloc()?;
            let between = Instant::now();
            self.free();
            let done = Instant::now();
            alloc += (between - begun).saturating_sub(clock);
            free += (done - between).saturating_sub(clock);
            if done - first > most {
                break;
            }
        }
        Ok((alloc, free))
    }
}
