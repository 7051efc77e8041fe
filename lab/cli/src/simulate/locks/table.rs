//! The table of `brickyard simulate locks`: the figures of a run, and the comparison with what was
//! published.

use brickyard_report::{
    Better, Column as Place, Columns, Host, Metric, Results, Row, SignedRank, counted,
};
use brickyard_simulate::locks::published::Difference;
use brickyard_simulate::locks::{Column, Computing, Load, Measured, Part, Plan};

use crate::simulate::setup::simulated;

/// The result of a run: `None` where it was not begun, a message where it failed.
pub(super) type Done = Option<Result<Measured, String>>;

/// A workload on a number of CPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'l> {
    pub(super) load: &'l Load,
    pub(super) cpus: usize,
}

impl Line<'_> {
    fn name(&self) -> String {
        row_name(self.load.name(), self.cpus)
    }
}

fn row_name(workload: &str, cpus: usize) -> String {
    format!("{workload} cpus-{cpus}")
}

/// Returns the label of a table's line.
pub(super) fn label(workload: &str, metric: &str) -> String {
    if metric == TIME.name {
        workload.into()
    } else {
        format!("  {metric}")
    }
}

/// From the machine's beginning to the last task's end, in its own time.
const TIME: Metric<'static> = Metric::lower("time", "ms");

/// The table while it is built.
#[derive(Debug)]
pub(super) struct Table {
    results: Results,
    megahertz: u64,
    /// Cells whose runs are not all done.
    missing: Vec<String>,
    failed: Option<String>,
    /// Runs in which requests failed for lack of memory.
    short: u64,
}

impl Table {
    pub(super) fn new(plan: &Plan, part: Part) -> Self {
        let (lists, machine) = (plan.lists, plan.profile);
        let part = match part {
            Part::Whole => "all of each job".to_owned(),
            Part::Events(events) => format!("the first {events} events of each job"),
        };
        let title = format!(
            "locks of {} on {}, lists of {} and {}, {part}{}",
            plan.configuration,
            machine.name,
            lists.batch,
            lists.high,
            match plan.computing {
                Computing::EvictsLines => "",
                Computing::KeepsLines => ", computing keeps the allocator's lines",
            }
        );
        let host = Host {
            memory_bytes: Some(plan.memory_bytes),
            ..simulated(machine)
        };
        Self {
            results: Results::new(title, host),
            megahertz: machine.megahertz,
            missing: Vec::new(),
            failed: None,
            short: 0,
        }
    }

    /// Adds the runs of a line, in the order in which they were requested: seed by seed, column by
    /// column. A cell with a missing run is left out.
    pub(super) fn push(
        &mut self,
        line: &Line<'_>,
        columns: &[Column],
        done: Vec<Done>,
    ) -> anyhow::Result<()> {
        let ns = 1e3 / self.megahertz as f64;
        let mut cells = vec![Some(Vec::new()); columns.len()];
        for (number, run) in done.into_iter().enumerate() {
            let cell = &mut cells[number % columns.len()];
            match run {
                Some(Ok(measured)) => {
                    self.short += measured.counts.failed.min(1);
                    if let Some(cell) = cell {
                        cell.push(figures(&measured, ns));
                    }
                }
                Some(Err(failed)) => {
                    self.failed.get_or_insert(failed);
                    *cell = None;
                }
                None => *cell = None,
            }
        }
        for (column, cell) in columns.iter().zip(&cells) {
            if cell.is_none() {
                self.missing
                    .push(format!("{} {}", line.name(), column.name()));
            }
        }
        for place in 0..FIGURES {
            for (column, runs) in columns.iter().zip(&cells) {
                let Some(runs) = runs else { continue };
                let (metric, _) = runs[0][place];
                let samples = runs.iter().map(|figures| figures[place].1).collect();
                let row = Row::new(column.name(), line.name(), metric, samples)?;
                self.results.push(row.exact())?;
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.rows().is_empty() && self.failed.is_none()
    }

    pub(super) const fn results(&self) -> &Results {
        &self.results
    }

    /// Prints warnings about missing runs and failed requests; returns an error where a run failed.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        if self.short > 0 {
            eprintln!(
                "brickyard: requests failed for lack of memory in {}; give more --memory",
                counted(self.short, "run", "runs")
            );
        }
        match self.failed {
            Some(failed) => anyhow::bail!("a run failed: {failed}"),
            None if self.missing.is_empty() => Ok(()),
            None => {
                eprintln!(
                    "brickyard: interrupted; missing cells: {}",
                    self.missing.join(", ")
                );
                Ok(())
            }
        }
    }

