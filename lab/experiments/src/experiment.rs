//! An experiment is a value: a name, what it can be told, the cells that it consists of, and the
//! document that it repeats. Nothing else knows one by its name but the list of all, `catalog`.

use core::fmt;

use brickyard_results::Results;

use crate::cell::Cell;
use crate::document::Document;
use crate::refusal::Refusal;
use crate::settings::Settings;

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

impl Form {
    /// A form whose columns are compared with the first, with nothing below the table.
    #[must_use]
    pub const fn new(
        on: On,
        runs: u32,
        parameters: &'static [Parameter],
        cells: fn(&Settings<'_>) -> Result<Vec<Cell>, Refusal>,
    ) -> Self {
        Self {
            on,
            parameters,
            runs,
            by_steps: false,
            below: None,
            cells,
        }
    }
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
