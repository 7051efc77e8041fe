//! The table of `brickyard simulate locks`: which figures of a run are its lines, and how what was published compares.

use brickyard_report::{Better, Column as Place, Columns, Host, Metric, Results, Row, SignedRank};
use brickyard_simulate::locks::published::Difference;
use brickyard_simulate::locks::{Bulks, Column, Load, Measured, Part, Plan};

use crate::simulate::setup::simulated;

/// What came of a run: nothing where it was not begun any more, a text where it went wrong.
pub(super) type Done = Option<Result<Measured, String>>;

/// A workload on so many CPUs.
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

/// The head of a table's line.
pub(super) fn label(workload: &str, metric: &str) -> String {
    if metric == TIME.name {
        workload.into()
    } else {
        format!("  {metric}")
    }
}

/// From the machine's begin to the last task's end, in its own time.
const TIME: Metric<'static> = Metric {
    name: "time",
    unit: "ms",
    better: Better::Lower,
};

/// The document in the making.
#[derive(Debug)]
pub(super) struct Table {
    results: Results,
    megahertz: u64,
    /// Cells whose runs are not all done.
    missing: Vec<String>,
    failed: Option<String>,
    /// Runs in which memory was short.
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
            "locks of {} on {}, lists of {} and {}, {part}",
            plan.configuration, machine.name, lists.batch, lists.high
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

    /// The runs of a line, as they were asked for: seed by seed, column by column. A cell of which one is missing is left out.
    pub(super) fn push(
        &mut self,
        line: &Line<'_>,
        columns: &[Column],
        done: Vec<Done>,
    ) -> anyhow::Result<()> {
        let mut cells = vec![Some(Vec::new()); columns.len()];
        for (number, run) in done.into_iter().enumerate() {
            let cell = &mut cells[number % columns.len()];
            match run {
                Some(Ok(measured)) => {
                    self.short += measured.counts.failed.min(1);
                    if let Some(cell) = cell {
                        cell.push(measured);
                    }
                }
                Some(Err(failed)) => {
                    self.failed.get_or_insert(failed);
                    *cell = None;
                }
                None => *cell = None,
            }
        }
        for (column, _) in columns
            .iter()
            .zip(&cells)
            .filter(|(_, cell)| cell.is_none())
        {
            self.missing
                .push(format!("{} {}", line.name(), column.name()));
        }
        let ns = 1e3 / self.megahertz as f64;
        for (metric, value) in metrics(ns) {
            for (column, runs) in columns.iter().zip(&cells) {
                let Some(runs) = runs else { continue };
                let samples = runs.iter().map(&value).collect();
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

    /// What is missing, and why; an error where a run went wrong.
    pub(super) fn complaints(self) -> anyhow::Result<()> {
        if self.short > 0 {
            eprintln!(
                "brickyard: memory was short in {} runs, and requests failed; give more --memory",
                self.short
            );
        }
        match self.failed {
            Some(failed) => anyhow::bail!("a run did not come to its end: {failed}"),
            None if self.missing.is_empty() => Ok(()),
            None => {
                eprintln!(
                    "brickyard: ended early; missing: {}",
                    self.missing.join(", ")
                );
                Ok(())
            }
        }
    }

    /// How each published difference compares with the measured one, a line each.
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

    /// The measured speedup of the same two columns, and p of the signed-rank test.
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

const TAKEN: [&str; 4] = [
    "taken",
    "taken-deviation",
    "taken-order",
    "taken-order-deviation",
];
const GIVEN: [&str; 4] = [
    "given",
    "given-deviation",
    "given-order",
    "given-order-deviation",
];

/// How a sample of a metric comes of a run.
type Value = Box<dyn Fn(&Measured) -> f64>;

/// The metrics in the order of their lines: the time, then what explains it. `ns` are the nanoseconds of a cycle.
fn metrics(ns: f64) -> Vec<(Metric<'static>, Value)> {
    let metric = |name, unit, better| Metric { name, unit, better };
    let (lower, higher) = (Better::Lower, Better::Higher);
    let per_page = |run: &Measured, n: u64| n as f64 / run.counts.pages.max(1) as f64;
    let mut metrics: Vec<(Metric<'static>, Value)> = vec![
        (TIME, Box::new(|run| 1e3 * run.seconds)),
        (
            metric("holds", "times/page", lower),
            Box::new(move |run| per_page(run, run.holds.count() as u64)),
        ),
        (
            metric("contended", "%", lower),
            Box::new(|run| 100.0 * run.contended as f64 / run.waits.count().max(1) as f64),
        ),
    ];
    for (name, percent) in [("wait-p50", 50.0), ("wait-p99", 99.0), ("wait-p99.9", 99.9)] {
        let value = move |run: &Measured| run.waits.percentile(percent) as f64 * ns;
        metrics.push((metric(name, "ns", lower), Box::new(value)));
    }
    for (name, percent) in [("hold-p50", 50.0), ("hold-p99", 99.0), ("hold-p99.9", 99.9)] {
        let value = move |run: &Measured| run.holds.percentile(percent) as f64 * ns;
        metrics.push((metric(name, "ns", lower), Box::new(value)));
    }
    let more: [(Metric<'_>, Value); 5] = [
        (
            metric("fairness", "of 1", higher),
            Box::new(|run| run.fairness),
        ),
        (
            metric("waiting", "%", lower),
            Box::new(|run| 100.0 * run.waiting_share),
        ),
        (
            metric("held", "%", lower),
            Box::new(|run| 100.0 * run.held_share),
        ),
        (
            metric("lines", "lines/page", lower),
            Box::new(move |run| per_page(run, run.traffic.moved())),
        ),
        (
            metric("lines-from-cpus", "lines/page", lower),
            Box::new(move |run| per_page(run, run.traffic.transfers)),
        ),
    ];
    metrics.extend(more);
    metrics.extend(bulks(TAKEN, |run| run.taken));
    metrics.extend(bulks(GIVEN, |run| run.given));
    metrics
}

/// The figures of the second table of 2007, for one direction.
fn bulks(names: [&'static str; 4], of: fn(&Measured) -> Bulks) -> [(Metric<'static>, Value); 4] {
    let units = ["pages/bulk", "pages/bulk", "order", "order"];
    let figures: [fn(Bulks) -> f64; 4] = [
        |bulks| bulks.count,
        |bulks| bulks.count_deviation,
        |bulks| bulks.order,
        |bulks| bulks.order_deviation,
    ];
    core::array::from_fn(|place| {
        let metric = Metric {
            name: names[place],
            unit: units[place],
            // What a bulk is like is no merit of a lock.
            better: Better::Neither,
        };
        let figure = figures[place];
        let value: Value = Box::new(move |run| figure(of(run)));
        (metric, value)
    })
}
