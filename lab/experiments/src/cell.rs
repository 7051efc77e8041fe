//! A cell: the smallest piece of an experiment that is run by itself, by one command, with one file
//! as its result.
//!
//! A cell of a kind that is timed is a round: all that is compared takes its turn in it, so that
//! the host's mood hits them alike. Any other is one run of one configuration. Invariant
//! `same-name-same-work`: it gives the same rows wherever and at whatever scale it is run, unless
//! it is timed; so what `--quick` runs is a part of what `--full` runs.

use core::fmt;

use crate::raw::{Method, Raw};

use brickyard_bench::side_by_side::Follow;

use super::traces::Traces;

/// The seven experiments, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    /// How long to hold the zone lock, of 2007.
    Locks,
    /// Pages in batches, of 2013.
    PageAlloc,
    /// Page faults, of 2013.
    Pft,
    /// Builds, of 2013.
    Kernbench,
    /// Two kinds of request, of 2005.
    TwoKinds,
    /// Objects, of 2008.
    Slab,
    /// Grouping by mobility, of 2007.
    Mobility,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Locks,
        Self::PageAlloc,
        Self::Pft,
        Self::Kernbench,
        Self::TwoKinds,
        Self::Slab,
        Self::Mobility,
    ];

    /// As `--only` and the cells have it.
    pub const fn name(self) -> &'static str {
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
pub enum Scale {
    /// What two cores do in two minutes.
    Quick,
    /// All.
    Full,
}

impl Scale {
    /// Of what two minutes are enough for, the quick run; of all else, the full one.
    #[must_use]
    pub const fn quick_if(quick: bool) -> Self {
        if quick { Self::Quick } else { Self::Full }
    }
}

/// What a cell is given.
#[derive(Debug)]
pub struct Context<'a> {
    /// Where all chance comes from: run 1 has this seed, run 2 the next.
    pub seed: u64,
    /// The recorded traces.
    pub traces: &'a Traces,
    /// Asked now and then: is it to end?
    pub follow: Follow<'a>,
}

impl Context<'_> {
    /// The seed of a run, counted from 1.
    pub const fn seed_of(&self, run: u32) -> u64 {
        self.seed.wrapping_add(run as u64 - 1)
    }
}

/// What came of a cell.
#[derive(Debug, Default)]
pub struct Done {
    /// Its rows.
    pub rows: Vec<Raw>,
    /// Pages made beside them: a name such as `gekko-lp1.html`, and the page.
    pub pages: Vec<(String, Vec<u8>)>,
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
pub type Work = Box<dyn Fn(Context<'_>) -> anyhow::Result<Done> + Send + Sync>;

/// A cell.
pub struct Cell {
    /// Its name: EXPERIMENT.MACHINE, then what tells it from others and where there are several the
    /// number of its run, in words of `a-z0-9+-` with dots between, such as
    /// `locks.metatm-2007.find-8.hold.1`.
    pub name: String,
    /// How its rows come about. Those that are timed have the host for themselves.
    pub kind: Method,
    /// The smallest scale that it is a part of.
    pub scale: Scale,
    /// How long it takes on a core of today, in seconds, roughly: for the time that is left.
    pub seconds: f64,
    /// The work.
    pub work: Work,
}

impl Cell {
    /// The number of its run, from 1; none where there is but one.
    pub fn run(&self) -> Option<u32> {
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
