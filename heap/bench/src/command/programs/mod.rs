//! `brickyard-heap programs`: known loads of malloc and real programs under several malloc
//! libraries, in time and in memory.

mod means;
mod table;

use core::ops::RangeInclusive;
use core::time::Duration;
use std::path::PathBuf;

use crate::programs::Programs as Measurement;
use crate::programs::task::{self, Task};
use anyhow::bail;
use brickyard_results::{Format, Results, TableOptions, noise_warning};
use brickyard_run::side_by_side::cores;
use brickyard_run::{bar, interrupt};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::libraries::{choose, describe, loads_program};
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::SheetOutput;

/// The options of `brickyard-heap programs`.
#[derive(Debug, Args)]
pub(crate) struct Programs {
    /// A malloc library to compare; give it once for each. `glibc` is the C library's own; a path
    /// may have a name: `mine=/path/libmine.so`. The first is the baseline of other formats. By
    /// default everything found on this machine: `brickyard` (beside this program), `glibc`,
    /// `jemalloc`, `tcmalloc`, `mimalloc`. LD_PRELOAD of the environment is ignored.
    #[arg(long, value_name = "NAME, PATH or NAME=PATH")]
    library: Vec<String>,
    /// What is run; by default everything. Programs that are not installed are skipped.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", value_parser = names())]
    load: Vec<String>,
    /// How many threads loads of several threads have; by default as many as there are CPUs, and at
    /// least 2.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How often everything is run; by default 6 times, with --quick 3 times.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Run short loads more often than that, up to four times, until each library has run for so
    /// many seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Do a quarter of the work.
    #[arg(long)]
    quick: bool,
    /// Let each load, and the programs that can, idle for so many seconds when its work is done and
    /// its memory is free, and tell how much is resident then. The time is not counted.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    settle: Option<f64>,
    /// The program with the loads; by default `brickyard-heap-loads` beside this program.
    #[arg(long, value_name = "FILE")]
    loads: Option<PathBuf>,
    #[command(flatten)]
    output: SheetOutput,
}

/// The rounds without and with `--quick`. An interval of a median with 95 % needs six.
const ROUNDS: (usize, usize) = (6, 3);

/// The part of the work that `--quick` does.
const QUICK: f64 = 0.25;

/// How long a process may idle, in seconds.
const SETTLE: RangeInclusive<f64> = 0.1..=600.0;

/// How long each library may run a load, in seconds: a day.
const SECONDS: RangeInclusive<f64> = 0.0..=86_400.0;

/// More threads than any machine has CPUs would measure the system's scheduler.
const MOST_THREADS: usize = 4096;

/// The names of loads and programs, with what each is.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(task::names().map(|(name, what)| PossibleValue::new(name).help(what)))
}

impl Programs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        let chosen = choose(&self.library)?;
        let (tasks, missing) = self.tasks();
        self.output.check()?;
        for reason in chosen.skipped.iter().chain(&missing) {
            eprintln!("brickyard: {reason}");
        }
        if tasks.is_empty() || chosen.libraries.is_empty() {
            bail!("nothing is left to measure");
        }
        let loads = loads_program(self.loads.as_deref())?;
        interrupt::watch()?;
        let (usual, quick) = ROUNDS;
        let measurement = Measurement {
            libraries: &chosen.libraries,
            tasks: &tasks,
            scale: if self.quick { QUICK } else { 1.0 },
            rounds: self
                .rounds
                .unwrap_or(if self.quick { quick } else { usual }),
            lasting: Duration::from_secs_f64(self.seconds.unwrap_or(0.0)),
            settle: Duration::from_secs_f64(self.settle.unwrap_or(0.0)),
            loads,
        };
        let (mut results, failed) = measurement.run(&bar::Steps::default())?;
        describe(&mut results, &chosen.libraries);
        if self.quick {
            results.about_line("a quarter of the work (--quick)");
        }
        self.emit(&results, failed)
    }

    fn emit(&self, results: &Results, failed: usize) -> anyhow::Result<()> {
        if results.rows().is_empty() {
            bail!("none of the libraries has a row, see above");
        }
        let mut text = String::new();
        match self.output.format {
            Format::Table => table::write(results, &mut text)?,
            format => text += &results.text(format, &TableOptions::default()),
        }
        let written = self.output.put(&text);
        if let Some(warning) = noise_warning(results) {
            eprintln!("{warning}");
        }
        written?;
        if failed > 0 {
            bail!("{failed} of the runs failed, see above; their rows are missing");
        }
        Ok(())
    }

    /// Fails if the options do not fit together.
    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([("load", has_twice(&self.load))])?;
        at_least_one([("rounds", self.rounds), ("threads", self.threads)])?;
        if self.threads.is_some_and(|threads| threads > MOST_THREADS) {
            return Err(Misuse::new(format!(
                "--threads must be at most {MOST_THREADS}"
            )));
        }
        if self
            .seconds
            .is_some_and(|seconds| !SECONDS.contains(&seconds))
        {
            return Err(Misuse::new("--seconds must be from 0 to 86400"));
        }
        if self
            .settle
            .is_some_and(|seconds| !SETTLE.contains(&seconds))
        {
            return Err(Misuse::new("--settle must be from 0.1 to 600 seconds"));
        }
        Ok(())
    }

    /// Returns what is run, in the order of the rows, and why some is not.
    fn tasks(&self) -> (Vec<Task>, Vec<String>) {
        let threads = self.threads.unwrap_or_else(|| cores().max(2));
        let all = task::names().map(|(name, _)| name);
        let named =
            all.filter(|&name| self.load.is_empty() || self.load.iter().any(|one| one == name));
        let tasks = named
            .filter_map(|name| task::named(name, threads))
            .flatten();
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.missing() {
                Some(reason) => missing.push(reason),
                None => here.push(task),
            }
        }
        (here, missing)
    }
}
