//! `brickyard simulate locks`: the experiment of 2007, how long to hold the zone lock in a bulk
//! operation, on a simulated multiprocessor.
//!
//! Each column changes one property of the column before; each row is a workload on a number of
//! CPUs; each run has a seed, and runs with the same seed under two columns are a pair. For a run
//! see `brickyard_simulate::locks`. The table has the form of 2007 (mean, deviation, interval,
//! speedup over the column before, star), followed by figures that could not be measured then.

mod table;

use std::path::{Path, PathBuf};

use anyhow::Context;
use brickyard_machine::{Failure, Profile};
use brickyard_report::counted;
use brickyard_run::interrupt;
use brickyard_simulate::Configuration;
use brickyard_simulate::locks::{
    Cell, Column, Computing, ListSizes, Load, Part, Plan, lists_of, usual_plan,
};
use brickyard_trace::file;
use brickyard_workload::jobs::{Workload, cut};
use clap::Args;

use super::setup::{check_cpus, each, profile};
use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::or_all;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;
use table::{Line, Table};

/// The workload that does not come from a trace.
const STORM: &str = "storm";

/// The options of `brickyard simulate locks`.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// The workloads: those of 2007 (find, pmake, dpunish, bonnie, mab, config, objdump,
    /// kernel-full, kernel, dd), and `storm`, which uses the lock and nothing else. [default: the
    /// ten]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    workload: Vec<String>,
    /// Numbers of CPUs.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "8,16,32",
        value_name = "NUMBERS"
    )]
    cpus: Vec<usize>,
    /// The columns, each compared with the one before it: hold, release, ticket, ticket+yield,
    /// ticket+yield+own-line. [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Vec<Column>,
    /// The machine: metatm-2007, xeon-x5355, bl460c-g1, i7-2013 or many-core.
    #[arg(long, default_value = "metatm-2007", value_parser = profile, value_name = "NAME")]
    profile: &'static Profile,
    /// The allocator; see `brickyard configs`. The waits and holds of all its locks are counted.
    #[arg(long, default_value = "vanilla", value_name = "NAME")]
    config: Configuration,
    /// Runs of each cell: 4 as in the simulations of 2007, too few for a star; 15 as on its real
    /// machine.
    #[arg(long, default_value_t = 4, value_name = "N")]
    runs: usize,
    /// The seed of the first run; each further run has the next number.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// End each job after this many allocations and frees, to save time on this host, or `all`.
    #[arg(long, default_value = "all", value_parser = part, value_name = "N")]
    events: Part,
    /// Pages that a per-CPU list fetches and returns at once.
    /// [default: by Linux's formula: 7 on metatm-2007, 31 on the others]
    #[arg(long, value_name = "PAGES")]
    batch: Option<usize>,
    /// Pages at which a list returns a batch. [default: six batches]
    #[arg(long, value_name = "PAGES")]
    high: Option<usize>,
    /// The zone's memory; increased where the tasks hold more at once.
    /// [default: 1G on metatm-2007, at most 8G on the others]
    #[arg(long, value_parser = zone_bytes, value_name = "BYTES")]
    memory: Option<usize>,
    /// Computing evicts no line of the allocator from the caches, as on no real machine: to
    /// compare.
    #[arg(long)]
    keep_lines: bool,
    /// Where the traces are: find.parquet and so on.
    #[arg(long, default_value = "traces", value_name = "DIR")]
    traces: PathBuf,
    /// How many runs at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print on standard error, after the table, how each published difference compares with the
    /// measured one.
    #[arg(long)]
    published: bool,
    #[command(flatten)]
    output: Output,
}

fn part(text: &str) -> Result<Part, String> {
    match text.parse() {
        _ if text == "all" => Ok(Part::Whole),
        Ok(events) if events > 0 => Ok(Part::Events(events)),
        _ => Err("give a number of at least 1, or `all`".to_owned()),
    }
}

/// The least memory of a zone. A smaller one has fewer blocks of the highest order than a few CPUs
/// need.
const MEMORY_LEAST: usize = 16 << 20;

