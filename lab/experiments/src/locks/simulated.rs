//! The five columns on the simulated machines of the paper, each run a cell.
//!
//! On `metatm-2007`, the author's simulator, there are four runs as in the paper, on 8, 16 and 32
//! CPUs, of the six workloads that he ran there, and of `kernel`. On `xeon-x5355`, his real
//! machine, there are 15 of each workload of its tables; the compiles of 2008 had five, but a run
//! takes only seconds here. All columns are run on both, though fewer were printed. A few runs are
//! repeated with computing that evicts nothing from the caches.

use brickyard_machine::Profile;
use brickyard_results::{Better, Metric};
use brickyard_simulate::Configuration;
use brickyard_simulate::locks::{
    self, Column, Computing, ListSizes, Load, LocksPlan, LocksRun, Part, lists_of, usual_plan,
};
use brickyard_workload::jobs::Workload;

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::all_served;
use crate::experiment::Parameter;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The simulator of 2007, and the real machine of its author.
pub(super) const SIMULATOR: &Profile = Profile::METATM_2007;
pub(super) const REAL: &Profile = Profile::XEON_X5355;

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

/// The workload that does not come from a trace: it uses the lock and nothing else.
const STORM: &str = "storm";

/// The least memory of a zone. A smaller one has fewer blocks of the highest order than a few CPUs
/// need.
const MEMORY_LEAST: usize = 16 << 20;

/// What is compared, on either kind of machine.
pub(super) const COLUMNS: Parameter = Parameter::new(
    "columns",
    "hold,release,ticket,ticket+yield,ticket+yield+own-line",
    "locks and how long they are held, each compared with the one before it",
);

/// What can be set on a simulated machine.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "workload",
        "find,pmake,dpunish,bonnie,mab,config,objdump,kernel-full,kernel,dd",
        "workloads: those of 2007, and storm, which uses the lock and nothing else",
    ),
    Parameter::new("cpus", "8,16,32", "numbers of CPUs, 1 to 256"),
    COLUMNS,
    Parameter::new(
        "config",
        "vanilla",
        "the allocator; the waits and holds of all its locks are counted",
    ),
    Parameter::new(
        "events",
        "all",
        "end each job after so many allocations and frees, or all",
    ),
    Parameter::new(
        "batch",
        "auto",
        "pages that a per-CPU list fetches and returns at once; auto: by Linux's formula, 7 on metatm-2007, 31 on the others",
    ),
    Parameter::new(
        "high",
        "auto",
        "pages at which a list returns a batch; auto: six batches",
    ),
    Parameter::new(
        "memory",
        "auto",
        "the zone's memory, increased where the tasks hold more at once; auto: 1G on metatm-2007, at most 8G on the others",
    ),
    Parameter::new(
        "keep-lines",
        "no",
        "yes: computing evicts no line of the allocator from the caches, as on no real machine",
    ),
];

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRun {
    pub(super) plan: LocksPlan,
    pub(super) workload: &'static str,
    pub(super) cpus: usize,
    pub(super) column: Column,
    pub(super) part: Part,
    pub(super) run: u32,
}

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let plan = plan(settings)?;
    let part = match settings.text("events") {
        "all" => Part::Whole,
        _ => Part::Events(settings.count("events")?),
    };
    let named = |name: &String| match name.as_str() {
        STORM => Ok(STORM),
        name => Workload::by_name(name)
            .map(|workload| workload.name)
            .map_err(|error| wrong("workload", format_args!("{error}, {STORM}"))),
    };
    let workloads = settings.list::<String>("workload")?;
    let workloads: Vec<&str> = workloads.iter().map(named).collect::<Result<_, _>>()?;
    let cpus = settings.cpus("cpus")?;
    let columns = settings.list::<Column>("columns")?;
    let configuration = plan.configuration;
    let released = columns.iter().find(|column| column.releases());
    if let (Some(column), false) = (released, configuration.has_bulk_policies()) {
        let why = format_args!(
            "{configuration} cannot release the lock in a bulk, as {column} does; give --set columns=hold,ticket"
        );
        return Err(wrong("config", why));
    }
    let suffix = settings.suffix(&["events", "batch", "high", "memory", "keep-lines"]);
    let mut cells = Vec::new();
    for workload in workloads {
        for &cpus in &cpus {
            for run in 1..=settings.runs {
                cells.extend(columns.iter().map(|&column| {
                    let run = LockRun {
                        plan,
                        workload,
                        cpus,
                        column,
                        part,
                        run,
                    };
                    run.cell_with(format!("{workload} cpus-{cpus}{suffix}"))
                }));
            }
        }
    }
    Ok(cells)
}

