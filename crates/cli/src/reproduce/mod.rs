//! `brickyard reproduce`: every experiment of the five source documents, and the report.
//!
//! | file | what it holds |
//! |---|---|
//! | `cell.rs` | the smallest piece that is run by itself |
//! | `cells/` | the cells of each experiment, a file each |
//! | `plan.rs` | which of them are run |
//! | `running.rs` | running them |
//! | `report.rs` | what is made of them |
//! | `list.rs` | `--list-cells` |
//! | `traces.rs` | the recorded traces, each read once |
//!
//! What was published, and how it is held against what is measured: `brickyard_reproduce`.

mod cell;
mod cells;
mod list;
mod plan;
mod report;
mod running;
mod traces;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use brickyard_reproduce::expect::Expected;
use brickyard_reproduce::page::Missing;
use brickyard_reproduce::store::Folder;
use clap::{Args, ValueEnum};

use crate::interrupt;
use crate::misuse::Misuse;
use cell::{Experiment, Scale};
use plan::Plan;
use report::Report;
use running::{Ended, Running};
use traces::Traces;

/// The options of `brickyard reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// What two cores do within two minutes. This is what happens where neither this nor --full is given.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All runs, as many as the documents had, and all configurations: a quarter of an hour on two cores.
    #[arg(long)]
    full: bool,
    /// These experiments alone.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<Experiment>,
    /// Where all chance comes from: the first run of each experiment has this seed, the second the next.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// The folder for the report and the rows that it is made of.
    #[arg(long, short, default_value = "reproduced", value_name = "DIR")]
    output: PathBuf,
    /// Keep the cells that are done in the folder, by whomever, run those that are not, and make the report of all.
    #[arg(long)]
    resume: bool,
    /// How many cells at once, of those that are not timed. [default: one a core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Where the traces are.
    #[arg(long, default_value = "traces", value_name = "DIR")]
    traces: PathBuf,
    /// List the cells instead of running them: their names, a line each, or with --format csv or json what else there is to know.
    #[arg(long, conflicts_with_all = ["cell", "resume", "expect"])]
    list_cells: bool,
    /// How --list-cells prints.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"], requires = "list_cells")]
    format: String,
    /// Run these cells alone, whatever there is of them already, and make no report.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", conflicts_with_all = ["quick", "full", "only", "resume", "expect"])]
    cell: Vec<String>,
    /// Hold the tables against these rows of an earlier run (its rows.parquet), and fail where they differ by more than they may: simulated and replayed figures by 1 percent,
    /// ratios of timed ones by three times.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

/// The folder in commands that repeat something: not the one that the report lies in, whose rows stay as they are.
const AGAIN: &str = "again";

/// So many cells, in words.
fn counted(count: usize) -> String {
    match count {
        1 => "1 cell".to_owned(),
        _ => format!("{count} cells"),
    }
}

impl ValueEnum for Experiment {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

impl Reproduce {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.jobs == Some(0) {
            return Err(Misuse::new("--jobs must be at least 1").into());
        }
        if self.list_cells {
            return list::list(&self.plan()?, self.seed, &self.output, &self.format);
        }
        if !self.traces.is_dir() {
            return Err(Misuse::new(format!(
                "there is no folder {}: --traces DIR says where the traces are",
                self.traces.display()
            ))
            .into());
        }
        // Read before any long work: it may not be what it should.
        let expected = self.expect.as_deref().map(Expected::read).transpose()?;
        let folder = Folder::new(&self.output);
        let plan = self.plan()?;
        let done = folder.cells().with_context(|| {
            format!(
                "cannot look into {}; give another --output",
                self.output.display()
            )
        })?;
        self.same_seed(&folder, &done)?;
        let is_kept = |name: &String| self.cell.is_empty() && done.contains(name);
        if self.cell.is_empty() && !self.resume && !done.is_empty() {
            return Err(Misuse::new(format!(
                "{} has {} of an earlier run: --resume goes on with it and keeps what is done, --output DIR takes another folder",
                self.output.display(),
                counted(done.len())
            ))
            .into());
        }
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make the folder {}", self.output.display()))?;
        interrupt::watch()?;
        let mut cells = plan.cells;
        cells.retain(|cell| !is_kept(&cell.name));
        let running = Running {
            folder: &folder,
            traces: &Traces::new(&self.traces),
            seed: self.seed,
            jobs: self.jobs,
        };
        let ended = running.run(cells)?;
        for (name, error) in &ended.failed {
            eprintln!("brickyard: {name}: {error:#}");
        }
        if self.cell.is_empty() {
            self.report(&folder, &ended, expected.as_ref())?;
        }
        self.verdict(&ended)
    }

