//! The values that a system of slabs is built with.

use crate::debug::{DebugRule, Finding, RuleText, Rules};

/// The values that a system of slabs is built with.
#[derive(Debug, Clone, Copy)]
pub struct SlabPlan {
    /// How many caches there can be at a time, at most [`MAX_CACHES`](crate::MAX_CACHES).
    /// [`Slabs::general`](crate::Slabs::general) needs 40 (15 in `slqb-2008`).
    pub caches: usize,
    /// How many CPUs have queues of their own.
    pub cpus: usize,
    /// What is checked in which caches, beside what their specifications ask for.
    pub rules: Rules,
    /// Who is told of what checks find. It must not use the cache that the finding is about.
    /// It should not panic: then the objects and pages that the caller has in hand are lost, and what was lost before by
    /// a broken link may not be counted.
    pub report: fn(&Finding),
    /// How `slqb-2008` writes the links of free objects.
    pub free_pointers: FreePointers,
    /// Random bits, if there are some, for a secret that links are encoded with.
    pub secret: usize,
}

impl SlabPlan {
    /// A plan without rules, whose findings nobody is told of.
    #[must_use]
    pub const fn new(caches: usize, cpus: usize) -> Self {
        Self {
            caches,
            cpus,
            rules: Rules::NONE,
            report: |_| {},
            free_pointers: FreePointers::Encoded,
            secret: 0,
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
    pub(crate) const fn numbers(&self) -> usize {
        self.caches.saturating_add(2)
    }
}

/// How `slqb-2008` writes the links of free objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FreePointers {
    /// Encoded: one that was written over is noticed. A few instructions more at each free and each allocation.
    #[default]
    Encoded,
    /// As they are. One that was written over is noticed only if it is no address in a slab of the cache.
    Plain,
}
