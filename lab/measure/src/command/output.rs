//! How every subcommand prints its results: as a table, CSV or JSON, to standard output or a file.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use brickyard_results::{Against, Deviation, Format, Results, TableOptions, noise_warning};
use brickyard_run::terminal::print;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the parser of a format.
pub fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse())
}

/// The options of subcommands that print results.
#[derive(Debug, Args)]
pub struct SheetOutput {
    /// The format of the results.
    #[arg(long, default_value = "table", value_parser = format())]
    pub format: Format,
    /// Write the results here instead of to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl SheetOutput {
    /// Fails if the output file cannot be written; called before any long work.
    pub fn check(&self) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), check)
    }

    /// Returns the output file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Writes a text to the output file, or to standard output. If the file cannot be written, the
    /// text is printed instead, so that nothing measured is lost.
    pub fn put(&self, text: &str) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return Ok(print(text)?);
        };
        let written = fs::write(path, text);
        if written.is_err() {
            print(text)?;
        }
        written.with_context(|| {
            let path = path.display();
            format!("cannot write {path}; the results are printed instead")
        })
    }
}

/// Fails if the file cannot be opened for writing. Changes nothing, so that a run that fails leaves
/// no empty file.
pub fn check(path: &Path) -> anyhow::Result<()> {
    // Opening for append leaves existing contents as they are.
    let opened = match OpenOptions::new().append(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    opened.with_context(|| format!("cannot write {}", path.display()))
}

/// The options that every measuring subcommand has.
#[derive(Debug, Args)]
pub struct Output {
    #[command(flatten)]
    to: SheetOutput,
    /// Omit the deviations from the table.
    #[arg(long)]
    no_deviation: bool,
}

impl Output {
    /// Fails if the output file cannot be written; called before any long work.
    pub fn check(&self) -> anyhow::Result<()> {
        self.to.check()
    }

    /// Prints `results`, each column compared with the first or with the one before it. `label`
    /// makes a line's label from its workload and metric. Below a table, and no other format, comes
    /// `more`. If the file cannot be written, the results are printed instead, so that nothing
    /// measured is lost.
    pub fn emit(
        &self,
        results: &Results,
        against: Against,
        label: &dyn Fn(&str, &str) -> String,
        more: &str,
    ) -> anyhow::Result<()> {
        let single = results.rows().iter().all(|row| row.samples().len() == 1);
        let options = TableOptions {
            against,
            deviation: match self.no_deviation || single {
                true => Deviation::Hidden,
                false => Deviation::Shown,
            },
            label,
            ..TableOptions::default()
        };
        let mut text = results.text(self.to.format, &options);
        if self.to.format == Format::Table {
            text += more;
        }
        let written = self.to.put(&text);
        if let Some(warning) = noise_warning(results) {
            eprintln!("{warning}");
        }
        written
    }
}
