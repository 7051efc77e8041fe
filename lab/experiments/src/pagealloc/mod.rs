//! `pagealloc`, the micro-benchmark of 2013: what a page costs to allocate and to free, by the
//! batch; how long the slowest allocations take when many CPUs allocate at once; and what a global
//! drain costs.
//!
//! | file | what it holds |
//! |---|---|
//! | `batches.rs` | the batches, with a thread of this host |
//! | `host.rs` | the same with settings of the user's choice, and their instructions |
//! | `document.rs` | what was published |
//! | `drains.rs` | global drains, on a simulated machine |
//! | `storm.rs` | the latencies, on a simulated machine |

mod batches;
pub(crate) mod document;
mod drains;
mod host;
mod storm;

use crate::cell::Cell;
use crate::experiment::{Experiment, Form, On};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pagealloc",
    about: "Pages allocated and freed in batches, storms, drains (2013)",
    forms: &[Form {
        below: Some(host::below),
        ..Form::new(On::Host, 10, host::PARAMETERS, host::set)
    }],
    reproduced: cells,
    document: Some(document::document),
    uses_traces: false,
};

fn cells() -> Vec<Cell> {
    let mut cells = batches::cells();
    cells.extend(storm::cells());
    cells.extend(drains::cells());
    cells
}
