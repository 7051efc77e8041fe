//! Makes the rows of the table from the samples.

use brickyard_report::{Host, Metric, Results, Row};

use super::Sample;
use super::library::Bound;
use super::task::Task;

const TIME: Metric<'static> = Metric::lower("time", "s");
const CPU: Metric<'static> = Metric::lower("cpu", "s");
const PEAK: Metric<'static> = Metric::lower("peak", "MiB");

/// How much more than the live memory the peak is.
const OVER_LIVE: Metric<'static> = Metric::lower("over-live", "%");

/// The metrics in the order of a task's rows.
type Value = fn(&Sample) -> Option<f64>;
const METRICS: [(Metric<'static>, Value); 4] = [
    (TIME, |sample| Some(sample.time_s)),
    (CPU, |sample| Some(sample.cpu_s)),
    (PEAK, |sample| Some(sample.peak_mib)),
    (OVER_LIVE, |sample| {
        let live = sample.live_mib?;
        Some((sample.peak_mib / live - 1.0) * 100.0)
    }),
];

/// Returns all rows. `taken` has, for each task that was run, each library's rounds; `None` where
/// it failed.
pub(crate) fn results(
    libraries: &[Bound],
    tasks: &[Task],
    taken: &[Vec<Vec<Option<Sample>>>],
) -> anyhow::Result<Results> {
    let mut results = Results::new("programs", Host::read());
    for (task, taken) in tasks.iter().zip(taken) {
        for (metric, value) in METRICS {
            for (library, rounds) in libraries.iter().zip(taken) {
                let samples: Vec<f64> = rounds.iter().flatten().filter_map(value).collect();
                // One that failed in a later round has no row: its rounds are not those of others.
                if !samples.is_empty() && samples.len() == rounds.len() {
                    let row = Row::new(&library.name, task.to_string(), metric, samples)?;
                    results.push(row.timed())?;
                }
            }
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::super::task::named;
    use super::*;

    #[test]
    fn a_row_has_a_sample_a_round() {
        let sample = Sample {
            time_s: 1.0,
            cpu_s: 0.5,
            peak_mib: 150.0,
            live_mib: Some(100.0),
        };
        let library = |name: &str| Bound {
            name: name.into(),
            path: None,
            for_programs: "/lib/c.so".into(),
        };
        let libraries = [library("one"), library("two")];
        let tasks = named("refill", 2).unwrap();
        let taken = [vec![vec![Some(sample); 3], vec![Some(sample), None, None]]];
        let results = results(&libraries, &tasks, &taken).unwrap();
        assert_eq!(results.configs(), ["one"]);
        let rows: Vec<_> = results
            .rows()
            .iter()
            .map(|row| (row.metric().name, row.samples()[2]))
            .collect();
        let expected = [
            ("time", 1.0),
            ("cpu", 0.5),
            ("peak", 150.0),
            ("over-live", 50.0),
        ];
        assert_eq!(rows, expected);
    }
}
