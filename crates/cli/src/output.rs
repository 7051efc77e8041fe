//! How every subcommand gives its results: as a table, CSV or JSON, to standard output or a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use brickyard_report::{Deviation, Format, Results, TableOptions, noise_warning, write};
use clap::Args;

/// The options that every measuring subcommand has.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// How the results are printed.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"])]
    format: String,
    /// Write the results here instead of to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave the deviations out of the table.
    #[arg(long)]
    no_deviation: bool,
}

impl Output {
    /// Prints `results`, with `label` making the head of a table's line out of workload and metric.
    pub(crate) fn emit(
        &self,
        results: &Results,
        label: &dyn Fn(&str, &str) -> String,
    ) -> anyhow::Result<()> {
        let format: Format = self.format.parse()?;
        let options = TableOptions {
            deviation: if self.no_deviation {
                Deviation::Hidden
            } else {
                Deviation::Shown
            },
            label,
            ..TableOptions::default()
        };
        match &self.output {
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(results, format, &options, &mut out)?;
                out.flush()?;
            }
            Some(path) => {
                let whole = || -> io::Result<()> {
                    let mut out = BufWriter::new(File::create(path)?);
                    write(results, format, &options, &mut out)?;
                    out.flush()
                };
                whole().with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        if let Some(warning) = noise_warning(results) {
            eprintln!("{warning}");
        }
        Ok(())
    }
}
