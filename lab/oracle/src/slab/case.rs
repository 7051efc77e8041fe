//! A test case: a design, the checks, and the numbers of nodes and CPUs.

use core::cell::Cell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU8;

use brickyard_designs::slab_slub::{Slab2008, Slub2008};
use brickyard_designs::slqb::Slqb2008;
use brickyard_slab::sheaf::Process;
use brickyard_slab::{
    CacheId, Checks, DebugRule, Finding, Homes, Parts, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs,
};

use super::caches::Users;
use super::cpus::Cpus;
use super::drive::Driver;
use super::lock::WatchedLock;
use super::operation::{CPUS, SLOTS};
use super::pages::Pages;
use crate::Bytes;
use crate::tally::tally;

/// The number of pages of a machine.
const PAGES: usize = 1024;

/// A design over the driver's pages and CPUs.
pub(super) trait Driven<'m>:
    SlabDesign<'m, Source = &'m Pages<'m>, Local = Pinned<&'m Cpus>>
{
    /// Returns how often a CPU has sent a cache's outgoing queue.
    fn flushes_to_others(_: &Slabs<'m, Self>, _: CacheId) -> u64 {
        0
    }
}

type Sheaves<'m> = Sheafed<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for Sheaves<'m> {}

type SheavesOfHeap<'m> = Sheafed<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock, Process>;

impl<'m> Driven<'m> for SheavesOfHeap<'m> {}

type Lists<'m> = Slqb2008<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for Lists<'m> {
    fn flushes_to_others(slabs: &Slabs<'m, Self>, cache: CacheId) -> u64 {
        let counts = slabs.queues().counts(slabs.local(), cache);
        counts.outgoing_flushes
    }
}

type Arrays<'m> = Slab2008<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for Arrays<'m> {}

type OwnSlabs<'m> = Slub2008<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for OwnSlabs<'m> {}

/// The designs of slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabKind {
    /// The default, as a kernel has it.
    Sheafed,
    /// The same, as the heap of a process has it.
    SheafedOfHeap,
    /// Piggin's design of 2008.
    Slqb2008,
    /// SLAB of Linux 2.6.28.
    Slab2008,
    /// SLUB of Linux 2.6.28.
    Slub2008,
}

impl SlabKind {
    /// Returns true if it is the default, whoever has it.
    pub(super) const fn is_sheafed(self) -> bool {
        matches!(self, Self::Sheafed | Self::SheafedOfHeap)
    }

    /// All designs.
    pub const ALL: [Self; 5] = [
        Self::Sheafed,
        Self::SheafedOfHeap,
        Self::Slqb2008,
        Self::Slab2008,
        Self::Slub2008,
    ];
}

/// Levels of checking: each check alone, and all of them.
pub const LEVELS: [Checks; 6] = [
    Checks::NONE,
    Checks::FREES,
    Checks::RED_ZONES,
    Checks::POISON,
    Checks::TRACK,
    Checks::ALL,
];

/// The debug rules of each level: for caches named `checked` and for the general ones.
static RULES: [[DebugRule; 2]; LEVELS.len()] = rules();

const fn rules() -> [[DebugRule; 2]; LEVELS.len()] {
    let none = DebugRule {
        pattern: "",
        checks: Checks::NONE,
    };
    let mut rules = [[none; 2]; LEVELS.len()];
    let mut level = 0;
    while level < LEVELS.len() {
        let checks = LEVELS[level];
        rules[level][0] = DebugRule {
            pattern: "checked",
            checks,
        };
        rules[level][1] = DebugRule {
            pattern: "general*",
            checks,
        };
        level += 1;
    }
    rules
}

/// A system of slabs on a machine.
#[derive(Debug, Clone, Copy)]
pub struct SlabCase {
    /// The design.
    pub kind: SlabKind,
    /// The checks, one of [`LEVELS`].
    pub checks: Checks,
    /// Nodes of the machine, one or two.
    pub nodes: usize,
    /// Whether pages have homes.
    pub homes: bool,
    /// Number of CPUs with queues; there is one more without.
    pub(super) cpus: usize,
    /// The callers that use the general sizes.
    pub(super) general: Users,
    /// An event happens at one in this many moments; 0: never.
    pub event_every: usize,
    /// Seed of the random events.
    pub seed: u64,
}

tally! {
    /// What a run of operations did, so that a test can check that it was not vacuous.
    pub struct SlabDriven: usize {
        /// Operations run.
        operations,
        /// Events during operations.
        events,
        /// Moves to another CPU in the middle of an operation.
        moves,
        /// Caches made.
        made,
        /// Caches destroyed.
        destroyed,
        /// Attempts to destroy a cache that failed, since objects were in use.
        leaks,
        /// Objects allocated from caches.
        served,
        /// Objects allocated zeroed.
        zeroed,
        /// Objects of caches with a constructor.
        constructed,
        /// Objects allocated on a given node.
        on_a_node,
        /// Blocks allocated by size.
        general,
        /// Requests for more than the largest size.
        too_large,
        /// Batches allocated.
        bulks,
        /// Reserves filled and used.
        reserves,
        /// Requests refused for want of pages.
        refused,
        /// Interrupts refused by caches for tasks.
        misplaced,
        /// Good frees.
        freed,
        /// Bad frees, all refused.
        bad_frees,
        /// Caches shrunk.
        shrunk,
        /// The most pages in slabs at a time.
        peak_pages is the most,
    }
}

