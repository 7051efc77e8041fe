//! The experiment of 2007 on a simulated multiprocessor: how long is the zone lock held for a bulk
//! of pages, what kind of lock is it, and where does it lie?
//!
//! A [`Cell`] is one run: a workload on so many CPUs, under one lock and policy ([`Column`]), with
//! one seed. Tasks take and give back the pages of recorded commands ([`tasks`](crate::tasks));
//! between that they compute. The zone is that of Linux 2.6 (`vanilla`): a buddy store behind
//! per-CPU lists.
//!
//! **What is in the model**: each access of the allocator to shared memory, with caches and
//! coherence; masked interrupts; time slices, ticks, and switches; the disk. The allocator counts
//! its bulks itself, in two or three lines beside the lock, as kernels count events: that is in the
//! times too. What is noted of waiting and holding is not, see [`Timed`].
//!
//! **What is not**: other locks of the kernel, of which the workloads have many more than this one;
//! what computing does to the caches, so that the allocator's lines stay where they are until
//! another CPU takes them; the time that memory itself needs when many CPUs ask at once. Zeroing a
//! page, the fault around it, and the system call are computing time: the trace has them between
//! its events.
//!
//! | file | what it tells |
//! |---|---|
//! | `load.rs` | what the tasks do: [`Load`], [`Crew`] |
//! | `column.rs` | a lock and how long it is held: [`Column`] |
//! | `crew.rs` | a crew at work on a machine |
//! | `measured.rs` | what came of a run: [`Measured`], [`Times`] |
//! | [`published`] | the tables of 2007 and 2008, and whether a difference goes the same way here |

mod column;
mod crew;
mod load;
mod measured;
pub mod published;

use brickyard::FrameRange;
use brickyard::sync::{Exclusive, OwnLine, TestAndSetLock, TicketLock, Timed};
pub use brickyard_classics::front::ListSizes;
use brickyard_classics::{Configuration, MachinePlan};
use brickyard_machine::{Failure, Profile};

use crate::build::Blueprint;

pub use column::{Column, UnknownColumn};
use crew::AtWork;
pub use load::{Crew, Duty, Load, Part};
pub use measured::{Bulks, Measured, Times};

/// Bytes of a frame.
const FRAME_BYTES: u64 = 4096;

/// What a CPU's lists keep, where nothing else is said.
///
/// The zone that user pages of the paper's machine of 1 GB came from is HighMem with its 128 MB:
/// 32768 frames, of which a 1024th is 32 and a quarter of that 8, brought to a power of two less
/// one: 7. The means of 7.00 to 7.03 pages a bulk that the paper prints confirm it. Other machines
/// have one large zone, and the formula is the same.
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
pub struct Plan {
    /// The machine.
    pub profile: &'static Profile,
    /// The allocator.
    pub configuration: Configuration,
    /// What a CPU's lists keep.
    pub lists: ListSizes,
    /// The zone's memory, in bytes; more where the tasks of a run hold more at once.
    pub memory_bytes: u64,
}

/// The most memory of a zone where nothing is said: its metadata is real, and more changes nothing.
const MEMORY_MOST: u64 = 8 << 30;

/// What all runs on a machine have in common where nothing is said.
#[must_use]
pub fn usual_plan(profile: &'static Profile, configuration: Configuration) -> Plan {
    Plan {
        profile,
        configuration,
        lists: lists_of(profile),
        memory_bytes: profile.memory_bytes.min(MEMORY_MOST),
    }
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'l> {
    /// What is done.
    pub load: &'l Load,
    /// CPUs, 1 to 256.
    pub cpus: usize,
    /// Lock and policy.
    pub column: Column,
    /// Where chance comes from. The same seed under another column is the same work, with the same
    /// misses delayed as long as the runs do not part.
    pub seed: u64,
}

impl Plan {
    /// Frames of the zone for this load: those of the plan, or a quarter more than its tasks can
    /// hold at once.
    #[must_use]
    pub fn frames(&self, load: &Load, cpus: usize) -> usize {
        let held = load.pages_most(cpus);
        let needed = (held + held / 4).next_multiple_of(1024);
        let frames = needed.max(self.memory_bytes / FRAME_BYTES);
        usize::try_from(frames).unwrap_or(usize::MAX)
    }

    /// Runs one cell. Some ten nanoseconds of the host's time for each shared access, and 24 bytes
    /// for each hold of the lock.
    ///
    /// # Errors
    /// [`Failure`] where the run does not come to its end: a bug of the allocator.
    pub fn run(&self, cell: &Cell<'_>) -> Result<Measured, Failure> {
        let span = FrameRange::new(0, self.frames(cell.load, cell.cpus));
        let mut plan = MachinePlan::new(span, cell.cpus);
        plan.whole.lists = self.lists;
        plan.whole.tuning.bulk = cell.column.policy();
        let blueprint = Blueprint::new(self.configuration, plan);
        let crew = cell.load.crew(cell.cpus, cell.seed);
        let work = AtWork {
            plan: self,
            cell,
            crew: &crew,
        };
        let done = match cell.column {
            Column::Hold | Column::Release => {
                blueprint.with::<Exclusive, Timed<TestAndSetLock>, _>(work)
            }
            Column::Ticket | Column::TicketYield => {
                blueprint.with::<Exclusive, Timed<TicketLock>, _>(work)
            }
            Column::TicketYieldOwnLine => {
                blueprint.with::<Exclusive, Timed<OwnLine<TicketLock>>, _>(work)
            }
        };
        Ok(Measured::new(self.profile, done?))
    }
}
