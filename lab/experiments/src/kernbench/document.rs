//! Gorman 2013: a kernel build (`kernbench`).

use brickyard_pictures::plot::Scale;
use brickyard_results::Better;

use crate::cells::simulated::OTHER_INSTRUCTIONS;
use crate::data::Key;
use crate::document::{Claim, Document, Figure, Finding, Mistake, Plot, Statistic, Table};
use crate::documents::build::{
    Row, Today, axis, curve, directed, directions, finding, gmean, line, mean, names,
    printed_speedup, summary, times, word,
};
use crate::documents::magazines;

const EXPERIMENT: &str = "kernbench";
const CONFIGS: [&str; 4] = ["list-2007", "magazine-2013", "vanilla", "brickyard"];

/// A line: the printed name, our metric, the statistic's name, `vanilla`, `magazine`, and the gain
/// in percent.
type Printed = [&'static str; 6];

const LINES: [Printed; 20] = [
    ["User", "user", "min", "883.59", "700.16", "20.76%"],
    ["User", "user", "mean", "891.11", "741.02", "16.84%"],
    ["User", "user", "stddev", "12.14", "50.04", "-312.18%"],
    ["User", "user", "max", "915.30", "817.50", "10.69%"],
    ["User", "user", "range", "31.71", "117.34", "-270.04%"],
    ["System", "system", "min", "58.85", "43.65", "25.83%"],
    ["System", "system", "mean", "59.65", "47.65", "20.12%"],
    ["System", "system", "stddev", "1.35", "4.79", "-254.39%"],
    ["System", "system", "max", "62.35", "55.35", "11.23%"],
    ["System", "system", "range", "3.50", "11.70", "-234.29%"],
    ["Elapsed", "elapsed", "min", "127.75", "99.37", "22.22%"],
    ["Elapsed", "elapsed", "mean", "129.19", "105.73", "18.16%"],
    ["Elapsed", "elapsed", "stddev", "2.07", "7.56", "-265.78%"],
    ["Elapsed", "elapsed", "max", "133.25", "117.53", "11.80%"],
    ["Elapsed", "elapsed", "range", "5.50", "18.16", "-230.18%"],
    ["CPU", "cpu", "min", "731.00", "742.00", "-1.50%"],
    ["CPU", "cpu", "mean", "735.20", "745.60", "-1.41%"],
    ["CPU", "cpu", "stddev", "2.99", "3.38", "-12.99%"],
    ["CPU", "cpu", "max", "739.00", "751.00", "-1.62%"],
    ["CPU", "cpu", "range", "8.00", "9.00", "-12.50%"],
];

const ASKED: &str = "Is a parallel kernel build faster with shared magazines in place of per-CPU lists? The document says: 18 % less elapsed time, which its author himself considers too good, a \"lucky\" run. Here `list-2007` stands in for its baseline, Linux 3.9: per-CPU lists, and grouping by mobility, as there.";

const CLAIMED: &str =
    "A kernel build takes 18 % less time with magazines, which its author himself did not believe.";

const DECIDES: &str =
    "Simulated: the allocator's share of a build, which no allocator can gain more than.";

const TABLE: &str = "Simulated: sixteen jobs on the eight CPUs of the document's machine compile recorded files (a recording of today's compiler). The library's own source serves every page; \"user\" is everything else in the recording, so it can hardly differ between allocators, and \"system\" is the allocator alone, a small part of what a kernel counts; the contents of pages and the records of frames are not charged here, as they are for page faults. \
    Seconds cannot be compared, gains can. Directions are judged for means only. The gain of CPU use has the document's sign (more use is negative); its direction is judged with more being better.";

const TODAY: &str = "The same build under each configuration, and the gain over `list-2007` (positive is better). Simulated.";

fn key(config: &str, metric: &str) -> Key {
    Key::new(EXPERIMENT, "i7-2013", "build cpus-8", config, metric)
}

pub(super) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "Magazines or per-CPU lists: a kernel build",
        source: magazines::SOURCE,
        by: "Gorman 2013",
        asked: ASKED,
        claimed: CLAIMED,
        decides: DECIDES,
        findings: findings(),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables: vec![table()],
        today: today(),
        plots: vec![plot()],
    }
}

