//! The experiment of 2007 on a simulated multiprocessor: how long the zone lock is held in a bulk
//! operation, what kind of lock it is, and whether it has its own cache line.
//!
//! A [`LocksCase`] is a run: a workload on so many CPUs, under one lock and policy ([`Column`]),
//! with one seed. Tasks allocate and free the pages of recorded commands ([`tasks`](crate::tasks)),
//! and compute in between. The zone is that of Linux 2.6 (`vanilla`): a buddy store behind per-CPU
//! lists.
//!
//! **What is in the model**: each access of the allocator to shared memory, with caches and
//! coherence; masked interrupts; time slices, ticks, and switches; the disk. The allocator counts
//! its bulk operations itself, in two or three cache lines besides the lock's, as kernels count
//! events: the times include that. They do not include the recording of waits and holds, see
//! `Timed`.
//!
//! Computing evicts the allocator's lines from the caches, as a measured program would
//! ([`footprint`]).
//!
//! **What is not**: other locks of the kernel, of which the workloads use many more than this one;
//! the limits of memory bandwidth. Zeroing a page, the fault around it, and the system call are
//! computing time: they come between the events of the trace.
//!
//! | file | what it holds |
//! |---|---|
//! | `load.rs` | what the tasks do: [`Load`], [`TaskSet`] |
//! | `column.rs` | a lock and how long it is held: [`Column`] |
//! | [`footprint`] | how soon computing evicts a line |
//! | `run.rs` | one run on a machine |
//! | `measured.rs` | the result of a run: [`LocksRun`], [`Times`] |

mod column;
pub mod footprint;
mod load;
mod measured;
mod run;

use brickyard::FrameRange;
use brickyard::sync::Exclusive;
pub use brickyard_designs::classics::front::ListSizes;
use brickyard_designs::classics::{Configuration, MachinePlan, OwnLine};
use brickyard_machine::{Failure, Profile};

use crate::build::{Blueprint, MachineLock};

pub use column::Column;
pub use load::{Load, Part, TaskPlan, TaskSet};
pub use measured::{Bulks, LocksRun, Times};
use run::CellRun;

/// Bytes of a frame.
const FRAME_BYTES: u64 = 4096;

/// Returns the default sizes of a CPU's lists.
///
/// On the paper's machine of 1 GB, user pages came from HighMem with its 128 MB: 32768 frames, of
/// which a 1024th is 32 and a quarter of that 8, rounded to a power of two less one: 7. The means
/// of 7.00 to 7.03 pages per bulk operation that the paper prints confirm it. Other machines have
/// one large zone, and the formula is the same.
#[must_use]
pub fn lists_of(profile: &Profile) -> ListSizes {
    let frames = match profile.name {
        "metatm-2007" => 32_768,
        _ => profile.memory_bytes / FRAME_BYTES,
    };
    ListSizes::for_zone(usize::try_from(frames).unwrap_or(usize::MAX))
}

/// What all runs of an experiment have in common.
#[derive(Debug, Clone, Copy)]
pub struct LocksPlan {
    /// The machine.
    pub profile: &'static Profile,
    /// The allocator.
    pub configuration: Configuration,
    /// The sizes of a CPU's lists.
    pub lists: ListSizes,
    /// The zone's memory, in bytes; a run whose tasks hold more at once has more.
    pub memory_bytes: u64,
    /// What computing does to the caches.
    pub computing: Computing,
}

/// What computing does to the allocator's lines in a CPU's caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Computing {
    /// It evicts them, as soon as [`footprint`] says.
    EvictsLines,
    /// Nothing: they stay until another CPU takes them. No real machine does that; the comparison
    /// shows what eviction costs.
    KeepsLines,
}

/// The most memory that a zone has by default: its metadata takes host memory, and more memory
/// changes no result.
const MEMORY_MOST: u64 = 8 << 30;

/// Returns the default plan for a machine.
#[must_use]
pub fn usual_plan(profile: &'static Profile, configuration: Configuration) -> LocksPlan {
    LocksPlan {
        profile,
        configuration,
        lists: lists_of(profile),
        memory_bytes: profile.memory_bytes.min(MEMORY_MOST),
        computing: Computing::EvictsLines,
    }
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct LocksCase<'l> {
    /// The workload.
    pub load: &'l Load,
    /// CPUs, 1 to 256.
    pub cpus: usize,
    /// Lock and policy.
    pub column: Column,
    /// The seed of all random numbers. The same seed under another column gives the same work, with
    /// the same misses delayed until the runs diverge.
    pub seed: u64,
}

impl LocksPlan {
    /// Returns the frames of the zone for this load: those of the plan, or if that is more, a
    /// quarter more than its tasks can hold at once.
    #[must_use]
    pub fn frames(&self, load: &Load, cpus: usize) -> usize {
        let held = load.pages_most(cpus);
        let needed = (held + held / 4).next_multiple_of(1024);
        let frames = needed.max(self.memory_bytes / FRAME_BYTES);
        usize::try_from(frames).unwrap_or(usize::MAX)
    }

    /// Runs one cell. Costs some ten nanoseconds of the host's time for each shared access, and 24
    /// bytes for each hold of the lock.
    ///
    /// # Errors
    /// [`Failure`] where the run does not complete: a bug in the allocator.
    pub fn run(&self, cell: &LocksCase<'_>) -> Result<LocksRun, Failure> {
        let span = FrameRange::new(0, self.frames(cell.load, cell.cpus));
        let mut plan = MachinePlan::new(span, cell.cpus);
        plan.whole.lists = self.lists;
        plan.whole.tuning.bulk = cell.column.policy();
        let mut blueprint = Blueprint::new(self.configuration, plan);
        blueprint.locks = cell.column.lock();
        let tasks = cell.load.tasks(cell.cpus, cell.seed);
        let run = CellRun {
            plan: self,
            cell,
            tasks: &tasks,
        };
        let output = match cell.column {
            Column::TicketYieldOwnLine => blueprint.with::<Exclusive, OwnLine<MachineLock>, _>(run),
            _ => blueprint.run(run),
        };
        Ok(LocksRun::new(self.profile, output?))
    }
}
