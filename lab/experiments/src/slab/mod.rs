//! `slab`, the experiment of 2008: sockets, remote frees and memory on a simulated machine of that
//! time; and a socket's objects timed on this host.

pub(crate) mod document;
mod host;
mod simulated;

use crate::cell::Cell;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "slab",
    about: "Objects: time, memory, instructions of slab allocators (2008)",
    forms: &[
        Form {
            on: On::Simulated("bl460c-g1"),
            parameters: simulated::PARAMETERS,
            runs: 5,
            by_steps: false,
            below: None,
            cells: simulated::set,
        },
        Form {
            on: On::Host,
            parameters: host::PARAMETERS,
            runs: 10,
            by_steps: false,
            below: None,
            cells: host::set,
        },
    ],
    reproduced: cells,
    document: Some(document::document),
    uses_traces: false,
};

fn cells() -> Vec<Cell> {
    let mut cells = host::cells();
    cells.extend(simulated::cells());
    cells
}
