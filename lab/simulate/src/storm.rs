//! The storm: all CPUs allocate and free pages as fast as they can, and do nothing else.
//!
//! Each CPU allocates a burst of pages, one by one, and frees them one by one in random order, or
//! has another CPU free them ([`Shape`]). It first does so for a while that is not measured, until
//! caches are warm and lists have reached their usual lengths; then all wait for each other, and
//! each allocates and frees [`Storm::pages`] more.
//!
//! Keeping track of pages and passing them from one CPU to another take no simulated time: only the
//! allocator's words are in the machine's memory. So this is the heaviest load possible; a real
//! program works between two requests.
//!
//! The machine counts cache traffic from its beginning to its end. A second machine with the same
//! seed stops where the measured part begins, and its counts are subtracted.

use core::cell::RefCell;

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Affinity, Ended, Failure, Traffic, current};
use brickyard_run::{Dice, named};

use crate::barrier::Barrier;
use crate::build::{Blueprint, Job, SharedPages};
use crate::platform::Simulated;
use crate::ring::{BURSTS_SENT_MOST, Ring};
use crate::setting::{RunError, Setting};
use crate::timed::{Found, LockLog, timed};

named! {
    /// The size of the bursts, and which CPU frees them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Shape {
        /// 1 to 24 pages: what a per-CPU cache of any configuration holds, so that hardly any
        /// request goes past it.
        Hot => "hot",
        /// 1 to 2000 pages: more than any per-CPU cache holds, so that each burst empties it
        /// several times and overfills it when it is freed.
        Deep => "deep",
        /// 1 to 64 pages, which the next CPU frees: a ring of CPUs, in which no page is freed into
        /// the cache that it came from.
        Remote => "remote",
    }
}

impl Shape {
    /// Returns the pages of the largest burst.
    #[must_use]
    pub const fn burst_most(self) -> usize {
        match self {
            Self::Hot => 24,
            Self::Deep => 2000,
            Self::Remote => 64,
        }
    }
}

/// Pages per CPU that may be in caches that no other CPU can use: more than the longest list of any
/// configuration.
const CACHED_MOST: usize = 2048;

/// A storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storm {
    /// Its bursts.
    pub shape: Shape,
    /// Pages that each CPU allocates in the measured part. The warm-up has half as many.
    pub pages: usize,
}

/// The latency of requests, in cycles, over all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

impl Latency {
    /// The percentiles of these latencies. O(n log n).
    #[must_use]
    pub fn of(mut cycles: Vec<u64>) -> Self {
        cycles.sort_unstable();
        let at = |thousandths: usize| {
            let rank = (cycles.len() * thousandths).div_ceil(1000);
            cycles.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: at(1000),
        }
    }
}

/// The result of a storm.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StormRun {
    /// Pages allocated and freed.
    pub pages: u64,
    /// Cycles from when the first CPU began to when the last one ended.
    pub cycles: u64,
    /// Pages allocated and freed in a second.
    pub pages_per_second: f64,
    /// Allocating one page.
    pub alloc: Latency,
    /// Freeing one page.
    pub free: Latency,
    /// The cache traffic of all CPUs.
    pub traffic: Traffic,
    /// Accesses to shared memory.
    pub accesses: u64,
    /// How often any lock was acquired.
    pub locked: u64,
    /// Cycles that all CPUs waited for locks that other CPUs held.
    pub lock_waits: u64,
}

impl StormRun {
    /// Returns the cache lines per page that a CPU had to request: moved to it, or made exclusive.
    #[must_use]
    pub fn lines_per_page(&self) -> f64 {
        (self.traffic.moved() + self.traffic.upgrades) as f64 / self.pages.max(1) as f64
    }

    /// Returns the share of all CPUs' time, in percent, in which they waited for a cache line that
    /// was busy with another request.
    #[must_use]
    pub fn line_waits_percent(&self, cpus: usize) -> f64 {
        self.percent(cpus, self.traffic.waited_cycles)
    }

