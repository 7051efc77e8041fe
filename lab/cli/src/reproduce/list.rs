//! `--list-cells`: the cells of a plan, to distribute them over many machines.

use std::path::Path;

use brickyard_experiments::cell::Cell;
use brickyard_results::{Format, Listing};
use brickyard_run::terminal::print;

use super::command::Commands;

/// Prints the cells: names only, or as CSV or JSON with kind, rough cost and the command that runs
/// the cell into `folder`.
pub(super) fn list(
    cells: &[Cell],
    commands: Commands<'_>,
    folder: &Path,
    format: Format,
) -> anyhow::Result<()> {
    if format == Format::Table {
        let names: String = cells
            .iter()
            .map(|cell| format!("{}\n", cell.name))
            .collect();
        return Ok(print(&names)?);
    }
    let listing = Listing::of(
        cells,
        &[
            ("cell", &|cell| cell.name.as_str().into()),
            ("kind", &|cell| cell.kind.name().into()),
            ("seconds", &|cell| cell.seconds.into()),
            ("command", &|cell| commands.cell(&cell.name, folder).into()),
        ],
    );
    Ok(print(&listing.text(format))?)
}
