//! Porter 2007 and 2008: how long the zone lock is held.

mod printed;
mod today;
mod words;

use printed::{BULK_WORKLOADS, BULKS, Four, PrintedWorkload, REAL, SIMULATED, TICKET, Two};

use crate::data::Key;
use crate::document::{
    Claim, Document, Figure, Head, Mistake, PrintedSpeedup, Statistic, Table, TableLine,
};
use crate::documents::build::{directed, heads, line};

const EXPERIMENT: &str = "locks";
const METATM: &str = "metatm-2007";
const XEON: &str = "xeon-x5355";
/// `unmod`, `ts`, `ts+opt`, `ts+opt+cl`.
const TICKETS: [&str; 4] = ["hold", "ticket", "ticket+yield", "ticket+yield+own-line"];

fn key(machine: &str, workload: &str, cpus: u32, config: &str, metric: &str) -> Key {
    let workload = format!("{workload} cpus-{cpus}");
    Key::new(EXPERIMENT, machine, &workload, config, metric)
}

pub(super) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "How long to hold the zone lock",
        source: "Donald E. Porter, \"A Proposed Buddy System Allocator Patch\", 29 October 2007, with its \"Subsequent Data\" of January 2008",
        by: "Porter 2007",
        asked: words::ASKED,
        claimed: words::CLAIMED,
        decides: words::DECIDES,
        findings: today::findings(),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables: tables(),
        today: today::today(),
        plots: today::plots(),
    }
}

fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = SIMULATED.iter().map(simulated).collect();
    tables.extend([real(), bulks(), ticket()]);
    tables
}

/// One of the paper's tables with two columns for each workload: the simulated ones, and that of
/// the real machine.
struct Pairs<'a> {
    machine: &'a str,
    cpus: u32,
    of: &'a [PrintedWorkload<Two>],
}

impl Pairs<'_> {
    fn head(&self) -> Vec<Vec<Head>> {
        let workloads: Vec<_> = self.of.iter().map(|&(name, ..)| (name, 2)).collect();
        let columns: Vec<_> = self
            .of
            .iter()
            .flat_map(|_| [("unmod", 1), ("opt", 1)])
            .collect();
        vec![heads(&workloads), heads(&columns)]
    }

    fn key(&self, workload: &str, config: &str) -> Key {
        key(self.machine, workload, self.cpus, config, "time")
    }

    /// Returns the line of one statistic, for both columns of each workload.
    fn pair_line(
        &self,
        head: &str,
        statistic: Statistic,
        printed: impl Fn(&Two) -> [&'static str; 2],
    ) -> TableLine {
        let mut cells = Vec::new();
        for (_, workload, two) in self.of {
            let texts = two.as_ref().map(&printed);
            for (side, config) in ["hold", "release"].into_iter().enumerate() {
                let measured = workload
                    .map(|workload| Figure::new(statistic, self.key(workload, config)).decimals(3));
                cells.push(cell(measured, texts.map(|texts| texts[side])));
            }
        }
        line(head, cells)
    }

    fn speedups(&self) -> TableLine {
        let mut cells = Vec::new();
        for (_, workload, two) in self.of {
            cells.push(None);
            let measured = workload.map(|workload| {
                Figure::compared(
                    Statistic::Speedup,
                    self.key(workload, "release"),
                    self.key(workload, "hold"),
                )
                .decimals(3)
            });
            let shown = cell(measured, two.as_ref().map(|two| two.speedup[0]));
            cells.push(match (shown, workload, two) {
                (Some(figure), Some(_), Some(two)) => Some(directed(
                    figure,
                    PrintedSpeedup::itself(two.speedup[0]),
                    claim(two.speedup[0]),
                )),
                (shown, ..) => shown,
            });
        }
        line("Speedup", cells)
    }

    fn lines(&self) -> Vec<TableLine> {
        vec![
            self.pair_line("Mean", Statistic::Mean, |two| two.mean),
            self.pair_line("Standard Deviation", Statistic::StdDev, |two| two.deviation),
            self.pair_line("95% Confidence Interval", Statistic::Interval95, |two| {
                two.interval
            }),
            self.speedups(),
        ]
    }
}

/// Returns the claim of a speedup. An asterisk marks it as significant; the others are within
/// noise, as the paper's own intervals overlap (`tests/documents`).
fn claim(speedup: &str) -> Claim {
    if speedup.ends_with('*') {
        Claim::Significant
    } else {
        Claim::Noise
    }
}

/// Returns the cell of a measured figure, a printed text, both, or neither.
fn cell(measured: Option<Figure>, text: Option<&'static str>) -> Option<Figure> {
    match (measured, text) {
        (Some(figure), Some(text)) => Some(figure.printed(text)),
        (Some(figure), None) => Some(figure),
        (None, Some(text)) => Some(Figure::not_modelled(text)),
        (None, None) => None,
    }
}

