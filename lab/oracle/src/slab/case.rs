//! A case: which design, what is checked, on how many nodes and CPUs.

use core::cell::Cell;
use core::mem::MaybeUninit;

use brickyard_slab::{
    CacheId, Checks, DebugRule, Finding, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs,
};
use brickyard_slqb::Slqb2008;

use super::caches::Users;
use super::cpus::Cpus;
use super::drive::Driver;
use super::lock::WatchedLock;
use super::operation::{CPUS, SLOTS};
use super::pages::Pages;
use crate::Bytes;
use crate::tally::tally;

/// Pages of a machine.
const PAGES: usize = 1024;

/// A design over pages and CPUs that the driver plays.
pub(super) trait Driven<'m>:
    SlabDesign<'m, Source = &'m Pages<'m>, Local = Pinned<&'m Cpus>>
{
    /// Times that a CPU sent on what it had of a cache for another list.
    fn sent_on(_: &Slabs<'m, Self>, _: CacheId) -> u64 {
        0
    }
}

type Sheaves<'m> = Sheafed<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for Sheaves<'m> {}

type Lists<'m> = Slqb2008<'m, &'m Pages<'m>, Pinned<&'m Cpus>, WatchedLock>;

impl<'m> Driven<'m> for Lists<'m> {
    fn sent_on(slabs: &Slabs<'m, Self>, cache: CacheId) -> u64 {
        let counts = slabs.queues().counts(slabs.local(), cache);
        counts.outgoing_flushes
    }
}

/// The designs of slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabKind {
    /// The default.
    Sheafed,
    /// Piggin's of 2008.
    Slqb2008,
}

impl SlabKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sheafed, Self::Slqb2008];
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

/// The rules of each level: caches called `checked` and the general ones.
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
    /// Which design.
    pub kind: SlabKind,
    /// What is checked, one of [`LEVELS`].
    pub checks: Checks,
    /// Nodes of the machine, one or two.
    pub nodes: usize,
    /// CPUs with queues; there is one more without.
    pub(super) cpus: usize,
    /// Who uses the general sizes.
    pub(super) general: Users,
    /// Something happens at one in so many moments; 0: never.
    pub event_every: usize,
    /// Where the dice of events start.
    pub seed: u64,
}

tally! {
    /// What a run of operations did, so that a test can see that it was not vacuous.
    pub struct SlabDriven: usize {
        /// Operations run.
        operations,
        /// Things that happened meanwhile.
        events,
        /// Moves to another CPU in the middle of an operation.
        moves,
        /// Caches made.
        made,
        /// Caches destroyed.
        destroyed,
        /// Caches not destroyed, since objects were in use.
        leaks,
        /// Objects given by caches.
        served,
        /// Those of them that were to be zero.
        zeroed,
        /// Those of them that were constructed.
        constructed,
        /// Objects given by caches for a node.
        on_a_node,
        /// Memory given by size.
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
        /// Caches shrunk to exactly what was in use.
        shrunk,
        /// The most pages that were in slabs at a time.
        peak_pages is the most,
    }
}

impl SlabCase {
    /// A machine with three CPUs, and one more that has no queues, where nothing happens meanwhile.
    #[must_use]
    pub const fn new(kind: SlabKind, checks: Checks, nodes: usize) -> Self {
        Self {
            kind,
            checks,
            nodes,
            cpus: CPUS - 1,
            general: Users::Tasks,
            event_every: 0,
            seed: 0,
        }
    }

    /// Is a free of what is no object of the cache always noticed, whatever is checked and wherever
    /// it happens?
    pub(super) fn finds_objects(&self) -> bool {
        self.kind == SlabKind::Slqb2008
    }

    /// The same, where something happens at one in `every` moments, as dice that begin at `seed`
    /// say; and interrupts use the general sizes too.
    #[must_use]
    pub const fn with_events(self, every: usize, seed: u64) -> Self {
        Self {
            event_every: every,
            seed,
            general: Users::All,
            ..self
        }
    }

    /// The case that the first four bytes spell, and the rest of the bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        let byte = |i: usize| usize::from(head.get(i).copied().unwrap_or(0));
        let kind = SlabKind::ALL[byte(0) % SlabKind::ALL.len()];
        let case = Self::new(kind, LEVELS[byte(1) % LEVELS.len()], 1 + byte(1) / 8 % 2);
        let every = [0, 3, 10, 40][byte(2) % 4];
        match every {
            0 => (case, rest),
            _ => (case.with_events(every, byte(3) as u64), rest),
        }
    }

    /// Can every CPU get at all objects that are free in slabs?
    pub(super) fn shares_slabs(&self) -> bool {
        self.kind == SlabKind::Sheafed
    }

    /// Runs the operations that `bytes` spell on this case and on the model.
    ///
    /// # Panics
    /// As soon as slabs give a wrong answer.
    #[must_use]
    pub fn drive(&self, bytes: &[u8]) -> SlabDriven {
        let cpus = Cpus::new();
        let pages = Pages::new(PAGES, self.nodes, &cpus);
        let mut memory = Vec::new();
        match self.kind {
            SlabKind::Sheafed => run::<Sheaves<'_>>(self, &pages, &cpus, &mut memory, bytes),
            SlabKind::Slqb2008 => run::<Lists<'_>>(self, &pages, &cpus, &mut memory, bytes),
        }
    }

    /// Room for the general sizes, and for one cache fewer than there are places for.
    fn plan(&self, sizes: &[u32]) -> SlabPlan {
        let level = LEVELS.iter().position(|&level| level == self.checks);
        let rules = level.map_or(&[][..], |level| &RULES[level]);
        SlabPlan::new(sizes.len() + SLOTS - 1, self.cpus).debug(rules, note)
    }
}

thread_local! {
    // What checks have found since the case began.
    static FINDINGS: Cell<usize> = const { Cell::new(0) };
}

fn note(_finding: &Finding) {
    FINDINGS.set(FINDINGS.get() + 1);
}

fn run<'m, D>(
    case: &SlabCase,
    pages: &'m Pages<'m>,
    cpus: &'m Cpus,
    memory: &'m mut Vec<MaybeUninit<u8>>,
    bytes: &[u8],
) -> SlabDriven
where
    D: Driven<'m>,
{
    FINDINGS.set(0);
    let plan = case.plan(D::SIZES);
    memory.resize(Slabs::<D>::bytes(&plan.over(&pages)), MaybeUninit::uninit());
    // SAFETY: one thread plays all CPUs, and moves, preempts and interrupts itself only where the
    // platform says that it may.
    let local = unsafe { Pinned::new(cpus) };
    let slabs = match Slabs::<D>::new(plan, pages, local, memory) {
        Ok(slabs) => slabs,
        Err(error) => panic!("the stated size does not suffice: {error}"),
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
