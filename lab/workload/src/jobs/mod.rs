//! Traces cut into jobs: the steps of the tasks of a simulated multiprocessor.
//!
//! A trace records one command's requests to the page allocator, on the host where it ran. A
//! simulation needs that command as a task: compute for a time, take a page, compute, give one
//! back, wait for the disk; in any number of instances, at the simulated machine's speed. [`cut()`]
//! converts traces into such tasks.
//!
//! | module | what it holds |
//! |---|---|
//! | `processes` | which events are the command's own |
//! | `trimmed` | a trace with only these events |
//! | `owners` | the frames that jobs hold |
//! | `cutting` | the steps of each job |
//! | [`suite`] | the workloads of the documents: which trace, how it is cut, how many instances |

mod cutting;
mod owners;
mod processes;
pub mod suite;
mod trimmed;

use brickyard::{Context, Mobility};

pub use cutting::{Cut, How, LIST_GAP_NS, MovableBlocks, Waits, cut};
pub use processes::{JobsError, Processes};
pub use suite::{Instances, UnknownWorkload, Workload};
pub use trimmed::own_events;

/// Pages in a list that an exiting process frees.
///
/// From 2.6 until 3.17 (2014) Linux released the pages that an exit had gathered in portions of
/// `PAGEVEC_SIZE`, which was 14; each portion was one list, its last page first
/// (`free_pages_and_swap_cache`, `release_pages`, `free_hot_cold_page_list`). Patch 20 of 2013
/// frees such a list under one hold of a magazine's lock.
pub const FREED_AT_ONCE: usize = 14;

/// Whether the caller of a request may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// It may sleep.
    MaySleep,
    /// It must not sleep: it holds a lock, or runs in an interrupt.
    Atomic,
}

impl From<Context> for Urgency {
    fn from(context: Context) -> Self {
        match context {
            Context::MaySleep => Self::MaySleep,
            Context::Atomic | Context::Interrupt => Self::Atomic,
        }
    }
}

/// A step of a job.
///
/// Pages have small numbers within the job, none of them used twice. A block of order `order` is
/// the 2^`order` pages from `page` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStep {
    /// Computing, in nanoseconds of the host that was recorded.
    Compute {
        /// The nanoseconds, at least 1.
        ns: u64,
    },
    /// A wait for the disk.
    Disk,
    /// A block is taken.
    Take {
        /// Its first page: one more than the last page of the block before.
        page: u32,
        /// Its order.
        order: u8,
        /// Its mobility.
        mobility: Mobility,
        /// Whether the caller may wait.
        urgent: Urgency,
    },
    /// A block is given back, or an aligned part of one. Single pages that follow each other
    /// without another step are lists of [`FREED_AT_ONCE`], the last perhaps shorter.
    Give {
        /// Its first page.
        page: u32,
        /// Its order.
        order: u8,
    },
}

impl JobStep {
    /// Whether a single page is given back.
    #[must_use]
    pub const fn is_single_give(&self) -> bool {
        matches!(self, Self::Give { order: 0, .. })
    }
}

/// A job: all steps of one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The command's name, or that of the process it was cut by and a number: `cc1 3`.
    pub name: String,
    /// The steps, in order.
    pub steps: Vec<JobStep>,
    /// The number of pages: page numbers are below this.
    pub pages: u32,
}

/// Totals of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Nanoseconds of computing, on the host that was recorded.
    pub compute_ns: u64,
    /// The number of waits for the disk.
    pub disk_waits: u64,
    /// The number of blocks taken.
    pub takes: u64,
    /// The number of blocks, or parts of blocks, given back.
    pub gives: u64,
    /// The number of pages taken.
    pub pages_taken: u64,
    /// The number of pages given back.
    pub pages_given: u64,
}

impl Totals {
    /// The number of pages that the job never gives back, mostly page cache.
    #[must_use]
    pub const fn pages_left(&self) -> u64 {
        self.pages_taken.saturating_sub(self.pages_given)
    }
}

impl Job {
    /// Returns the most pages that the job holds at a time. O(steps).
    #[must_use]
    pub fn most_held(&self) -> usize {
        let (mut held, mut most) = (0_usize, 0);
        for step in &self.steps {
            match *step {
                JobStep::Take { order, .. } => held += 1 << order,
                JobStep::Give { order, .. } => held = held.saturating_sub(1 << order),
                JobStep::Compute { .. } | JobStep::Disk => {}
            }
            most = most.max(held);
        }
        most
    }

    /// Counts the steps. O(steps).
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for step in &self.steps {
            match *step {
                JobStep::Compute { ns } => totals.compute_ns = totals.compute_ns.saturating_add(ns),
                JobStep::Disk => totals.disk_waits += 1,
                JobStep::Take { order, .. } => {
                    totals.takes += 1;
                    totals.pages_taken += 1 << order;
                }
                JobStep::Give { order, .. } => {
                    totals.gives += 1;
                    totals.pages_given += 1 << order;
                }
            }
        }
        totals
    }
}
