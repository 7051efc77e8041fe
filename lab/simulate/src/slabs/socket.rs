//! `socketallocbench`, as Dumazet describes it: each task repeats `close(socket())`, a million
//! times in his runs.
//!
//! A socket has four objects ([`SOCKET`]). They are allocated one after the other and written, the
//! first because the kernel zeroes it, the others because their users set their fields; then they
//! are freed in the opposite order. What the kernel does beside this for a socket takes
//! [`REST_CYCLES`] of the CPU's own work. Tasks share nothing but the allocator: what they share in
//! the kernel, above all counters, is in those cycles.
//!
//! How the file is freed decides about SLAB. Until 2.6.28 a file was freed by read-copy-update: it
//! waits until all CPUs have passed a point where they hold no reference, and comes back with many
//! others ([`Files::Deferred`]). A CPU looks for such files at each timer tick; how many come back
//! together is an assumption: those of one tick, at 1000 ticks a second, at 250, or at 100, the
//! settings that Linux had. With Lameter's patch of December 2008 a file is freed at once, and only
//! its slab waits ([`Files::AtOnce`]). Dumazet's figures for SLQB are with that patch. What he says
//! of SLAB is without it, as he wrote in the same thread on the same day.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;

use brickyard_machine::{Affinity, Failure, Traffic, current};
use brickyard_run::named;
use brickyard_slab::Slabs;

use super::design::{Objects, Room, SOCKET, Simulates, SlabJob, Taken, machine};
use super::{SlabFailed, SlabSetting};
use crate::SharedPages;
use crate::barrier::Barrier;

/// What a socket takes beside the allocator, in cycles at 3 GHz: of the 1.300 us that a socket took
/// alone, the profile has 10.83 % in `kmem_cache_alloc` and 4.49 % in `kmem_cache_free`.
pub const REST_CYCLES: u64 = 3303;

/// Sockets that a task opens in a millisecond, alone: 1.300 us each.
const SOCKETS_PER_MS: usize = 770;

/// The number of the file in [`SOCKET`].
const FILE: usize = 2;

/// Pages of a machine, for each CPU.
const PAGES: usize = 1536;

named! {
    /// How files are freed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Files {
        /// At once.
        AtOnce => "at-once",
        /// Those of a millisecond at a time, oldest first.
        Deferred => "deferred",
        /// Those of four milliseconds.
        DeferredLong => "deferred-4-ms",
        /// Those of ten milliseconds.
        DeferredLongest => "deferred-10-ms",
    }
}

impl Files {
    /// Returns true if those of several milliseconds are freed together, which takes as many times
    /// as long to simulate.
    #[must_use]
    pub const fn is_long(self) -> bool {
        matches!(self, Self::DeferredLong | Self::DeferredLongest)
    }

    /// Returns how many files are freed at a time.
    #[must_use]
    pub const fn batch(self) -> usize {
        match self {
            Self::AtOnce => 1,
            Self::Deferred => SOCKETS_PER_MS,
            Self::DeferredLong => 4 * SOCKETS_PER_MS,
            Self::DeferredLongest => 10 * SOCKETS_PER_MS,
        }
    }
}

/// The benchmark.
#[derive(Debug, Clone, Copy)]
pub struct SocketBench {
    /// Sockets that each task opens and closes while they are counted.
    pub sockets: usize,
    /// How files are freed.
    pub files: Files,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SocketRun {
    /// Nanoseconds from when the first task began to when the last one ended, per socket of a task:
    /// what `time` shows for a billion.
    pub socket: f64,
    /// Nanoseconds inside the allocator, per allocation and free.
    pub pair: f64,
    /// Cache lines that a CPU had to request, per allocation and free: moved to it, or made
    /// exclusive.
    pub lines: f64,
}

impl SocketBench {
    /// Runs it, with a task on each CPU.
    ///
    /// # Errors
    /// [`SlabFailed`].
    pub fn run(&self, setting: &SlabSetting) -> Result<SocketRun, SlabFailed> {
        let room = Room {
            pages: PAGES * setting.cpus,
            nodes: 1,
            cpus: setting.cpus,
        };
        let run = SocketJob {
            bench: *self,
            setting: *setting,
        };
        let output = setting.design.with(room, run);
        let (traffic, logs) = output.map_err(|failure| setting.failed(failure))?;
        let began = logs.iter().map(|log| log.began).min().unwrap_or(0);
        let last = logs.iter().map(|log| log.ended).max().unwrap_or(0);
        let inside: u64 = logs.iter().map(|log| log.inside).sum();
        let pairs = (self.sockets * SOCKET.len() * setting.cpus) as f64;
        Ok(SocketRun {
            socket: setting.ns(last - began) / self.sockets as f64,
            pair: setting.ns(inside) / pairs,
            lines: (traffic.moved() + traffic.upgrades) as f64 / pairs,
        })
    }