    /// Returns the share of all CPUs' time, in percent, in which they waited for locks that others
    /// held: zones' and magazines'. The wait for the lock's own cache line is in both shares.
    #[must_use]
    pub fn lock_waits_percent(&self, cpus: usize) -> f64 {
        self.percent(cpus, self.lock_waits)
    }

    fn percent(&self, cpus: usize, cycles: u64) -> f64 {
        let all = self.cycles.max(1) as f64 * cpus as f64;
        cycles as f64 * 100.0 / all
    }
}

impl Storm {
    /// Returns the frames that a machine needs for it.
    #[must_use]
    pub const fn frames_needed(&self, cpus: usize) -> usize {
        let held = match self.shape {
            Shape::Remote => self.shape.burst_most() * (BURSTS_SENT_MOST + 2),
            Shape::Hot | Shape::Deep => self.shape.burst_most(),
        };
        cpus.saturating_mul(held + CACHED_MOST)
    }

    /// Runs it. Takes about 0.2 us of the host's time for each shared access, of which a page has
    /// some ten.
    ///
    /// # Errors
    /// [`RunError`] for an impossible machine, and where a run fails.
    pub fn run(&self, setting: &Setting) -> Result<StormRun, RunError> {
        self.run_on(setting, &setting.blueprint())
    }

    /// Does the same on an allocator that is built otherwise.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub fn run_on(&self, setting: &Setting, blueprint: &Blueprint) -> Result<StormRun, RunError> {
        setting.check(self.frames_needed(setting.cpus))?;
        let once = |part| {
            let run = StormJob {
                storm: *self,
                setting: *setting,
                part,
            };
            let output = blueprint.run(run);
            output.map_err(|failure| setting.failed(failure))
        };
        let before = once(Part::WarmUp)?;
        let all = once(Part::All)?;
        // Both runs are the same up to there, so their first acquisitions are the same.
        let waits = &all.locks.waits[before.locks.waits.len()..];
        let contended = waits.iter().filter(|(_, found)| *found == Found::Taken);
        let cycles = all.ended_at - all.began;
        let pages = all.alloc.len() as u64;
        Ok(StormRun {
            pages,
            cycles,
            pages_per_second: pages as f64 / setting.seconds(cycles),
            alloc: Latency::of(all.alloc),
            free: Latency::of(all.free),
            traffic: all.ended.all_traffic() - before.ended.all_traffic(),
            accesses: all.ended.accesses - before.ended.accesses,
            locked: waits.len() as u64,
            lock_waits: contended.map(|(cycles, _)| cycles).sum(),
        })
    }
}

/// How far a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Until the measured part would begin.
    WarmUp,
    /// To the end.
    All,
}

/// A run of one machine.
struct StormJob {
    storm: Storm,
    setting: Setting,
    part: Part,
}

/// The output of such a run. Times and latencies are of the measured part, the rest of the whole
/// run.
struct StormOutput {
    ended: Ended,
    began: u64,
    ended_at: u64,
    alloc: Vec<u64>,
    free: Vec<u64>,
    locks: LockLog,
}

impl Job for StormJob {
    type Output = Result<StormOutput, Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let cpus = self.setting.cpus;
        let (ring, barrier) = (Ring::new(cpus), Barrier::new(cpus));
        let logs = RefCell::new(Vec::new());
        let mut machine = SharedPages::machine(self.setting.machine(), shared);
        for cpu in 0..cpus {
            let (nodes, ring, barrier, logs) = (&nodes, &ring, &barrier, &logs);
            let (storm, part, seed) = (self.storm, self.part, self.setting.seed);
            machine.task(format!("storms on {cpu}"), Affinity::Cpu(cpu), move || {
                let mut worker = Worker {
                    nodes,
                    ring,
                    cpu,
                    shape: storm.shape,
                    dice: Dice::new(seed.wrapping_mul(1000).wrapping_add(cpu as u64)),
                    log: Log::default(),
                    rounds: 0,
                };
                worker.bursts(storm.pages / 2);
                barrier.wait(|| ());
                if part == Part::All {
                    worker.log = Log {
                        began: current::now(),
                        ..Log::default()
                    };
                    worker.bursts(storm.pages);
                    worker.log.ended = current::now();
                    logs.borrow_mut().push(worker.log);
                }
            });
        }
        let (ended, locks) = timed(|| machine.run());
        let ended = ended?;
        let logs = logs.into_inner();
        let all = |of: fn(&Log) -> &Vec<u64>| logs.iter().flat_map(of).copied().collect();
        Ok(StormOutput {
            ended,
            began: logs.iter().map(|log| log.began).min().unwrap_or(0),
            ended_at: logs.iter().map(|log| log.ended).max().unwrap_or(0),
            alloc: all(|log| &log.alloc),
            free: all(|log| &log.free),
            locks,
        })
    }
}

