//! `brickyard reproduce`: every experiment of the five source documents, and the report.
//!
//! | file | what it holds |
//! |---|---|
//! | `teller.rs` | how far it is |
//! | `report.rs` | what is made of what was measured |
//! | `command.rs` | commands that repeat something or go on with it |
//! | `list.rs` | `--list-cells` |
//!
//! The cells, and what runs and judges them: `brickyard_experiments`.

mod command;
mod list;
mod report;
mod teller;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use brickyard_experiments::cell::{Cell, Experiment, Scale};
use brickyard_experiments::data::Data;
use brickyard_experiments::expect::Expected;
use brickyard_experiments::kept::{self, Kept};
use brickyard_experiments::lock;
use brickyard_experiments::page::Missing;
use brickyard_experiments::plan::{Plan, Scope, counted};
use brickyard_experiments::running::{Ended, Running};
use brickyard_experiments::store::Folder;
use brickyard_experiments::traces::Traces;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::interrupt;
use crate::misuse::{Misuse, at_least_one};
use crate::say::tell;
use command::{Begins, Commands, quoted};
use report::Report;
use teller::Teller;

/// The options of `brickyard reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// What two cores do within two minutes. This is what happens where neither this nor --full is
    /// given.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All runs, as many as the documents had, and all configurations: a quarter of an hour on two
    /// cores.
    #[arg(long)]
    full: bool,
    /// These experiments alone; several with commas between.
    #[arg(long, value_parser = experiment(), value_delimiter = ',', value_name = "NAMES")]
    only: Vec<Experiment>,
    /// Where all chance comes from: the first run of each experiment has this seed, the second the
    /// next.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// The folder for the report and the rows that it is made of.
    #[arg(long, short, default_value = "reproduced", value_name = "DIR")]
    output: PathBuf,
    /// Keep the cells that are done in the folder, by whomever, and run those that are not, with
    /// those that are damaged or of another build of the program or of other traces. The report is
    /// of all that the folder has, not only of what is asked for now.
    #[arg(long)]
    resume: bool,
    /// How many cells at once, of those that are not timed. [default: one a core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Where the traces are.
    #[arg(long, default_value = command::TRACES, value_name = "DIR")]
    traces: PathBuf,
    /// List the cells instead of running them: their names, a line each, or with --format csv or
    /// json what else there is to know. With --resume only those that are still to be run in the
    /// folder.
    #[arg(long, conflicts_with_all = ["cell", "expect"])]
    list_cells: bool,
    /// How --list-cells prints.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"], requires = "list_cells")]
    format: String,
    /// Run these cells alone (several with commas between), whatever there is of them already, and
    /// make no report.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", conflicts_with_all = ["quick", "full", "only", "resume", "expect"])]
    cell: Vec<String>,
    /// Hold the tables against these rows of an earlier run (its rows.parquet), and fail where they
    /// differ by more than they may: simulated and replayed figures by 1 percent, ratios of timed
    /// ones by three times. Those that scatter too much to say are left out. How many were compared
    /// is said.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

/// An experiment by its name.
fn experiment() -> impl TypedValueParser<Value = Experiment> {
    PossibleValuesParser::new(Experiment::ALL.map(Experiment::name)).try_map(|given| {
        let mut all = Experiment::ALL.into_iter();
        all.find(|one| one.name() == given)
            .ok_or("nothing is called so")
    })
}