    /// A folder has one seed. The first cell that can be read tells it; one that cannot be read is told of when the report needs it.
    fn same_seed(&self, folder: &Folder, done: &[String]) -> Result<(), Misuse> {
        let first = done.iter().find_map(|name| folder.read(name).ok());
        match first {
            Some(cell) if cell.seed != self.seed => Err(Misuse::new(format!(
                "the cells of {} were run with seed {}, not {}: give --seed {1}, or another folder by --output",
                self.output.display(),
                cell.seed,
                self.seed
            ))),
            _ => Ok(()),
        }
    }

    /// Makes the report, and holds it against what is expected.
    fn report(
        &self,
        folder: &Folder,
        ended: &Ended,
        expected: Option<&Expected>,
    ) -> anyhow::Result<()> {
        let failed = ended.failed.iter().map(|(cell, error)| Missing {
            cell: cell.clone(),
            why: format!("{error:#}"),
        });
        let left = ended.left.iter().map(|cell| Missing {
            cell: cell.clone(),
            why: "not run: the run was interrupted; --resume goes on with it".to_owned(),
        });
        let missing = failed.chain(left).collect();
        let report = Report {
            folder,
            seed: self.seed,
            command: self.command(),
            missing,
            experiments: self.experiments().iter().map(|one| one.name()).collect(),
        };
        let data = report.make()?;
        let Some(expected) = expected else {
            return Ok(());
        };
        let differences = expected.differences(&data);
        for difference in &differences.lines {
            eprintln!("brickyard: {difference}");
        }
        if differences.lines.is_empty() {
            eprintln!("{} figures are as expected", differences.compared);
            return Ok(());
        }
        bail!(
            "{} of {} figures differ from those expected by more than they may",
            differences.lines.len(),
            differences.compared
        )
    }

    fn verdict(&self, ended: &Ended) -> anyhow::Result<()> {
        if !ended.left.is_empty() {
            bail!(
                "interrupted: {} left; --resume --output {} goes on",
                counted(ended.left.len()),
                self.output.display()
            );
        }
        if !ended.failed.is_empty() {
            bail!("{} failed", counted(ended.failed.len()));
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, Misuse> {
        if self.cell.is_empty() {
            Ok(Plan::new(self.scale(), &self.experiments()))
        } else {
            Plan::named(&self.cell)
        }
    }

    const fn scale(&self) -> Scale {
        if self.full { Scale::Full } else { Scale::Quick }
    }

    fn experiments(&self) -> Vec<Experiment> {
        if self.only.is_empty() {
            Experiment::ALL.to_vec()
        } else {
            self.only.clone()
        }
    }

    /// The command that repeats the whole run.
    fn command(&self) -> String {
        let scale = if self.full { "--full" } else { "--quick" };
        let mut command = format!(
            "brickyard reproduce {scale} --seed {} --output {AGAIN}",
            self.seed
        );
        if !self.only.is_empty() {
            let names: Vec<&str> = self.only.iter().map(|one| one.name()).collect();
            command += &format!(" --only {}", names.join(","));
        }
        command
    }
}