impl SlabCase {
    /// Returns a machine with three CPUs, and one more without queues, and without events.
    #[must_use]
    pub const fn new(kind: SlabKind, checks: Checks, nodes: usize) -> Self {
        Self {
            kind,
            checks,
            nodes,
            homes: false,
            cpus: CPUS - 1,
            general: Users::Tasks,
            event_every: 0,
            seed: 0,
        }
    }

    /// Returns true if a free of an address that is no object of the cache is always detected,
    /// whatever the checks and on every CPU.
    pub(super) fn finds_objects(&self) -> bool {
        matches!(self.kind, SlabKind::Slqb2008 | SlabKind::Slub2008)
    }

    /// Gives pages homes, in the design that knows them.
    #[must_use]
    pub const fn with_homes(self) -> Self {
        Self {
            homes: true,
            ..self
        }
    }

    /// Adds events to the case: a random event at one in `every` moments, from `seed`; interrupts
    /// then use the general sizes too.
    #[must_use]
    pub const fn with_events(self, every: usize, seed: u64) -> Self {
        Self {
            event_every: every,
            seed,
            general: Users::All,
            ..self
        }
    }

    /// Decodes a case from the first four bytes; returns it and the rest of the bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let byte = |i: usize| usize::from(head.get(i).copied().unwrap_or(0));
        let kind = SlabKind::ALL[byte(0) % SlabKind::ALL.len()];
        let case = Self::new(kind, LEVELS[byte(1) % LEVELS.len()], 1 + byte(1) / 8 % 2);
        let case = if byte(1) / 16 % 2 == 1 {
            case.with_homes()
        } else {
            case
        };
        let every = [0, 3, 10, 40][byte(2) % 4];
        match every {
            0 => (case, rest),
            _ => (case.with_events(every, byte(3) as u64), rest),
        }
    }

    /// Returns true if every CPU can allocate any object that is free in a slab.
    pub(super) fn shares_slabs(&self) -> bool {
        self.kind.is_sheafed()
    }

    /// Runs the operations encoded in `bytes` on this case and on the model.
    ///
    /// # Panics
    /// When slabs return a wrong result.
    #[must_use]
    pub fn drive(&self, bytes: &[u8]) -> SlabDriven {
        let cpus = Cpus::new();
        let pages = Pages::new(PAGES, self.nodes, &cpus);
        let mut memory = Vec::new();
        let homes: Vec<_> = (0..PAGES).map(|_| AtomicU8::new(0)).collect();
        match self.kind {
            SlabKind::Sheafed => {
                run::<Sheaves<'_>>(self, &pages, &cpus, (&mut memory, &homes), bytes)
            }
            SlabKind::SheafedOfHeap => {
                run::<SheavesOfHeap<'_>>(self, &pages, &cpus, (&mut memory, &homes), bytes)
            }
            SlabKind::Slqb2008 => {
                run::<Lists<'_>>(self, &pages, &cpus, (&mut memory, &homes), bytes)
            }
            SlabKind::Slab2008 => {
                run::<Arrays<'_>>(self, &pages, &cpus, (&mut memory, &homes), bytes)
            }
            SlabKind::Slub2008 => {
                run::<OwnSlabs<'_>>(self, &pages, &cpus, (&mut memory, &homes), bytes)
            }
        }
    }

    /// Returns a plan with room for the general sizes, and for one cache fewer than the driver has
    /// slots.
    fn plan(&self, sizes: &[u32]) -> SlabPlan {
        let level = LEVELS.iter().position(|&level| level == self.checks);
        let rules = level.map_or(&[][..], |level| &RULES[level]);
        let plan = SlabPlan::new(sizes.len() + SLOTS - 1, self.cpus).debug(rules, note);
        match self.homes {
            true => plan.with_homes(),
            false => plan,
        }
    }
}

thread_local! {
    // Number of findings of the checks since the case began.
    static FINDINGS: Cell<usize> = const { Cell::new(0) };
}

fn note(_finding: &Finding) {
    FINDINGS.set(FINDINGS.get() + 1);
}

fn run<'m, D>(
    case: &SlabCase,
    pages: &'m Pages<'m>,
    cpus: &'m Cpus,
    (memory, homes): (&'m mut Vec<MaybeUninit<u8>>, &'m [AtomicU8]),
    bytes: &[u8],
) -> SlabDriven
where
    D: Driven<'m>,
{
    FINDINGS.set(0);
    let plan = case.plan(D::SIZES);
    memory.resize(Slabs::<D>::bytes(&plan.over(&pages)), MaybeUninit::uninit());
    // SAFETY: one thread plays all CPUs, and moves, preempts and interrupts itself only where the
    // platform permits it.
    let local = unsafe { Pinned::new(cpus) };
    let parts = Parts {
        homes: case.homes.then(|| Homes::new(homes)),
        ..Parts::of(memory)
    };
    let slabs = match Slabs::<D>::in_parts(plan, pages, local, parts) {
        Ok(slabs) => slabs,
        Err(error) => panic!("the computed size is too small: {error}"),
    };
    match Driver::new(&slabs, *case, pages, cpus) {
        Ok(driver) => {
            let driven = driver.run(Bytes::new(bytes));
            assert_eq!(
                FINDINGS.get(),
                driven.bad_frees,
                "every bad free is reported, and nothing else"
            );
            driven
        }
        Err(error) => panic!("general sizes were planned for: {error}"),
    }
}
