//! Traces cut into jobs: what the tasks of a simulated multiprocessor do, one step after another.
//!
//! A trace tells what one command asked of the page allocator, on the host where it ran. An
//! experiment wants that command as a task: compute so long, take a page, compute, give one back,
//! wait for the disk; as often as there are instances of it, at a speed of its own. [`cut()`] makes
//! the one into the other.
//!
//! | module | what it tells |
//! |---|---|
//! | `family` | which events are the command's own |
//! | `trimmed` | a trace with these alone |
//! | `held` | which frames the jobs hold |
//! | `cutting` | the steps of each job |
//! | [`suite`] | the workloads of the documents: which trace, how it is cut, how many instances |

mod cutting;
mod family;
mod held;
pub mod suite;
mod trimmed;

use brickyard::{Context, Mobility};

pub use cutting::{Cut, How, Waits, cut};
pub use family::{JobsError, Whose};
pub use suite::{Instances, UnknownWorkload, Workload};
pub use trimmed::own_events;

/// May who asks for a page wait for it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// It may sleep meanwhile.
    MaySleep,
    /// It may not: it holds a lock, or runs in an interrupt.
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
/// Pages have small numbers of the job's own, none of them used twice. A block of `order` is the
/// pages from `page` on, 2^`order` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Computing, in nanoseconds of the host that was recorded.
    Compute {
        /// How long; more than 0.
        ns: u64,
    },
    /// A wait for the disk.
    Disk,
    /// A block is taken.
    Take {
        /// Its first page: one more than the last page of the block before.
        page: u32,
        /// Its size.
        order: u8,
        /// What can be done with it later.
        mobility: Mobility,
        /// May who asks wait?
        urgent: Urgency,
    },
    /// A block is given back, or an aligned part of one.
    Give {
        /// Its first page.
        page: u32,
        /// Its size.
        order: u8,
    },
}

/// A job: what one task does from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The command's name, or that of the process that it was cut by, and its number: `cc1 3`.
    pub name: String,
    /// What it does, in order.
    pub steps: Vec<Step>,
    /// Page numbers are below this.
    pub pages: u32,
}

/// A job, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Nanoseconds of computing, on the host that was recorded.
    pub compute_ns: u64,
    /// Waits for the disk.
    pub disk_waits: u64,
    /// Blocks taken.
    pub takes: u64,
    /// Blocks or parts of them given back.
    pub gives: u64,
    /// Pages taken.
    pub pages_taken: u64,
    /// Pages given back.
    pub pages_given: u64,
}

impl Totals {
    /// Pages that the job never gives back: page cache, mostly.
    #[must_use]
    pub const fn pages_left(&self) -> u64 {
        self.pages_taken.saturating_sub(self.pages_given)
    }
}

impl Job {
    /// The most pages that the job holds at a time. O(steps).
    #[must_use]
    pub fn most_held(&self) -> usize {
        let (mut held, mut most) = (0_usize, 0);
        for step in &self.steps {
            match *step {
                Step::Take { order, .. } => held += 1 << order,
                Step::Give { order, .. } => held = held.saturating_sub(1 << order),
                Step::Compute { .. } | Step::Disk => {}
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
                Step::Compute { ns } => totals.compute_ns = totals.compute_ns.saturating_add(ns),
                Step::Disk => totals.disk_waits += 1,
                Step::Take { order, .. } => {
                    totals.takes += 1;
                    totals.pages_taken += 1 << order;
                }
                Step::Give { order, .. } => {
                    totals.gives += 1;
                    totals.pages_given += 1 << order;
                }
            }
        }
        totals
    }
}