impl Locks {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        let loads = self.loads()?;
        interrupt::watch()?;
        let plan = self.plan();
        let rows: Vec<Line<'_>> = self.lines(&loads);
        let cells: Vec<Cell<'_>> = rows.iter().flat_map(|row| self.cells(row)).collect();
        let done = self.measure(&plan, &cells);
        let mut table = Table::new(&plan, self.events);
        let mut done = done.into_iter();
        for row in &rows {
            let of_row: Vec<_> = done.by_ref().take(self.cells_a_line()).collect();
            table.push(row, self.columns(), of_row)?;
        }
        if table.is_empty() {
            anyhow::bail!("interrupted before the first cell was done");
        }
        self.output.emit_steps(table.results(), &table::label)?;
        if self.published {
            eprint!("{}", table.published());
        }
        table.finish()
    }

    /// Checks the options' values and their combination.
    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([
            ("workload", has_twice(&self.workload)),
            ("cpus", has_twice(&self.cpus)),
            ("columns", has_twice(&self.columns)),
        ])?;
        at_least_one([
            ("runs", Some(self.runs)),
            ("batch", self.batch),
            ("jobs", self.jobs),
        ])?;
        check_cpus(&self.cpus)?;
        let ListSizes { batch, high } = self.lists();
        if high < batch {
            return Err(Misuse::new(format!(
                "--high {high} is below the batch of {batch}; give at least as much"
            )));
        }
        if self.memory.is_some_and(|memory| memory < MEMORY_LEAST) {
            return Err(Misuse::new("--memory must be at least 16M"));
        }
        for name in &self.workload {
            if name != STORM {
                Workload::by_name(name)
                    .map_err(|error| Misuse::new(format!("--workload: {error}, {STORM}")))?;
            }
        }
        Ok(())
    }

    /// Returns the workloads, in the order of the table.
    fn loads(&self) -> anyhow::Result<Vec<Load>> {
        let all = Workload::ALL.map(|workload| workload.name.to_owned());
        or_all(&self.workload, &all)
            .iter()
            .map(|name| self.load(name))
            .collect()
    }

    fn load(&self, name: &str) -> anyhow::Result<Load> {
        if name == STORM {
            return Ok(Load::storm(self.events));
        }
        let workload = Workload::by_name(name)?;
        let file_name = Path::new(workload.trace).file_name().unwrap_or_default();
        let path = self.traces.join(file_name);
        let cannot = || {
            let path = path.display();
            format!("cannot read {name} in {path}; give the traces' directory with --traces DIR")
        };
        let trace = file::read(&path).with_context(cannot)?;
        let jobs = cut(&trace, &workload.how()).with_context(cannot)?;
        Ok(Load::of(&workload, &jobs, self.events))
    }

    fn columns(&self) -> &[Column] {
        or_all(&self.columns, &Column::ALL)
    }

    fn lists(&self) -> ListSizes {
        let usual = lists_of(self.profile);
        let batch = self.batch.unwrap_or(usual.batch);
        let high = self.high.unwrap_or(batch.saturating_mul(6));
        ListSizes { batch, high }
    }

    fn plan(&self) -> Plan {
        let usual = usual_plan(self.profile, self.config);
        let memory = self.memory.map(|memory| memory as u64);
        Plan {
            lists: self.lists(),
            memory_bytes: memory.unwrap_or(usual.memory_bytes),
            computing: match self.keep_lines {
                true => Computing::KeepsLines,
                false => usual.computing,
            },
            ..usual
        }
    }

    fn lines<'l>(&self, loads: &'l [Load]) -> Vec<Line<'l>> {
        let of_load = |load| self.cpus.iter().map(move |&cpus| Line { load, cpus });
        loads.iter().flat_map(of_load).collect()
    }

    fn cells_a_line(&self) -> usize {
        self.runs * self.columns().len()
    }

    /// Returns the runs of a line, seed by seed, so that an interrupted line has complete pairs.
    fn cells<'l>(&self, line: &Line<'l>) -> Vec<Cell<'l>> {
        let &Line { load, cpus } = line;
        let seeds = (0..self.runs as u64).map(|run| self.seed.wrapping_add(run));
        let of_seed = |seed| {
            self.columns().iter().map(move |&column| Cell {
                load,
                cpus,
                column,
                seed,
            })
        };
        seeds.flat_map(of_seed).collect()
    }

    fn measure(&self, plan: &Plan, cells: &[Cell<'_>]) -> Vec<table::Done> {
        each(cells, self.jobs, |cell| {
            plan.run(cell).map_err(|failure| failed(cell, &failure))
        })
    }
}

/// Returns the message for a run that failed.
fn failed(cell: &Cell<'_>, failure: &Failure) -> String {
    let (name, column) = (cell.load.name(), cell.column.name());
    let (cpus, seed) = (counted(cell.cpus, "CPU", "CPUs"), cell.seed);
    format!("{name} with {cpus}, {column}, seed {seed}: {failure}")
}
