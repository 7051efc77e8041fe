//! `locks`, the experiment of 2007: how long to hold the zone lock for a bulk of pages.
//!
//! | file | what it holds |
//! |---|---|
//! | `simulated.rs` | the five columns on the two machines of the paper |
//! | `today.rs` | the same workloads under the configurations that came later |
//! | `host.rs` | the five columns with real threads of this host |
//! | `document.rs` | what was published |

mod document;
mod host;
mod simulated;

mod today;

use crate::cell::Cell;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "locks",
    about: "How long to hold the zone lock for a bulk of pages: time, waiting, holding (2007)",
    forms: &[
        // As in the simulations of 2007: too few for a star.
        Form {
            by_steps: true,
            ..Form::new(
                On::Simulated("metatm-2007"),
                4,
                simulated::PARAMETERS,
                simulated::set,
            )
        },
        Form {
            by_steps: true,
            ..Form::new(On::Host, 15, host::PARAMETERS, host::set)
        },
    ],
    reproduced: cells,
    document: Some(document::document),
    uses_traces: true,
};

fn cells() -> Vec<Cell> {
    let mut cells = host::cells();
    cells.extend(simulated::cells());
    cells.extend(today::cells());
    cells
}
