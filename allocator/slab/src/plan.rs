//! The values that a system of slabs is built with, and the bytes that follow from them. All sizes
//! are constants where the plan is one.

use crate::debug::{DebugRule, Finding, RuleText, Rules};
use crate::layout::WORD_BYTES;
use crate::rows::Rows;
use crate::source::PageSource;

/// What is told of findings.
#[derive(Debug, Clone, Copy)]
pub enum Reporter {
    /// A function of the finding.
    Plain(fn(&Finding)),
    /// A function of the finding and of this number, for receivers that are known at run time only.
    With(fn(&Finding, usize), usize),
}

impl Reporter {
    /// Calls the function for a finding.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(self, finding: &Finding) {
        match self {
            Self::Plain(function) => function(finding),
            Self::With(function, number) => function(finding, number),
        }
    }
}

/// The values that a system of slabs is built with.
#[derive(Debug, Clone, Copy)]
pub struct SlabPlan {
    /// The most caches that there can be at a time, at most [`MAX_CACHES`](crate::MAX_CACHES).
    /// [`Slabs::general`](crate::Slabs::general) needs 40, and 59 in the heap of a process.
    pub caches: usize,
    /// The number of CPUs that have queues of their own.
    pub cpus: usize,
    /// The number of pages of the source, for [`Slabs::bytes`](crate::Slabs::bytes). When slabs are
    /// built, they ask the source instead. 0: the tables of pages lie elsewhere.
    pub pages: usize,
    /// The number of nodes of the source. When slabs are built, they ask the source instead.
    pub nodes: usize,
    /// Whether each page has a home, in [`Parts::homes`](crate::Parts::homes).
    pub homes: bool,
    /// The checks by the names of caches, beyond what their specifications ask for.
    pub rules: Rules,
    /// The function that is told what checks find. It must not use the cache that the finding is
    /// about. It should not panic: if it does, the objects and pages that the caller has in hand
    /// are lost. Objects lost earlier through a broken link may not be counted then.
    pub report: Reporter,
}

impl SlabPlan {
    /// Makes a plan without rules. Its findings are dropped.
    #[must_use]
    pub const fn new(caches: usize, cpus: usize) -> Self {
        Self {
            caches,
            cpus,
            pages: 0,
            nodes: 1,
            homes: false,
            rules: Rules::NONE,
            report: Reporter::Plain(|_| {}),
        }
    }

    /// Returns the same plan, over a source of `pages` pages.
    #[must_use]
    pub const fn pages(self, pages: usize) -> Self {
        Self { pages, ..self }
    }

    /// Returns the same plan, for pages that have [homes](crate::Homes).
    #[must_use]
    pub const fn with_homes(self) -> Self {
        Self {
            homes: true,
            ..self
        }
    }

    /// Returns the same plan, over as many pages and nodes as `source` has.
    #[must_use]
    pub fn over(self, source: &impl PageSource) -> Self {
        Self {
            pages: source.pages(),
            nodes: source.nodes(),
            ..self
        }
    }

    /// Returns the same plan, with these checks, and findings told to `report`.
    #[must_use]
    pub const fn debug(self, rules: &'static [DebugRule], report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::List(rules),
            report: Reporter::Plain(report),
            ..self
        }
    }

    /// Returns the same plan, with the checks of a text from outside, and findings told to
    /// `report`.
    #[must_use]
    pub const fn debug_text(self, rules: RuleText, report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::Text(rules),
            report: Reporter::Plain(report),
            ..self
        }
    }

    /// Returns how many cache numbers there are: the planned caches, the slabs' own, and 0, which
    /// is none.
    #[must_use]
    pub const fn numbers(&self) -> usize {
        self.caches.saturating_add(2)
    }
}

/// The room that a design needs in the embedder's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes that each CPU has for each cache, beside its row.
    pub cpu: usize,
    /// Bytes that each node has for each cache.
    pub node: usize,
    /// Words that each cache has in a CPU's row: with one node and no homes, and with more nodes or
    /// with homes. 0: no rows.
    pub row: [usize; 2],
    /// The most bytes that are lost to alignment.
    pub align: usize,
}

impl Footprint {
    /// Returns the words of a CPU's row that are used.
    pub(crate) const fn row_words(&self, plan: &SlabPlan) -> usize {
        let several = (plan.nodes > 1 || plan.homes) as usize;
        plan.numbers().saturating_mul(self.row[several])
    }

    /// Returns the bytes of a CPU's row, a power of two; 0 in a design without rows.
    #[must_use]
    pub const fn row_bytes(&self, plan: &SlabPlan) -> usize {
        let bytes = match self.row_words(plan) {
            0 => return 0,
            words => words.saturating_mul(WORD_BYTES).checked_next_power_of_two(),
        };
        match bytes {
            Some(bytes) if bytes > 1 << Rows::LEAST_SHIFT => bytes,
            Some(_) => 1 << Rows::LEAST_SHIFT,
            // More caches than there can be: the plan is refused.
            None => 1 << (usize::BITS - 1),
        }
    }

    /// Returns the bytes of all of it; `usize::MAX` if the number is too large for a `usize`.
    #[must_use]
    pub const fn bytes(&self, plan: &SlabPlan) -> usize {
        let rows = plan.cpus.saturating_mul(self.row_bytes(plan));
        let cpus = plan.cpus.saturating_mul(self.cpu);
        let nodes = plan.nodes.saturating_mul(self.node);
        let shared = plan.numbers().saturating_mul(cpus.saturating_add(nodes));
        rows.saturating_add(shared).saturating_add(self.align)
    }
}
