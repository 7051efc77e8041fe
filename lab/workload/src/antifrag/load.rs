//! The load: recorded traces, started one after another and repeated until the load ends, and the
//! file tree that each one works on.
//!
//! The protocol copies a kernel tree before each build but the last. The copies are modelled: dirty
//! pages of files, and for every sixteenth of them a page of directory entries and inodes. All else
//! is recorded, with two differences between a recorded host of today and one of 2005:
//!
//! - Pages of processes and files were allocated one by one, so larger blocks of them are taken
//!   apart.
//! - A compiler needed less memory: see [`Program::anonymous`].

use brickyard::node::Nodes;
use brickyard::{Mobility, Order, Request};
use brickyard_designs::classics::LabZone;

use crate::build::BuildError;
use crate::kernel::Kernel;
use crate::pages::{Location, PageId, Role, mark};
use crate::processor::Processor;
use crate::script::{Action, Script, ScriptStep};

/// The pages of a tree for each page of slabs.
const PAGES_PER_SLAB: u64 = 16;

/// The shortest trace, in nanoseconds, that is repeated until the load ends. A shorter one would be
/// begun so often that a run does not come to its end.
const SHORTEST: u64 = 1_000_000;

/// A trace that runs as part of the load.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Program<'s> {
    /// The trace.
    pub script: &'s Script,
    /// Its start, in nanoseconds of the load.
    pub starts: u64,
    /// The number of pages of the tree that is copied before it starts.
    pub tree: u64,
    /// The duration of that copying, in nanoseconds; it ends when the trace starts.
    pub copying: u64,
    /// The factor by which its time is longer than recorded.
    pub stretch: f64,
    /// The share of its processes' pages that it takes. The others are left out, by their numbers.
    pub anonymous: f64,
    /// The times that it runs. `None`: it is repeated to the end of the load.
    pub passes: Option<u32>,
}

/// A running program.
#[derive(Debug)]
struct Running<'s> {
    program: Program<'s>,
    steps: &'s [ScriptStep],
    // Added to its page numbers, so that no two programs share one.
    pages_from: u32,
    // The index of the next step.
    at: usize,
    // The start of the current repetition.
    began: u64,
    // Pages of the tree copied so far.
    copied: u64,
    // The numbers of the first page of its tree, and of the tree's first slab.
    tree_from: u32,
    slabs_from: u32,
    // Repetitions done.
    done: u32,
    // The time of its next step: what `next_due` returned after the last change.
    due: u64,
}

/// Counts of the load's requests and steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Served {
    /// Requests made.
    pub asked: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Steps done.
    pub steps: u64,
}

/// All programs.
#[derive(Debug)]
pub(super) struct Load<'s> {
    running: Vec<Running<'s>>,
    served: Served,
    // The traces' page numbers are below this, those of trees and their slabs are not.
    pages: u32,
}

impl<'s> Load<'s> {
    /// Makes a load of these programs.
    ///
    /// # Errors
    /// [`BuildError`] if their pages together exceed 32-bit numbers, their steps are in files, or
    /// one that is repeated without end is shorter than [`SHORTEST`].
    pub(super) fn new(programs: &[Program<'s>]) -> Result<Self, BuildError> {
        let numbered = |pages: u64| u32::try_from(pages).map_err(|_| BuildError::TooManyPages);
        let mut running = Vec::new();
        let mut pages_from: u64 = 0;
        for &program in programs {
            let duration = (program.script.duration() as f64 * program.stretch) as u64;
            if program.passes.is_none() && duration < SHORTEST {
                return Err(BuildError::TooShort(duration));
            }
            running.push(Running {
                program,
                steps: program.script.steps().ok_or(BuildError::StepsInFile)?,
                pages_from: numbered(pages_from)?,
                at: 0,
                began: program.starts,
                copied: 0,
                tree_from: 0,
                slabs_from: 0,
                done: 0,
                due: 0,
            });
            let pages = program.script.pages() as u64;
            pages_from += pages.next_multiple_of(Order::MAX.frames() as u64);
        }
        let pages = numbered(pages_from)?;
        for running in &mut running {
            running.tree_from = numbered(pages_from)?;
            pages_from += running.program.tree;
            running.slabs_from = numbered(pages_from)?;
            pages_from += running.program.tree / PAGES_PER_SLAB;
            running.due = running.next_due();
        }
        if numbered(pages_from)? == PageId::NONE.0 {
            return Err(BuildError::TooManyPages);
        }
        Ok(Self {
            running,
            served: Served::default(),
            pages,
        })
    }

    /// The number of the traces' pages: their page numbers are below this. Those of trees are not,
    /// and their locations are not recorded.
    #[must_use]
    pub(super) const fn pages(&self) -> usize {
        self.pages as usize
    }

    /// Returns true if a page is one of this trace's own, not of a tree.
    pub(super) fn has_read(&self, page: PageId, script: &Script) -> bool {
        let of = |running: &Running<'_>| {
            let pages = running.pages_from..running.pages_from + script.pages() as u32;
            core::ptr::eq(running.program.script, script) && pages.contains(&page.0)
        };
        self.running.iter().any(of)
    }