impl Reproduce {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        at_least_one([("jobs", self.jobs)])?;
        if self.list_cells {
            return self.list();
        }
        let traces = Traces::new(&self.traces);
        if self.cell.is_empty() {
            self.whole(&traces)
        } else {
            self.by_name(&traces)
        }
    }

    fn list(&self) -> anyhow::Result<()> {
        let mut cells = Plan::of(&self.asked()).cells;
        if self.resume {
            let kept = Kept::read(&self.folder(), self.seed)?;
            cells = self.left(&kept, cells, &Traces::new(&self.traces));
        }
        list::list(&cells, self.commands(), &self.output, &self.format)
    }

    /// Runs all that is asked for and not yet done, and makes the report.
    fn whole(&self, traces: &Traces) -> anyhow::Result<()> {
        let expected = self.expected()?;
        let folder = self.folder();
        let mut cells = Plan::of(&self.asked()).cells;
        if !self.resume {
            traces.check(&cells)?;
        }
        self.make_folder()?;
        let _lock = lock::folder(&self.output, |line| tell(line))?;
        if self.resume {
            let kept = Kept::read(&folder, self.seed)?;
            cells = self.left(&kept, cells, traces);
            traces.check(&cells)?;
        } else {
            self.is_new(&folder)?;
        }
        let ended = self.run_cells(&folder, cells, traces)?;
        let reported = self.report(&folder, &ended, expected.as_ref());
        match (self.verdict(&ended), reported) {
            (Ok(()), reported) => reported,
            (verdict, Ok(())) => verdict,
            (verdict, Err(error)) => {
                tell(format_args!("brickyard: {error:#}"));
                verdict
            }
        }
    }

    /// Runs the cells that are named, whatever there is of them.
    fn by_name(&self, traces: &Traces) -> anyhow::Result<()> {
        let cells = Plan::named(&self.cell)?.cells;
        traces.check(&cells)?;
        let folder = self.folder();
        // One of many processes in this folder: it does not read all that the others wrote.
        let first = kept::names(&folder)?.into_iter();
        if let Some(cell) = first.filter_map(|name| folder.read(&name).ok()).next() {
            kept::same_seed(&folder, &cell, self.seed)?;
        }
        self.make_folder()?;
        let ended = self.run_cells(&folder, cells, traces)?;
        self.verdict(&ended)
    }

    /// Read before any long work: it may not be what it should.
    fn expected(&self) -> Result<Option<Expected>, Misuse> {
        let read = self.expect.as_deref().map(Expected::read).transpose();
        read.map_err(|error| Misuse::new(format!("--expect: {:#}", anyhow::Error::new(error))))
    }

    fn make_folder(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make the folder {}", self.output.display()))
    }

    /// Refuses a folder that has cells.
    fn is_new(&self, folder: &Folder) -> anyhow::Result<()> {
        let done = kept::names(folder)?;
        if done.is_empty() {
            return Ok(());
        }
        Err(Misuse::new(format!(
            "{} has {} of an earlier run: --resume goes on with it and keeps what is done, --output DIR takes another folder",
            self.output.display(),
            counted(done.len())
        ))
        .into())
    }

    /// Those of `cells` that are still to be run, telling why any is run again.
    fn left(&self, kept: &Kept, cells: Vec<Cell>, traces: &Traces) -> Vec<Cell> {
        let (left, again) = kept.left(cells, traces);
        again.iter().for_each(tell);
        left
    }

    fn run_cells(
        &self,
        folder: &Folder,
        cells: Vec<Cell>,
        traces: &Traces,
    ) -> anyhow::Result<Ended> {
        interrupt::watch()?;
        let running = Running {
            folder,
            traces,
            seed: self.seed,
            jobs: self.jobs,
            progress: &Teller::new(cells.len()),
        };
        running.run(cells)
    }

    /// Makes the report of all that the folder has and all that was asked for, and holds it against
    /// what is expected.
    fn report(
        &self,
        folder: &Folder,
        ended: &Ended,
        expected: Option<&Expected>,
    ) -> anyhow::Result<()> {
        let kept = Kept::read(folder, self.seed)?;
        let held = Scope::holding(kept.names().into_iter().chain(kept.damaged_names()));
        let scope = self.asked().joined(&held);
        let missing = missing(&scope, &kept, ended);
        let nobody_asked = missing.iter().filter(|one| !ended.has(&one.cell)).count();
        if nobody_asked > 0 {
            tell(format_args!(
                "The folder has parts of a larger run, of which {} are lacking. To run them too:\n  {}",
                counted(nobody_asked),
                self.commands().run(&scope, Begins::Resumed, &self.output)
            ));
        }
        let report = Report {
            folder,
            commands: self.commands(),
            scope: &scope,
            missing,
            warnings: kept.left_out().into_iter().collect(),
        };
        let data = report.make(kept.cells)?;
        expected.map_or(Ok(()), |expected| hold(expected, &data))
    }

    fn verdict(&self, ended: &Ended) -> anyhow::Result<()> {
        let (failed, left) = (counted(ended.failed.len()), counted(ended.left.len()));
        let go_on = || self.going_on(&ended.left);
        match (ended.failed.is_empty(), ended.left.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => bail!("{failed} failed"),
            (true, false) => bail!("interrupted: {left} left; to go on:\n  {}", go_on()),
            (false, false) => bail!(
                "{failed} failed; interrupted: {left} left; to go on:\n  {}",
                go_on()
            ),
        }
    }

    /// The command that goes on with this run.
    fn going_on(&self, left: &[String]) -> String {
        let commands = self.commands();
        let mut command = if self.cell.is_empty() {
            commands.run(&self.asked(), Begins::Resumed, &self.output)
        } else {
            commands.cell(&left.join(","), &self.output)
        };
        if let Some(jobs) = self.jobs {
            command += &format!(" --jobs {jobs}");
        }
        if let Some(path) = &self.expect {
            command += &format!(" --expect {}", quoted(path));
        }
        command
    }

    fn asked(&self) -> Scope {
        let scale = if self.full { Scale::Full } else { Scale::Quick };
        if self.only.is_empty() {
            Scope::new(scale, &Experiment::ALL)
        } else {
            Scope::new(scale, &self.only)
        }
    }

    fn commands(&self) -> Commands<'_> {
        Commands {
            seed: self.seed,
            traces: &self.traces,
        }
    }

    fn folder(&self) -> Folder {
        Folder::new(&self.output)
    }
}

