//! The page fault test: how many faults a second a machine serves by the number of its CPUs.
//!
//! Each CPU faults its share of the memory in, page by page: what the trap, the page table and the
//! clearing of the page take by the profile, all of it time of the kernel, and one allocation of a
//! movable page. Then each process exits: all its pages go back in one call of `free_bulk`, as an
//! exit gives back what it gathers in batches. The faults and the exits are timed apart, each from
//! the first CPU's begin to the last one's end, and by what all CPUs spent together. All of it is
//! done once before it is counted.
//!
//! Base pages only. What the kernel locks beside the allocator, the page table's lock first of all,
//! is not there: each process has its own.

use core::cell::RefCell;

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Request};
use brickyard_classics::LabZone;
use brickyard_machine::{Affinity, Ended, Failure, here};

use crate::barrier::Barrier;
use crate::build::{Job, SharedPages};
use crate::platform::Simulated;
use crate::setting::{RunError, Setting};

/// Pages a CPU that may lie in caches that nobody else reaches: more than the longest list of any
/// configuration.
const CACHED_MOST: usize = 2048;

/// The test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pft {
    /// Pages that all CPUs fault in together.
    pub pages: usize,
}

/// What one half of it took, in seconds of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Half {
    /// From the first CPU's begin to the last one's end.
    pub wall: f64,
    /// What all CPUs spent.
    pub cpu: f64,
}

/// What the test came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// Pages faulted in, and given back.
    pub pages: u64,
    /// The faults.
    pub faults: Half,
    /// The exits.
    pub frees: Half,
}

impl Measured {
    /// Faults for each second of CPU time.
    #[must_use]
    pub fn faults_per_cpu_second(&self) -> f64 {
        self.pages as f64 / self.faults.cpu
    }

    /// Faults a second.
    #[must_use]
    pub fn faults_per_second(&self) -> f64 {
        self.pages as f64 / self.faults.wall
    }

    /// Pages given back for each second of CPU time.
    #[must_use]
    pub fn frees_per_cpu_second(&self) -> f64 {
        self.pages as f64 / self.frees.cpu
    }
}

impl Pft {
    /// Frames that a machine needs for it.
    #[must_use]
    pub const fn frames_needed(&self, cpus: usize) -> usize {
        self.pages.saturating_add(cpus.saturating_mul(CACHED_MOST))
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`RunError`] for a machine that there cannot be, and where a run fails.
    pub fn run(&self, setting: &Setting) -> Result<Measured, RunError> {
        setting.check(self.frames_needed(setting.cpus))?;
        let processes = Processes {
            pft: *self,
            setting: *setting,
        };
        let (_, logs) = setting
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
        Ok(Measured {
            pages: self.pages as u64,
            faults: half(|log| log.faults),
            frees: half(|log| log.frees),
        })
    }
}

/// The processes of one machine, one a CPU.
struct Processes {
    pft: Pft,
    setting: Setting,
}

/// From when to when, in cycles.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    began: u64,
    ended: u64,
}

/// One process.
#[derive(Debug, Clone, Copy, Default)]
struct Log {
    faults: Span,
    frees: Span,
}

impl Job for Processes {
    type Output = Result<(Ended, Vec<Log>), Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        pieces: &[SharedPages],
    ) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let cpus = self.setting.cpus;
        let barrier = Barrier::new(cpus);
        let logs = RefCell::new(Vec::new());
        let mut machine = SharedPages::machine(self.setting.machine(), pieces);
        for cpu in 0..cpus {
            let (nodes, barrier, logs) = (&nodes, &barrier, &logs);
            let all = self.pft.pages;
            let share = all / cpus + usize::from(cpu < all % cpus);
            let trap = self.setting.profile.page_fault_cycles;
            machine.task(format!("faults on {cpu}"), Affinity::Cpu(cpu), move || {
                once(nodes, barrier, share, trap);
                let log = once(nodes, barrier, share, trap);
                logs.borrow_mut().push(log);
            });
        }
        let ended = machine.run()?;
        Ok((ended, logs.into_inner()))
    }
}

/// One process from its first fault to its end.
fn once<Z: LabZone>(nodes: &Nodes<'_, Z>, barrier: &Barrier, pages: usize, trap: u64) -> Log {
    let mut held: Vec<Frame> = Vec::with_capacity(pages);
    barrier.wait(|| ());
    let faults = timed(|| {
        for _ in 0..pages {
            here::work(trap);
            match nodes.alloc(0, &Request::page(Mobility::Movable)) {
                Ok(frame) => held.push(frame),
                Err(why) => here::fail(format!("no page: {why}")),
            }
        }
    });
    barrier.wait(|| ());
    let frees = timed(|| {
        if let Err(why) = nodes.free_bulk(&held) {
            here::fail(format!("a page is refused: {why}"));
        }
    });
    Log { faults, frees }
}

fn timed(work: impl FnOnce()) -> Span {
    let began = here::now();
    work();
    Span {
        began,
        ended: here::now(),
    }
}
