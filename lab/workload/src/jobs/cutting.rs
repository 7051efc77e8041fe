//! From a trace to jobs.
//!
//! - All of the command's processes are merged by time, as if one CPU ran them: what one process
//!   does while another waits for it is one stream in any case.
//! - Time between two of the command's events is computing, up to a bound; more is one wait for the
//!   disk, however long: the trace does not tell the disk's part of it.
//! - A page belongs to the job that took it. It is given back when the trace frees it, whoever does
//!   that: the kernel frees page tables and closed files later, in whatever task happens to run. If
//!   that job is over then, the page is given back at its end. What is freed and was not taken by a
//!   job is dropped.
//! - A page that is taken while a job has it has been freed by an event that was lost, and is given
//!   back first.
//! - Requests that failed on the host are left out.

use brickyard_trace::{Event, Trace, What};

use super::family::{Family, JobsError, Kin, Whose, comm};
use super::held::{Block, Held, Part};
use super::{Job, Step};
use crate::roles::Reader;

/// Where a job begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// One job: the whole command.
    Whole,
    /// A new job wherever one of the command's processes becomes this program. What comes before
    /// the first belongs to the first. These processes should run one after another, as by
    /// `make -j1`.
    ByProcess(&'static str),
}

/// Which time is spent waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waits {
    /// None: what the command reads is in memory.
    Never,
    /// More than so many nanoseconds between two events is a wait for the disk.
    Above {
        /// How many.
        ns: u64,
    },
}

impl Waits {
    /// Above 4 ms: somewhat less than a disk that turns takes.
    pub const USUAL: Self = Self::Above { ns: 4_000_000 };
}

/// How a trace is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct How {
    /// Where jobs begin.
    pub cut: Cut,
    /// Which time is spent waiting.
    pub waits: Waits,
    /// Whose events count.
    pub whose: Whose,
}

/// Cuts `trace` into jobs, in order of time. Of 100,000 events that takes some 20 ms.
///
/// # Errors
/// [`JobsError`] where the trace does not tell which events count, or no process is of the name
/// that it should be cut by.
pub fn cut(trace: &Trace, how: &How) -> Result<Vec<Job>, JobsError> {
    let mut family = Family::new(trace, how.whose)?;
    let kin = family.of_all(trace)?;
    let (by, name) = match how.cut {
        Cut::Whole => (None, name_of(trace)),
        Cut::ByProcess(name) => (Some(name), name.to_owned()),
    };
    let mut cutter = Cutter {
        reader: Reader::new(&trace.header.flags),
        waits: how.waits,
        jobs: vec![Job::default()],
        held: Held::default(),
        last: None,
    };
    let mut begun = 0;
    for (event, kin) in trace.events.iter().zip(kin) {
        if kin != Kin::Stranger {
            cutter.time_goes_on(event.time);
        }
        if kin == Kin::Becomes && by == Some(trace.name(event.name)) {
            begun += 1;
            if begun > 1 {
                cutter.jobs.push(Job::default());
            }
        }
        cutter.follow(event, kin)?;
    }
    match by {
        Some(name) if begun == 0 => Err(JobsError::NoProcess(name.to_owned())),
        _ => Ok(named(cutter.jobs, how.cut, &name)),
    }
}

/// What the one job of a trace is called.
fn name_of(trace: &Trace) -> String {
    comm(&trace.header.command).unwrap_or_else(|| "trace".to_owned())
}

/// The jobs with their names.
fn named(mut jobs: Vec<Job>, cut: Cut, name: &str) -> Vec<Job> {
    for (job, number) in jobs.iter_mut().zip(1_u32..) {
        job.name = match cut {
            Cut::Whole => name.to_owned(),
            Cut::ByProcess(_) => format!("{name} {number}"),
        };
    }
    jobs
}

/// The jobs so far; the last is the one that goes on.
#[derive(Debug)]
struct Cutter {
    reader: Reader,
    waits: Waits,
    jobs: Vec<Job>,
    held: Held,
    /// When the command's last event was.
    last: Option<u64>,
}

impl Cutter {
    /// What lies between the command's last event and this time.
    fn time_goes_on(&mut self, time: u64) {
        let last = self.last.replace(time).unwrap_or(time);
        let ns = time.saturating_sub(last);
        let current = self.jobs.len() - 1;
        let steps = &mut self.jobs[current].steps;
        match (self.waits, steps.last_mut()) {
            (Waits::Above { ns: most }, _) if ns > most => steps.push(Step::Disk),
            (_, Some(Step::Compute { ns: before })) => *before = before.saturating_add(ns),
            _ if ns > 0 => steps.push(Step::Compute { ns }),
            _ => {}
        }
    }

    fn follow(&mut self, event: &Event, kin: Kin) -> Result<(), JobsError> {
        let current = self.jobs.len() - 1;
        let taken = match event.what {
            What::Alloc { mobility, flags } if kin != Kin::Stranger => {
                Some(self.reader.request(event.order, mobility, flags))
            }
            _ => None,
        };
        let page = self.jobs[current].pages;
        let block = taken.map(|_| Block { job: current, page });
        let jobs = &mut self.jobs;
        self.held.follow(event, block, |part| {
            let Part { job, page, order } = part;
            jobs[job].steps.push(Step::Give { page, order });
        });
        if let Some(request) = taken {
            let job = &mut self.jobs[current];
            let pages = page.checked_add(request.order.frames() as u32);
            job.pages = pages.ok_or(JobsError::TooManyPages)?;
            job.steps.push(Step::Take {
                page,
                order: request.order.get(),
                mobility: request.mobility,
                urgent: request.context.into(),
            });
        }
        Ok(())
    }
}
