//! `slab`, the experiment of 2008: sockets, remote frees and memory on a simulated machine of that
//! time; and a socket's objects timed on this host.

mod host;
mod simulated;

use crate::cell::Cell;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = host::cells();
    cells.extend(simulated::cells());
    cells
}
