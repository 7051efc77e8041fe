//! Makes the rows of the table from what the processes have told.

use crate::loads::latency::{MAXIMA, PERCENTILES, timed_names};
use brickyard_results::{Host, Metric, Results, Row};

use super::LibrarySamples;
use crate::programs::library::Bound;

/// The workload of the rows about the whole process, beside its threads.
const PROCESS: &str = "process";

/// How many blocks were allocated in a second.
pub const OPERATIONS: &str = "operations";

/// Of a process's rows: the metric, and its value by what the process has told.
type Value = fn(&dyn Fn(&str) -> Option<f64>) -> Option<f64>;
const OF_A_PROCESS: [(Metric<'static>, Value); 5] = [
    (Metric::higher(OPERATIONS, "1/s"), |told| {
        Some(told("operations")? / told("seconds")?)
    }),
    (Metric::lower("peak", "MiB"), |told| told("peak")),
    (Metric::lower("minor-faults", "faults"), |told| {
        told("minor-faults")
    }),
    (Metric::lower("major-faults", "faults"), |told| {
        told("major-faults")
    }),
    (Metric::lower("preempted", "times"), |told| {
        told("preempted")
    }),
];

/// Returns what a workload is about, and the threads.
#[must_use]
pub fn split_workload(workload: &str) -> (&str, &str) {
    workload.split_once(' ').unwrap_or((workload, ""))
}

/// Returns all rows: for each number of threads what is timed, and then the process.
pub(super) fn results(libraries: &[Bound], taken: &[LibrarySamples]) -> anyhow::Result<Results> {
    let mut results = Results::new("latency", Host::read());
    let mut threads: Vec<usize> = taken.iter().map(|of| of.threads).collect();
    threads.dedup();
    let names = timed_names();
    for threads in threads {
        let of_threads = || taken.iter().filter(move |of| of.threads == threads);
        for name in &names {
            let percentiles = PERCENTILES.into_iter().map(|(metric, _)| metric);
            for metric in percentiles.chain(MAXIMA) {
                for of in of_threads() {
                    let value =
                        |told: &super::ProcessReport| told.value(&format!("{name}/{metric}"));
                    let samples: Vec<f64> = of.turns.iter().filter_map(value).collect();
                    let workload = format!("{name} threads-{threads}");
                    let config = &libraries[of.library].name;
                    add(
                        &mut results,
                        config,
                        workload,
                        Metric::lower(metric, "ns"),
                        samples,
                    )?;
                }
            }
        }
        for (metric, value) in OF_A_PROCESS {
            for of in of_threads() {
                let turns = of.turns.iter();
                let samples: Vec<f64> = turns
                    .filter_map(|turn| value(&|name| turn.value(name)))
                    .collect();
                let workload = format!("{PROCESS} threads-{threads}");
                let config = &libraries[of.library].name;
                add(&mut results, config, workload, metric, samples)?;
            }
        }
    }
    Ok(results)
}

/// Adds a row, if it has samples.
fn add(
    results: &mut Results,
    config: &str,
    workload: String,
    metric: Metric<'_>,
    samples: Vec<f64>,
) -> anyhow::Result<()> {
    if !samples.is_empty() {
        results.push(Row::new(config, workload, metric, samples)?.timed())?;
    }
    Ok(())
}
