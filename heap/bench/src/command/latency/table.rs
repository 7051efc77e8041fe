//! The table of `latency`: for each number of threads a part with the times, in which each
//! thing that is timed has a line for each library, and a part about the processes.

use core::fmt::{self, Write};

use crate::latency::{OPERATIONS, split_workload};
use brickyard_results::{Better, Column, Columns, Results, Row, Summary, fixed};

/// Metrics of which the largest of all processes is told, not the median.
const LARGEST: [&str; 2] = ["max", "max-undisturbed"];

/// Writes the table.
pub(super) fn write(results: &Results, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "{}", results.experiment())?;
    for line in results.about() {
        writeln!(out, "{line}")?;
    }
    let workloads = once(results.rows().iter().map(Row::workload));
    for threads in once(workloads.iter().map(|workload| split_workload(workload).1)) {
        let of_threads = |row: &&Row| split_workload(row.workload()).1 == threads;
        let rows: Vec<&Row> = results.rows().iter().filter(of_threads).collect();
        for unit_is_time in [true, false] {
            let of_part = |row: &&&Row| (row.metric().unit == "ns") == unit_is_time;
            let rows: Vec<&Row> = rows.iter().filter(of_part).copied().collect();
            writeln!(out)?;
            for line in part(threads, &rows) {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    let interrupted = if results.is_interrupted() {
        "Interrupted: the figures are of what was done until then.\n"
    } else {
        ""
    };
    writeln!(
        out,
        "\n{interrupted}The medians of the processes; max: the largest of all. max-undisturbed: the largest in\n\
         blocks of some hundred operations in which the thread kept its CPU. A dash: too few.\n\
         nothing: the clock alone, so what the machine adds. Host: {}.",
        results.host()
    )
}

/// Returns the different values, in their order.
fn once<'r>(values: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Returns the lines of a part: a column for each metric.
fn part(threads: &str, rows: &[&Row]) -> Vec<String> {
    let metrics = once(rows.iter().map(|row| row.metric().name));
    let configs = once(rows.iter().map(|row| row.config()));
    let mut head = vec![threads.to_owned()];
    head.extend(metrics.iter().map(|&name| {
        let of = rows.iter().find(|row| row.metric().name == name);
        match of.map_or("", |row| row.metric().unit) {
            unit @ ("MiB" | "1/s") => format!("{name}, {unit}"),
            _ => name.to_owned(),
        }
    }));
    let mut lines = vec![head];
    for workload in once(rows.iter().map(|row| row.workload())) {
        lines.push(vec![split_workload(workload).0.to_owned()]);
        for config in &configs {
            let cell = |metric: &&str| {
                let is_it = |row: &&&Row| {
                    (row.config(), row.workload(), row.metric().name) == (config, workload, metric)
                };
                rows.iter().find(is_it).map_or("-".into(), |row| text(row))
            };
            let mut line = vec![format!("  {config}")];
            line.extend(metrics.iter().map(cell));
            lines.push(line);
        }
    }
    Columns::new([Column::left(), Column::right().after(3)]).lines(&lines)
}

fn text(row: &Row) -> String {
    let samples = row.samples();
    let median = || Summary::of(samples).ok()?.median();
    let value = if LARGEST.contains(&row.metric().name) {
        samples.iter().copied().reduce(f64::max)
    } else {
        median()
    };
    match (value, row.metric().unit) {
        (None, _) => "-".into(),
        (Some(ns), "ns") => time(ns),
        (Some(value), _) if row.metric().better == Better::Higher => {
            debug_assert_eq!(row.metric().name, OPERATIONS, "the only one");
            format!("{} million", fixed(value / 1e6, 2))
        }
        (Some(value), "MiB") => fixed(value, 1),
        (Some(value), _) => fixed(value, 0),
    }
}

/// Writes a time with three digits.
fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        1e9.. => (ns / 1e9, "s"),
        1e6.. => (ns / 1e6, "ms"),
        1e3.. => (ns / 1e3, "µs"),
        _ => return format!("{} ns", fixed(ns, 0)),
    };
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{} {unit}", fixed(value, decimals))
}

#[cfg(test)]
mod tests {
    use brickyard_results::{Host, Metric};

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_library() {
        let mut results = Results::new("latency", Host::unknown());
        results.about_line("ours: libours.so");
        let ns = |name| Metric::lower(name, "ns");
        for (config, workload, metric, samples) in [
            ("ours", "malloc threads-1", ns("p50"), [20.0, 22.0, 21.0]),
            ("glibc", "malloc threads-1", ns("p50"), [30.0, 31.0, 9e9]),
            (
                "ours",
                "malloc threads-1",
                ns("max"),
                [1e6, 12_345_678.0, 2e6],
            ),
            ("ours", "free threads-1", ns("max"), [1234.0, 1000.0, 999.0]),
            ("glibc", "free threads-1", ns("max"), [2e9, 1.0, 2.0]),
            (
                "ours",
                "process threads-1",
                Metric::higher("operations", "1/s"),
                [2e6, 2.5e6, 3e6],
            ),
            (
                "ours",
                "process threads-1",
                Metric::lower("minor-faults", "faults"),
                [5.0, 7.0, 6.0],
            ),
            ("ours", "malloc threads-2", ns("p50"), [25.0, 25.0, 25.0]),
        ] {
            let row = Row::new(config, workload, metric, samples.to_vec()).unwrap();
            results.push(row).unwrap();
        }
        let mut text = String::new();
        write(&results, &mut text).unwrap();
        let expected = "\
latency
ours: libours.so

threads-1     p50       max
malloc
  ours      21 ns   12.3 ms
  glibc     31 ns         -
free
  ours          -   1.23 µs
  glibc         -    2.00 s

threads-1   operations, 1/s   minor-faults
process
  ours         2.50 million              6

threads-2     p50
malloc
  ours      25 ns
";
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("Interrupted"));
        results.mark_interrupted();
        let mut text = String::new();
        write(&results, &mut text).unwrap();
        assert!(text.contains("Interrupted"));
    }
}
