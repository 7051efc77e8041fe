//! Cutting a trace into jobs.
//!
//! - All of the command's processes are merged by time, as if one CPU ran them: processes that wait
//!   for each other are one stream anyway.
//! - Time between two of the command's events is computing, up to a bound; longer times are one
//!   wait for the disk, however long: the trace does not record the disk's part of it.
//! - A page belongs to the job that took it. It is given back when the trace frees it, in whatever
//!   task: the kernel frees page tables and closed files later, in any task that happens to run. If
//!   that job has ended by then, the page is given back at the job's end. Frees of pages that no
//!   job took are dropped.
//! - Pages that one process frees one right after the other are one list
//!   ([`FREED_AT_ONCE`](super::FREED_AT_ONCE)): the time between them comes before the first. The
//!   traces have no event for a list, so this is derived: frees of single pages by one process on
//!   one CPU, with none of the command's other events between them, at most [`LIST_GAP_NS`] apart.
//! - If a page is taken while a job holds it, the event of its free was lost; the page is given
//!   back first.
//! - Requests that failed on the host are left out.
//! - Today's kernel takes files, and the memory of processes, in blocks of several frames where it
//!   can. Kernels of the documents' time took each such frame by itself. So movable blocks can be
//!   [split](MovableBlocks): the frames are taken one after another, and given back in the same
//!   way.

use brickyard::{Mobility, Order, Request};
use brickyard_trace::{Event, Trace, What};

use super::owners::{Block, FrameOwners, Part};
use super::processes::{JobsError, Origin, ProcessTree, Processes, comm};
use super::{FREED_AT_ONCE, Job, JobStep};
use crate::roles::Reader;

/// The longest time between two frees of one list. The recorder's event takes up to half a
/// microsecond itself; after a longer time the process has done something else. Our assumption.
pub const LIST_GAP_NS: u64 = 2_000;

/// Where jobs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// One job: the whole command.
    Whole,
    /// A new job whenever one of the command's processes executes this program. Events before the
    /// first one belong to the first job. These processes should run one after another, as with
    /// `make -j1`.
    ByProcess(&'static str),
}

/// Which gaps between events are waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waits {
    /// None: the files that the command reads are in memory.
    Never,
    /// Gaps of more than so many nanoseconds.
    Above {
        /// The nanoseconds.
        ns: u64,
    },
}

impl Waits {
    /// Above 4 ms: slightly less than an access to a rotating disk.
    pub const USUAL: Self = Self::Above { ns: 4_000_000 };
}

/// In which blocks movable memory is taken: files, and the memory of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MovableBlocks {
    /// Of the size that was recorded: today's kernel takes large folios.
    AsRecorded,
    /// In single frames, as Linux 2.6 did (hugetlbfs apart, which no trace here uses).
    Single,
}

/// How a trace is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct How {
    /// Where jobs begin.
    pub cut: Cut,
    /// Which gaps are waits for the disk.
    pub waits: Waits,
    /// The processes whose events are used.
    pub processes: Processes,
    /// In which blocks movable memory is taken.
    pub movable: MovableBlocks,
}

/// Cuts `trace` into jobs, in order of time. 100,000 events take about 20 ms.
///
/// # Errors
/// [`JobsError`] where the command's processes cannot be identified, or no process has the name to
/// cut by.
pub fn cut(trace: &Trace, how: &How) -> Result<Vec<Job>, JobsError> {
    let mut tree = ProcessTree::new(trace, how.processes)?;
    let origins = tree.origins_of(trace)?;
    let (by, name) = match how.cut {
        Cut::Whole => (None, name_of(trace)),
        Cut::ByProcess(name) => (Some(name), name.to_owned()),
    };
    let mut cutter = Cutter {
        reader: Reader::new(&trace.header.flags),
        waits: how.waits,
        movable: how.movable,
        jobs: vec![Job::default()],
        owners: FrameOwners::default(),
        last: None,
    };
    let mut begun = 0;
    for (event, origin) in trace.events.iter().zip(origins) {
        if origin != Origin::Other {
            cutter.advance_to(event);
        }
        if origin == Origin::Exec && by == Some(trace.name(event.name)) {
            begun += 1;
            if begun > 1 {
                cutter.jobs.push(Job::default());
            }
        }
        cutter.follow(event, origin)?;
    }
    match by {
        Some(name) if begun == 0 => Err(JobsError::NoProcess(name.to_owned())),
        _ => Ok(named(cutter.jobs, how.cut, &name)),
    }
}

