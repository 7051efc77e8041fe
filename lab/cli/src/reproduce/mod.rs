//! `brickyard reproduce`: every experiment of the five source documents, and the report.
//!
//! | file | what it holds |
//! |---|---|
//! | `progress.rs` | the progress of a run |
//! | `report.rs` | the report and the files made from the rows |
//! | `command.rs` | commands that repeat or resume a run |
//! | `list.rs` | `--list-cells` |
//!
//! The cells, and the code that runs and judges them, are in `brickyard_experiments`.

mod command;
mod list;
mod progress;
mod report;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use brickyard_experiments::apart::Apart;
use brickyard_experiments::catalog;
use brickyard_experiments::cell::{Cell, Scale};
use brickyard_experiments::data::Data;
use brickyard_experiments::directions::ANSWER_RULE;
use brickyard_experiments::expect::Expected;
use brickyard_experiments::experiment::Experiment;
use brickyard_experiments::finished::{self, Finished};
use brickyard_experiments::judge::{NONE_RULE, SIGN_RULE, SIZE_RULE, SWEEP_RULE, ZERO_RULE};
use brickyard_experiments::lock;
use brickyard_experiments::page::Missing;
use brickyard_experiments::plan::{Scope, check_traces, counted, named_cells};
use brickyard_experiments::running::{Ended, Running, in_folder};
use brickyard_experiments::store::{Folder, read_rows};
use brickyard_experiments::traces::Traces;
use brickyard_run::interrupt;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::record::quoted;
use brickyard_measure::command::misuse::{Misuse, at_least_one};
use brickyard_measure::command::output::format;
use brickyard_results::Format;
use brickyard_run::terminal::tell;
use command::{Commands, Start};
use progress::RunProgress;
use report::Report;

/// The options of `brickyard reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Run what two cores can do in three to four minutes. This is the default.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run everything: as many runs as the documents had, and all configurations. An hour
    /// or more on two cores.
    #[arg(long)]
    full: bool,
    /// Run only these experiments, separated by commas.
    #[arg(long, value_parser = experiment(), value_delimiter = ',', value_name = "NAMES")]
    only: Vec<Experiment>,
    /// The seed of all random choices: the first run of each experiment has this seed, the second
    /// run the next.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// The folder for the report and its rows.
    #[arg(long, short, default_value = "reproduced", value_name = "DIR")]
    output: PathBuf,
    /// Keep the cells that the folder already has, and run the others. Cells that are damaged, or
    /// were run by another build of the program or with other traces, are run again. The report
    /// covers everything in the folder, not only what is requested now.
    #[arg(long)]
    resume: bool,
    /// How many cells that are not timed run at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The folder of the traces.
    #[arg(long, default_value = command::TRACES, value_name = "DIR")]
    traces: PathBuf,
    /// List the cells instead of running them: one name per line, or with --format csv or json also
    /// kind, rough cost and command. With --resume, list only those still to be run in the folder.
    #[arg(long, conflicts_with_all = ["cell", "expect"])]
    list_cells: bool,
    /// The format of --list-cells.
    #[arg(long, default_value = "table", value_parser = format(), requires = "list_cells")]
    format: Format,
    /// Run only these cells (separated by commas), even if the folder already has them, and make no
    /// report.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", conflicts_with_all = ["quick", "full", "only", "resume", "expect"])]
    cell: Vec<String>,
    /// Run nothing: make the report of these rows of an earlier run (its rows.parquet) in the
    /// folder. How each published direction compares with the measured one is the column `verdict`
    /// of figures.csv: same, direction only, opposite, no effect, and others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "full", "only", "seed", "resume", "jobs", "list_cells", "cell", "expect"])]
    from: Option<PathBuf>,
    /// Compare the tables with these rows of an earlier run (its rows.parquet), and fail if they
    /// differ by more than is allowed: simulated and replayed figures by 1 percent. Ratios of timed
    /// ones that are off by more than a factor of three are named, but are no failure. Timed
    /// figures that scatter too much, or were timed on another model of CPU, are skipped. Prints
    /// how many were compared.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
}

/// Returns the rules by which results are compared with the published ones, for the help.
pub(crate) fn rules() -> String {
    format!(
        "How results are compared with the published ones:\n\n{SIGN_RULE}\n\n{SIZE_RULE}\n\n{SWEEP_RULE}\n\n{NONE_RULE}\n\n{ZERO_RULE}\n\n{ANSWER_RULE}"
    )
}

/// Returns the parser of an experiment's name.
fn experiment() -> impl TypedValueParser<Value = Experiment> {
    PossibleValuesParser::new(catalog::REPRODUCED.map(|one| one.name))
        .try_map(|name| catalog::by_name(&name))
}