    /// The counts of its requests so far.
    #[must_use]
    pub(super) const fn served(&self) -> Served {
        self.served
    }

    /// Runs all programs up to the time `until`.
    pub(super) fn run<'z, 'k, Z: LabZone>(
        &mut self,
        until: u64,
        kernel: &'k Kernel<'z, Z>,
        nodes: &Nodes<'z, Z, &'k Kernel<'z, Z>>,
        processor: &Processor,
        cpus: usize,
    ) {
        while let Some((place, time)) = self.next(until) {
            kernel.set_time(time);
            let running = &mut self.running[place];
            if running.copied < running.program.tree {
                processor.switch_to(place % cpus);
                running.copy(kernel, nodes, &mut self.served);
            } else {
                running.step(kernel, nodes, processor, cpus, &mut self.served);
            }
            running.due = running.next_due();
            if kernel.is_woken() {
                kernel.run_background();
            }
        }
        kernel.set_time(until);
    }

    /// Returns the program whose next step is due first and its time, if that is before `until`.
    #[inline]
    fn next(&self, until: u64) -> Option<(usize, u64)> {
        let due = self.running.iter().map(|running| running.due).enumerate();
        let (place, time) = due.min_by_key(|&(_, time)| time)?;
        (time < until).then_some((place, time))
    }
}

impl Running<'_> {
    /// Returns the time of its next step.
    fn next_due(&self) -> u64 {
        let program = &self.program;
        if self.copied < program.tree {
            let from = program.starts.saturating_sub(program.copying);
            return from + program.copying * self.copied / program.tree;
        }
        if program.passes.is_some_and(|passes| self.done >= passes) {
            return u64::MAX;
        }
        match self.steps.get(self.at) {
            Some(step) => self.began + self.stretched(step.time),
            None => self.began + self.stretched(program.script.duration()),
        }
    }

    #[inline]
    fn stretched(&self, nanoseconds: u64) -> u64 {
        (nanoseconds as f64 * self.program.stretch) as u64
    }

    /// Copies a page of the tree; every sixteenth time also allocates a page of slabs.
    fn copy<'z, 'k, Z: LabZone>(
        &mut self,
        kernel: &'k Kernel<'z, Z>,
        nodes: &Nodes<'z, Z, &'k Kernel<'z, Z>>,
        served: &mut Served,
    ) {
        // Numbers that no trace uses, the same in every design.
        let page = PageId(self.tree_from + self.copied as u32);
        let slab = PageId(self.slabs_from + (self.copied / PAGES_PER_SLAB) as u32);
        self.copied += 1;
        served.steps += 1;
        let mut take = |mobility, role, marks, page| {
            let request = Request::page(mobility);
            served.asked += 1;
            if kernel.take(nodes, 0, &request, role, marks, page).is_err() {
                served.failed += 1;
            }
        };
        take(Mobility::Movable, Role::File, mark::DIRTY, page);
        if self.copied.is_multiple_of(PAGES_PER_SLAB) {
            take(Mobility::Reclaimable, Role::SlabReclaimable, 0, slab);
        }
    }

    fn step<'z, 'k, Z: LabZone>(
        &mut self,
        kernel: &'k Kernel<'z, Z>,
        nodes: &Nodes<'z, Z, &'k Kernel<'z, Z>>,
        processor: &Processor,
        cpus: usize,
        served: &mut Served,
    ) {
        let script = self.program.script;
        let Some(&step) = self.steps.get(self.at) else {
            self.begin_again(kernel);
            return;
        };
        self.at += 1;
        served.steps += 1;
        processor.switch_to(usize::from(step.cpu) % cpus);
        let page = self.page(&step);
        match script.action(&step) {
            Action::Take(_) if !self.needs(&step) => {}
            Action::Take(request) if request.mobility == Mobility::Movable => {
                let single = Request {
                    order: Order::ZERO,
                    ..request
                };
                for offset in 0..step.order.frames() as u32 {
                    let page = PageId(page.0 + offset);
                    take(kernel, nodes, &step, &single, page, served);
                }
            }
            Action::Take(request) => take(kernel, nodes, &step, &request, page, served),
            // The modelled machine has its own.
            Action::Reclaim(_) => {}
            Action::Give => {
                kernel.give(page, step.order);
            }
            Action::Try(_) => {}
        }
    }

    /// Returns false for the pages of processes that are left out.
    fn needs(&self, step: &ScriptStep) -> bool {
        const PARTS: u32 = 1000;
        let part = step.page.0.wrapping_mul(0x9E37_79B1) >> 8;
        let needed = (self.program.anonymous * f64::from(PARTS)) as u32;
        step.role != Role::Anonymous || part % PARTS < needed
    }

    fn page(&self, step: &ScriptStep) -> PageId {
        match step.page {
            PageId::NONE => PageId::NONE,
            PageId(page) => PageId(self.pages_from + page),
        }
    }

    /// Ends the trace's processes, keeps its files, and starts it again.
    fn begin_again<Z: LabZone>(&mut self, kernel: &Kernel<'_, Z>) {
        // At least a nanosecond, so that it ends, whatever the stretch.
        self.began += self.stretched(self.program.script.duration()).max(1);
        self.at = 0;
        self.done += 1;
        let own = self.pages_from..self.pages_from + self.program.script.pages() as u32;
        kernel.end(|block| {
            let of_process = matches!(block.role, Role::Anonymous | Role::PageTable | Role::Kernel);
            of_process && own.contains(&block.page.0)
        });
    }
}