    /// Formats how each published difference compares with the measured one, one per line.
    pub(super) fn published(&self) -> String {
        let right = Place::right().after(1);
        let columns = Columns::new([
            Place::left().wide(28),
            Place::left().wide(20).after(1),
            Place::left().wide(38).after(1),
            right.wide(9),
            right.wide(9),
            right.wide(7),
            Place::left().after(2),
        ]);
        let heads = [
            "published",
            "workload",
            "columns",
            "published",
            "measured",
            "p",
            "direction",
        ];
        let mut text = columns.line(heads) + "\n";
        for difference in Difference::all() {
            let Some((speedup, p)) = self.measured(difference) else {
                continue;
            };
            let line = [
                difference.source.to_owned(),
                format!("{} cpus-{}", difference.published_as, difference.cpus),
                format!(
                    "{} over {}",
                    difference.now.name(),
                    difference.before.name()
                ),
                format!("{:.3}{}", difference.speedup, difference.star.mark()),
                format!("{speedup:.4}"),
                p.map_or_else(|| "-".to_owned(), |p| format!("{p:.4}")),
                difference.agreement(speedup, p).name().to_owned(),
            ];
            text += &(columns.line(line) + "\n");
        }
        text
    }

    /// Returns the measured speedup of the same two columns, and p of the signed-rank test.
    fn measured(&self, difference: &Difference) -> Option<(f64, Option<f64>)> {
        let workload = row_name(difference.workload, difference.cpus);
        let row = |column: Column| {
            self.results.rows().iter().find(|row| {
                row.config() == column.name()
                    && row.workload() == workload
                    && row.metric().name == TIME.name
            })
        };
        let (before, now) = (row(difference.before)?, row(difference.now)?);
        let speedup = before.summary().mean()? / now.summary().mean()?;
        let test = SignedRank::of(before.samples(), now.samples()).ok();
        Some((speedup, test.map(|test| test.p)))
    }
}

/// How many figures a run has.
const FIGURES: usize = 23;

/// Returns the figures of a run in the order of the table's lines: the time, then what explains it.
/// `ns` is the length of a cycle in nanoseconds.
fn figures(run: &Measured, ns: f64) -> [(Metric<'static>, f64); FIGURES] {
    let Measured { taken, given, .. } = run;
    let lower = Metric::lower;
    let percent = |name, share: f64| (lower(name, "%"), 100.0 * share);
    let per_page = |n: u64| n as f64 / run.counts.pages.max(1) as f64;
    let lines = |name, n| (lower(name, "lines/page"), per_page(n));
    let contended = 100.0 * run.contended as f64 / run.waits.count().max(1) as f64;
    let wait = |name, percent| (lower(name, "ns"), run.waits.percentile(percent) as f64 * ns);
    let hold = |name, percent| (lower(name, "ns"), run.holds.percentile(percent) as f64 * ns);
    // The size of a bulk operation is neither better nor worse.
    let bulk = |name, unit, value| (Metric::new(name, unit, Better::Neither), value);
    let pages = |name, value| bulk(name, "pages/bulk", value);
    let blocks = |name, value| bulk(name, "blocks/bulk", value);
    let order = |name, value| bulk(name, "order", value);
    let holds = per_page(run.holds.count() as u64);
    [
        (TIME, 1e3 * run.seconds),
        (lower("holds", "times/page"), holds),
        (lower("contended", "%"), contended),
        wait("wait-p50", 50.0),
        wait("wait-p99", 99.0),
        wait("wait-p99.9", 99.9),
        hold("hold-p50", 50.0),
        hold("hold-p99", 99.0),
        hold("hold-p99.9", 99.9),
        (Metric::higher("fairness", "of 1"), run.fairness),
        percent("waiting", run.waiting_share),
        percent("held", run.held_share),
        percent("locked", run.locked_share),
        lines("lines", run.traffic.moved()),
        lines("lines-from-cpus", run.traffic.transfers),
        pages("taken", taken.count),
        pages("taken-deviation", taken.count_deviation),
        order("taken-order", taken.order),
        order("taken-order-deviation", taken.order_deviation),
        blocks("given", given.count),
        blocks("given-deviation", given.count_deviation),
        order("given-order", given.order),
        order("given-order-deviation", given.order_deviation),
    ]
}
