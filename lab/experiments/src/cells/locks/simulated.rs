//! The five columns on the simulated machines of the paper, each run a cell.
//!
//! On `metatm-2007`, the author's simulator, there are four runs as in the paper, on 8, 16 and 32
//! CPUs, of the six workloads that he ran there, and of `kernel`. On `xeon-x5355`, his real
//! machine, there are 15 of each workload of its tables; the compiles of 2008 had five, but a run
//! takes only seconds here. All columns are run on both, though fewer were printed. A few runs are
//! repeated with computing that evicts nothing from the caches.

use brickyard_machine::Profile;
use brickyard_report::{Better, Metric};
use brickyard_simulate::Configuration;
use brickyard_simulate::locks::{self, Column, Computing, Load, Measured, Part, Plan};
use brickyard_workload::jobs::Workload;

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::RowTemplate;
use crate::cells::served::all_served;
use brickyard_simulate::locks::usual_plan;

/// The simulator of 2007, and the real machine of its author.
pub(super) const SIMULATOR: &str = "metatm-2007";
pub(super) const REAL: &str = "xeon-x5355";

/// The CPUs of the simulator, and of the real machine.
pub(super) const CPUS: [usize; 3] = [8, 16, 32];

/// The workloads on the simulator, and on the real machine.
pub(super) const ON_SIMULATOR: [&str; 7] = [
    "find", "pmake", "dpunish", "bonnie", "mab", "config", "kernel",
];
pub(super) const ON_REAL: [&str; 6] = ["mab", "config", "objdump", "kernel-full", "kernel", "dd"];

/// Those of the real machine that are repeated with [`Computing::KeepsLines`].
const KEPT: [&str; 3] = ["mab", "objdump", "dd"];

/// Runs on the simulator, and on the real machine.
pub(super) const RUNS: u32 = 4;
const REAL_RUNS: u32 = 15;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRun {
    pub(super) machine: &'static str,
    pub(super) workload: &'static str,
    pub(super) cpus: usize,
    pub(super) column: Column,
    pub(super) configuration: Configuration,
    pub(super) computing: Computing,
    pub(super) run: u32,
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (machine, cpus, runs, workloads) in machines(RUNS, REAL_RUNS) {
        for &workload in workloads {
            for run in 1..=runs {
                let of = |column, computing| LockRun {
                    machine,
                    workload,
                    cpus,
                    column,
                    configuration: Configuration::Vanilla,
                    computing,
                    run,
                };
                cells.extend(Column::ALL.map(|column| of(column, Computing::EvictsLines).cell()));
                if machine == REAL && KEPT.contains(&workload) {
                    let printed = [Column::Hold, Column::Release];
                    cells.extend(printed.map(|column| of(column, Computing::KeepsLines).cell()));
                }
            }
        }
    }
    cells
}

