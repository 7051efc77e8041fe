//! `pft`, the page fault test of 2013: faults a second by the number of CPUs.
//!
//! | file | what it holds |
//! |---|---|
//! | `assumed.rs` | on the simulated machine of 2013, under other assumptions about it |
//! | `sizes.rs` | on the simulated machine of 2013, by the pages of a process |
//! | `simulated.rs` | on simulated machines |
//! | `host.rs` | with real threads that allocate and clear real pages |
//! | `document.rs` | what was published |

mod assumed;
pub(crate) mod document;
mod host;
mod simulated;
mod sizes;

use crate::cell::Cell;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pft",
    about: "Page faults a second, by the number of CPUs (2013)",
    forms: &[
        Form::new(
            On::Simulated("i7-2013"),
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
    cells.extend(sizes::cells());
    cells.extend(assumed::cells());
    cells
}