/// Whether an event frees the next page of the list that the last event freed a page of.
fn goes_on(last: &Event, event: &Event) -> bool {
    let frees = |event: &Event| event.what == What::Free && event.order == Order::ZERO;
    let near = event.time.saturating_sub(last.time) <= LIST_GAP_NS;
    near && frees(last) && frees(event) && (last.pid, last.cpu) == (event.pid, event.cpu)
}

/// Returns the name of a trace's single job.
fn name_of(trace: &Trace) -> String {
    comm(&trace.header.command).unwrap_or_else(|| "trace".to_owned())
}

/// Names the jobs.
fn named(mut jobs: Vec<Job>, cut: Cut, name: &str) -> Vec<Job> {
    for (job, number) in jobs.iter_mut().zip(1_u32..) {
        job.name = match cut {
            Cut::Whole => name.to_owned(),
            Cut::ByProcess(_) => format!("{name} {number}"),
        };
    }
    jobs
}

/// The jobs so far; the last is the current one.
#[derive(Debug)]
struct Cutter {
    reader: Reader,
    waits: Waits,
    movable: MovableBlocks,
    jobs: Vec<Job>,
    owners: FrameOwners,
    /// The command's last event.
    last: Option<Event>,
}

impl Cutter {
    /// Adds the time from the command's last event to this one, as computing or as a wait.
    fn advance_to(&mut self, event: &Event) {
        let last = self.last.replace(*event).unwrap_or(*event);
        let ns = event.time.saturating_sub(last.time);
        let current = self.jobs.len() - 1;
        let steps = &mut self.jobs[current].steps;
        let freed = steps.iter().rev().take_while(|step| step.is_single_give());
        let freed = freed.take(FREED_AT_ONCE).count();
        let of_list = goes_on(&last, event) && (1..FREED_AT_ONCE).contains(&freed);
        let place = steps.len() - if of_list { freed } else { 0 };
        let before = place.checked_sub(1).map(|before| &mut steps[before]);
        match (self.waits, before) {
            (Waits::Above { ns: most }, _) if ns > most => steps.push(JobStep::Disk),
            (_, Some(JobStep::Compute { ns: before })) => *before = before.saturating_add(ns),
            _ if ns > 0 => steps.insert(place, JobStep::Compute { ns }),
            _ => {}
        }
    }

    fn follow(&mut self, event: &Event, origin: Origin) -> Result<(), JobsError> {
        let current = self.jobs.len() - 1;
        let taken = match event.what {
            What::Alloc { mobility, flags } if origin != Origin::Other => {
                Some(self.reader.request(event.order, mobility, flags))
            }
            _ => None,
        };
        let page = self.jobs[current].pages;
        // The order of the blocks that the request is taken in, and given back in at most.
        let order = |request: &Request| match (self.movable, request.mobility) {
            (MovableBlocks::Single, Mobility::Movable) => Order::ZERO,
            _ => request.order,
        };
        let taken = taken.map(|request| (order(&request), request));
        let block = taken.map(|(order, _)| Block {
            job: current,
            page,
            order_most: order.get(),
        });
        let jobs = &mut self.jobs;
        self.owners.follow(event, block, |part| {
            let Part { job, page, order } = part;
            jobs[job].steps.push(JobStep::Give { page, order });
        });
        if let Some((order, request)) = taken {
            let job = &mut self.jobs[current];
            let pages = page.checked_add(request.order.frames() as u32);
            job.pages = pages.ok_or(JobsError::TooManyPages)?;
            let blocks = (page..job.pages).step_by(order.frames());
            job.steps.extend(blocks.map(|page| JobStep::Take {
                page,
                order: order.get(),
                mobility: request.mobility,
                urgent: request.context.into(),
            }));
        }
        Ok(())
    }
}
