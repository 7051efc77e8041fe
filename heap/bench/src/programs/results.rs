//! Makes the rows of the table from the samples.

use brickyard_results::{Host, Metric, Results, Row};

use super::Sample;
use super::library::Bound;
use super::task::Task;

const TIME: Metric<'static> = Metric::lower("time", "s");
const CPU: Metric<'static> = Metric::lower("cpu", "s");
const PEAK: Metric<'static> = Metric::lower("peak", "MiB");

/// How much more than the live memory the peak is.
const OVER_LIVE: Metric<'static> = Metric::lower("over-live", "%");

/// What is resident when the process has idled for a while.
const SETTLED: Metric<'static> = Metric::lower("settled", "MiB");

/// Of one start of a program.
const START_TIME: Metric<'static> = Metric::lower("start-time", "µs");
const START_CPU: Metric<'static> = Metric::lower("start-cpu", "µs");
const START_FAULTS: Metric<'static> = Metric::lower("start-faults", "faults");

/// The metrics in the order of a task's rows.
type Value = fn(&Sample) -> Option<f64>;
const METRICS: [(Metric<'static>, Value); 8] = [
    (TIME, |sample| whole(sample, sample.time_s)),
    (CPU, |sample| whole(sample, sample.cpu_s)),
    (START_TIME, |sample| a_start(sample, sample.time_s * 1e6)),
    (START_CPU, |sample| a_start(sample, sample.cpu_s * 1e6)),
    (START_FAULTS, |sample| a_start(sample, sample.faults)),
    (PEAK, |sample| Some(sample.peak_mib)),
    (OVER_LIVE, |sample| {
        let live = sample.live_mib?;
        Some((sample.peak_mib / live - 1.0) * 100.0)
    }),
    (SETTLED, |sample| sample.settled_mib),
];

/// Returns the value of a sample that is one run.
fn whole(sample: &Sample, value: f64) -> Option<f64> {
    sample.starts.is_none().then_some(value)
}

/// Returns the part of one start of a sample that is many.
fn a_start(sample: &Sample, value: f64) -> Option<f64> {
    sample.starts.map(|starts| value / starts)
}

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

    /// The metrics of a task's rows, with their last samples.
    fn rows(task: &str, sample: Sample) -> Vec<(String, f64)> {
        let library = |name: &str| Bound {
            name: name.into(),
            path: None,
            for_programs: "/lib/c.so".into(),
        };
        let libraries = [library("one"), library("two")];
        let tasks = named(task, 2).unwrap();
        let taken = [vec![vec![Some(sample); 3], vec![Some(sample), None, None]]];
        let results = results(&libraries, &tasks[..1], &taken).unwrap();
        assert_eq!(results.configs(), ["one"]);
        let rows = results.rows().iter();
        rows.map(|row| (row.metric().name.to_owned(), row.samples()[2]))
            .collect()
    }

    const SAMPLE: Sample = Sample {
        time_s: 1.0,
        cpu_s: 0.5,
        peak_mib: 150.0,
        live_mib: None,
        settled_mib: None,
        faults: 300.0,
        starts: None,
    };

    fn named_values(values: &[(&str, f64)]) -> Vec<(String, f64)> {
        let values = values.iter();
        values.map(|&(name, value)| (name.into(), value)).collect()
    }

    #[test]
    fn a_row_has_a_sample_a_round() {
        let sample = Sample {
            live_mib: Some(100.0),
            settled_mib: Some(9.0),
            ..SAMPLE
        };
        let expected = [
            ("time", 1.0),
            ("cpu", 0.5),
            ("peak", 150.0),
            ("over-live", 50.0),
            ("settled", 9.0),
        ];
        assert_eq!(rows("refill", sample), named_values(&expected));
    }

    #[test]
    fn a_start_is_a_part_of_many() {
        let sample = Sample {
            starts: Some(100.0),
            ..SAMPLE
        };
        let expected = [
            ("start-time", 1e4),
            ("start-cpu", 5e3),
            ("start-faults", 3.0),
            ("peak", 150.0),
        ];
        assert_eq!(rows("start-true", sample), named_values(&expected));
    }
}