    /// Returns the sockets of the warm-up: until as many files wait as ever do, and once more.
    const fn warm_up(&self) -> usize {
        100 + 2 * (self.files.batch() - 1)
    }
}

struct SocketJob {
    bench: SocketBench,
    setting: SlabSetting,
}

/// What a task records, in cycles.
#[derive(Debug, Clone, Copy, Default)]
struct Log {
    began: u64,
    ended: u64,
    inside: u64,
}

impl SlabJob for SocketJob {
    /// The traffic of the counted part, and each task's times.
    type Output = Result<(Traffic, Vec<Log>), Failure>;

    fn run<'m, D: Simulates<'m>>(
        self,
        slabs: &Slabs<'m, D>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let caches = SOCKET.map(|size| Objects::of(slabs, size, self.setting.purpose));
        let cpus = self.setting.cpus;
        let barrier = Barrier::new(cpus);
        let logs = RefCell::new(Vec::new());
        let before = Cell::new(Traffic::default());
        let mut machine = machine(self.setting.machine(), shared);
        for cpu in 0..cpus {
            let (caches, barrier, logs, before) = (&caches, &barrier, &logs, &before);
            let bench = self.bench;
            machine.task(format!("sockets on {cpu}"), Affinity::Cpu(cpu), move || {
                let mut task = Task {
                    caches,
                    files: bench.files,
                    waiting: VecDeque::new(),
                    inside: 0,
                };
                task.sockets(bench.warm_up());
                barrier.wait(|| before.set(current::traffic_of_all()));
                let began = current::now();
                task.inside = 0;
                task.sockets(bench.sockets);
                logs.borrow_mut().push(Log {
                    began,
                    ended: current::now(),
                    inside: task.inside,
                });
            });
        }
        let ended = machine.run()?;
        let traffic = ended.all_traffic() - before.get();
        Ok((traffic, logs.into_inner()))
    }
}

/// A task.
struct Task<'a, 's, 'm, D: Simulates<'m>> {
    caches: &'a [Objects<'s, 'm, D>; 4],
    files: Files,
    /// Files that wait to be freed, the oldest first.
    waiting: VecDeque<Taken>,
    /// Cycles inside the allocator.
    inside: u64,
}

impl<'m, D: Simulates<'m>> Task<'_, '_, 'm, D> {
    fn sockets(&mut self, many: usize) {
        for _ in 0..many {
            let objects = [0, 1, 2, 3].map(|which| {
                let cache = &self.caches[which];
                let object = self.timed(|| cache.take());
                object.fill();
                object
            });
            current::work(REST_CYCLES);
            for (which, object) in objects.into_iter().enumerate().rev() {
                if which == FILE && self.files != Files::AtOnce {
                    self.defer(object);
                } else {
                    let cache = &self.caches[which];
                    self.timed(|| cache.give(object));
                }
            }
        }
    }

    fn defer(&mut self, file: Taken) {
        self.waiting.push_back(file);
        if self.waiting.len() >= self.files.batch() {
            let cache = &self.caches[FILE];
            while let Some(file) = self.waiting.pop_front() {
                self.timed(|| cache.give(file));
            }
        }
    }

    fn timed<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let began = current::now();
        let done = work();
        self.inside += current::now() - began;
        done
    }
}
