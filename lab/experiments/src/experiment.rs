//! An experiment is a value: a name, what it can be told, the cells that it consists of, and the
//! document that it repeats. Nothing else knows an experiment by its name.

use core::fmt;

use brickyard_results::Results;

use crate::cell::Cell;
use crate::document::Document;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::{
    forecast, fragmentation, kernbench, locks, mobility, pagealloc, pft, scarce, slab, storm,
    two_kinds,
};

/// An experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name, with which the names of its cells begin.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// What `brickyard run` can make of it, one for each kind of machine.
    pub forms: &'static [Form],
    /// The cells of `brickyard reproduce`, of every scale.
    pub reproduced: fn() -> Vec<Cell>,
    /// What was published, and how it is judged; `None` where no document has the experiment.
    pub document: Option<fn() -> Document>,
    /// Whether its simulated and replayed cells use the recorded traces.
    pub uses_traces: bool,
}

/// The experiment on one kind of machine: its parameters there, and the cells that they give.
#[derive(Debug)]
pub struct Form {
    /// Where it runs.
    pub on: On,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// How many runs it has if the user does not say.
    pub runs: u32,
    /// Whether each column is compared with the one before it, as in 2007, and not with the first.
    pub by_steps: bool,
    /// Returns what is printed below the table of these results.
    pub below: Option<fn(&Settings<'_>, &Results) -> String>,
    /// Returns the cells: of each run one or several, in the order of the table.
    pub cells: fn(&Settings<'_>) -> Result<Vec<Cell>, Refusal>,
}

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// This host, with real threads.
    Host,
    /// A simulated machine; the first if the user names none.
    Simulated(&'static str),
    /// A machine that recorded traces are replayed on: one of these, the first if the user names
    /// none.
    Replayed(&'static [&'static str]),
}

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value if it is not set; `auto` where that depends on others, see the help.
    pub default: &'static str,
    /// What it is, with its values.
    pub help: &'static str,
}

impl Parameter {
    /// A parameter.
    #[must_use]
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self {
            name,
            default,
            help,
        }
    }
}

impl Experiment {
    /// Those of the documents, in the order of the report.
    pub const REPRODUCED: [Self; 7] = [
        locks::EXPERIMENT,
        pagealloc::EXPERIMENT,
        pft::EXPERIMENT,
        kernbench::EXPERIMENT,
        two_kinds::EXPERIMENT,
        slab::EXPERIMENT,
        mobility::EXPERIMENT,
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [
            storm::EXPERIMENT,
            scarce::EXPERIMENT,
            fragmentation::EXPERIMENT,
            forecast::EXPERIMENT,
        ];
        Self::REPRODUCED.into_iter().chain(others)
    }

    /// Returns the experiment of this name.
    ///
    /// # Errors
    /// [`Refusal::NoExperiment`].
    pub fn by_name(name: &str) -> Result<Self, Refusal> {
        Self::all()
            .find(|one| one.name == name)
            .ok_or_else(|| Refusal::NoExperiment(name.to_owned()))
    }
}

impl PartialEq for Experiment {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Experiment {}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Experiment").field(&self.name).finish()
    }
}