/// The cells of `scope` that are not there, each with why.
fn missing(scope: &Scope, kept: &Kept, ended: &Ended) -> Vec<Missing> {
    let names = kept.names();
    let why = |cell: &str| {
        let failed = ended.failed.iter().find(|(name, _)| name == cell);
        if let Some((_, error)) = failed {
            format!("{error:#}")
        } else if ended.left.iter().any(|name| name == cell) {
            "not run: the run was interrupted; --resume goes on with it".to_owned()
        } else if let Some(why) = kept.damaged.get(cell) {
            format!("its file is damaged: {why}")
        } else {
            "not run yet".to_owned()
        }
    };
    let cells = Plan::of(scope).cells.into_iter();
    let lacking = cells.filter(|cell| !names.contains(cell.name.as_str()));
    lacking
        .map(|cell| Missing {
            why: why(&cell.name),
            cell: cell.name,
        })
        .collect()
}

/// Holds a report against what is expected.
fn hold(expected: &Expected, data: &Data) -> anyhow::Result<()> {
    let differences = expected.differences(data);
    if differences.compared() == 0 {
        bail!("{}", differences.lines.join("; "));
    }
    differences.lines.iter().for_each(tell);
    let (exact, timed) = (differences.exact, differences.timed);
    tell(format_args!(
        "compared: {} simulated and replayed figures, {} timed ones; not compared: {} that are of other runs, {} timed ones that scatter too much",
        exact.compared, timed.compared, exact.skipped, timed.skipped
    ));
    if differences.lines.is_empty() {
        tell(format_args!(
            "{} figures are as expected",
            differences.compared()
        ));
        return Ok(());
    }
    bail!(
        "{} of {} figures differ from those expected by more than they may",
        differences.lines.len(),
        differences.compared()
    )
}
