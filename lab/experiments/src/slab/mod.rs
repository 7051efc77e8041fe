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
        Form::new(
            On::Simulated("bl460c-g1"),
            5,
            simulated::PARAMETERS,
            simulated::set,
        ),
        Form::new(On::Host, 10, host::PARAMETERS, host::set),
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
