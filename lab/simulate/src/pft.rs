//! The page fault test: how many faults a second a machine serves, by its number of CPUs.
//!
//! Each CPU faults in its share of the memory, page by page: the profile's time for the trap and
//! the page table, one allocation of a movable page, the writes to the frame's record, and the
//! clearing of the page, all of it system time. The last two go through the machine's caches
//! (`frames.rs`). Then each process exits and frees its pages in lists of
//! [`FREED_AT_ONCE`]. The faults and the exits are timed separately, both from when the first CPU
//! begins to when the last one ends, and as the sum over all CPUs. The whole test runs once as a
//! warm-up before it is measured.
//!
//! Base pages only. The kernel's locks outside the allocator, above all the page table's lock, are
//! not modelled: each process has its own page table.

use core::cell::{Cell, RefCell};

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Request};
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Affinity, Failure, Traffic, current};
use brickyard_workload::jobs::FREED_AT_ONCE;

use crate::barrier::Barrier;
use crate::build::{Job, SharedPages};
use crate::frames::FrameMemory;
use crate::platform::Simulated;
use crate::setting::{RunError, Setting};

/// Pages per CPU that may be in caches that no other CPU can use: more than the longest list of any
/// configuration.
const CACHED_MOST: usize = 2048;

/// The test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pft {
    /// Pages that all CPUs fault in together.
    pub pages: usize,
}

/// The duration of one half of the test, in seconds of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Half {
    /// From when the first CPU began to when the last one ended.
    pub wall: f64,
    /// The sum over all CPUs.
    pub cpu: f64,
}

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct FaultFigures {
    /// Pages faulted in, and freed.
    pub pages: u64,
    /// The faults.
    pub faults: Half,
    /// The exits.
    pub frees: Half,
    /// The cache traffic of all CPUs during the faults.
    pub traffic: Traffic,
}

impl FaultFigures {
    /// Returns the faults per second of CPU time.
    #[must_use]
    pub fn faults_per_cpu_second(&self) -> f64 {
        self.pages as f64 / self.faults.cpu
    }

    /// Returns the faults per second.
    #[must_use]
    pub fn faults_per_second(&self) -> f64 {
        self.pages as f64 / self.faults.wall
    }

    /// Returns the cache lines per fault that a CPU took from other CPUs' caches, or whose copies
    /// there it ended ([`Traffic::bounced`]). 0 on one CPU.
    #[must_use]
    pub fn lines_per_fault(&self) -> f64 {
        self.traffic.bounced as f64 / self.pages as f64
    }

    /// Returns the pages freed per second of CPU time.
    #[must_use]
    pub fn frees_per_cpu_second(&self) -> f64 {
        self.pages as f64 / self.frees.cpu
    }
}

impl Pft {
    /// Returns the frames that a machine needs for it.
    #[must_use]
    pub const fn frames_needed(&self, cpus: usize) -> usize {
        self.pages.saturating_add(cpus.saturating_mul(CACHED_MOST))
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`RunError`] for an impossible machine, and where a run fails.
    pub fn run(&self, setting: &Setting) -> Result<FaultFigures, RunError> {
        setting.check(self.frames_needed(setting.cpus))?;
        let processes = Processes {
            pft: *self,
            setting: *setting,
        };
        let (logs, traffic) = setting
            .blueprint()
            .run(processes)
            .map_err(|failure| setting.failed(failure))?;
        let half = |of: fn(&Log) -> Span| {
            let spans = || logs.iter().map(of);
            let began = spans().map(|span| span.began).min().unwrap_or(0);
            let ended = spans().map(|span| span.ended).max().unwrap_or(0);
            let cpu = spans().map(|span| span.ended - span.began).sum();
            Half {
                wall: setting.seconds(ended - began),
                cpu: setting.seconds(cpu),
            }
        };
        Ok(FaultFigures {
            pages: self.pages as u64,
            faults: half(|log| log.faults),
            frees: half(|log| log.frees),
            traffic,
        })
    }
}

/// The processes of one machine, one per CPU.
struct Processes {
    pft: Pft,
    setting: Setting,
}

/// A span of time of one CPU, in cycles.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    began: u64,
    ended: u64,
}

/// The times of one process.
#[derive(Debug, Clone, Copy, Default)]
struct Log {
    faults: Span,
    frees: Span,
}

impl Job for Processes {
    type Output = Result<(Vec<Log>, Traffic), Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let cpus = self.setting.cpus;
        let barrier = Barrier::new(cpus);
        let logs = RefCell::new(Vec::new());
        let traffic = Cell::new(Traffic::default());
        let mut machine = SharedPages::machine(self.setting.machine(), shared);
        let memory = FrameMemory::new(&mut machine, self.setting.frames, node);
        for cpu in 0..cpus {
            let (nodes, barrier, logs, traffic) = (&nodes, &barrier, &logs, &traffic);
            let all = self.pft.pages;
            let share = all / cpus + usize::from(cpu < all % cpus);
            let trap = self.setting.profile.page_fault_cycles;
            machine.task(format!("faults on {cpu}"), Affinity::Cpu(cpu), move || {
                let process = Process {
                    nodes,
                    memory,
                    pages: share,
                    trap,
                };
                process.run(barrier, traffic);
                let log = process.run(barrier, traffic);
                logs.borrow_mut().push(log);
            });
        }
        machine.run()?;
        Ok((logs.into_inner(), traffic.get()))
    }
}

/// A process.
struct Process<'a, 'z, Z: LabZone> {
    nodes: &'a Nodes<'z, Z>,
    memory: FrameMemory,
    pages: usize,
    /// Cycles of a fault besides what is charged for the page.
    trap: u64,
}

impl<Z: LabZone> Process<'_, '_, Z> {
    /// Runs it from its first fault to its end. Sets `traffic` to that of all CPUs during the
    /// faults.
    fn run(&self, barrier: &Barrier, traffic: &Cell<Traffic>) -> Log {
        let mut held: Vec<Frame> = Vec::with_capacity(self.pages);
        barrier.wait(|| traffic.set(current::traffic_of_all()));
        let faults = timed(|| {
            for _ in 0..self.pages {
                current::work(self.trap);
                match self.nodes.alloc(0, &Request::page(Mobility::Movable)) {
                    Ok(frame) => {
                        self.memory.map(frame);
                        held.push(frame);
                    }
                    Err(why) => current::fail(format!("no page: {why}")),
                }
            }
        });
        barrier.wait(|| traffic.set(current::traffic_of_all() - traffic.get()));
        let frees = timed(|| {
            held.chunks_mut(FREED_AT_ONCE)
                .for_each(|list| self.free(list))
        });
        Log { faults, frees }
    }

    fn free(&self, list: &mut [Frame]) {
        list.iter().for_each(|&frame| self.memory.unmap(frame));
        list.reverse();
        if let Err(why) = self.nodes.free_bulk(list) {
            current::fail(format!("the free of a page was refused: {why}"));
        }
    }
}

fn timed(work: impl FnOnce()) -> Span {
    let began = current::now();
    work();
    Span {
        began,
        ended: current::now(),
    }
}