fn plan(settings: &Settings<'_>) -> Result<LocksPlan, Refusal> {
    let usual = usual_plan(settings.profile()?, settings.one("config")?);
    let (batch, high) = lists(settings, lists_of(usual.profile).batch)?;
    let memory_bytes = if settings.is_auto("memory") {
        usual.memory_bytes
    } else {
        let bytes = settings.bytes("memory")?;
        if bytes < MEMORY_LEAST {
            return Err(wrong("memory", "give at least 16M"));
        }
        bytes as u64
    };
    let computing = match settings.text("keep-lines") {
        "no" => usual.computing,
        "yes" => Computing::KeepsLines,
        _ => return Err(wrong("keep-lines", "it is yes or no")),
    };
    Ok(LocksPlan {
        lists: ListSizes { batch, high },
        memory_bytes,
        computing,
        ..usual
    })
}

/// Returns the sizes of a CPU's lists: the batch, and the pages at which it returns one.
pub(super) fn lists(settings: &Settings<'_>, batch: usize) -> Result<(usize, usize), Refusal> {
    let batch = match settings.is_auto("batch") {
        true => batch,
        false => settings.count("batch")?,
    };
    let high = match settings.is_auto("high") {
        true => batch.saturating_mul(6),
        false => settings.count("high")?,
    };
    if high < batch {
        let why = format_args!("{high} is below the batch of {batch}; give at least as much");
        return Err(wrong("high", why));
    }
    Ok((batch, high))
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (machine, cpus, runs, workloads) in machines(RUNS, REAL_RUNS) {
        for &workload in workloads {
            for run in 1..=runs {
                let of = |column| {
                    LockRun::usual(machine, Configuration::Vanilla, workload, cpus, column, run)
                };
                cells.extend(Column::ALL.map(|column| of(column).cell()));
                if machine == REAL && KEPT.contains(&workload) {
                    let printed = [Column::Hold, Column::Release];
                    cells.extend(printed.map(|column| of(column).keeping_lines().cell()));
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
) -> impl Iterator<Item = (&'static Profile, usize, u32, &'static [&'static str])> {
    let simulated = CPUS.map(|cpus| (SIMULATOR, cpus, on_simulator, &ON_SIMULATOR[..]));
    let real = [(REAL, 8, on_real, &ON_REAL[..])];
    simulated.into_iter().chain(real)
}

impl LockRun {
    /// Returns a run of the reproduction.
    pub(super) fn usual(
        machine: &'static Profile,
        configuration: Configuration,
        workload: &'static str,
        cpus: usize,
        column: Column,
        run: u32,
    ) -> Self {
        Self {
            plan: usual_plan(machine, configuration),
            workload,
            cpus,
            column,
            part: Part::Whole,
            run,
        }
    }

    const fn keeping_lines(mut self) -> Self {
        self.plan.computing = Computing::KeepsLines;
        self
    }

    fn cell(self) -> Cell {
        Cell {
            name: self.cell_name(self.column.name()),
            kind: Method::Simulated,
            scale: self.scale(),
            seconds: self.seconds(),
            work: Box::new(move |context| Ok(self.rows(&context)?.into())),
        }
    }

    /// Returns the cell of a run with settings of the user; its rows have this workload name, and
    /// all figures.
    fn cell_with(self, workload: String) -> Cell {
        Cell {
            name: self.cell_name(self.column.name()),
            kind: Method::Simulated,
            scale: Scale::Full,
            seconds: self.seconds(),
            work: Box::new(move |context| {
                let measured = self.measure(&context)?;
                let ns = self.nanoseconds();
                let figures = times(&measured, ns).into_iter();
                let figures = figures.chain(more(&measured, ns)).chain(bulks(&measured));
                let template = self.template(&workload);
                let rows = figures.map(|(metric, value)| template.row(&metric, value));
                Ok(rows.collect::<Vec<Raw>>().into())
            }),
        }
    }

    fn template<'w>(&self, workload: &'w str) -> RowTemplate<'w> {
        RowTemplate {
            machine: self.plan.profile.name,
            workload,
            config: self.column.name(),
            run: self.run,
        }
    }

    /// The length of a cycle.
    fn nanoseconds(&self) -> f64 {
        1e3 / self.plan.profile.megahertz as f64
    }

    /// Returns the name of its cell; `config` is the column or the configuration compared.
    pub(super) fn cell_name(&self, config: &str) -> String {
        let (machine, workload) = (self.plan.profile.name, self.workload);
        let (cpus, run) = (self.cpus, self.run);
        let kept = match self.plan.computing {
            Computing::EvictsLines => "",
            Computing::KeepsLines => "-kept",
        };
        format!("locks.{machine}.{workload}-{cpus}{kept}.{config}.{run}")
    }

    /// Returns the workload name of its rows.
    pub(super) fn row_workload(&self) -> String {
        let kept = match self.plan.computing {
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
        let quick = match (self.plan.profile, self.cpus) {
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
        match (self.plan.configuration, self.column) {
            (Configuration::Brickyard, _) => held[place] / 4.0,
            (_, Column::TicketYield | Column::TicketYieldOwnLine) => held[place] * yields[place],
            _ => held[place],
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If the trace cannot be read, the run does not finish, or memory ran out.
    pub(super) fn measure(&self, context: &Context<'_>) -> anyhow::Result<LocksRun> {
        let load = match self.workload {
            STORM => Load::storm(self.part),
            name => {
                let jobs = context.traces.jobs(name)?;
                Load::of(&Workload::by_name(name)?, &jobs, self.part)
            }
        };
        let measured = self.plan.run(&locks::LocksCase {
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
        let workload = self.row_workload();
        let template = self.template(&workload);
        let row = |(metric, value)| template.row(&metric, value);
        let figures = times(&measured, self.nanoseconds()).into_iter();
        let mut rows: Vec<Raw> = figures.map(row).collect();
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
fn times(run: &LocksRun, ns: f64) -> [(Metric<'static>, f64); 8] {
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

/// Returns what else explains the time; the reproduction leaves it out.
fn more(run: &LocksRun, ns: f64) -> [(Metric<'static>, f64); 7] {
    let lower = Metric::lower;
    let a_page = |n: u64| n as f64 / run.counts.pages.max(1) as f64;
    let lines = |name, n| (lower(name, "lines/page"), a_page(n));
    let contended = run.contended as f64 / run.waits.count().max(1) as f64;
    [
        (
            lower("holds", "times/page"),
            a_page(run.holds.count() as u64),
        ),
        (lower("contended", "%"), 100.0 * contended),
        (
            lower("hold-p99", "ns"),
            run.holds.percentile(99.0) as f64 * ns,
        ),
        (Metric::higher("fairness", "of 1"), run.fairness),
        (lower("held", "%"), 100.0 * run.held_share),
        lines("lines", run.traffic.moved()),
        lines("lines-from-cpus", run.traffic.transfers),
    ]
}

/// Returns the counts and orders of the bulks, the columns of the paper's second table.
fn bulks(run: &LocksRun) -> [(Metric<'static>, f64); 8] {
    let LocksRun { taken, given, .. } = run;
    bulk_figures([taken, given].map(|bulk| {
        [
            bulk.count,
            bulk.count_deviation,
            bulk.order,
            bulk.order_deviation,
        ]
    }))
}

/// Names the mean and deviation of the counts and of the orders, of bulks that were taken and given.
pub(super) fn bulk_figures([taken, given]: [[f64; 4]; 2]) -> [(Metric<'static>, f64); 8] {
    // The size of a bulk says nothing about the quality of a lock.
    let figure = |(name, unit), value| (Metric::new(name, unit, Better::Neither), value);
    [
        figure(("take-pages", "pages"), taken[0]),
        figure(("take-pages-sd", "pages"), taken[1]),
        figure(("take-order", "order"), taken[2]),
        figure(("take-order-sd", "order"), taken[3]),
        figure(("give-blocks", "blocks"), given[0]),
        figure(("give-blocks-sd", "blocks"), given[1]),
        figure(("give-order", "order"), given[2]),
        figure(("give-order-sd", "order"), given[3]),
    ]
}
