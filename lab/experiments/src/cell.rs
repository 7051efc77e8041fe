//! A cell: the smallest piece of an experiment that is run by itself, by one command, with one file
//! as its result.
//!
//! A timed cell is a round: every configuration compared has its turn in it, so that disturbances
//! of the host affect all of them alike. Any other cell is one run of one configuration. Invariant
//! `same-name-same-work`: a cell that is not timed gives the same rows on every host and at every
//! scale; so what `--quick` runs is a part of what `--full` runs.

use core::fmt;

use crate::raw::{Method, Raw, SITTING};

use brickyard_run::side_by_side::Follow;

use super::traces::Traces;

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// What two cores can run in three to four minutes.
    Quick,
    /// Everything.
    Full,
}

impl Scale {
    /// Returns `Quick` if `quick`, else `Full`.
    #[must_use]
    pub const fn quick_if(quick: bool) -> Self {
        if quick { Self::Quick } else { Self::Full }
    }
}

/// What a cell is given to run with.
#[derive(Debug)]
pub struct Context<'a> {
    /// The seed of all random choices: run 1 has this seed, run 2 the next.
    pub seed: u64,
    /// The recorded traces.
    pub traces: &'a Traces,
    /// Polled now and then to learn whether the cell should stop.
    pub follow: Follow<'a>,
}

impl Context<'_> {
    /// Returns the seed of a run; runs are counted from 1.
    pub const fn seed_of(&self, run: u32) -> u64 {
        self.seed.wrapping_add(run as u64 - 1)
    }
}

/// What a cell produced.
#[derive(Debug, Default)]
pub struct Done {
    /// Its rows.
    pub rows: Vec<Raw>,
    /// The HTML pages it made: a file name such as `gekko-lp1.html`, and the page.
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

/// The function that runs a cell. If it is stopped early (by `follow`), it returns an error.
pub type Work = Box<dyn Fn(Context<'_>) -> anyhow::Result<Done> + Send + Sync>;

/// A cell.
pub struct Cell {
    /// Its name: EXPERIMENT.MACHINE, then what distinguishes it from other cells and, where there
    /// are several runs, the number of the run; words of `a-z0-9+-` separated by dots, such as
    /// `locks.metatm-2007.find-8.hold.1`.
    pub name: String,
    /// How its rows are obtained. No other cell runs beside one that is timed.
    pub kind: Method,
    /// The smallest scale that it is a part of.
    pub scale: Scale,
    /// Roughly how many seconds it takes on a core of today; used to estimate the time left.
    pub seconds: f64,
    /// The work.
    pub work: Work,
}

impl Cell {
    /// Returns true if it is timed in the second sitting.
    pub fn is_late(&self) -> bool {
        self.kind == Method::Timed && self.run().is_some_and(|run| run > SITTING)
    }

    /// Returns the number of its run, from 1; none if there is only one.
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
