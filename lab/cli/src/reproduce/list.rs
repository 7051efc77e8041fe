//! `--list-cells`: the cells of a plan, to distribute them over many machines.

use std::io::{self, Write as _};
use std::path::Path;

use brickyard_experiments::cell::Cell;
use serde_json::json;

use super::command::Commands;

/// Prints the cells: names only, or as CSV or JSON with kind, rough cost and the command that runs
/// the cell into `folder`.
pub(super) fn list(
    cells: &[Cell],
    commands: Commands<'_>,
    folder: &Path,
    format: &str,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let command = |name: &str| commands.cell(name, folder);
    match format {
        "json" => {
            let cells = cells.iter().map(|cell| {
                json!({
                    "cell": cell.name,
                    "kind": cell.kind.name(),
                    "seconds": cell.seconds,
                    "command": command(&cell.name),
                })
            });
            serde_json::to_writer_pretty(&mut out, &cells.collect::<Vec<_>>())?;
            writeln!(out)?;
        }
        "csv" => {
            writeln!(out, "cell,kind,seconds,command")?;
            for cell in cells {
                let command = command(&cell.name).replace('"', "\"\"");
                writeln!(
                    out,
                    "{},{},{},\"{command}\"",
                    cell.name, cell.kind, cell.seconds
                )?;
            }
        }
        _ => {
            for cell in cells {
                writeln!(out, "{}", cell.name)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
