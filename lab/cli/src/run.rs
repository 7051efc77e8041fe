//! `brickyard run`: one experiment with parameters of the user's choice, as a table.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use brickyard_bench::peer::Peer;
use brickyard_experiments::catalog;
use brickyard_experiments::plan::{check_traces, counted};
use brickyard_experiments::raw::CellRows;
use brickyard_experiments::results::of_run;
use brickyard_experiments::running::Running;
use brickyard_experiments::settings::Settings;
use brickyard_experiments::store::appear;
use brickyard_experiments::traces::Traces;
use brickyard_results::Against;
use brickyard_run::bar::Steps;
use brickyard_run::interrupt;
use brickyard_run::terminal::{print, tell};
use clap::Args;

use crate::help;
use brickyard_measure::command::misuse::at_least_one;
use brickyard_measure::command::output::Output;

/// The options of `brickyard run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The experiment. `brickyard help NAME` has its parameters; without a name all are listed.
    #[arg(value_name = "NAME")]
    experiment: Option<String>,
    /// Set a parameter of the experiment, such as `cpus=8,16`. Can be given several times.
    #[arg(long, value_name = "PARAMETER=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// The machine: `host` with its real threads, a simulated one (metatm-2007, xeon-x5355,
    /// bl460c-g1, i7-2013 or many-core), or one of a document that traces are replayed on.
    /// [default: see `brickyard help NAME`]
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// How many runs of each row, each with a seed of its own. [default: see `brickyard help NAME`]
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// The seed of the first run; each further run has the next number.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// The folder of the recorded traces.
    #[arg(long, default_value = "traces", value_name = "DIR")]
    traces: PathBuf,
    /// The folder for the pages that some runs make.
    #[arg(long, default_value = "pages", value_name = "DIR")]
    pages: PathBuf,
    /// How many runs at once, of those that are not timed. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    output: Output,
}

/// Splits `name=value`.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write PARAMETER=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Run {
    pub(crate) fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        let Some(name) = &self.experiment else {
            return Ok(print(&help::experiments())?);
        };
        let experiment = catalog::by_name(name)?;
        at_least_one([("jobs", self.jobs)])?;
        let settings = Settings::new(&experiment, self.on.as_deref(), self.runs, &self.set)?;
        let settings = settings.with_peers(peers);
        let cells = settings.cells()?;
        let traces = Traces::new(&self.traces);
        check_traces(&cells, &traces)?;
        self.output.check()?;
        interrupt::watch()?;
        let order: Vec<String> = cells.iter().map(|cell| cell.name.clone()).collect();
        let done: Mutex<Vec<CellRows>> = Mutex::default();
        let running = Running {
            keep: &|rows, pages| {
                for (name, page) in pages {
                    let path = self.pages.join(name);
                    appear(&path, |out| out.write_all(&page))?;
                    tell(format_args!("page written to {}", path.display()));
                }
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push(rows);
                Ok(())
            },
            traces: &traces,
            seed: self.seed,
            longest_first: false,
            apart: None,
            jobs: self.jobs,
            progress: &Steps::of("{wide_bar} {percent} % {msg}, {eta} left"),
        };
        let ended = running.run(cells)?;
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_cached_key(|rows| order.iter().position(|name| *name == rows.cell));
        if done.is_empty() {
            return match ended.failed.into_iter().next() {
                Some((name, error)) => Err(error.context(name)),
                None => bail!("interrupted before the first run was done"),
            };
        }
        let results = of_run(&settings, &done)?;
        let label = |workload: &str, metric: &str| {
            let first = results.rows().iter().find(|row| row.workload() == workload);
            match first.is_some_and(|row| row.metric().name == metric) {
                true => format!("{workload} {metric}"),
                false => format!("  {metric}"),
            }
        };
        let form = settings.form();
        let below = form.below.map(|below| below(&settings, &results));
        let against = match form.by_steps {
            true => Against::Before,
            false => Against::First,
        };
        self.output
            .emit(&results, against, &label, &below.unwrap_or_default())?;
        if !ended.left.is_empty() {
            tell(format_args!(
                "brickyard: interrupted; {} left",
                counted(ended.left.len())
            ));
        }
        match ended.failed.len() {
            0 => Ok(()),
            failed => bail!("{} failed", counted(failed)),
        }
    }
}
