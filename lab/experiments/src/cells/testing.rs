//! Helpers of the tests of cells: finding a cell by its name, and running it.

use std::path::Path;
use std::sync::LazyLock;

use crate::raw::Raw;

use brickyard_run::progress::Silent;
use brickyard_run::side_by_side;

use crate::cell::{Cell, Context, Done};
use crate::traces::Traces;

/// Returns the traces of this project, read once for all tests.
pub(crate) fn traces() -> &'static Traces {
    static ALL: LazyLock<Traces> =
        LazyLock::new(|| Traces::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")));
    &ALL
}

/// Returns the cell with this name; panics unless there is exactly one.
pub(crate) fn found<'c>(cells: &'c [Cell], name: &str) -> &'c Cell {
    let all: Vec<&Cell> = cells.iter().filter(|cell| cell.name == name).collect();
    assert_eq!(all.len(), 1, "{name}");
    all[0]
}

/// Runs a cell with seed 1.
pub(crate) fn done_of(cell: &Cell) -> Done {
    let done = side_by_side::run(&Silent, 1, Some(1), |_, follow| {
        (cell.work)(Context {
            seed: 1,
            traces: traces(),
            follow,
        })
    });
    done.into_iter().next().unwrap().unwrap()
}

/// Runs a cell with seed 1; returns its rows.
pub(crate) fn rows_of(cell: &Cell) -> Vec<Raw> {
    done_of(cell).rows
}

/// Returns the workload and metric of the rows, adjacent duplicates removed.
pub(crate) fn keys(rows: &[Raw]) -> Vec<(&str, &str)> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    keys.extend(rows.iter().map(|row| (&*row.workload, &*row.metric)));
    keys.dedup();
    keys
}