impl Reproduce {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        at_least_one([("jobs", self.jobs)])?;
        if self.list_cells {
            return self.list();
        }
        if let Some(file) = &self.from {
            return self.report_of(file);
        }
        let traces = Traces::new(&self.traces);
        if self.cell.is_empty() {
            self.whole(&traces)
        } else {
            self.by_name(&traces)
        }
    }

    fn list(&self) -> anyhow::Result<()> {
        let mut cells = self.requested().cells();
        if self.resume {
            let kept = Finished::read(&self.folder(), self.seed)?;
            cells = self.left(&kept, cells, &Traces::new(&self.traces));
        }
        list::list(&cells, self.commands(), &self.output, self.format)
    }

    /// Runs all cells that are requested and not yet done, and makes the report.
    fn whole(&self, traces: &Traces) -> anyhow::Result<()> {
        let expected = self.expected()?;
        let folder = self.folder();
        let mut cells = self.requested().cells();
        if !self.resume {
            check_traces(&cells, traces)?;
        }
        self.make_folder()?;
        let _lock = lock::folder(&self.output, |line| tell(line))?;
        if self.resume {
            let kept = Finished::read(&folder, self.seed)?;
            cells = self.left(&kept, cells, traces);
            check_traces(&cells, traces)?;
        } else {
            self.is_new(&folder)?;
        }
        let apart = self.apart(&folder);
        let ended = self.run_cells(&folder, cells, traces, Some(&apart))?;
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

    /// Makes the report of the rows in a file. It covers the cells that the file has.
    fn report_of(&self, file: &Path) -> anyhow::Result<()> {
        let cells = read_rows(file)
            .map_err(|error| Misuse::new(format!("--from: {:#}", anyhow::Error::new(error))))?;
        let names = || cells.iter().map(|cell| cell.cell.as_str());
        let scope = Scope::holding(names());
        let have: BTreeSet<&str> = names().collect();
        let planned = scope.cells().into_iter();
        let lacking = planned.filter(|cell| !have.contains(cell.name.as_str()));
        let missing = lacking.map(|cell| Missing {
            cell: cell.name,
            why: format!("{} has no rows of it", file.display()),
        });
        let missing = missing.collect();
        self.make_folder()?;
        let folder = self.folder();
        let _lock = lock::folder(&self.output, |line| tell(line))?;
        self.is_new(&folder)?;
        let report = Report {
            folder: &folder,
            commands: Commands {
                seed: cells.first().map_or(self.seed, |cell| cell.seed),
                ..self.commands()
            },
            scope: &scope,
            missing,
            warnings: Vec::new(),
        };
        report.make(cells).map(drop)
    }

    /// Runs the named cells, even if the folder already has them.
    fn by_name(&self, traces: &Traces) -> anyhow::Result<()> {
        let cells = named_cells(&self.cell)?;
        check_traces(&cells, traces)?;
        let folder = self.folder();
        // Many processes may share this folder, so only one cell of it is read to check the seed.
        let first = finished::names(&folder)?.into_iter();
        if let Some(cell) = first.filter_map(|name| folder.read(&name).ok()).next() {
            finished::same_seed(&folder, &cell, self.seed)?;
        }
        self.make_folder()?;
        let ended = self.run_cells(&folder, cells, traces, None)?;
        self.verdict(&ended)
    }

    /// Reads the rows to compare with. Called before any long work, as the file may be invalid.
    fn expected(&self) -> Result<Option<Expected>, Misuse> {
        let read = self.expect.as_deref().map(Expected::read).transpose();
        read.map_err(|error| Misuse::new(format!("--expect: {:#}", anyhow::Error::new(error))))
    }

    fn make_folder(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot create the folder {}", self.output.display()))
    }

    /// Refuses a folder that has cells.
    fn is_new(&self, folder: &Folder) -> anyhow::Result<()> {
        let done = finished::names(folder)?;
        if done.is_empty() {
            return Ok(());
        }
        Err(Misuse::new(format!(
            "{} has {} of an earlier run: resume it with --resume, which keeps what is done, or give another folder with --output DIR",
            self.output.display(),
            counted(done.len())
        ))
        .into())
    }

    /// Returns those of `cells` that are still to be run, and prints why any is run again.
    fn left(&self, kept: &Finished, cells: Vec<Cell>, traces: &Traces) -> Vec<Cell> {
        let (left, again) = kept.left(cells, traces);
        again.iter().for_each(tell);
        left
    }

    /// Returns how a timed cell is run in a process of its own: as the user would run it by name.
    fn apart<'f>(&self, folder: &'f Folder) -> Apart<'f> {
        let words = |text: &str| OsString::from(text);
        Apart {
            // The running file, even if another has taken its name.
            program: PathBuf::from("/proc/self/exe"),
            arguments: vec![
                words("reproduce"),
                words("--seed"),
                self.seed.to_string().into(),
                words("--traces"),
                self.traces.clone().into(),
                words("--output"),
                self.output.clone().into(),
                words("--cell"),
            ],
            folder,
        }
    }

    fn run_cells(
        &self,
        folder: &Folder,
        cells: Vec<Cell>,
        traces: &Traces,
        apart: Option<&Apart<'_>>,
    ) -> anyhow::Result<Ended> {
        interrupt::watch()?;
        let running = Running {
            keep: &in_folder(folder),
            traces,
            seed: self.seed,
            longest_first: true,
            apart,
            jobs: self.jobs,
            progress: &RunProgress::new(cells.len()),
        };
        running.run(cells)
    }

    /// Makes the report of all that the folder has and all that was requested, and compares it with
    /// the expected rows.
    fn report(
        &self,
        folder: &Folder,
        ended: &Ended,
        expected: Option<&Expected>,
    ) -> anyhow::Result<()> {
        let kept = Finished::read(folder, self.seed)?;
        let held = Scope::holding(kept.names().into_iter().chain(kept.damaged_names()));
        let scope = self.requested().joined(&held);
        let missing = missing(&scope, &kept, ended);
        let not_requested = missing.iter().filter(|one| !ended.has(&one.cell)).count();
        if not_requested > 0 {
            tell(format_args!(
                "The folder has parts of a larger run, but lacks {} of it. To run the rest too:\n  {}",
                counted(not_requested),
                self.commands().run(&scope, Start::Resume, &self.output)
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
        expected.map_or(Ok(()), |expected| compare(expected, &data))
    }

    fn verdict(&self, ended: &Ended) -> anyhow::Result<()> {
        let (failed, left) = (counted(ended.failed.len()), counted(ended.left.len()));
        let resume = || self.resume_command(&ended.left);
        match (ended.failed.is_empty(), ended.left.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => bail!("{failed} failed"),
            (true, false) => bail!("interrupted: {left} left; to resume:\n  {}", resume()),
            (false, false) => bail!(
                "{failed} failed; interrupted: {left} left; to resume:\n  {}",
                resume()
            ),
        }
    }

    /// Returns the command that resumes this run.
    fn resume_command(&self, left: &[String]) -> String {
        let commands = self.commands();
        let mut command = if self.cell.is_empty() {
            commands.run(&self.requested(), Start::Resume, &self.output)
        } else {
            commands.cell(&left.join(","), &self.output)
        };
        if let Some(jobs) = self.jobs {
            command += &format!(" --jobs {jobs}");
        }
        if let Some(path) = &self.expect {
            command += &format!(" --expect {}", quoted(path.as_os_str()));
        }
        command
    }

    fn requested(&self) -> Scope {
        let scale = if self.full { Scale::Full } else { Scale::Quick };
        if self.only.is_empty() {
            Scope::new(scale, &catalog::REPRODUCED)
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

/// Returns the cells of `scope` that are missing, each with the reason.
fn missing(scope: &Scope, kept: &Finished, ended: &Ended) -> Vec<Missing> {
    let names = kept.names();
    let why = |cell: &str| {
        let failed = ended.failed.iter().find(|(name, _)| name == cell);
        if let Some((_, error)) = failed {
            format!("{error:#}")
        } else if ended.left.iter().any(|name| name == cell) {
            "not run: the run was interrupted; resume it with --resume".to_owned()
        } else if let Some(why) = kept.damaged.get(cell) {
            format!("its file is damaged: {why}")
        } else {
            "not run yet".to_owned()
        }
    };
    let cells = scope.cells().into_iter();
    let lacking = cells.filter(|cell| !names.contains(cell.name.as_str()));
    lacking
        .map(|cell| Missing {
            why: why(&cell.name),
            cell: cell.name,
        })
        .collect()
}

/// Compares a run with the expected rows.
fn compare(expected: &Expected, data: &Data) -> anyhow::Result<()> {
    let differences = expected.differences(data);
    if differences.compared() == 0 {
        bail!("{}", differences.lines.join("; "));
    }
    let told = differences.lines.iter().chain(&differences.notes);
    told.for_each(tell);
    let (exact, timed) = (differences.exact, differences.timed);
    tell(format_args!(
        "compared: {} simulated and replayed figures, {} timed ones; not compared: {} of other runs, {} timed ones that scatter too much or are of another CPU",
        exact.compared, timed.compared, exact.skipped, timed.skipped
    ));
    let noted = differences.notes.len();
    if noted > 0 {
        tell(format_args!(
            "{noted} of {} timed figures are further off than usual; on a shared machine that alone is no failure: run again with more samples to see whether it stays",
            timed.compared
        ));
    }
    if differences.lines.is_empty() {
        tell(format_args!(
            "{} figures are as expected",
            differences.compared() - noted
        ));
        return Ok(());
    }
    bail!(
        "{} of {} figures differ from the expected ones by more than is allowed",
        differences.lines.len(),
        exact.compared
    )
}
