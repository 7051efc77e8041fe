//! Jobs as tasks: what a recorded command did, done again on the machine, with the allocator under
//! test.
//!
//! A job is a list of steps ([`brickyard_workload::jobs`]). [`Runner::run`] goes through it on the
//! task that calls: it computes, waits for the disk, takes blocks and gives them back. The job's
//! own pages are looked up in memory of the host, which costs the machine nothing: a process has
//! its page tables at hand.
//!
//! Computing takes a cycle for each instruction that the recorded host did meanwhile
//! ([`suite::instructions`]), on whatever profile: each of its CPUs does one instruction a cycle.
//!
//! What a job has not given back when it ends is page cache: it stays until memory is short. Then
//! the oldest pages go first, as many at a time as Linux reclaims at once, by whoever asks. They
//! are clean, and giving one up costs no more than its free.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;

use brickyard::node::{Node, Nodes, SlowPath};
use brickyard::pressure::{Migrate, Migration, Need, NoHooks, Reclaim};
use brickyard::{Frame, Mobility, Order, Request};
use brickyard_classics::LabZone;
use brickyard_machine::here;
use brickyard_workload::jobs::{Job, Step, Urgency, suite};

/// Pages that one reclaim gives up, at least (Linux's `SWAP_CLUSTER_MAX`).
const RECLAIMED_AT_ONCE: usize = 32;

/// What happened to the requests of all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Blocks asked for.
    pub asked: u64,
    /// Those of them that could not be had. What a job would have given back of them later is
    /// passed over.
    pub failed: u64,
    /// Pages taken.
    pub pages: u64,
    /// Blocks or parts of them given back by their jobs.
    pub given: u64,
    /// Pages that jobs left behind.
    pub left: u64,
    /// Those of them that were reclaimed.
    pub reclaimed: u64,
    /// Frees that were refused: a bug in the allocator, or here.
    pub refused: u64,
}

/// Pages that jobs have left behind, oldest first.
struct PageCache<'n, Z: LabZone> {
    nodes: Nodes<'n, Z, NoHooks>,
    pages: RefCell<VecDeque<Frame>>,
    reclaimed: Cell<u64>,
}

impl<Z: LabZone> PageCache<'_, Z> {
    /// The oldest page, which is the caller's now. Nothing is borrowed when this returns: the free
    /// that follows may let other tasks run.
    fn oldest_out(&self) -> Option<Frame> {
        self.pages.borrow_mut().pop_front()
    }

    fn give_up(&self, pages: usize) -> usize {
        let mut freed = 0;
        while freed < pages
            && let Some(frame) = self.oldest_out()
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

/// Nothing is moved: neither kernel of these experiments compacted for what they ask.
impl<Z: LabZone> Migrate for PageCache<'_, Z> {
    const MOVES: bool = false;

    fn migrate(&self, _from: Frame, _order: Order, _to: Frame) -> Migration {
        Migration::Unknown
    }
}

/// Runs jobs on an allocator. One for all tasks of a machine.
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

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            reclaimed: self.nodes.hooks().reclaimed.get(),
            ..self.counts.get()
        }
    }

    /// Does all steps of `job`, on the task that calls. Outside a machine only the requests happen.
    /// O(steps), and what the allocator takes.
    pub fn run(&self, job: &Job) {
        let mut held = vec![None; job.pages as usize];
        for step in &job.steps {
            match *step {
                Step::Compute { ns } => here::compute(suite::instructions(ns)),
                Step::Disk => here::disk(),
                Step::Take {
                    page,
                    order,
                    mobility,
                    urgent,
                } => {
                    // The workload's types are those of the allocator on hardware; this one is
                    // built on the machine's words. Their numbers are the same.
                    let mobility = Mobility::ALL[mobility as usize];
                    let request = request(Order::new(order), mobility, urgent);
                    self.take(&mut held, page as usize, &request);
                }
                Step::Give { page, order } => self.give(&mut held, page, order),
            }
        }
        self.leave(&held);
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

    /// What is left becomes page cache, page by page: any part of a block can be freed.
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
