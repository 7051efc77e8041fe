//! `--list-cells`: the cells of a plan, for whoever hands them to many machines.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;

use super::plan::Plan;

/// Prints them: names alone, or as CSV or JSON with kind, rough cost and command.
pub(super) fn list(plan: &Plan, seed: u64, folder: &Path, format: &str) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let command = |name: &str| Plan::command(name, seed, folder);
    match format {
        "json" => {
            let cells = plan.cells.iter().map(|cell| {
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
            for cell in &plan.cells {
                let command = command(&cell.name).replace('"', "\"\"");
                writeln!(
                    out,
                    "{},{},{},\"{command}\"",
                    cell.name, cell.kind, cell.seconds
                )?;
            }
        }
        _ => {
            for cell in &plan.cells {
                writeln!(out, "{}", cell.name)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