/// Returns the statistic of this name, and the statistic of its gain.
fn statistics(name: &str) -> (Statistic, Statistic) {
    match name {
        "min" => (Statistic::Min, Statistic::GainMin),
        "stddev" => (Statistic::StdDev, Statistic::GainStdDev),
        "max" => (Statistic::Max, Statistic::GainMax),
        "range" => (Statistic::Range, Statistic::GainRange),
        _ => (Statistic::Mean, Statistic::Gain),
    }
}

fn table() -> Table {
    let lines = LINES
        .iter()
        .map(|&[what, metric, name, vanilla, magazine, printed]| {
            let (before, now) = (key("list-2007", metric), key("magazine-2013", metric));
            let (statistic, of_gain) = statistics(name);
            // CPU use is counted as a cost. Of a deviation, less is always better: the same sign.
            let (better, sign) = match (metric, name) {
                ("cpu", "min" | "mean" | "max") => (Better::Higher, -1.0),
                _ => (Better::Lower, 1.0),
            };
            let gain = Figure::compared(of_gain, now.clone(), before.clone());
            let gain = gain.printed(printed).scaled(sign);
            let gain = match name {
                "mean" => directed(
                    gain,
                    printed_speedup(better, vanilla, magazine),
                    Claim::Untested,
                )
                .swept_alone(&OTHER_INSTRUCTIONS),
                _ => gain,
            };
            let of = |key, text| Figure::new(statistic, key).printed(text);
            let cells = [of(before, vanilla), of(now, magazine), gain];
            line(format!("{what} {name}"), cells.map(Some).into())
        });
    Table {
        id: "kernbench-2013".to_owned(),
        title: "kernbench (seconds; CPU: percent of one CPU)".to_owned(),
        about: TABLE.to_owned(),
        head: magazines::head(),
        lines: lines.collect(),
    }
}

fn today() -> Vec<Table> {
    let today = Today::gains(EXPERIMENT, &CONFIGS);
    let rows = [
        Row::new("User, s", "i7-2013", "build cpus-8", "user").decimals(3),
        Row::new("System, s", "i7-2013", "build cpus-8", "system").decimals(4),
        Row::new("Elapsed, s", "i7-2013", "build cpus-8", "elapsed").decimals(3),
        Row::new("CPU, %", "i7-2013", "build cpus-8", "cpu").decimals(1),
    ];
    vec![today.table(
        "kernbench-today",
        "A build, every configuration",
        TODAY,
        rows.into(),
    )]
}

fn plot() -> Plot {
    let places = (0_u32..).map(f64::from);
    let curves = places
        .zip(CONFIGS)
        .map(|(place, config)| curve(config, vec![(place, key(config, "system"))]));
    Plot {
        id: "kernbench-system".to_owned(),
        title: "Time in the allocator during a build (simulated)".to_owned(),
        about: "The sum over all CPUs. A build cannot gain more than this from its allocator."
            .to_owned(),
        x: names("configuration", &CONFIGS),
        y: axis("system time, s", Scale::Linear),
        curves: curves.collect(),
    }
}

fn findings() -> Vec<Finding> {
    let pair = |config: &str, metric: &str| vec![key(config, metric)];
    let elapsed = |config: &str| pair(config, "elapsed");
    let words = [
        "faster with magazines than with per-CPU lists",
        "slower with magazines than with per-CPU lists",
        "as fast with magazines as with per-CPU lists",
    ];
    vec![
        summary(
            "A simulated kernel build is {}: {} times the speed, and {} times with `brickyard`. The document printed 1.22 times, which its author did not believe.",
            [
                word(elapsed("magazine-2013"), elapsed("list-2007"), words),
                gmean(elapsed("magazine-2013"), elapsed("list-2007"), 3),
                gmean(elapsed("brickyard"), elapsed("list-2007"), 3),
            ],
        ),
        finding(
            "The allocator itself takes {} s of the build with per-CPU lists, {} s with magazines and {} s with `brickyard` ({} times the speed of lists), summed over all CPUs, simulated. So no allocator can gain more than that.",
            [
                mean(key("list-2007", "system"), 3),
                mean(key("magazine-2013", "system"), 3),
                mean(key("brickyard", "system"), 3),
                times(key("brickyard", "system"), key("list-2007", "system"), 1),
            ],
        ),
        directions(),
    ]
}
