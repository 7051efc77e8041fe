//! `brickyard-heap latency`: how long single allocations and frees take under several malloc
//! libraries, in the worst case too.

mod table;

use core::time::Duration;
use std::path::PathBuf;

use crate::latency::Latency as Measurement;
use anyhow::bail;
use brickyard_results::{Format, Results, TableOptions};
use brickyard_run::side_by_side::cores;
use brickyard_run::{bar, interrupt};
use clap::Args;

use super::libraries::{choose, describe, loads_program};
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::SheetOutput;

/// The options of `brickyard-heap latency`.
#[derive(Debug, Args)]
pub(crate) struct Latency {
    /// A malloc library to compare; give it once for each. `glibc` is the C library's own; a path
    /// may have a name: `mine=/path/libmine.so`. The first is the baseline of other formats. By
    /// default everything found on this machine: `brickyard` (beside this program), `glibc`,
    /// `jemalloc`, `tcmalloc`, `mimalloc`. LD_PRELOAD of the environment is ignored.
    #[arg(long, value_name = "NAME, PATH or NAME=PATH")]
    library: Vec<String>,
    /// How many threads run the load, in a process for each number; by default one, and as many as
    /// there are CPUs, at least 2.
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    threads: Vec<usize>,
    /// How long each process runs the load.
    #[arg(
        long,
        default_value_t = 10.0,
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    seconds: f64,
    /// How many processes of each library and number of threads.
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: usize,
    /// The program with the load; by default `brickyard-heap-loads` beside this program.
    #[arg(long, value_name = "FILE")]
    loads: Option<PathBuf>,
    #[command(flatten)]
    output: SheetOutput,
}

/// A process runs for a day at most.
const MOST_SECONDS: f64 = 86_400.0;

/// The most threads: each has some 100 MiB.
const MOST_THREADS: usize = 256;

impl Latency {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        if !cfg!(target_arch = "x86_64") {
            bail!("single operations can be timed on x86-64 only");
        }
        let chosen = choose(&self.library)?;
        let loads = loads_program(self.loads.as_deref())?;
        self.output.check()?;
        for reason in &chosen.skipped {
            eprintln!("brickyard: {reason}");
        }
        interrupt::watch()?;
        let threads = match &self.threads[..] {
            [] => vec![1, cores().max(2)],
            given => given.to_vec(),
        };
        let measurement = Measurement {
            libraries: &chosen.libraries,
            threads: &threads,
            time: Duration::from_secs_f64(self.seconds),
            rounds: self.rounds,
            loads,
        };
        let bar = bar::Steps::of("{wide_bar} {percent} % {msg}, {eta} left");
        let (mut results, failed) = measurement.run(&bar)?;
        describe(&mut results, &chosen.libraries);
        results.about_line(format!(
            "{} s a process, {} of each",
            self.seconds, self.rounds
        ));
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
        written?;
        if failed > 0 {
            bail!("{failed} of the processes failed, see above; their rows are not whole");
        }
        Ok(())
    }

    /// Fails if the options do not fit together.
    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([("threads", has_twice(&self.threads))])?;
        at_least_one([
            ("rounds", Some(self.rounds)),
            ("threads", self.threads.iter().copied().min()),
        ])?;
        if self.threads.iter().any(|&threads| threads > MOST_THREADS) {
            return Err(Misuse::new(format!(
                "--threads must be at most {MOST_THREADS}"
            )));
        }
        if !(0.1..=MOST_SECONDS).contains(&self.seconds) {
            return Err(Misuse::new("--seconds must be from 0.1 to 86400, a day"));
        }
        Ok(())
    }
}
