//! Porter 2007 and 2008: how long the zone lock is held.

mod printed;
mod today;
mod words;

use printed::{BULK_WORKLOADS, BULKS, Columns, PrintedWorkload, REAL, SIMULATED, TICKET};

use crate::data::Key;
use crate::document::{
    Claim, Document, Figure, Mistake, PrintedSpeedup, Statistic, Table, TableLine,
};
use crate::documents::build::{columns, directed, heads, line};

const EXPERIMENT: &str = "locks";
const METATM: &str = "metatm-2007";
const XEON: &str = "xeon-x5355";
/// The columns of the patch, and of ticket locks: the paper's name, and ours.
const PATCHED: [(&str, &str); 2] = [("unmod", "hold"), ("opt", "release")];
const TICKETS: [(&str, &str); 4] = [
    ("unmod", "hold"),
    ("ts", "ticket"),
    ("ts+opt", "ticket+yield"),
    ("ts+opt+cl", "ticket+yield+own-line"),
];

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
    let simulated = SIMULATED.iter().map(|(cpus, of)| {
        let times = Times {
            machine: METATM,
            cpus: *cpus,
            columns: PATCHED,
            of,
        };
        times.table(
            format!("locks-simulated-{cpus}"),
            format!("Performance, simulated hardware, {cpus} CPU (seconds)"),
            words::SIMULATED,
        )
    });
    let real = Times {
        machine: XEON,
        cpus: 8,
        columns: PATCHED,
        of: &REAL,
    };
    let real = real.table(
        "locks-real".to_owned(),
        "Real hardware: two Xeon X5355, 8 cores (seconds; hdparm: MB/s)".to_owned(),
        words::REAL,
    );
    let ticket = Times {
        machine: XEON,
        cpus: 8,
        columns: TICKETS,
        of: &TICKET,
    };
    let ticket = ticket.table(
        "locks-ticket".to_owned(),
        "Integration with ticket spinlocks (seconds; hdparm: MB/s)".to_owned(),
        words::TICKET,
    );
    simulated
        .chain([real, bulks(), ticket, worst_cases()])
        .collect()
}

/// Returns the largest loss of each machine, and of all: the conclusion is that there is none.
fn worst_cases() -> Table {
    let worst = |config: &str, before: &str, machines: &[(&str, u32, &[&str])]| {
        let keys = |config: &str| -> Vec<Key> {
            let of = |&(machine, cpus, workloads): &(&str, u32, &[&str])| {
                let key = |workload: &&str| key(machine, workload, cpus, config, "time");
                workloads.iter().map(key).collect::<Vec<_>>()
            };
            machines.iter().flat_map(of).collect()
        };
        Figure {
            statistic: Statistic::WorstSpeedup,
            decimals: 3,
            ..Figure::gmean(keys(config), keys(before))
        }
    };
    let machines = [
        (METATM, 8, &super::simulated::ON_SIMULATOR[..]),
        (METATM, 16, &super::simulated::ON_SIMULATOR),
        (METATM, 32, &super::simulated::ON_SIMULATOR),
        (XEON, 8, &super::simulated::ON_REAL),
    ];
    let cells = |config, before| {
        let each = machines.map(|machine| Some(worst(config, before, &[machine])));
        (each, worst(config, before, &machines))
    };
    let (each, all) = cells("release", "hold");
    let all = all.printed("no significant harm");
    let released = [&each[..], &[Some(all.judged(1.0, Claim::NoHarm))]].concat();
    let (each, all) = cells("ticket+yield", "ticket");
    let yielded = [&each[..], &[Some(all)]].concat();
    Table {
        id: "locks-worst".to_owned(),
        title: "The worst case: the smallest speedup of all workloads".to_owned(),
        about: words::WORST.to_owned(),
        head: vec![columns(&["8 CPUs", "16 CPUs", "32 CPUs", "Xeon", "all"])],
        lines: vec![
            line("opt over unmod", released),
            line("ts+opt over ts", yielded),
        ],
    }
}

/// One of the paper's tables of times, with some columns for each workload.
struct Times<'a, const N: usize, const STEPS: usize> {
    machine: &'a str,
    cpus: u32,
    /// The paper's name of each, and ours.
    columns: [(&'a str, &'a str); N],
    of: &'a [PrintedWorkload<Columns<N, STEPS>>],
}

impl<const N: usize, const STEPS: usize> Times<'_, N, STEPS> {
    fn table(&self, id: String, title: String, about: &str) -> Table {
        let workloads: Vec<_> = self.of.iter().map(|&(name, ..)| (name, N)).collect();
        let columns = self
            .columns
            .map(|(name, _)| (name, 1))
            .repeat(self.of.len());
        Table {
            id,
            title,
            about: about.to_owned(),
            head: vec![heads(&workloads), heads(&columns)],
            lines: vec![
                self.line("Mean", Statistic::Mean, |of| of.mean),
                self.line("Standard Deviation", Statistic::StdDev, |of| of.deviation),
                self.line("95% Confidence Interval", Statistic::Interval95, |of| {
                    of.interval
                }),
                self.speedups(),
            ],
        }
    }

    fn key(&self, workload: &str, column: usize) -> Key {
        let (_, config) = self.columns[column];
        key(self.machine, workload, self.cpus, config, "time")
    }

    /// Returns the line of one statistic, for all columns of each workload.
    fn line(
        &self,
        head: &str,
        statistic: Statistic,
        printed: impl Fn(&Columns<N, STEPS>) -> [&'static str; N],
    ) -> TableLine {
        let mut cells = Vec::new();
        for (_, workload, of) in self.of {
            let texts = of.as_ref().map(&printed);
            cells.extend((0..N).map(|column| {
                let measured = workload
                    .map(|workload| Figure::new(statistic, self.key(workload, column)).decimals(5));
                cell(measured, texts.map(|texts| texts[column]))
            }));
        }
        line(head, cells)
    }

    /// Each column over the one before it.
    fn speedups(&self) -> TableLine {
        let mut cells = Vec::new();
        for (_, workload, of) in self.of {
            cells.push(None);
            cells.extend((0..STEPS).map(|step| {
                let text = of.as_ref().map(|of| of.speedup[step]);
                let measured = workload.map(|workload| {
                    let (of, against) = (self.key(workload, step + 1), self.key(workload, step));
                    Figure::compared(Statistic::Speedup, of, against).decimals(4)
                });
                let claim = text.map_or(Claim::Noise, claim);
                let judged = |figure| {
                    let figure = directed(figure, text.and_then(PrintedSpeedup::itself), claim);
                    match self.columns[step + 1].1 {
                        "ticket" => figure.not_testable(words::OTHER_LOCKS),
                        _ => figure,
                    }
                };
                let shown = cell(measured, text);
                match workload {
                    Some(_) => shown.map(judged),
                    None => shown,
                }
            }));
        }
        line("Speedup", cells)
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