/// Takes a block for a step.
fn take<'z, 'k, Z: LabZone>(
    kernel: &'k Kernel<'z, Z>,
    nodes: &Nodes<'z, Z, &'k Kernel<'z, Z>>,
    step: &ScriptStep,
    request: &Request,
    page: PageId,
    served: &mut Served,
) {
    let known = kernel.look(|pages| pages.location(page)) != Location::Unknown;
    if known || step.overlaps_used() {
        // The repetition before left this page; it is replaced.
        kernel.give(page, request.order);
        kernel.change(|pages| pages.set_absent(page, Location::Unknown));
    }
    served.asked += 1;
    let taken = kernel.take(nodes, 0, request, step.role, step.marks, page);
    served.failed += u64::from(taken.is_err());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use brickyard::MigrateType;
    use brickyard_trace::{Event, Flags, Header, HostTexts, NameId, Trace, What};

    use super::*;

    /// A trace of one allocation on a host of 1024 frames.
    fn script() -> Script {
        let zoneinfo = "Node 0, zone   Normal\n  pages free     1024\n        min      4\n        low      5\n        high     6\n        spanned  1024\n        present  1024\n        managed  1024\n  start_pfn:           0\n";
        let header = Header {
            cpus: 1,
            frame_bytes: 4096,
            page_block_order: 9,
            duration: SHORTEST,
            flags: Flags::canonical(),
            start: HostTexts {
                zoneinfo: zoneinfo.into(),
                buddyinfo: "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 1\n".into(),
                ..HostTexts::default()
            },
            ..Header::default()
        };
        let taken = Event {
            time: 0,
            frame: 40,
            what: What::Alloc {
                mobility: MigrateType::Movable,
                flags: header.flags.parse_names("GFP_HIGHUSER_MOVABLE"),
            },
            pid: 1,
            name: NameId(0),
            cpu: 0,
            order: Order::ZERO,
        };
        Script::of_events(&Trace {
            header,
            names: vec!["cc1".into()],
            events: vec![taken],
            ..Trace::default()
        })
        .unwrap()
    }

    #[test]
    fn what_a_trace_reads_is_told_from_trees_and_from_other_traces() {
        let (build, walk) = (script(), script());
        let program = |script, tree| Program {
            script,
            starts: 0,
            tree,
            copying: 0,
            stretch: 1.0,
            anonymous: 1.0,
            passes: None,
        };
        let load = Load::new(&[program(&build, 16), program(&walk, 0), program(&build, 16)]);
        let load = load.unwrap();
        let of_walk: Vec<u32> = (0..load.pages)
            .filter(|&page| load.has_read(PageId(page), &walk))
            .collect();
        assert_eq!(of_walk.len(), walk.pages());
        assert_eq!(of_walk.first(), Some(&load.running[1].pages_from));
        for running in &load.running {
            for page in [running.tree_from, running.slabs_from] {
                assert!(!load.has_read(PageId(page), &walk));
            }
        }
        assert!(!load.has_read(PageId::NONE, &walk));
    }
}