fn simulated((cpus, of): &(u32, Vec<PrintedWorkload<Two>>)) -> Table {
    let pairs = Pairs {
        machine: METATM,
        cpus: *cpus,
        of,
    };
    Table {
        id: format!("locks-simulated-{cpus}"),
        title: format!("Performance, simulated hardware, {cpus} CPU (seconds)"),
        about: words::SIMULATED.to_owned(),
        head: pairs.head(),
        lines: pairs.lines(),
    }
}

fn real() -> Table {
    let pairs = Pairs {
        machine: XEON,
        cpus: 8,
        of: &REAL,
    };
    Table {
        id: "locks-real".to_owned(),
        title: "Real hardware: two Xeon X5355, 8 cores (seconds; hdparm: MB/s)".to_owned(),
        about: words::REAL.to_owned(),
        head: pairs.head(),
        lines: pairs.lines(),
    }
}

fn bulks() -> Table {
    let workloads = BULK_WORKLOADS.map(|(name, _)| (name, 2));
    let columns = BULK_WORKLOADS.map(|_| [("mean", 1), ("stdev", 1)]).concat();
    let lines = BULKS
        .iter()
        .map(|&[head, of_mean, of_deviation, ref texts @ ..]| {
            let mut cells = Vec::new();
            for ((_, workload), texts) in BULK_WORKLOADS.iter().zip(texts.chunks(2)) {
                for (metric, text) in [of_mean, of_deviation].into_iter().zip(texts) {
                    let key = key(METATM, workload, 8, "hold", metric);
                    cells.push(Some(Figure::mean(key).printed(text)));
                }
            }
            line(head, cells)
        });
    Table {
        id: "locks-bulks".to_owned(),
        title: "Average size and order of allocation/deallocation".to_owned(),
        about: words::BULKS.to_owned(),
        head: vec![heads(&workloads), heads(&columns)],
        lines: lines.collect(),
    }
}

/// Returns a line of the table of ticket locks.
fn ticket_line(
    head: &str,
    statistic: Statistic,
    printed: impl Fn(&Four) -> [&'static str; 4],
) -> TableLine {
    let mut cells = Vec::new();
    for (_, workload, four) in TICKET.iter() {
        let texts = four.as_ref().map(&printed);
        for (side, config) in TICKETS.into_iter().enumerate() {
            let measured = workload.map(|workload| {
                Figure::new(statistic, key(XEON, workload, 8, config, "time")).decimals(3)
            });
            cells.push(cell(measured, texts.map(|texts| texts[side])));
        }
    }
    line(head, cells)
}

/// Each column over the one before it.
fn ticket_speedups() -> TableLine {
    let mut cells = Vec::new();
    for (_, workload, four) in TICKET.iter() {
        cells.push(None);
        for (side, step) in TICKETS.windows(2).enumerate() {
            let text = four.as_ref().map(|four| four.speedup[side]);
            let measured = workload.map(|workload| {
                Figure::compared(
                    Statistic::Speedup,
                    key(XEON, workload, 8, step[1], "time"),
                    key(XEON, workload, 8, step[0], "time"),
                )
                .decimals(3)
            });
            let claim = text.map_or(Claim::Noise, claim);
            let shown = cell(measured, text);
            let judged = |figure| {
                let figure = directed(figure, text.and_then(PrintedSpeedup::itself), claim);
                match step[1] {
                    "ticket" => figure.not_testable(words::OTHER_LOCKS),
                    _ => figure,
                }
            };
            cells.push(match workload {
                Some(_) => shown.map(judged),
                None => shown,
            });
        }
    }
    line("Speedup", cells)
}

fn ticket() -> Table {
    let workloads: Vec<_> = TICKET.iter().map(|&(name, ..)| (name, 4)).collect();
    let columns = [("unmod", 1), ("ts", 1), ("ts+opt", 1), ("ts+opt+cl", 1)].repeat(TICKET.len());
    Table {
        id: "locks-ticket".to_owned(),
        title: "Integration with ticket spinlocks (seconds; hdparm: MB/s)".to_owned(),
        about: words::TICKET.to_owned(),
        head: vec![heads(&workloads), heads(&columns)],
        lines: vec![
            ticket_line("Mean", Statistic::Mean, |four| four.mean),
            ticket_line("Standard Deviation", Statistic::StdDev, |four| {
                four.deviation
            }),
            ticket_line("95% Confidence Interval", Statistic::Interval95, |four| {
                four.interval
            }),
            ticket_speedups(),
        ],
    }
}