/// What a CPU records, in cycles.
#[derive(Debug, Default)]
struct Log {
    began: u64,
    ended: u64,
    alloc: Vec<u64>,
    free: Vec<u64>,
}

/// The task of a CPU.
struct Worker<'a, 'z, Z: LabZone> {
    nodes: &'a Nodes<'z, Z>,
    ring: &'a Ring<Frame>,
    cpu: usize,
    shape: Shape,
    dice: Dice,
    log: Log,
    /// How many rounds of bursts it has sent.
    rounds: usize,
}

impl<Z: LabZone> Worker<'_, '_, Z> {
    /// Allocates bursts of so many pages in all; returns once this CPU has freed all pages that it
    /// is to free.
    fn bursts(&mut self, pages: usize) {
        let mut left = pages;
        while left > 0 {
            let burst = 1 + self.dice.below(self.shape.burst_most() as u64) as usize;
            let burst = burst.min(left);
            left -= burst;
            let mut taken = self.take(burst);
            self.shuffle(&mut taken);
            match self.shape {
                Shape::Hot | Shape::Deep => self.free(&taken),
                Shape::Remote => self.send(taken),
            }
        }
        if self.shape == Shape::Remote {
            self.free_until_the_sender_is_done();
        }
    }

    fn take(&mut self, pages: usize) -> Vec<Frame> {
        let request = Request::page(Mobility::Movable);
        let mut taken = Vec::with_capacity(pages);
        for _ in 0..pages {
            let before = current::now();
            match self.nodes.alloc(0, &request) {
                Ok(frame) => taken.push(frame),
                Err(why) => current::fail(format!("no page: {why}")),
            }
            self.log.alloc.push(current::now() - before);
        }
        taken
    }

    fn free(&mut self, frames: &[Frame]) {
        for &frame in frames {
            let before = current::now();
            if let Err(why) = self.nodes.free(frame, Order::ZERO) {
                current::fail(format!(
                    "the free of page {} was refused: {why}",
                    frame.number()
                ));
            }
            self.log.free.push(current::now() - before);
        }
    }

    fn shuffle(&mut self, frames: &mut [Frame]) {
        for place in (1..frames.len()).rev() {
            let other = self.dice.below(place as u64 + 1) as usize;
            frames.swap(place, other);
        }
    }

    /// Sends a burst to the next CPU, and frees what the previous one has sent.
    fn send(&mut self, burst: Vec<Frame>) {
        let next = self.ring.after(self.cpu);
        while self.ring.is_full(next) {
            if !self.free_what_was_sent() {
                let own = self.cpu;
                self.ring
                    .wait(own, || !self.ring.is_full(next) || self.ring.has_mail(own));
            }
        }
        self.ring.send(next, burst);
        self.free_what_was_sent();
    }

    /// Frees all bursts that have arrived; returns false if there was none.
    fn free_what_was_sent(&mut self) -> bool {
        let mut any = false;
        while let Some(burst) = self.ring.receive(self.cpu) {
            self.free(&burst);
            any = true;
        }
        any
    }

    fn free_until_the_sender_is_done(&mut self) {
        let (ring, own) = (self.ring, self.cpu);
        ring.finish(own);
        self.rounds += 1;
        let rounds = self.rounds;
        loop {
            self.free_what_was_sent();
            if ring.is_over(own, rounds) {
                break;
            }
            ring.wait(own, || ring.has_mail(own) || ring.is_over(own, rounds));
        }
    }
}