/// Returns each machine with its CPUs, its runs and its workloads.
pub(super) fn machines(
    on_simulator: u32,
    on_real: u32,
) -> impl Iterator<Item = (&'static str, usize, u32, &'static [&'static str])> {
    let simulated = CPUS.map(|cpus| (SIMULATOR, cpus, on_simulator, &ON_SIMULATOR[..]));
    let real = [(REAL, 8, on_real, &ON_REAL[..])];
    simulated.into_iter().chain(real)
}

impl LockRun {
    fn cell(self) -> Cell {
        Cell {
            name: self.cell_name(self.column.name()),
            kind: Method::Simulated,
            scale: self.scale(),
            seconds: self.seconds(),
            work: Box::new(move |context| Ok(self.rows(&context)?.into())),
        }
    }

    /// Returns the name of its cell; `config` is the column or the configuration compared.
    pub(super) fn cell_name(&self, config: &str) -> String {
        let (machine, workload, cpus, run) = (self.machine, self.workload, self.cpus, self.run);
        let kept = match self.computing {
            Computing::EvictsLines => "",
            Computing::KeepsLines => "-kept",
        };
        format!("locks.{machine}.{workload}-{cpus}{kept}.{config}.{run}")
    }

    /// Returns the workload name of its rows.
    pub(super) fn row_workload(&self) -> String {
        let kept = match self.computing {
            Computing::EvictsLines => "",
            Computing::KeepsLines => " kept-lines",
        };
        format!("{} cpus-{}{kept}", self.workload, self.cpus)
    }

    /// Returns the scale. On the simulator the quick run has what the paper printed and takes about
    /// a second, in two runs, and what a plot over CPUs needs, in one; on the real machine the
    /// three cheap workloads, with as many runs as a signed-rank test needs, and two runs of the
    /// compiles.
    fn scale(&self) -> Scale {
        let printed = matches!(self.column, Column::Hold | Column::Release);
        let quick = match (self.machine, self.cpus) {
            (SIMULATOR, _) if printed && self.run == 1 && is_plotted(self.workload, self.cpus) => {
                true
            }
            (REAL, _) => match self.workload {
                "objdump" | "mab" | "dd" => self.run <= 6,
                "kernel-full" | "kernel" => printed && self.run <= 2,
                _ => false,
            },
            (_, 8) => match self.workload {
                "find" | "pmake" | "bonnie" | "mab" => printed && self.run <= 2,
                "dpunish" => printed && self.run == 1,
                _ => false,
            },
            (_, 16) => {
                let cheap = ["find", "pmake", "bonnie", "mab"].contains(&self.workload);
                printed && self.run <= 2 && cheap
            }
            _ => {
                let cheap = ["find", "pmake", "bonnie"].contains(&self.workload);
                printed && self.run <= 2 && cheap
            }
        };
        Scale::quick_if(quick)
    }

    /// Estimates how many seconds a core of today takes for it.
    pub(super) fn seconds(&self) -> f64 {
        // On 8, 16 and 32 CPUs, with the lock held for the whole bulk.
        let held = match self.workload {
            "find" => [0.02, 0.02, 0.03],
            "pmake" => [0.18, 0.2, 0.25],
            "dpunish" => [1.0, 1.2, 1.4],
            "bonnie" => [0.05, 0.07, 0.1],
            "mab" => [0.1, 0.3, 0.9],
            "config" => [0.8, 2.4, 6.8],
            "kernel-full" => [0.9, 1.9, 4.0],
            "kernel" => [0.35, 0.8, 2.3],
            _ => [0.02, 0.02, 0.02],
        };
        let place = CPUS.iter().position(|&cpus| cpus == self.cpus);
        // More waits are more memory accesses to simulate.
        let yields = [1.1, 1.4, 2.2];
        let place = place.unwrap_or(0);
        match (self.configuration, self.column) {
            (Configuration::Brickyard, _) => held[place] / 4.0,
            (_, Column::TicketYield | Column::TicketYieldOwnLine) => held[place] * yields[place],
            _ => held[place],
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If the trace cannot be read, the run does not finish, or memory ran out.
    pub(super) fn measure(&self, context: &Context<'_>) -> anyhow::Result<Measured> {
        let workload = Workload::by_name(self.workload)?;
        let jobs = context.traces.jobs(self.workload)?;
        let load = Load::of(&workload, &jobs, Part::Whole);
        let plan = Plan {
            computing: self.computing,
            ..usual_plan(Profile::by_name(self.machine)?, self.configuration)
        };
        let measured = plan.run(&locks::Cell {
            load: &load,
            cpus: self.cpus,
            column: self.column,
            seed: context.seed_of(self.run),
        })?;
        all_served(&measured.counts)?;
        Ok(measured)
    }

    fn rows(&self, context: &Context<'_>) -> anyhow::Result<Vec<Raw>> {
        let measured = self.measure(context)?;
        let megahertz = Profile::by_name(self.machine)?.megahertz;
        let template = RowTemplate {
            machine: self.machine,
            workload: &self.row_workload(),
            config: self.column.name(),
            run: self.run,
        };
        let row = |(metric, value)| template.row(&metric, value);
        let mut rows: Vec<Raw> = times(&measured, 1e3 / megahertz as f64)
            .into_iter()
            .map(row)
            .collect();
        if self.column == Column::Hold {
            rows.extend(bulks(&measured).into_iter().map(row));
        }
        Ok(rows)
    }
}

/// Returns true for the points of a plot over CPUs that the quick run has. `config` on 16 and 32
/// CPUs is left out: it takes 3 and 7 seconds.
pub(super) fn is_plotted(workload: &str, cpus: usize) -> bool {
    workload == "bonnie" || (workload == "config" && cpus <= 8)
}

/// From the start of the machine to the end of the last task, in simulated time.
pub(super) const TIME: Metric<'static> = Metric::lower("time", "s");

/// Returns the time, and the waits and holds that explain it. A cycle takes `ns` nanoseconds.
fn times(run: &Measured, ns: f64) -> [(Metric<'static>, f64); 8] {
    let lower = Metric::lower;
    let waits = |percent| run.waits.percentile(percent) as f64 * ns;
    let holds = |percent| run.holds.percentile(percent) as f64 * ns;
    [
        (TIME, run.seconds),
        (lower("waiting", "%"), 100.0 * run.waiting_share),
        (lower("locked", "%"), 100.0 * run.locked_share),
        (lower("wait-p50", "ns"), waits(50.0)),
        (lower("wait-p99", "ns"), waits(99.0)),
        (lower("wait-p99.9", "ns"), waits(99.9)),
        (lower("hold-p50", "ns"), holds(50.0)),
        (lower("hold-p99.9", "ns"), holds(99.9)),
    ]
}

/// Returns the counts and orders of the bulks, the columns of the paper's second table.
fn bulks(run: &Measured) -> [(Metric<'static>, f64); 8] {
    let Measured { taken, given, .. } = run;
    // The size of a bulk says nothing about the quality of a lock.
    let neither = |name, unit| Metric::new(name, unit, Better::Neither);
    let pages = |name, value| (neither(name, "pages"), value);
    let blocks = |name, value| (neither(name, "blocks"), value);
    let order = |name, value| (neither(name, "order"), value);
    [
        pages("take-pages", taken.count),
        pages("take-pages-sd", taken.count_deviation),
        order("take-order", taken.order),
        order("take-order-sd", taken.order_deviation),
        blocks("give-blocks", given.count),
        blocks("give-blocks-sd", given.count_deviation),
        order("give-order", given.order),
        order("give-order-sd", given.order_deviation),
    ]
}
