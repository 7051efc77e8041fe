//! Jobs as tasks: what a recorded command did, repeated on the machine with the allocator under
//! test.
//!
//! A job is a list of steps ([`brickyard_workload::jobs`]). [`Runner::run`] executes it on the
//! calling task: it computes, waits for the disk, allocates blocks and frees them, single pages in
//! lists as an exit does ([`FREED_AT_ONCE`]). The job's own pages are looked up in memory of the
//! host, which takes no simulated time: a process finds them by its page tables.
//!
//! Computing takes a cycle for each instruction that the recorded host executed meanwhile
//! ([`suite::instructions`]), on every profile: each of its CPUs executes one instruction a cycle.
//!
//! What a job has not freed when it ends becomes page cache: it stays until memory is short. Then
//! the oldest pages are reclaimed first, as many at a time as Linux reclaims at once, by the task
//! whose request failed. They are clean, so reclaiming one costs no more than its free.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;

use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{Migrate, Migration, Need, NoHooks, Reclaim};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_machine::current;
use brickyard_workload::jobs::{FREED_AT_ONCE, Job, JobStep, Urgency, suite};

/// Pages that one reclaim frees, at least (Linux's `SWAP_CLUSTER_MAX`).
const RECLAIMED_AT_ONCE: usize = 32;

/// What happened to the requests of all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Blocks requested.
    pub asked: u64,
    /// Those of them that the allocator refused. Later frees of them are skipped.
    pub failed: u64,
    /// Pages allocated.
    pub pages: u64,
    /// Blocks or parts of them freed by their jobs.
    pub given: u64,
    /// Pages that jobs left behind.
    pub left: u64,
    /// Those of them that were reclaimed.
    pub reclaimed: u64,
    /// Frees that were refused: a bug in the allocator, or in this file.
    pub refused: u64,
}

/// Pages that jobs have left behind, oldest first.
struct PageCache<'n, Z: LabZone> {
    nodes: Nodes<'n, Z, NoHooks>,
    pages: RefCell<VecDeque<Frame>>,
    reclaimed: Cell<u64>,
}

impl<Z: LabZone> PageCache<'_, Z> {
    /// Removes the oldest page and returns it. Nothing is borrowed when this returns, because the
    /// free that follows may let other tasks run.
    fn take_oldest(&self) -> Option<Frame> {
        self.pages.borrow_mut().pop_front()
    }

    fn give_up(&self, pages: usize) -> usize {
        let mut freed = 0;
        while freed < pages
            && let Some(frame) = self.take_oldest()
        {
            if self.nodes.free(frame, Order::ZERO).is_ok() {
                freed += 1;
            }
        }
        self.reclaimed.set(self.reclaimed.get() + freed as u64);
        freed
    }
}

impl<Z: LabZone> Reclaim for PageCache<'_, Z> {
    fn reclaim(&self, need: &Need) -> usize {
        self.give_up(need.frames.max(RECLAIMED_AT_ONCE))
    }
}

/// No page is moved: neither kernel of these experiments compacted memory for such requests.
impl<Z: LabZone> Migrate for PageCache<'_, Z> {
    fn moves(&self) -> bool {
        false
    }

    fn migrate(&self, _from: Frame, _order: Order, _to: Frame) -> Migration {
        Migration::Unknown
    }
}

/// Runs jobs on an allocator. All tasks of a machine share one.
pub struct Runner<'n, Z: LabZone> {
    nodes: Nodes<'n, Z, PageCache<'n, Z>>,
    counts: Cell<Counts>,
}

impl<Z: LabZone> core::fmt::Debug for Runner<'_, Z> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runner")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl<'n, Z: LabZone> Runner<'n, Z> {
    /// A runner on these nodes, with an empty page cache.
    #[must_use]
    pub fn new(nodes: &'n [Node<'n, Z>]) -> Self {
        let cache = PageCache {
            nodes: Nodes::new(nodes),
            pages: RefCell::default(),
            reclaimed: Cell::default(),
        };
        Self {
            nodes: Nodes::with_hooks(nodes, cache, SlowPath::PLAIN),
            counts: Cell::default(),
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            reclaimed: self.nodes.hooks().reclaimed.get(),
            ..self.counts.get()
        }
    }

    /// Executes all steps of `job` on the calling task. Outside a machine only the requests have an
    /// effect. O(steps), besides the allocator's own cost.
    pub fn run(&self, job: &Job) {
        let mut held = vec![None; job.pages as usize];
        let lists = job
            .steps
            .chunk_by(|a, b| a.is_single_give() && b.is_single_give());
        for list in lists {
            match *list {
                [step] => self.step(&mut held, step),
                _ => list
                    .chunks(FREED_AT_ONCE)
                    .for_each(|list| self.give_list(&mut held, list)),
            }
        }
        self.leave(&held);
    }

    fn step(&self, held: &mut [Option<Frame>], step: JobStep) {
        match step {
            JobStep::Compute { ns } => current::compute(suite::instructions(ns)),
            JobStep::Disk => current::disk(),
            JobStep::Take {
                page,
                order,
                mobility,
                urgent,
            } => {
                // The workload uses the types of the allocator built for hardware; this is the one
                // built for the machine. The numbers are the same.
                let mobility = Mobility::ALL[mobility as usize];
                let request = request(Order::new(order), mobility, urgent);
                self.take(held, page as usize, &request);
            }
            JobStep::Give { page, order } => self.give(held, page, order),
        }
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn take(&self, held: &mut [Option<Frame>], page: usize, request: &Request) {
        let taken = self.nodes.alloc(0, request);
        self.count(|counts| counts.asked += 1);
        let Ok(first) = taken else {
            self.count(|counts| counts.failed += 1);
            return;
        };
        let pages = request.order.frames();
        self.count(|counts| counts.pages += pages as u64);
        for (place, slot) in held[page..][..pages].iter_mut().enumerate() {
            *slot = Some(first.plus(place));
        }
    }

    fn give(&self, held: &mut [Option<Frame>], page: u32, order: u8) {
        let slots = &mut held[page as usize..][..1 << order];
        let Some(first) = slots[0] else { return };
        slots.fill(None);
        let refused = self.nodes.free(first, Order::new(order)).is_err();
        self.count(|counts| {
            counts.given += 1;
            counts.refused += u64::from(refused);
        });
    }

    /// Frees single pages as one list, the last first.
    fn give_list(&self, held: &mut [Option<Frame>], list: &[JobStep]) {
        let taken = |step: &JobStep| match *step {
            JobStep::Give { page, .. } => held[page as usize].take(),
            _ => None,
        };
        let frames: Vec<Frame> = list.iter().rev().filter_map(taken).collect();
        let refused = self.nodes.free_bulk(&frames).is_err();
        self.count(|counts| {
            counts.given += frames.len() as u64;
            counts.refused += u64::from(refused);
        });
    }

    /// Adds what the job still holds to the page cache, page by page: any part of a block can be
    /// freed.
    fn leave(&self, held: &[Option<Frame>]) {
        let mut cache = self.nodes.hooks().pages.borrow_mut();
        let before = cache.len();
        cache.extend(held.iter().flatten());
        let left = cache.len() - before;
        self.count(|counts| counts.left += left as u64);
    }
}

fn request(order: Order, mobility: Mobility, urgent: Urgency) -> Request {
    let request = Request::new(order, mobility);
    match urgent {
        Urgency::MaySleep => request,
        Urgency::Atomic => request.atomic(),
    }
}
