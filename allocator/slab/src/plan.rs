//! The values that a system of slabs is built with, and the bytes that follow from them: all sizes
//! are constants where the plan is one.

use crate::debug::{DebugRule, Finding, RuleText, Rules};
use crate::layout::WORD_BYTES;
use crate::rows::Rows;
use crate::source::PageSource;

/// The values that a system of slabs is built with.
#[derive(Debug, Clone, Copy)]
pub struct SlabPlan {
    /// How many caches there can be at a time, at most [`MAX_CACHES`](crate::MAX_CACHES).
    /// [`Slabs::general`](crate::Slabs::general) needs 40.
    pub caches: usize,
    /// How many CPUs have queues of their own.
    pub cpus: usize,
    /// How many pages the source has, for [`Slabs::bytes`](crate::Slabs::bytes): slabs that are
    /// built ask the source. 0: the tables of pages lie elsewhere.
    pub pages: usize,
    /// How many nodes the source has, likewise.
    pub nodes: usize,
    /// What is checked in which caches, beside what their specifications ask for.
    pub rules: Rules,
    /// Who is told of what checks find. It must not use the cache that the finding is about. It
    /// should not panic: then the objects and pages that the caller has in hand are lost, and what
    /// was lost before by a broken link may not be counted.
    pub report: fn(&Finding),
}

impl SlabPlan {
    /// A plan without rules, whose findings nobody is told of.
    #[must_use]
    pub const fn new(caches: usize, cpus: usize) -> Self {
        Self {
            caches,
            cpus,
            pages: 0,
            nodes: 1,
            rules: Rules::NONE,
            report: |_| {},
        }
    }

    /// The same, over a source of so many pages.
    #[must_use]
    pub const fn pages(self, pages: usize) -> Self {
        Self { pages, ..self }
    }

    /// The same, over as many pages and nodes as `source` has.
    #[must_use]
    pub fn over(self, source: &impl PageSource) -> Self {
        Self {
            pages: source.pages(),
            nodes: source.nodes(),
            ..self
        }
    }

    /// The same, with these checks, and findings told to `report`.
    #[must_use]
    pub const fn debug(self, rules: &'static [DebugRule], report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::List(rules),
            report,
            ..self
        }
    }

    /// The same, with the checks of a text from outside, and findings told to `report`.
    #[must_use]
    pub const fn debug_text(self, rules: RuleText, report: fn(&Finding)) -> Self {
        Self {
            rules: Rules::Text(rules),
            report,
            ..self
        }
    }

    /// All caches, the one of the slabs themselves included.
    #[must_use]
    pub const fn numbers(&self) -> usize {
        self.caches.saturating_add(2)
    }
}

/// What a design keeps in the embedder's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes that each CPU has of each cache, beside its row.
    pub cpu: usize,
    /// Bytes that each node has of each cache.
    pub node: usize,
    /// Words that each cache has in a CPU's row: with one node, and with more. 0: no rows.
    pub row: [usize; 2],
    /// Bytes that are lost to alignment at most.
    pub align: usize,
}

impl Footprint {
    /// Words of a CPU's row that are used.
    pub(crate) const fn row_words(&self, plan: &SlabPlan) -> usize {
        let several = (plan.nodes > 1) as usize;
        plan.numbers().saturating_mul(self.row[several])
    }

    /// Bytes of a CPU's row, a power of two; 0 in a design without rows.
    #[must_use]
    pub const fn row_bytes(&self, plan: &SlabPlan) -> usize {
        let bytes = match self.row_words(plan) {
            0 => return 0,
            words => words.saturating_mul(WORD_BYTES).checked_next_power_of_two(),
        };
        match bytes {
            Some(bytes) if bytes > 1 << Rows::LEAST_SHIFT => bytes,
            Some(_) => 1 << Rows::LEAST_SHIFT,
            // More caches than can be; the plan is refused.
            None => 1 << (usize::BITS - 1),
        }
    }

    /// Bytes of all of it; `usize::MAX` if they are more than can be.
    #[must_use]
    pub const fn bytes(&self, plan: &SlabPlan) -> usize {
        let rows = plan.cpus.saturating_mul(self.row_bytes(plan));
        let cpus = plan.cpus.saturating_mul(self.cpu);
        let nodes = plan.nodes.saturating_mul(self.node);
        let shared = plan.numbers().saturating_mul(cpus.saturating_add(nodes));
        rows.saturating_add(shared).saturating_add(self.align)
    }
}
