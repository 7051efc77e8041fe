//! A cell: the smallest piece of an experiment that is run by itself, by one command, with one file as its result.
//!
//! A cell of a kind that is timed is a round: all that is compared takes its turn in it, so that the host's mood hits them alike. Any other is one run of one
//! configuration. The same name means the same work, whatever the scale: what `--quick` runs is a part of what `--full` runs.

use core::fmt;

use brickyard_experiments::raw::{Kind, Raw};

use super::traces::Traces;
use crate::side_by_side::Follow;

/// The seven experiments, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Experiment {
    Locks,
    PageAlloc,
    Pft,
    Kernbench,
    TwoKinds,
    Slab,
    Mobility,
}

impl Experiment {
    pub(crate) const ALL: [Self; 7] = [
        Self::Locks,
        Self::PageAlloc,
        Self::Pft,
        Self::Kernbench,
        Self::TwoKinds,
        Self::Slab,
        Self::Mobility,
    ];

    /// As `--only` and the cells have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::PageAlloc => "pagealloc",
            Self::Pft => "pft",
            Self::Kernbench => "kernbench",
            Self::TwoKinds => "two-kinds",
            Self::Slab => "slab",
            Self::Mobility => "mobility",
        }
    }
}

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scale {
    /// What two cores do in two minutes.
    Quick,
    /// All.
    Full,
}

/// What a cell is given.
pub(crate) struct Context<'a> {
    /// Where all chance comes from: run 1 has this seed, run 2 the next.
    pub(crate) seed: u64,
    /// The recorded traces.
    pub(crate) traces: &'a Traces,
    /// Asked now and then: is it to end?
    pub(crate) follow: Follow<'a>,
}

impl Context<'_> {
    /// The seed of a run, counted from 1.
    pub(crate) const fn seed_of(&self, run: u32) -> u64 {
        self.seed.wrapping_add(run as u64 - 1)
    }
}

/// What came of a cell.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Its rows.
    pub(crate) rows: Vec<Raw>,
    /// Pages made beside them: a name such as `gekko-lp1.html`, and the page.
    pub(crate) pages: Vec<(String, Vec<u8>)>,
}

impl From<Vec<Raw>> for Done {
    fn from(rows: Vec<Raw>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }
}

/// What is run for a cell. Ended before its time (`follow` says so), it answers with an error.
pub(crate) type Work = Box<dyn Fn(Context<'_>) -> anyhow::Result<Done> + Send + Sync>;

/// A cell.
pub(crate) struct Cell {
    /// Its name: EXPERIMENT.MACHINE, then what tells it from others and where there are several the number of its run, in words of `a-z0-9+-` with dots between, such as `locks.metatm-2007.find-8.hold.1`.
    pub(crate) name: String,
    /// How its rows come about. Those that are timed have the host for themselves.
    pub(crate) kind: Kind,
    /// The smallest scale that it is a part of.
    pub(crate) scale: Scale,
    /// How long it takes on a core of today, in seconds, roughly: for the time that is left.
    pub(crate) seconds: f64,
    /// The work.
    pub(crate) work: Work,
}

impl Cell {
    /// The number of its run, from 1; none where there is but one.
    pub(crate) fn run(&self) -> Option<u32> {
        self.name.rsplit('.').next()?.parse().ok()
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("scale", &self.scale)
            .finish_non_exhaustive()
    }
}
