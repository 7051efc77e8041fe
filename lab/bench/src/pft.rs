//! `bench pft`: how many page faults per second the page allocator would allow, by the number of
//! threads (the page fault test of mmtests).
//!
//! Real threads allocate single movable pages and clear each of them, as a page fault does, until
//! together they have 3/4 of the memory; then they free all. The memory is real, and is mapped and
//! touched before anything is timed, so the host's own page faults are not measured; nor are traps
//! and page tables, which are no part of the allocator. `faults/cpu` is per second of CPU time, of
//! all threads together; `faults/sec` per second of time; `frees/cpu` is the pages freed per second
//! of CPU time. Base pages only, one by one. What a mask of interrupts costs can be chosen
//! ([`Masking`]).

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use anyhow::Context;
use brickyard::sync::{Exclusive, TicketLock};
use brickyard_classics::{Configuration, MachinePlan};
use brickyard_measure::memory::Memory;
use brickyard_report::{Host, Metric, Results, Row};

use super::faults::{Faults, Spent};
use super::machine::{CANNOT_BUILD, metadata};
use super::masking::{Masking, MaskingPlatform, MemoryPlatform};
use brickyard_measure::turns::{Round, Turns};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// A configuration.
    Configuration(Configuration),
    /// A bare stack of pages for each thread, which shows the cost of clearing alone.
    ArrayStack,
}

/// The name of the yardstick.
const ARRAY_STACK: &str = "array-stack";

impl Column {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration(configuration) => configuration.name(),
            Self::ArrayStack => ARRAY_STACK,
        }
    }
}

/// The error of a name that no column has.
#[derive(Debug, Clone)]
pub struct UnknownColumn;

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("known are ")?;
        for configuration in Configuration::ALL {
            write!(f, "{configuration}, ")?;
        }
        f.write_str(ARRAY_STACK)
    }
}

impl core::error::Error for UnknownColumn {}

impl FromStr for Column {
    type Err = UnknownColumn;

    fn from_str(name: &str) -> Result<Self, UnknownColumn> {
        if name == ARRAY_STACK {
            return Ok(Self::ArrayStack);
        }
        let configuration = name.parse().map_err(|_| UnknownColumn)?;
        Ok(Self::Configuration(configuration))
    }
}

/// Faults per second of CPU time.
pub const FAULTS_CPU: Metric<'static> = Metric::higher("faults/cpu", "pages/s of CPU time");

/// Faults per second.
pub const FAULTS_SEC: Metric<'static> = Metric::higher("faults/sec", "pages/s");

/// Pages freed per second of CPU time.
pub const FREES_CPU: Metric<'static> = Metric::higher("frees/cpu", FAULTS_CPU.unit);

/// Computes a sample of a metric from the times of a turn.
type Value = fn(&Spent) -> f64;

/// The metrics in the order of their lines.
const METRICS: [(Metric<'static>, Value); 3] = [
    (FAULTS_CPU, Spent::faults_per_cpu_second),
    (FAULTS_SEC, Spent::faults_per_second),
    (FREES_CPU, Spent::frees_per_cpu_second),
];

/// What is measured, on what memory, and how often.
#[derive(Debug)]
pub struct Pft<'a> {
    /// The columns.
    pub columns: &'a [Column],
    /// The most threads; measured with 1, 2, 3 … threads.
    pub threads: usize,
    /// The memory that pages are allocated from in bytes, all of it real.
    pub memory: usize,
    /// How often a sample allocates and frees all pages.
    pub passes: usize,
    /// Samples of each row.
    pub samples: usize,
    /// What a mask of interrupts does.
    pub masking: Masking,
}

impl Pft<'_> {
    /// Measures, and returns the results as rows. If interrupted, the rows of the larger numbers of
    /// threads are missing.
    ///
    /// # Errors
    /// There is too little memory, or the run is interrupted before the first round is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<Results> {
        let memory = Memory::new(self.memory).context("give less --memory")?;
        let mut taken = Vec::new();
        for threads in 1..=self.threads {
            match self.measure(&memory, threads, progress) {
                Ok(of_threads) => taken.push(of_threads),
                // The rows measured before are kept.
                Err(_) if interrupt::asked() && !taken.is_empty() => break,
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        self.results(&taken)
    }

    /// Returns the results of every round of every column, with so many threads.
    fn measure(
        &self,
        memory: &Memory,
        threads: usize,
        progress: &dyn Progress,
    ) -> anyhow::Result<Vec<Vec<Spent>>> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name()).collect();
        let turns = Turns {
            names: &names,
            samples: self.samples,
            lasting: Duration::ZERO,
            steps: 1,
            progress,
        };
        turns.take(|whose, round, step| {
            let faults = Faults {
                memory,
                threads,
                pages: memory.frames().len() / 4 * 3,
                passes: match round {
                    Round::WarmUp => 1,
                    Round::Measured(_) => self.passes,
                },
            };
            let spent = once(self.columns[whose], self.masking, faults)?;
            step();
            Ok(spent)
        })
    }

    fn results(&self, taken: &[Vec<Vec<Spent>>]) -> anyhow::Result<Results> {
        let mut results = Results::new("pft", Host::read());
        for (metric, value) in METRICS {
            for (threads, taken) in (1..).zip(taken) {
                for (column, taken) in self.columns.iter().zip(taken) {
                    let samples = taken.iter().map(value).collect();
                    let workload = format!("threads-{threads}");
                    let row = Row::new(column.name(), workload, metric, samples)?;
                    results.push(row.timed())?;
                }
            }
        }
        Ok(results)
    }
}

/// Runs one turn of a column.
fn once(column: Column, masking: Masking, faults: Faults<'_>) -> anyhow::Result<Spent> {
    match column {
        Column::Configuration(configuration) => turn(configuration, masking, faults),
        Column::ArrayStack => Ok(faults.on_stacks()?),
    }
    .with_context(|| format!("{}; give more --memory", column.name()))
}

/// Runs one turn of a configuration, as a new allocator over the same memory, with such masks of
/// interrupts.
///
/// # Errors
/// The memory is too small for it, or has too few pages for the faults.
pub fn turn(
    configuration: Configuration,
    masking: Masking,
    faults: Faults<'_>,
) -> anyhow::Result<Spent> {
    // The calling thread has a number too, and threads of the turn before may not have returned
    // theirs yet.
    let cpus = 2 * faults.threads + 1;
    let (memory, plan) = (
        faults.memory,
        MachinePlan::new(faults.memory.frames(), cpus),
    );
    let platform = MaskingPlatform::new(memory, masking);
    let bytes = configuration.checked_bytes::<Exclusive, TicketLock, MemoryPlatform<'_>>(&plan);
    let mut metadata = metadata(bytes.context(CANNOT_BUILD)?)?;
    let spent = configuration
        .run::<Exclusive, TicketLock, _, _>(&plan, platform, &mut metadata, faults)
        .context(CANNOT_BUILD)??;
    Ok(spent)
}
